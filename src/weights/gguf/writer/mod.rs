//! Writes GGUF v3 files; tensor data is streamed.

use std::collections::HashSet;
use std::io::{self, Write};

use super::{
    contents::{MAGIC, alignment_bytes},
    metadata::{Metadata, MetadataArray, MetadataValue, with_number_types},
};
use crate::{
    Error, Result,
    tensor_types::TensorType,
    weights::{
        quoted::quoted,
        tensor::{TensorInfo, checked_size_bytes},
    },
};

const VERSION: u32 = 3;

/// Describes a GGUF file: metadata first, then the tensors in the order of their data.
/// [`GgufWriter::start`] writes the header; the data then streams through [`TensorDataWriter`].
///
/// ```
/// # use inpage::{tensor_types::TensorType, weights::{GgufWriter, Metadata}};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut metadata = Metadata::new();
/// metadata.insert("general.architecture", "llama");
/// let mut writer = GgufWriter::new(metadata)?;
/// writer.tensor("output_norm.weight", &[64], TensorType::Q8_0)?;
/// let mut data = writer.start(Vec::new())?;
/// data.write(&TensorType::Q8_0.quantize(&[1.0; 64]))?;
/// let file: Vec<u8> = data.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GgufWriter {
    metadata: Metadata,
    alignment_bytes: u64,
    /// Offsets are relative to the start of the data until `start` is called.
    tensors: Vec<TensorInfo>,
    names: HashSet<String>,
    data_bytes: u64,
}

impl GgufWriter {
    /// A file with this metadata, aligned to its `general.alignment` (32 by default).
    ///
    /// # Errors
    /// Fails if `general.alignment` is not a power of two or is larger than 1 MiB.
    pub fn new(metadata: Metadata) -> Result<GgufWriter> {
        let alignment_bytes = alignment_bytes(&metadata)?;
        Ok(GgufWriter {
            metadata,
            alignment_bytes,
            tensors: Vec::new(),
            names: HashSet::new(),
            data_bytes: 0,
        })
    }

    /// Adds a tensor after the others; `shape[0]` is contiguous.
    ///
    /// # Errors
    /// Fails if the name is empty or already used, or the type cannot have this shape.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        shape: &[u64],
        ty: TensorType,
    ) -> Result<&TensorInfo> {
        let name = name.into();
        let size_bytes = checked_size_bytes(&name, shape, ty)?;
        if name.is_empty() || !self.names.insert(name.clone()) {
            return Err(Error::InvalidModelFile(format!(
                "the tensor name {} is empty or taken",
                quoted(&name)
            )));
        }
        let offset_bytes = self.data_bytes;
        self.data_bytes = offset_bytes
            .checked_add(size_bytes)
            .and_then(|end| end.checked_next_multiple_of(self.alignment_bytes))
            .ok_or_else(|| {
                Error::InvalidModelFile("the tensors are larger than 2^64 bytes".into())
            })?;
        self.tensors.push(TensorInfo {
            name,
            shape: shape.to_vec(),
            ty,
            offset_bytes,
            size_bytes,
        });
        Ok(&self.tensors[self.tensors.len() - 1])
    }

    /// Writes the header and returns the writer for the data of all tensors, in order.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn start<W: Write>(mut self, mut out: W) -> io::Result<TensorDataWriter<W>> {
        let mut header = self.encode_header();
        let data_start = (header.len() as u64).next_multiple_of(self.alignment_bytes);
        header.resize(data_start as usize, 0);
        out.write_all(&header)?;
        for tensor in &mut self.tensors {
            tensor.offset_bytes += data_start;
        }
        Ok(TensorDataWriter {
            out,
            tensors: self.tensors,
            alignment_bytes: self.alignment_bytes,
            current: 0,
            written_bytes: 0,
        })
    }

    fn encode_header(&self) -> Vec<u8> {
        let mut out = Vec::from(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in self.metadata.iter() {
            encode_string(&mut out, key);
            encode_value(&mut out, value);
        }
        for tensor in &self.tensors {
            encode_string(&mut out, &tensor.name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            out.extend(tensor.shape.iter().flat_map(|dim| dim.to_le_bytes()));
            out.extend(tensor.ty.gguf_id().to_le_bytes());
            out.extend(tensor.offset_bytes.to_le_bytes());
        }
        out
    }
}

/// Writes the data of the tensors, in order and in pieces of any size, with padding between them.
#[derive(Debug)]
pub struct TensorDataWriter<W> {
    out: W,
    tensors: Vec<TensorInfo>,
    alignment_bytes: u64,
    /// Index of the tensor that the next bytes belong to.
    current: usize,
    /// Bytes of that tensor written so far.
    written_bytes: u64,
}

impl<W: Write> TensorDataWriter<W> {
    /// The tensor that the next bytes belong to; `None` when all are complete.
    pub fn current(&self) -> Option<&TensorInfo> {
        self.tensors.get(self.current)
    }

    /// Writes the next bytes of the current tensor. The last byte completes it.
    ///
    /// # Errors
    /// `InvalidInput` for more bytes than the tensor still needs; errors of the output.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let missing_bytes = self
            .current()
            .map_or(0, |tensor| tensor.size_bytes - self.written_bytes);
        if bytes.len() as u64 > missing_bytes {
            return Err(self.refused(&format!("{} bytes more", bytes.len())));
        }
        self.out.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        if bytes.len() as u64 == missing_bytes {
            let padding =
                self.written_bytes.next_multiple_of(self.alignment_bytes) - self.written_bytes;
            io::copy(&mut io::Read::take(io::repeat(0), padding), &mut self.out)?;
            self.current += 1;
            self.written_bytes = 0;
        }
        Ok(())
    }

    /// Completes the file and returns the output.
    ///
    /// # Errors
    /// `InvalidInput` if data is missing; errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.current < self.tensors.len() {
            return Err(self.refused("the end"));
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn refused(&self, what: &str) -> io::Error {
        let position = match self.current() {
            Some(tensor) => format!(
                "tensor {} with {} of its {} bytes",
                quoted(&tensor.name),
                self.written_bytes,
                tensor.size_bytes
            ),
            None => "the last tensor".into(),
        };
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{what} after {position}"),
        )
    }
}

fn encode_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn encode_value(out: &mut Vec<u8>, value: &MetadataValue) {
    out.extend(value.value_type().id().to_le_bytes());
    macro_rules! encode {
        ($($variant:ident($number:ty)),*) => {
            match value {
                $(MetadataValue::$variant(v) => out.extend(v.to_le_bytes()),)*
                MetadataValue::Bool(v) => out.push(u8::from(*v)),
                MetadataValue::String(v) => encode_string(out, v),
                MetadataValue::Array(array) => encode_array(out, array),
            }
        };
    }
    with_number_types!(encode);
}

fn encode_array(out: &mut Vec<u8>, array: &MetadataArray) {
    out.extend(array.element_type().id().to_le_bytes());
    out.extend((array.len() as u64).to_le_bytes());
    macro_rules! encode {
        ($($variant:ident($number:ty)),*) => {
            match array {
                $(MetadataArray::$variant(numbers) => {
                    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                })*
                MetadataArray::Bool(bools) => out.extend(bools.iter().map(|&v| u8::from(v))),
                MetadataArray::String(strings) => {
                    strings.iter().for_each(|it| encode_string(out, it));
                }
            }
        };
    }
    with_number_types!(encode);
}

#[cfg(test)]
mod tests;
