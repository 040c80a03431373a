//! The safetensors files of a folder: a single one, or those that an index names.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::{
    Error, Result,
    model::config::json::MAX_JSON_BYTES,
    weights::{
        JoinedSource, ModelFiles,
        files::read_small,
        safetensors::{self, StoredTensor},
    },
};

const ONE_FILE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Limit of the number of files; the largest real models have a few hundred.
const MAX_FILES: usize = 1024;

#[derive(Deserialize)]
struct Index {
    /// Files by tensor.
    weight_map: HashMap<String, String>,
}

/// The tensors of all files by their names in the checkpoint. Offsets count in the returned source.
pub async fn read<F: ModelFiles>(
    files: &F,
) -> Result<(Vec<StoredTensor>, JoinedSource<F::Source>)> {
    let invalid = |what: String| Error::InvalidModelFile(format!("{INDEX}: {what}"));
    let index = match read_small(files, INDEX, MAX_JSON_BYTES).await? {
        None => None,
        Some(bytes) => {
            let index: Index =
                serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
            Some(index.weight_map)
        }
    };
    let names: BTreeSet<&str> = match &index {
        None => BTreeSet::from([ONE_FILE]),
        Some(map) => map.values().map(String::as_str).collect(),
    };
    if names.len() > MAX_FILES {
        return Err(invalid(format!(
            "{} files; the limit is {MAX_FILES}",
            names.len()
        )));
    }
    // The index chooses the names. None may lead out of the folder.
    let is_plain =
        |name: &str| name.ends_with(".safetensors") && !name.contains(['/', '\\', ':', '%']);
    if let Some(name) = names.iter().find(|name| !is_plain(name)) {
        return Err(invalid(format!(
            "{name:?} is no name of a safetensors file"
        )));
    }
    let (mut sources, mut headers) = (Vec::new(), Vec::new());
    for &name in &names {
        let source = files
            .open(name)
            .await?
            .ok_or_else(|| Error::InvalidModelFile(format!("the folder has no file {name:?}")))?;
        let tensors = safetensors::read(name, &source).await?;
        if let Some(map) = &index {
            let foreign =
                |tensor: &&StoredTensor| map.get(&tensor.name).map(String::as_str) != Some(name);
            if let Some(tensor) = tensors.iter().find(foreign) {
                return Err(invalid(format!(
                    "{name:?} has a tensor {:?}, which the index does not say",
                    tensor.name
                )));
            }
        }
        headers.push(tensors);
        sources.push(source);
    }
    let source = JoinedSource::new(sources);
    let mut tensors = Vec::new();
    for (part, header) in headers.into_iter().enumerate() {
        tensors.extend(header.into_iter().map(|mut tensor| {
            tensor.offset_bytes += source.start_bytes(part);
            tensor
        }));
    }
    if let Some(map) = &index
        && map.len() != tensors.len()
    {
        let there: BTreeSet<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
        let lost = map.iter().find(|(name, _)| !there.contains(&***name));
        let (name, file) = lost.map_or(("", ""), |(name, file)| (name, file));
        return Err(invalid(format!("{file:?} has no tensor {name:?}")));
    }
    Ok((tensors, source))
}
