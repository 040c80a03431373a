//! Several sources concatenated to one.

use super::byte_source::{ByteSource, check_range};
use crate::Result;

/// The concatenated bytes of several sources.
#[derive(Debug)]
pub struct JoinedSource<S> {
    parts: Vec<S>,
    /// The start of each part, and the end of the last one.
    starts: Vec<u64>,
}

impl<S: ByteSource> JoinedSource<S> {
    /// Concatenates `parts`.
    pub fn new(parts: Vec<S>) -> Self {
        let mut starts = vec![0];
        for part in &parts {
            // These are sizes of files, so their sum is far below 2^64.
            starts.push(starts[starts.len() - 1] + part.size_bytes());
        }
        Self { parts, starts }
    }

    /// The start of the part with this index.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn start_bytes(&self, part: usize) -> u64 {
        self.starts[part]
    }
}

impl<S: ByteSource> ByteSource for JoinedSource<S> {
    fn size_bytes(&self) -> u64 {
        self.starts[self.parts.len()]
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset_bytes, buf.len(), self.size_bytes())?;
        let mut read = 0;
        while read < buf.len() {
            let offset_bytes = offset_bytes + read as u64;
            let part = self.starts.partition_point(|&start| start <= offset_bytes) - 1;
            let in_part = self.starts[part + 1] - offset_bytes;
            let count = in_part.min((buf.len() - read) as u64) as usize;
            let piece = &mut buf[read..read + count];
            let within = offset_bytes - self.starts[part];
            self.parts[part].read_at(within, piece).await?;
            read += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;

    #[test]
    fn every_range_equals_that_of_the_joined_bytes() {
        let parts = [&[1u8, 2, 3][..], &[], &[4], &[5, 6]];
        let joined = JoinedSource::new(parts.map(BytesSource).to_vec());
        assert_eq!((joined.size_bytes(), joined.start_bytes(3)), (6, 4));
        let whole = parts.concat();
        for start in 0..=whole.len() {
            for end in start..=whole.len() {
                let mut bytes = vec![0; end - start];
                pollster::block_on(joined.read_at(start as u64, &mut bytes)).unwrap();
                assert_eq!(bytes, whole[start..end]);
            }
        }
        assert!(pollster::block_on(joined.read_at(5, &mut [0; 2])).is_err());
    }
}
