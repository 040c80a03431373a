//! A file whose end is zeros that are not stored: headers are read as of files with all their tensors.

use inpage::weights::ByteSource;
use inpage::{Error, Result};

/// Zeros after the input. The models that the corpus was made from have fewer bytes of tensors.
const ZERO_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
pub struct Padded<'f>(pub &'f [u8]);

impl ByteSource for Padded<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64 + ZERO_BYTES
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset_bytes.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.size_bytes()) {
            return Err(Error::Read("outside of the file".to_owned()));
        }
        let start = (offset_bytes as usize).min(self.0.len());
        let stored = &self.0[start..(start + buf.len()).min(self.0.len())];
        buf[..stored.len()].copy_from_slice(stored);
        buf[stored.len()..].fill(0);
        Ok(())
    }
}
