//! Reads the pooling and the dense layers of a sentence-transformers folder: `modules.json` lists the modules after the
//! transformer. The pooling and each dense layer have a `config.json` of their own.

use serde_json::Value;

use super::dense::Dense;
use crate::{
    Error, Result,
    model::config::{
        embedding::{DENSE, NORMALIZE, POOLING_TYPE},
        json::MAX_JSON_BYTES,
    },
    weights::{Metadata, ModelFiles, files::read_small, quoted::quoted},
};

/// The modules that follow the transformer.
#[derive(Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// `pooling_type` of GGUF files.
    pooling_type: u32,
    /// The layers that the pooled vector passes, at most as many as GGUF files name.
    pub dense: Vec<Dense>,
    normalizes: bool,
}

/// The poolings of `1_Pooling/config.json`, and their numbers in GGUF files; 0 if there is none.
const POOLINGS: [(&str, u32); 8] = [
    ("pooling_mode_mean_tokens", 1),
    ("pooling_mode_cls_token", 2),
    ("pooling_mode_lasttoken", 3),
    ("pooling_mode_max_tokens", 0),
    ("pooling_mode_mean_sqrt_len_tokens", 0),
    ("pooling_mode_weightedmean_tokens", 0),
    ("pooling_mode_weighted_mean_tokens", 0),
    ("pooling_mode_last_token", 3),
];

impl Pipeline {
    /// Reads the folder's files; `None` without `modules.json`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming a module or a pooling that this build does not compute,
    /// [`Error::InvalidModelFile`] for files that contradict themselves; errors of `files`.
    pub async fn read<F: ModelFiles>(files: &F) -> Result<Option<Pipeline>> {
        let Some(modules) = json(files, "modules.json").await? else {
            return Ok(None);
        };
        let modules = modules.as_array().map_or(&[][..], Vec::as_slice);
        let mut pooling_type = None;
        let mut dense = Vec::new();
        let mut normalizes = false;
        for (i, module) in modules.iter().enumerate() {
            let text = |key: &str| module[key].as_str().unwrap_or_default();
            let path = text("path").trim_end_matches('/');
            let kind = text("type").rsplit('.').next().unwrap_or_default();
            match (kind, pooling_type) {
                ("Transformer", None) if i == 0 && path.is_empty() => {}
                ("Pooling", None) if i == 1 => {
                    let (name, config) = module_config(files, path).await?;
                    pooling_type = Some(pooling(&name, &config)?);
                }
                ("Dense", Some(_)) if !normalizes && dense.len() < DENSE.len() => {
                    let (name, config) = module_config(files, path).await?;
                    dense.push(Dense::read(path, &name, config)?);
                }
                ("Normalize", Some(_)) => normalizes = true,
                _ => {
                    let kind: String = kind.chars().take(64).collect();
                    let what = format!("modules.json: module {i}, {kind:?}, at {path:?}");
                    return Err(Error::UnsupportedModel(what));
                }
            }
        }
        let none = || Error::UnsupportedModel("modules.json: no pooling".into());
        Ok(Some(Pipeline {
            pooling_type: pooling_type.ok_or_else(none)?,
            dense,
            normalizes,
        }))
    }

    /// Adds the keys of GGUF files.
    pub fn add(&self, metadata: &mut Metadata, architecture: &str) {
        metadata.insert(format!("{architecture}.{POOLING_TYPE}"), self.pooling_type);
        metadata.insert(format!("{architecture}.{NORMALIZE}"), self.normalizes);
        for (name, dense) in DENSE.iter().zip(&self.dense) {
            metadata.insert(format!("{architecture}.{name}_feat_in"), dense.cols);
            metadata.insert(format!("{architecture}.{name}_feat_out"), dense.rows);
        }
    }
}

/// The only pooling that the file selects.
fn pooling(file: &str, config: &Value) -> Result<u32> {
    let selected = |(key, _): &&(&str, u32)| config[*key].as_bool().unwrap_or(false);
    let found: Vec<_> = POOLINGS.iter().filter(selected).collect();
    match found[..] {
        [(key, 0)] => Err(Error::UnsupportedModel(format!("{file}: {key}"))),
        [(_, number)] => Ok(*number),
        [] => Err(Error::InvalidModelFile(format!(
            "{file} selects no pooling"
        ))),
        _ => Err(Error::UnsupportedModel(format!(
            "{file}: several poolings side by side"
        ))),
    }
}

/// The name and the contents of a module's `config.json`. `folder` comes from `modules.json`, and must not refer to a
/// file outside of the model's folder.
async fn module_config<F: ModelFiles>(files: &F, folder: &str) -> Result<(String, Value)> {
    if folder.is_empty() || folder == ".." || folder.contains(['/', '\\', ':', '%']) {
        let folder = quoted(folder);
        return Err(Error::InvalidModelFile(format!(
            "modules.json: {folder} is no name of a folder"
        )));
    }
    let name = format!("{folder}/config.json");
    let missing = || Error::InvalidModelFile(format!("{name} is missing"));
    let config = json(files, &name).await?.ok_or_else(missing)?;
    Ok((name, config))
}

async fn json<F: ModelFiles>(files: &F, name: &str) -> Result<Option<Value>> {
    let Some(bytes) = read_small(files, name, MAX_JSON_BYTES).await? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&bytes);
    value
        .map(Some)
        .map_err(|error| Error::InvalidModelFile(format!("{name}: {error}")))
}
