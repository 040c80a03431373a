//! A Hugging Face folder as the GGUF file that a converter would make of it: `config.json` becomes
//! metadata, the tensors of safetensors files get GGUF names and the requested types, and packed tensors
//! keep their bits. `text` reads the tokenizers.

mod dense;
mod metadata;
mod names;
mod packed;
mod quantize;
mod recipes;
mod rope;
mod scales;
mod sentence_transformers;
mod shards;
mod tower;

pub use metadata::{MAX_NEW_TOKENS_KEY, add_recommendations};
pub use quantize::Quantize;
pub(super) use tower::read as read_tower;

use self::sentence_transformers::Pipeline;
use super::{
    architectures,
    config::{ConfigJson, json::MAX_JSON_BYTES},
    vision,
};
use crate::{
    Error, Result,
    weights::{ConvertedSource, Gguf, JoinedSource, ModelFiles, files::read_small},
};

/// Reads the folder's description of its model, and plans the conversion of its tensors.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the file and what is wrong with
/// it; the errors of `files`.
pub(super) async fn read<F: ModelFiles>(
    files: &F,
    quantize: Quantize,
) -> Result<(Gguf, ConvertedSource<JoinedSource<F::Source>>)> {
    let bytes = read_small(files, "config.json", MAX_JSON_BYTES).await?;
    let bytes = bytes.ok_or_else(|| {
        Error::InvalidModelFile("the folder has no config.json, or the model no .gguf name".into())
    })?;
    let mut config = ConfigJson::parse(&bytes)?;
    let family = vision::find_by_config(&config)?;
    config = match family {
        Some(family) => (family.folder.text)(&config)?,
        None => text_config(config)?,
    };
    let pipeline = Pipeline::read(files).await?;
    let (architecture, mut metadata) = metadata::read(&mut config, pipeline.as_ref())?;
    // A browser logs every file that is not there, and folders of sentence-transformers have neither this one nor an index.
    let is_writer = pipeline.is_none();
    if is_writer
        && let Some(bytes) = read_small(files, "generation_config.json", MAX_JSON_BYTES).await?
    {
        add_recommendations(&mut metadata, &bytes)?;
    }
    let dense = pipeline.map_or(Vec::new(), |pipeline| pipeline.dense);
    let shards = shards::read(files, &dense, is_writer).await?;
    let tensors = tower::text_tensors(family, architecture.other_parts, shards.tensors);
    let mut recipes = recipes::recipes(architecture, &config, tensors, quantize)?;
    recipes.extend(recipes::dense(shards.dense, quantize)?);
    ConvertedSource::new(shards.source, metadata, recipes)
}

/// The configuration of the text model of a folder whose other parts are not run.
fn text_config(config: ConfigJson) -> Result<ConfigJson> {
    let Some(mut text) = config.object("text_config")? else {
        return Ok(config);
    };
    let architecture = architectures::find_by_config(&text);
    if !architecture.is_ok_and(|it| !it.other_parts.is_empty()) {
        return Ok(config);
    }
    for key in ["tie_word_embeddings", "quantization_config"] {
        if let Some(value) = config.get(key).cloned() {
            text.add(key, value);
        }
    }
    Ok(text)
}

/// The GGUF name of a checkpoint's tensor; `None` if GGUF files stack it with those of other experts.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a tensor that the architecture does not have.
pub(super) fn gguf_name(architecture: &str, name: &str) -> Result<Option<String>> {
    let in_text = tower::text_name(name);
    let name = in_text.as_deref().unwrap_or(name);
    let tensors = names::find(architectures::find(architecture)?, &[], name)?;
    let tensor = tensors.into_iter().find(|it| it.expert.is_none());
    Ok(tensor.map(|it| it.name))
}

#[cfg(test)]
mod tests;
