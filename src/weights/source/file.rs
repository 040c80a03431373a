//! A local file, for native programs and tests.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::byte_source::{ByteSource, check_range};
use crate::{Error, Result};

/// A [`ByteSource`] over a local file. Reads block, which is fine natively.
#[derive(Debug)]
pub struct FileSource {
    file: RefCell<File>,
    size_bytes: u64,
    name: String,
}

impl FileSource {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// [`Error::Read`] naming the path.
    pub fn open(path: impl AsRef<Path>) -> Result<FileSource> {
        let name = path.as_ref().display().to_string();
        let failed = |error: std::io::Error| Error::Read(format!("{name}: {error}"));
        let file = File::open(path.as_ref()).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(Error::Read(format!("{name}: not a file")));
        }
        Ok(FileSource {
            file: RefCell::new(file),
            size_bytes: about.len(),
            name,
        })
    }
}

impl ByteSource for FileSource {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset_bytes, buf.len(), self.size_bytes)?;
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(offset_bytes))
            .and_then(|_| file.read_exact(buf))
            .map_err(|error| Error::Read(format!("{}: {error}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_source_file() {
        let path = Path::new(file!());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let source = FileSource::open(&path).unwrap();
        let mut start = [0; 3];
        pollster::block_on(source.read_at(0, &mut start)).unwrap();
        assert_eq!(&start, b"//!");
        let outside = pollster::block_on(source.read_at(source.size_bytes() - 2, &mut start));
        assert!(matches!(outside, Err(Error::Read(_))));
    }

    #[test]
    fn errors_name_a_missing_file_and_folders_are_rejected() {
        let missing = FileSource::open("/no/such/model.gguf").unwrap_err();
        assert!(missing.to_string().contains("/no/such/model.gguf"));
        assert!(FileSource::open(env!("CARGO_MANIFEST_DIR")).is_err());
    }
}
