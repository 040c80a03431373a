//! Where a model's bytes come from. Knows nothing of what they mean.

use crate::Result;

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
