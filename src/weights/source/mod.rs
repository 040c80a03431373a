//! Where a model's bytes come from. Knows nothing of what they mean.

mod bytes;
#[cfg(not(target_arch = "wasm32"))]
mod file;
mod joined;

pub use bytes::BytesSource;
#[cfg(not(target_arch = "wasm32"))]
pub use file::FileSource;
pub use joined::JoinedSource;

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
    /// [`crate::Error::Read`] if the range is outside the file or the transport fails.
    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()>;
}

/// Fails with [`Error::Read`] unless `len_bytes` bytes from `offset_bytes` on lie in a file of
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
