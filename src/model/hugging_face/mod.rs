//! A Hugging Face folder as a GGUF file would describe it: `config.json` becomes metadata, safetensors
//! become tensors of GGUF's names and of the types asked for. Knows nothing of tokenizers.

mod config;
mod metadata;
mod names;
mod quantize;
mod rope;
mod shards;

pub use quantize::Quantize;

use std::collections::BTreeMap;

use self::{config::Config, names::Place};
use crate::{
    Error, Result,
    weights::{
        ConvertedSource, Gguf, JoinedSource, Metadata, ModelFiles, TensorInfo, TensorType,
        converted::{Origin, Recipe},
        files::read_small,
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
    let config = Config::parse(&bytes)?;
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
    stored: Vec<TensorInfo>,
    quantize: Quantize,
) -> Result<Vec<Recipe>> {
    let architecture = metadata.str("general.architecture")?.unwrap_or_default();
    let has_head = stored.iter().any(|tensor| tensor.name == names::HEAD);
    let tied = config.bool("tie_word_embeddings")?.unwrap_or(!has_head);
    if !tied && !has_head {
        return Err(Error::InvalidModelFile(format!(
            "tensor {} is missing",
            names::HEAD
        )));
    }
    let mut recipes: Vec<Recipe> = Vec::new();
    // By name: where the recipe is, and its experts in their order.
    let mut stacks: BTreeMap<String, (usize, BTreeMap<usize, TensorInfo>)> = BTreeMap::new();
    for tensor in stored {
        if names::is_left_out(&tensor.name) || (tied && tensor.name == names::HEAD) {
            continue;
        }
        let Place { name, expert, plus } = names::place(architecture, &tensor.name)?;
        if let Some(expert) = expert {
            let at = recipes.len();
            let (at, experts) = stacks.entry(name.clone()).or_insert((at, BTreeMap::new()));
            if *at == recipes.len() {
                recipes.push(recipe(name, &tensor, tied, quantize, Vec::new(), plus));
            }
            experts.insert(expert, tensor);
        } else {
            let origin = vec![tensor.clone()];
            recipes.push(recipe(name, &tensor, tied, quantize, origin, plus));
        }
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
        recipe.origin = Origin::Stored(experts.into_values().collect(), 0.0);
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

fn recipe(
    name: String,
    tensor: &TensorInfo,
    tied: bool,
    quantize: Quantize,
    origin: Vec<TensorInfo>,
    plus: f32,
) -> Recipe {
    Recipe {
        ty: quantize.ty(&name, tensor, tied),
        name,
        shape: tensor.shape.clone(),
        origin: Origin::Stored(origin, plus),
    }
}

#[cfg(test)]
mod tests;
