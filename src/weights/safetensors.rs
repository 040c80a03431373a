//! The header of a safetensors file (<https://github.com/huggingface/safetensors>): eight bytes of
//! length, then JSON. Tensor data is not read.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::{
    quoted::quoted,
    source::ByteSource,
    tensor::{TensorInfo, check_apart, checked_size_bytes},
};
use crate::{Error, Result, tensor_types::TensorType};

/// Longest header accepted; the largest real ones, with thousands of experts, have a few MB.
const MAX_HEADER_BYTES: u64 = 32 << 20;
/// The maximum number of tensors accepted.
const MAX_TENSORS: usize = 1 << 16;
/// Bytes before the JSON.
const LENGTH_BYTES: u64 = 8;

/// The JSON entry of one tensor.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    /// Outermost first.
    shape: Vec<u64>,
    /// Start and end, relative to the end of the header.
    data_offsets: [u64; 2],
}

impl Entry {
    /// The tensor of this entry, in a file whose data starts at `data_start` and has `data_bytes`. The error
    /// says what is wrong.
    fn stored(
        self,
        name: String,
        data_start: u64,
        data_bytes: u64,
    ) -> Result<StoredTensor, String> {
        let [start, end] = self.data_offsets;
        let size_bytes = end.checked_sub(start).filter(|_| end <= data_bytes);
        let fits = |size_bytes: &u64| match element_bytes(&self.dtype) {
            None => true,
            Some(bytes) => {
                let mut dims = self.shape.iter();
                let expected = dims.try_fold(bytes, |product, &dim| product.checked_mul(dim));
                expected == Some(*size_bytes)
            }
        };
        let Some(size_bytes) = size_bytes.filter(fits) else {
            return Err(format!(
                "tensor {} of type {} and shape {:?} has the data offsets {start} to {end}; the file has \
                 {data_bytes} bytes of data",
                quoted(&name),
                quoted(&self.dtype),
                self.shape
            ));
        };
        let mut shape = self.shape;
        shape.reverse();
        Ok(StoredTensor {
            name,
            shape,
            dtype: self.dtype,
            offset_bytes: data_start + start,
            size_bytes,
        })
    }
}

/// All entries of the header. A name may occur twice; duplicates are detected later.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// A tensor of any type in a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// The checkpoint's name: `model.norm.weight`.
    pub name: String,
    /// GGUF order: `shape[0]` is contiguous.
    pub shape: Vec<u64>,
    /// The type by safetensors' name: `F16`, `I32`, `BOOL`.
    pub dtype: String,
    /// Start of its data, from the start of the file.
    pub offset_bytes: u64,
    /// Size of its data.
    pub size_bytes: u64,
}

impl StoredTensor {
    /// The same tensor, if its elements are floats.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for other types and [`Error::InvalidModelFile`] for invalid shapes, both
    /// naming the tensor.
    pub fn into_floats(self) -> Result<TensorInfo> {
        let ty = match &*self.dtype {
            "F32" => TensorType::F32,
            "F16" => TensorType::F16,
            "BF16" => TensorType::BF16,
            other => {
                return Err(Error::UnsupportedModel(format!(
                    "tensor {} has the type {}; F32, F16 and BF16 can be read",
                    quoted(&self.name),
                    quoted(other)
                )));
            }
        };
        checked_size_bytes(&self.name, &self.shape, ty)?;
        Ok(TensorInfo {
            name: self.name,
            shape: self.shape,
            ty,
            offset_bytes: self.offset_bytes,
            size_bytes: self.size_bytes,
        })
    }

    /// Whether it is a tensor of 32-bit integers of this shape.
    pub fn is_i32(&self, shape: &[u64]) -> bool {
        self.dtype == "I32" && self.shape == shape
    }
}

/// Bytes of an element; `None` for types that are not in the format's documentation.
fn element_bytes(dtype: &str) -> Option<u64> {
    match dtype {
        "F64" | "I64" | "U64" => Some(8),
        "F32" | "I32" | "U32" => Some(4),
        "F16" | "BF16" | "I16" | "U16" => Some(2),
        "BOOL" | "I8" | "U8" | "F8_E4M3" | "F8_E5M2" => Some(1),
        _ => None,
    }
}

/// The tensors of the file called `file`, in the order of their data. Offsets count from the start of the
/// file.
///
/// # Errors
/// [`Error::InvalidModelFile`] for a damaged or hostile header, with the file's name and the reason; errors of
/// `source`.
pub async fn read<S: ByteSource>(file: &str, source: &S) -> Result<Vec<StoredTensor>> {
    let invalid = |what: String| Error::InvalidModelFile(format!("{}: {what}", quoted(file)));
    let file_bytes = source.size_bytes();
    if file_bytes < LENGTH_BYTES {
        return Err(invalid(format!("the file ends after {file_bytes} bytes")));
    }
    let mut length = [0; LENGTH_BYTES as usize];
    source.read_at(0, &mut length).await?;
    let header_bytes = u64::from_le_bytes(length);
    if header_bytes > (file_bytes - LENGTH_BYTES).min(MAX_HEADER_BYTES) {
        return Err(invalid(format!(
            "a header of {header_bytes} bytes in a file of {file_bytes}; the limit is {MAX_HEADER_BYTES}"
        )));
    }
    let header = source.read_vec(LENGTH_BYTES, header_bytes).await?;
    let Entries(entries) =
        serde_json::from_slice(&header).map_err(|error| invalid(format!("the header: {error}")))?;
    if entries.len() > MAX_TENSORS {
        return Err(invalid(format!(
            "{} tensors; the limit is {MAX_TENSORS}",
            entries.len()
        )));
    }
    let data_start = LENGTH_BYTES + header_bytes;
    let data_bytes = file_bytes - data_start;
    let tensors = entries.into_iter();
    let tensors = tensors.map(|(name, entry)| entry.stored(name, data_start, data_bytes));
    let mut tensors = tensors.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
    let ranges = tensors.iter();
    check_apart(ranges.map(|it| (&*it.name, it.offset_bytes, it.size_bytes)))?;
    tensors.sort_by_key(|tensor| tensor.offset_bytes);
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;

    /// Reads a file of this header and that much data.
    fn read_of(header: &str, data_bytes: usize) -> Result<Vec<StoredTensor>> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + data_bytes, 0);
        pollster::block_on(read("m.safetensors", &BytesSource(file)))
    }

    /// Its tensors as floats.
    fn floats_of(header: &str, data_bytes: usize) -> Result<Vec<TensorInfo>> {
        let tensors = read_of(header, data_bytes)?.into_iter();
        tensors.map(StoredTensor::into_floats).collect()
    }

    fn entry(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
    }

    #[test]
    fn valid_headers_are_read() {
        let (a, b) = (
            entry("a", "F16", "[2,3]", "[4,16]"),
            entry("b", "F32", "[1]", "[0,4]"),
        );
        let header = format!(r#"{{"__metadata__":{{"format":"pt"}},{a},{b}}}   "#);
        let tensors = floats_of(&header, 16).unwrap();
        assert_eq!((&*tensors[0].name, &*tensors[1].name), ("b", "a"));
        assert_eq!(tensors[1].shape, [3, 2]);
        assert_eq!(tensors[1].offset_bytes, 8 + header.len() as u64 + 4);
        assert!(read_of("{}", 0).unwrap().is_empty());
    }

    #[test]
    fn tensors_of_other_types_are_listed() {
        let (words, mask) = (
            entry("a", "I32", "[2,1]", "[0,8]"),
            entry("b", "NEW", "[]", "[8,16]"),
        );
        let tensors = read_of(&format!("{{{words},{mask}}}"), 16).unwrap();
        assert!(tensors[0].is_i32(&[1, 2]) && !tensors[0].is_i32(&[2, 1]));
        assert_eq!((&*tensors[1].dtype, tensors[1].size_bytes), ("NEW", 8));
        assert!(!tensors[1].is_i32(&[]));
    }

    #[test]
    fn hostile_headers_are_rejected_with_the_reason() {
        let with = |entry: &str| format!("{{{entry}}}");
        let two = |a: &str, b: &str| format!("{{{a},{b}}}");
        for (header, said) in [
            ("".to_owned(), "the header"),
            ("[]".to_owned(), "tensors by name"),
            (with(r#""a":7"#), "the header"),
            (with(r#""a":{"dtype":"F32","shape":[1]}"#), "data_offsets"),
            (with(&entry("a", "F32", "[-1]", "[0,4]")), "the header"),
            (with(&entry("a", "I32", "[1]", "[0,4]")), "\"I32\""),
            (with(&entry("a", "F32", "[]", "[0,4]")), "0 dimensions"),
            (
                with(&entry("a", "F32", "[1,1,1,1,1]", "[0,4]")),
                "5 dimensions",
            ),
            (with(&entry("a", "F32", "[0]", "[0,0]")), "zero"),
            (
                with(&entry("a", "F32", "[4294967296,4294967296,4]", "[0,4]")),
                "data offsets 0 to 4",
            ),
            (
                with(&entry("a", "F32", "[2]", "[0,4]")),
                "data offsets 0 to 4",
            ),
            (
                with(&entry("a", "F32", "[2]", "[8,0]")),
                "data offsets 8 to 0",
            ),
            (
                with(&entry("a", "F32", "[2]", "[12,20]")),
                "16 bytes of data",
            ),
            (
                with(&entry(
                    "a",
                    "F32",
                    "[1]",
                    "[18446744073709551612,18446744073709551615]",
                )),
                "data offsets",
            ),
            (
                two(
                    &entry("a", "F32", "[2]", "[0,8]"),
                    &entry("b", "F32", "[2]", "[4,12]"),
                ),
                "overlap",
            ),
            (
                two(
                    &entry("a", "F32", "[1]", "[0,4]"),
                    &entry("a", "F32", "[1]", "[0,4]"),
                ),
                "overlap",
            ),
        ] {
            let error = floats_of(&header, 16).unwrap_err().to_string();
            assert!(error.contains(said), "{header}: {error}");
        }
    }

    #[test]
    fn lengths_beyond_the_file_are_rejected() {
        for length in [1, 1 << 40, u64::MAX] {
            let file = length.to_le_bytes();
            let read = pollster::block_on(read("m.safetensors", &BytesSource(file)));
            let error = read.unwrap_err().to_string();
            assert!(error.contains(&length.to_string()), "{error}");
        }
        let short = pollster::block_on(read("m.safetensors", &BytesSource([0; 7])));
        assert!(short.unwrap_err().to_string().contains("7 bytes"));
    }
}
