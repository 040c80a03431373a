//! The files of a model by name. Knows nothing of what is in them.

#[cfg(not(target_arch = "wasm32"))]
use std::path::{Path, PathBuf};

use super::ByteSource;
#[cfg(not(target_arch = "wasm32"))]
use super::FileSource;
use crate::{Error, Result};

/// The files that make up a model: in a folder, behind a URL, picked by a user.
#[allow(async_fn_in_trait)]
pub trait ModelFiles {
    /// A file's bytes.
    type Source: ByteSource;

    /// The name of the GGUF file, or of its first part; none for a Hugging Face folder.
    fn gguf_name(&self) -> Option<String>;

    /// The file of this name, `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Read`] if that cannot be found out.
    async fn open(&self, name: &str) -> Result<Option<Self::Source>>;
}

/// A GGUF file with those beside it, or a folder.
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
    /// [`Error::Read`] for a path that no file can have.
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
/// [`Error::InvalidModelFile`] for a larger one, what the files fail with.
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
    let mut bytes = vec![0; size_bytes as usize];
    source.read_at(0, &mut bytes).await?;
    Ok(Some(bytes))
}
