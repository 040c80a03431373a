//! Reads little-endian values and GGUF's strings in sequence from a byte source, fetching growing chunks ahead.

use crate::{Error, Result, weights::source::ByteSource};

/// Size of the first read; it covers the header of a model with a small vocabulary.
const FIRST_CHUNK_BYTES: usize = 256 << 10;
/// Reads double up to this size.
const MAX_CHUNK_BYTES: usize = 8 << 20;
/// Longest header accepted. The largest real vocabularies (262,144 tokens) make about 20 MB.
const MAX_HEADER_BYTES: u64 = 128 << 20;

pub(super) struct Cursor<'a, S> {
    source: &'a S,
    /// Bytes that are fetched and not dropped yet; `buffer[next]` is the next to read.
    buffer: Vec<u8>,
    next: usize,
    /// File offset of the end of `buffer`.
    fetched_bytes: u64,
    chunk_bytes: usize,
}

impl<'a, S: ByteSource> Cursor<'a, S> {
    pub fn new(source: &'a S) -> Self {
        Cursor {
            source,
            buffer: Vec::new(),
            next: 0,
            fetched_bytes: 0,
            chunk_bytes: FIRST_CHUNK_BYTES,
        }
    }

    /// Bytes read so far.
    pub fn position_bytes(&self) -> u64 {
        self.fetched_bytes - (self.buffer.len() - self.next) as u64
    }

    /// Bytes of the file not read so far.
    pub fn remaining_bytes(&self) -> u64 {
        self.source.size_bytes() - self.position_bytes()
    }

    /// The next `count` bytes.
    pub async fn bytes(&mut self, count: u64) -> Result<&[u8]> {
        if count > (self.buffer.len() - self.next) as u64 {
            self.fetch(count).await?;
        }
        let start = self.next;
        // Buffered, so it fits usize.
        self.next += count as usize;
        Ok(&self.buffer[start..self.next])
    }

    /// Makes at least `count` bytes available after `next`.
    async fn fetch(&mut self, count: u64) -> Result<()> {
        let position = self.position_bytes();
        if count > self.remaining_bytes() {
            return Err(invalid(format!(
                "the file ends: {count} bytes are needed at offset {position}, {} remain",
                self.remaining_bytes()
            )));
        }
        if position + count > MAX_HEADER_BYTES {
            return Err(invalid(format!(
                "the header is longer than the limit of {MAX_HEADER_BYTES} bytes"
            )));
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let kept = self.buffer.len();
        let unfetched = self.source.size_bytes() - self.fetched_bytes;
        // At least what is needed, preferably a chunk, at most the rest. `count` is at most
        // MAX_HEADER_BYTES here and so fits usize.
        let wanted = (count as usize - kept).max(self.chunk_bytes) as u64;
        let wanted = wanted.min(unfetched) as usize;
        self.buffer.resize(kept + wanted, 0);
        self.source
            .read_at(self.fetched_bytes, &mut self.buffer[kept..])
            .await?;
        self.fetched_bytes += wanted as u64;
        self.chunk_bytes = (self.chunk_bytes * 2).min(MAX_CHUNK_BYTES);
        Ok(())
    }

    pub async fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N as u64).await?);
        Ok(array)
    }

    pub async fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array().await?))
    }

    pub async fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array().await?))
    }

    /// A string: a u64 length in bytes, then that much UTF-8.
    pub async fn string(&mut self, max_bytes: u64) -> Result<String> {
        let len_bytes = self.u64().await?;
        if len_bytes > self.remaining_bytes() {
            return Err(invalid(format!(
                "a string of {len_bytes} bytes, but only {} bytes of the file remain",
                self.remaining_bytes()
            )));
        }
        if len_bytes > max_bytes {
            return Err(invalid(format!(
                "a string of {len_bytes} bytes; the limit is {max_bytes}"
            )));
        }
        let start = self.position_bytes();
        match std::str::from_utf8(self.bytes(len_bytes).await?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(invalid(format!(
                "the string at offset {start} is not UTF-8"
            ))),
        }
    }
}

/// An error for a file that violates the format.
pub(super) fn invalid(what: impl Into<String>) -> Error {
    Error::InvalidModelFile(what.into())
}
