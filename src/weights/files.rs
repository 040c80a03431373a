//! The files of a model by name. Their contents are read elsewhere.

#[cfg(not(target_arch = "wasm32"))]
use std::path::{Path, PathBuf};

use super::source::ByteSource;
#[cfg(not(target_arch = "wasm32"))]
use super::source::FileSource;
use crate::{Error, Result};

/// The files that make up a model: in a folder, behind a URL, picked by a user.
#[allow(async_fn_in_trait)]
pub trait ModelFiles {
    /// The bytes of a file.
    type Source: ByteSource;

    /// The name of the GGUF file, or of its first part; none for a Hugging Face folder.
    fn gguf_name(&self) -> Option<String>;

    /// The file of this name, `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Read`] if the file exists and cannot be opened, or if that cannot be determined.
    async fn open(&self, name: &str) -> Result<Option<Self::Source>>;
}

/// A GGUF file with the other files of its folder, or a whole folder.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone)]
pub struct LocalFiles {
    folder: PathBuf,
    gguf_name: Option<String>,
}

#[cfg(not(target_arch = "wasm32"))]
impl LocalFiles {
    /// The model at a path.
    ///
    /// # Errors
    /// [`Error::Read`] for a path without a file name.
    pub fn at(path: impl AsRef<Path>) -> Result<LocalFiles> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(LocalFiles {
                folder: path.to_owned(),
                gguf_name: None,
            });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::Read(format!("{}: not a file", path.display())))?;
        Ok(LocalFiles {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            gguf_name: Some(name.to_owned()),
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl ModelFiles for LocalFiles {
    type Source = FileSource;

    fn gguf_name(&self) -> Option<String> {
        self.gguf_name.clone()
    }

    async fn open(&self, name: &str) -> Result<Option<FileSource>> {
        let path = self.folder.join(name);
        match path.exists() {
            true => FileSource::open(path).map(Some),
            false => Ok(None),
        }
    }
}

/// All bytes of a small file, at most `limit_bytes`; `None` if there is none.
///
/// # Errors
/// [`Error::InvalidModelFile`] for a larger one; errors of `files`.
pub async fn read_small<F: ModelFiles>(
    files: &F,
    name: &str,
    limit_bytes: u64,
) -> Result<Option<Vec<u8>>> {
    let Some(source) = files.open(name).await? else {
        return Ok(None);
    };
    let size_bytes = source.size_bytes();
    if size_bytes > limit_bytes {
        return Err(Error::InvalidModelFile(format!(
            "{name} has {size_bytes} bytes; the limit is {limit_bytes}"
        )));
    }
    Ok(Some(source.read_vec(0, size_bytes).await?))
}
