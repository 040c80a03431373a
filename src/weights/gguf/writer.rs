//! Writes GGUF v3 files, tensor data streamed. Knows nothing of what keys and tensors mean.

use std::collections::HashSet;
use std::io::{self, Write};

use super::tensor::checked_size_bytes;
use super::{MAGIC, Metadata, MetadataArray, MetadataValue, TensorInfo, alignment_bytes, quoted};
use crate::weights::TensorType;
use crate::{Error, Result};

const VERSION: u32 = 3;

/// Describes a GGUF file: metadata first, then the tensors in the order of their data.
/// [`GgufWriter::start`] writes the header; the data then streams through [`TensorDataWriter`].
///
/// ```
/// # use inpage::weights::{GgufWriter, Metadata, TensorType, quantize};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut metadata = Metadata::new();
/// metadata.insert("general.architecture", "llama");
/// let mut writer = GgufWriter::new(metadata)?;
/// writer.tensor("output_norm.weight", &[64], TensorType::Q8_0)?;
/// let mut data = writer.start(Vec::new())?;
/// data.write(&quantize(TensorType::Q8_0, &[1.0; 64]))?;
/// let file: Vec<u8> = data.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GgufWriter {
    metadata: Metadata,
    alignment_bytes: u64,
    /// Offsets count from the start of the data until `start`.
    tensors: Vec<TensorInfo>,
    names: HashSet<String>,
    data_bytes: u64,
}

impl GgufWriter {
    /// A file with this metadata, aligned as its `general.alignment` says (32 without it).
    ///
    /// # Errors
    /// If `general.alignment` is no power of two.
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
    /// If the name is empty or taken, or the type cannot have this shape.
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

    /// Writes the header; what it gives takes the data of all tensors in order.
    ///
    /// # Errors
    /// What `out` fails with.
    pub fn start<W: Write>(mut self, mut out: W) -> io::Result<TensorDataWriter<W>> {
        let mut header = self.encode_header();
        let data_start = (header.len() as u64).next_multiple_of(self.alignment_bytes);
        // An alignment is at most 2^31, so the padding fits usize.
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

/// Takes the tensors' data, in their order and in pieces of any size, and pads between them.
#[derive(Debug)]
pub struct TensorDataWriter<W> {
    out: W,
    tensors: Vec<TensorInfo>,
    alignment_bytes: u64,
    /// Index of the tensor that the next bytes belong to.
    current: usize,
    /// Bytes of it written so far.
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
    /// `InvalidInput` for more bytes than the tensor lacks; what the output fails with.
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

    /// Ends the file and gives the output back.
    ///
    /// # Errors
    /// `InvalidInput` if data is missing; what the output fails with.
    pub fn finish(mut self) -> io::Result<W> {
        if self.current < self.tensors.len() {
            return Err(self.refused("the end"));
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn refused(&self, what: &str) -> io::Error {
        let place = match self.current() {
            Some(tensor) => format!(
                "tensor {} with {} of its {} bytes",
                quoted(&tensor.name),
                self.written_bytes,
                tensor.size_bytes
            ),
            None => "the last tensor".into(),
        };
        io::Error::new(io::ErrorKind::InvalidInput, format!("{what} after {place}"))
    }
}

fn encode_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn encode_value(out: &mut Vec<u8>, value: &MetadataValue) {
    out.extend(value.value_type().id().to_le_bytes());
    match value {
        MetadataValue::U8(v) => out.extend(v.to_le_bytes()),
        MetadataValue::I8(v) => out.extend(v.to_le_bytes()),
        MetadataValue::U16(v) => out.extend(v.to_le_bytes()),
        MetadataValue::I16(v) => out.extend(v.to_le_bytes()),
        MetadataValue::U32(v) => out.extend(v.to_le_bytes()),
        MetadataValue::I32(v) => out.extend(v.to_le_bytes()),
        MetadataValue::U64(v) => out.extend(v.to_le_bytes()),
        MetadataValue::I64(v) => out.extend(v.to_le_bytes()),
        MetadataValue::F32(v) => out.extend(v.to_le_bytes()),
        MetadataValue::F64(v) => out.extend(v.to_le_bytes()),
        MetadataValue::Bool(v) => out.push(u8::from(*v)),
        MetadataValue::String(v) => encode_string(out, v),
        MetadataValue::Array(array) => encode_array(out, array),
    }
}

fn encode_array(out: &mut Vec<u8>, array: &MetadataArray) {
    out.extend(array.element_type().id().to_le_bytes());
    out.extend((array.len() as u64).to_le_bytes());
    match array {
        MetadataArray::U8(v) => out.extend(v),
        MetadataArray::I8(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::U16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::I16(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::U32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::I32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::U64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::I64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::F32(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::F64(v) => out.extend(v.iter().flat_map(|v| v.to_le_bytes())),
        MetadataArray::Bool(v) => out.extend(v.iter().map(|&v| u8::from(v))),
        MetadataArray::String(v) => v.iter().for_each(|text| encode_string(out, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{BytesSource, Gguf, quantize};

    #[test]
    fn what_is_written_reads_back() {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "llama");
        metadata.insert("a.u8", 255u8);
        metadata.insert("a.i8", -1i8);
        metadata.insert("a.u16", 65_535u16);
        metadata.insert("a.i16", -2i16);
        metadata.insert("a.u32", u32::MAX);
        metadata.insert("a.i32", i32::MIN);
        metadata.insert("a.u64", u64::MAX);
        metadata.insert("a.i64", i64::MIN);
        metadata.insert("a.f32", 1.5f32);
        metadata.insert("a.f64", 1e300f64);
        metadata.insert("a.bool", true);
        metadata.insert("b.u8", vec![1u8, 2]);
        metadata.insert("b.i8", vec![-1i8, 2]);
        metadata.insert("b.u16", vec![1u16, 2]);
        metadata.insert("b.i16", vec![-1i16, 2]);
        metadata.insert("b.u32", vec![1u32, 2]);
        metadata.insert("b.i32", vec![-1i32; 70_000]);
        metadata.insert("b.u64", vec![1u64, 2]);
        metadata.insert("b.i64", vec![-1i64, 2]);
        metadata.insert("b.f32", vec![0.5f32, f32::INFINITY]);
        metadata.insert("b.f64", vec![0.5f64]);
        metadata.insert("b.bool", vec![true, false]);
        metadata.insert("b.empty", Vec::<String>::new());
        // Longer than the reader's first chunk.
        let tokens: Vec<String> = (0..50_000).map(|i| format!("token ü {i}")).collect();
        metadata.insert("b.string", tokens);

        let mut writer = GgufWriter::new(metadata.clone()).unwrap();
        let values: Vec<f32> = (0..96).map(|i| i as f32 / 7.0 - 5.0).collect();
        for (index, &ty) in TensorType::ALL.iter().enumerate() {
            writer.tensor(format!("t{index}"), &[32, 3], ty).unwrap();
        }
        let mut data = writer.start(Vec::new()).unwrap();
        while let Some(tensor) = data.current() {
            let bytes = quantize(tensor.ty, &values);
            let (first, rest) = bytes.split_at(bytes.len() / 3);
            data.write(first).unwrap();
            data.write(rest).unwrap();
        }
        let file = data.finish().unwrap();

        let gguf = pollster::block_on(Gguf::read(&BytesSource(&file))).unwrap();
        assert_eq!(gguf.version, 3);
        assert_eq!(gguf.metadata, metadata);
        assert_eq!(gguf.alignment_bytes, 32);
        assert_eq!(gguf.tensors.len(), TensorType::ALL.len());
        for (index, &ty) in TensorType::ALL.iter().enumerate() {
            let tensor = gguf.tensor(&format!("t{index}")).unwrap();
            assert_eq!((tensor.ty, tensor.shape.as_slice()), (ty, &[32, 3][..]));
            assert_eq!(tensor.offset_bytes % 32, 0);
            let start = tensor.offset_bytes as usize;
            let bytes = &file[start..start + tensor.size_bytes as usize];
            assert_eq!(bytes, quantize(ty, &values));
            assert_eq!((tensor.element_count(), tensor.row_count()), (96, 3));
            assert_eq!(tensor.row_bytes() * 3, tensor.size_bytes);
        }
        assert!(gguf.tensor("t9").is_none());
    }

    #[test]
    fn alignment_is_kept() {
        let mut metadata = Metadata::new();
        metadata.insert("general.alignment", 256u32);
        let mut writer = GgufWriter::new(metadata.clone()).unwrap();
        writer.tensor("a", &[3], TensorType::F32).unwrap();
        writer.tensor("b", &[3], TensorType::F32).unwrap();
        let mut data = writer.start(Vec::new()).unwrap();
        data.write(&[1; 12]).unwrap();
        data.write(&[2; 12]).unwrap();
        let file = data.finish().unwrap();
        let gguf = pollster::block_on(Gguf::read(&BytesSource(&file))).unwrap();
        assert_eq!(gguf.alignment_bytes, 256);
        let b = gguf.tensor("b").unwrap().offset_bytes;
        assert_eq!(b % 256, 0);
        assert_eq!(file[b as usize..][..12], [2; 12]);

        metadata.insert("general.alignment", 48u32);
        assert!(GgufWriter::new(metadata).is_err());
    }

    #[test]
    fn misuse_is_refused() {
        let mut writer = GgufWriter::new(Metadata::new()).unwrap();
        writer.tensor("a", &[32], TensorType::Q4_0).unwrap();
        for (name, shape) in [
            ("a", &[32][..]),
            ("", &[32]),
            ("b", &[]),
            ("b", &[33]),
            ("b", &[32, 0]),
            ("b", &[32, 1, 1, 1, 1]),
            ("b", &[1 << 32, 1 << 32]),
        ] {
            let refused = writer.tensor(name, shape, TensorType::Q4_0);
            assert!(refused.is_err(), "{name} {shape:?}");
        }
        let mut data = writer.clone().start(Vec::new()).unwrap();
        assert!(data.write(&[0; 19]).is_err());
        data.write(&[0; 18]).unwrap();
        assert!(data.write(&[0]).is_err());
        data.finish().unwrap();
        let unfinished = writer.start(Vec::new()).unwrap().finish();
        assert!(
            unfinished
                .unwrap_err()
                .to_string()
                .contains("\"a\" with 0 of its 18")
        );
    }
}
