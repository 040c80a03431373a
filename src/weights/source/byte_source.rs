//! Random access to the bytes of a file.

use crate::{Error, Result};

/// Random access to the bytes of one model file: a local file, a `Blob`, HTTP ranges, OPFS.
///
/// Futures need not be `Send`: everything runs on one thread, in the browser's worker too.
#[allow(async_fn_in_trait)]
pub trait ByteSource {
    /// Size of the whole file in bytes.
    fn size_bytes(&self) -> u64;

    /// Fills `buf` with the bytes from `offset_bytes` on.
    ///
    /// # Errors
    /// [`Error::Read`] if the range is outside the file or the transport fails.
    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()>;

    /// `len_bytes` bytes from `offset_bytes` on. The caller has checked that the file has that many.
    ///
    /// # Errors
    /// Same as [`read_at`](ByteSource::read_at).
    async fn read_vec(&self, offset_bytes: u64, len_bytes: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len_bytes as usize];
        self.read_at(offset_bytes, &mut bytes).await?;
        Ok(bytes)
    }
}

/// Fails with [`Error::Read`] unless `len_bytes` bytes from `offset_bytes` on are in a file of
/// `size_bytes`. For implementations of [`ByteSource`].
///
/// # Errors
/// [`Error::Read`] that names the range and the file's size.
pub fn check_range(offset_bytes: u64, len_bytes: usize, size_bytes: u64) -> Result<()> {
    let end = offset_bytes.checked_add(len_bytes as u64);
    if end.is_none_or(|end| end > size_bytes) {
        return Err(Error::Read(format!(
            "{len_bytes} bytes at offset {offset_bytes} are outside the file of {size_bytes} bytes"
        )));
    }
    Ok(())
}
