//! The recipes that make GGUF tensors of the tensors of a folder.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{
    metadata,
    names::{self, GgufTensor, HEAD},
    packed,
    quantize::Quantize,
    rope,
    scales::Scales,
};
use crate::{
    Error, Result,
    model::{
        architectures::{Architecture, Form},
        config::{ConfigJson, embedding::DENSE},
    },
    tensor_types::TensorType,
    weights::{
        converted::{Origin, Part, Recipe, RowFactors},
        quoted::quoted,
        safetensors::StoredTensor,
    },
};

/// The recipes of all tensors, in the order of their data in the folder.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming a tensor that is missing or that
/// the architecture does not have.
pub fn recipes(
    architecture: &Architecture,
    config: &ConfigJson,
    stored: Vec<StoredTensor>,
    quantize: Quantize,
) -> Result<Vec<Recipe>> {
    let mut parts = parts(architecture, config, stored)?;
    let has_head = parts.iter().any(|(tensor, _)| tensor.name == HEAD);
    let tied = config.bool("tie_word_embeddings")?.unwrap_or(!has_head);
    if tied {
        parts.retain(|(tensor, _)| tensor.name != HEAD);
    } else if !has_head {
        return Err(Error::InvalidModelFile(
            "tensor lm_head.weight is missing".into(),
        ));
    }
    let mut recipes: Vec<Recipe> = Vec::new();
    // The index of the recipe by its name, and the tensors of its experts.
    let mut stacks: BTreeMap<String, (usize, BTreeMap<usize, Part>)> = BTreeMap::new();
    for (GgufTensor { name, expert, .. }, part) in parts {
        let mut recipe = Recipe {
            ty: ty(&name, &part, tied, quantize),
            name: name.clone(),
            shape: part.shape(),
            origin: Origin::Stored(Vec::new()),
        };
        let Some(expert) = expert else {
            recipe.origin = Origin::Stored(vec![part]);
            recipes.push(recipe);
            continue;
        };
        let (_, experts) = match stacks.entry(name) {
            Entry::Occupied(stack) => stack.into_mut(),
            Entry::Vacant(stack) => {
                recipes.push(recipe);
                stack.insert((recipes.len() - 1, BTreeMap::new()))
            }
        };
        experts.insert(expert, part);
    }
    for (name, (index, experts)) in stacks {
        if !experts.keys().copied().eq(0..experts.len()) {
            return Err(Error::InvalidModelFile(format!(
                "an expert of tensor {name} is missing"
            )));
        }
        let recipe = &mut recipes[index];
        recipe.shape.push(experts.len() as u64);
        recipe.origin = Origin::Stored(experts.into_values().collect());
    }
    for (name, factors) in rope::factors(config)? {
        recipes.push(Recipe {
            name: name.into(),
            shape: vec![factors.len() as u64],
            ty: TensorType::F32,
            origin: Origin::Values(factors),
        });
    }
    Ok(recipes)
}

/// The recipes of the matrices of dense layers.
///
/// # Errors
/// [`Error::UnsupportedModel`] for a matrix that is not of floats.
pub fn dense(matrices: Vec<StoredTensor>, quantize: Quantize) -> Result<Vec<Recipe>> {
    let recipe = |(name, matrix): (&&str, StoredTensor)| {
        let matrix = matrix.into_floats()?;
        let name = format!("{name}.weight");
        Ok(Recipe {
            ty: quantize.ty(&name, &matrix.shape, matrix.ty, false),
            name,
            shape: matrix.shape.clone(),
            origin: Origin::Stored(vec![Part::Rows(matrix, 0.0)]),
        })
    };
    DENSE.iter().zip(matrices).map(recipe).collect()
}

/// The recipe of a tensor of a vision tower: matrices keep their type, others become f32. `offset` is
/// added to each element.
pub fn tower_recipe(name: String, stored: StoredTensor, offset: f32) -> Result<(u64, Recipe)> {
    let stored = stored.into_floats()?;
    let is_matrix = stored.shape.len() == 2 && name != "v.position_embd.weight";
    let recipe = Recipe {
        ty: if is_matrix {
            stored.ty
        } else {
            TensorType::F32
        },
        name,
        shape: stored.shape.clone(),
        origin: Origin::Stored(Vec::new()),
    };
    let offset_bytes = stored.offset_bytes;
    let origin = Origin::Stored(vec![Part::Rows(stored, offset)]);
    Ok((offset_bytes, Recipe { origin, ..recipe }))
}

/// The tensors of the folder in the order of their data, and the GGUF tensors that they belong to.
fn parts(
    architecture: &Architecture,
    config: &ConfigJson,
    stored: Vec<StoredTensor>,
) -> Result<Vec<(GgufTensor, Part)>> {
    let scheme = packed::scheme(config)?;
    let (matrices, stored) = match scheme {
        Some(scheme) => packed::split(scheme, stored)?,
        None => (Vec::new(), stored),
    };
    let mut parts: Vec<(u64, GgufTensor, Part)> = Vec::new();
    let parameters = (architecture.parameters)(config);
    let has_classifier = metadata::classes(architecture, config)?.is_some();
    for (name, start_bytes, packed) in matrices {
        for tensor in names::find(architecture, parameters, &name)? {
            if tensor.form != Form::SAME || row_factors(architecture, config, &tensor)?.is_some() {
                let what = format!("{} with a packed matrix {name}", architecture.name);
                return Err(Error::UnsupportedModel(what));
            }
            parts.push((start_bytes, tensor, Part::Packed(Box::new(packed.clone()))));
        }
    }
    let (scales, stored) = Scales::take(config, stored)?;
    for tensor in stored {
        let is_idle = scheme.is_some() && packed::is_idle_bias(config, &tensor.name)?;
        if is_idle || names::is_ignored(&tensor.name, has_classifier) {
            continue;
        }
        for target in names::find(architecture, parameters, &tensor.name)? {
            let mut part = scales.part(tensor.clone(), &target.name, target.form)?;
            if let Some(factors) = row_factors(architecture, config, &target)? {
                part = match part {
                    Part::Rows(stored, 0.0) => Part::Scaled(stored, factors),
                    _ => {
                        let name = quoted(&tensor.name);
                        let what = format!("{} with factors of {name}", architecture.name);
                        return Err(Error::UnsupportedModel(what));
                    }
                };
            }
            if let Some(factor) = scales.factor(&tensor.name)? {
                let name = target.name.replace(".weight", ".scale");
                let (expert, form) = (target.expert, target.form);
                let of_matrix = GgufTensor { name, expert, form };
                parts.push((tensor.offset_bytes, of_matrix, factor));
            }
            parts.push((tensor.offset_bytes, target, part));
        }
    }
    parts.sort_by_key(|(start_bytes, ..)| *start_bytes);
    let parts = parts.into_iter();
    Ok(parts.map(|(_, tensor, part)| (tensor, part)).collect())
}

/// The factors of the rows of a matrix in a layer, if the architecture has some.
fn row_factors(
    architecture: &Architecture,
    config: &ConfigJson,
    tensor: &GgufTensor,
) -> Result<Option<RowFactors>> {
    let Some(factors) = architecture.row_factors else {
        return Ok(None);
    };
    let module = tensor.name.strip_suffix(".weight");
    let part = module.and_then(|it| it.strip_prefix("blk.")?.split_once('.'));
    match part {
        Some((_, part)) => factors(config, part),
        None => Ok(None),
    }
}

/// The type that a tensor is converted to. Packed levels keep their bits if a block type can hold them.
fn ty(name: &str, part: &Part, tied: bool, quantize: Quantize) -> TensorType {
    let stored = match part {
        Part::Rows(stored, _)
        | Part::Transposed(stored)
        | Part::TransposedHalf(stored, _)
        | Part::Frame(stored, _)
        | Part::Selected(stored, _)
        | Part::ChannelsFirst(stored)
        | Part::NegatedExp(stored)
        | Part::Reciprocal(stored)
        | Part::Alternate(stored, _) => stored.ty,
        // Products with a factor have more bits than the 8 of some floats.
        Part::Scaled(stored, _) => match stored.ty {
            TensorType::BF16 => TensorType::F16,
            ty => ty,
        },
        Part::Mxfp4(_) => return TensorType::MXFP4,
        Part::Nvfp4(_) => return TensorType::NVFP4,
        Part::Ternary(matrix) => return matrix.ty(),
        // It has the bits of the level, and nearly those of the scale.
        Part::Fp8(_) => TensorType::F16,
        Part::Packed(packed) => match packed.blocks() {
            Some(ty) => return ty,
            None => TensorType::F16,
        },
    };
    quantize.ty(name, &part.shape(), stored, tied)
}
