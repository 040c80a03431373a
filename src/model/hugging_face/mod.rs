//! A Hugging Face folder as a GGUF file would describe it: `config.json` becomes metadata, safetensors
//! become tensors of GGUF's names and of the types asked for, packed ones of their own bits. Knows nothing of tokenizers.

mod config;
mod metadata;
mod names;
mod packed;
mod quantize;
mod rope;
mod shards;

pub use quantize::Quantize;

use std::collections::BTreeMap;

use self::{config::Config, names::Place};
use crate::{
    Error, Result,
    weights::{
        ConvertedSource, Gguf, JoinedSource, Metadata, ModelFiles, TensorType,
        converted::{Origin, Part, Recipe},
        files::read_small,
        safetensors::StoredTensor,
    },
};

/// Largest JSON file accepted, `tokenizer.json` apart.
const MAX_JSON_BYTES: u64 = 32 << 20;

/// Reads what the folder says of its model, and plans the conversion of its tensors.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the file and what is wrong with
/// it; what the files fail with.
pub(super) async fn read<F: ModelFiles>(
    files: &F,
    quantize: Quantize,
) -> Result<(Gguf, ConvertedSource<JoinedSource<F::Source>>)> {
    let bytes = read_small(files, "config.json", MAX_JSON_BYTES).await?;
    let bytes = bytes.ok_or_else(|| {
        Error::InvalidModelFile("the folder has no config.json, or the model no .gguf name".into())
    })?;
    let config = metadata::by_common_names(Config::parse(&bytes)?)?;
    let mut metadata = metadata::of(&config)?;
    if let Some(bytes) = read_small(files, "generation_config.json", MAX_JSON_BYTES).await? {
        metadata::add_sampling(&mut metadata, &bytes)?;
    }
    let (stored, source) = shards::read(files).await?;
    let recipes = recipes(&config, &metadata, stored, quantize)?;
    ConvertedSource::new(source, metadata, recipes)
}

/// GGUF's name of a checkpoint's tensor, if it is a tensor of its own there.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a tensor that has none.
pub(super) fn gguf_name(architecture: &str, name: &str) -> Result<Option<String>> {
    let Place { name, expert, .. } = names::place(architecture, name)?;
    Ok(expert.is_none().then_some(name))
}

/// What each tensor is made of, in the order of the stored ones.
fn recipes(
    config: &Config,
    metadata: &Metadata,
    stored: Vec<StoredTensor>,
    quantize: Quantize,
) -> Result<Vec<Recipe>> {
    let architecture = metadata.str("general.architecture")?.unwrap_or_default();
    let scheme = packed::scheme(config)?;
    let (matrices, stored) = match scheme {
        Some(scheme) => packed::split(scheme, stored)?,
        None => (Vec::new(), stored),
    };
    let mut parts: Vec<(u64, Place, Part)> = Vec::new();
    for (name, start_bytes, packed) in matrices {
        let place = names::place(architecture, &name)?;
        parts.push((start_bytes, place, Part::Packed(Box::new(packed))));
    }
    for tensor in stored {
        let is_idle = scheme.is_some() && packed::is_idle_bias(config, &tensor.name)?;
        if is_idle || names::is_left_out(&tensor.name) {
            continue;
        }
        let place = names::place(architecture, &tensor.name)?;
        let tensor = tensor.floats()?;
        let start_bytes = tensor.offset_bytes;
        let part = match place.is_transposed {
            true => Part::Transposed(tensor),
            false => Part::Rows(tensor, place.plus),
        };
        parts.push((start_bytes, place, part));
    }
    parts.sort_by_key(|(start_bytes, ..)| *start_bytes);
    let has_head = parts.iter().any(|(_, place, _)| place.name == names::HEAD);
    let tied = config.bool("tie_word_embeddings")?.unwrap_or(!has_head);
    if !tied && !has_head {
        return Err(Error::InvalidModelFile(
            "tensor lm_head.weight is missing".into(),
        ));
    }
    let mut recipes: Vec<Recipe> = Vec::new();
    // By name: where the recipe is, and its experts in their order.
    let mut stacks: BTreeMap<String, (usize, BTreeMap<usize, Part>)> = BTreeMap::new();
    for (_, place, part) in parts {
        let Place { name, expert, .. } = place;
        if tied && name == names::HEAD {
            continue;
        }
        let Some(expert) = expert else {
            recipes.push(Recipe {
                ty: ty(&name, &part, tied, quantize),
                name,
                shape: part.shape(),
                origin: Origin::Stored(vec![part]),
            });
            continue;
        };
        let at = recipes.len();
        let (at, experts) = stacks.entry(name.clone()).or_insert((at, BTreeMap::new()));
        if *at == recipes.len() {
            recipes.push(Recipe {
                ty: ty(&name, &part, tied, quantize),
                name,
                shape: part.shape(),
                origin: Origin::Stored(Vec::new()),
            });
        }
        experts.insert(expert, part);
    }
    for (name, (at, experts)) in stacks {
        if experts
            .keys()
            .ne((0..experts.len()).collect::<Vec<_>>().iter())
        {
            return Err(Error::InvalidModelFile(format!(
                "an expert of tensor {name} is missing"
            )));
        }
        let recipe = &mut recipes[at];
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

/// What a tensor becomes. Packed levels stay what they are where blocks can hold them.
fn ty(name: &str, part: &Part, tied: bool, quantize: Quantize) -> TensorType {
    let stored = match part {
        Part::Rows(stored, _) | Part::Transposed(stored) => stored.ty,
        Part::Packed(packed) => match packed.blocks() {
            Some(ty) => return ty,
            None => TensorType::F16,
        },
    };
    quantize.ty(name, &part.shape(), stored, tied)
}

#[cfg(test)]
mod tests;
