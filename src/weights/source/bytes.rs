//! A file that is in memory already.

use super::byte_source::{ByteSource, check_range};
use crate::Result;

/// A [`ByteSource`] over bytes in memory: a `Vec<u8>`, a `&[u8]`, an `Rc<[u8]>`, ...
#[derive(Debug, Clone)]
pub struct BytesSource<B>(pub B);

impl<B: AsRef<[u8]>> ByteSource for BytesSource<B> {
    fn size_bytes(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset_bytes, buf.len(), self.size_bytes())?;
        // The bytes are in memory, so the offset fits usize.
        let start = offset_bytes as usize;
        buf.copy_from_slice(&self.0.as_ref()[start..start + buf.len()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn reads_ranges_and_rejects_those_outside() {
        let source = BytesSource([1u8, 2, 3, 4]);
        let mut two = [0; 2];
        pollster::block_on(source.read_at(2, &mut two)).unwrap();
        assert_eq!(two, [3, 4]);
        for offset_bytes in [3, 4, u64::MAX] {
            let outside = pollster::block_on(source.read_at(offset_bytes, &mut two));
            assert!(matches!(outside, Err(Error::Read(_))), "{offset_bytes}");
        }
        pollster::block_on(source.read_at(4, &mut [])).unwrap();
    }
}
