//! The safetensors files of a folder: a single one, or those that an index names, and those of dense layers.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use super::dense::Dense;
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

/// The tensors of all files. Offsets count in `source`.
pub struct Shards<S> {
    /// The tensors of the transformer by their names in the checkpoint.
    pub tensors: Vec<StoredTensor>,
    /// The matrices of the dense layers, in their order.
    pub dense: Vec<StoredTensor>,
    /// The files, one after the other.
    pub source: JoinedSource<S>,
}

/// Reads the headers of the transformer's files and of those of its `dense` layers. With `index_first`, the folder is expected to have
/// an index, otherwise a single file.
///
/// # Errors
/// [`Error::InvalidModelFile`] naming the file and what is wrong with it; the errors of [`Dense::matrix`] and of
/// `files`.
pub async fn read<F: ModelFiles>(
    files: &F,
    dense: &[Dense],
    index_first: bool,
) -> Result<Shards<F::Source>> {
    let index = match !index_first && files.open(ONE_FILE).await?.is_some() {
        true => None,
        false => read_index(files).await?,
    };
    let names: BTreeSet<&str> = match &index {
        None => BTreeSet::from([ONE_FILE]),
        Some(map) => map.values().map(String::as_str).collect(),
    };
    let (mut sources, mut headers) = (Vec::new(), Vec::new());
    for &name in &names {
        let (source, header) = open(files, name).await?;
        headers.push((name, header));
        sources.push(source);
    }
    if let Some(map) = &index {
        check_index(map, &headers)?;
    }
    let mut matrices = Vec::new();
    for layer in dense {
        let (source, header) = open(files, &layer.file()).await?;
        matrices.push((sources.len(), layer.matrix(header)?));
        sources.push(source);
    }
    let source = JoinedSource::new(sources);
    let in_source = |part: usize, mut tensor: StoredTensor| {
        tensor.offset_bytes += source.start_bytes(part);
        tensor
    };
    let mut tensors = Vec::new();
    for (part, (_, header)) in headers.into_iter().enumerate() {
        tensors.extend(header.into_iter().map(|tensor| in_source(part, tensor)));
    }
    let matrices = matrices.into_iter();
    Ok(Shards {
        tensors,
        dense: matrices
            .map(|(part, tensor)| in_source(part, tensor))
            .collect(),
        source,
    })
}

/// A file and its header.
async fn open<F: ModelFiles>(files: &F, name: &str) -> Result<(F::Source, Vec<StoredTensor>)> {
    let missing = || Error::InvalidModelFile(format!("the folder has no file {name:?}"));
    let source = files.open(name).await?.ok_or_else(missing)?;
    let header = safetensors::read(name, &source).await?;
    Ok((source, header))
}

fn invalid(what: String) -> Error {
    Error::InvalidModelFile(format!("{INDEX}: {what}"))
}

/// The file of each tensor; `None` for folders without an index.
async fn read_index<F: ModelFiles>(files: &F) -> Result<Option<HashMap<String, String>>> {
    let Some(bytes) = read_small(files, INDEX, MAX_JSON_BYTES).await? else {
        return Ok(None);
    };
    let index: Index =
        serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    let names: BTreeSet<&String> = index.weight_map.values().collect();
    if names.len() > MAX_FILES {
        return Err(invalid(format!(
            "{} files; the limit is {MAX_FILES}",
            names.len()
        )));
    }
    // The names come from the index. None may refer to a file outside of the folder.
    let is_plain =
        |name: &str| name.ends_with(".safetensors") && !name.contains(['/', '\\', ':', '%']);
    match names.iter().find(|name| !is_plain(name)) {
        Some(name) => Err(invalid(format!(
            "{name:?} is no name of a safetensors file"
        ))),
        None => Ok(Some(index.weight_map)),
    }
}

/// Checks that the files hold exactly the tensors that the index assigns to them.
fn check_index(map: &HashMap<String, String>, headers: &[(&str, Vec<StoredTensor>)]) -> Result<()> {
    let mut found = BTreeSet::new();
    for (file, tensors) in headers {
        for tensor in tensors {
            if map.get(&tensor.name).map(String::as_str) != Some(file) {
                return Err(invalid(format!(
                    "{file:?} has a tensor {:?}, which the index does not assign to it",
                    tensor.name
                )));
            }
            found.insert(&tensor.name);
        }
    }
    match map.iter().find(|(name, _)| !found.contains(name)) {
        Some((name, file)) => Err(invalid(format!("{file:?} has no tensor {name:?}"))),
        None => Ok(()),
    }
}
