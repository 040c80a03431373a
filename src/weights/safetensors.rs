//! The header of a safetensors file (<https://github.com/huggingface/safetensors>): eight bytes of
//! length, then JSON. Knows nothing of what tensors mean, and never touches their data.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::{
    ByteSource, TensorInfo, TensorType,
    gguf::{
        quoted,
        tensor::{check_apart, checked_size_bytes},
    },
};
use crate::{Error, Result};

/// Longest header accepted; the largest real ones, of thousands of experts, have a few MB.
const MAX_HEADER_BYTES: u64 = 32 << 20;
/// Most tensors accepted.
const MAX_TENSORS: usize = 1 << 16;
/// What is in front of the JSON.
const LENGTH_BYTES: u64 = 8;

/// The entry of one tensor.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    /// Outermost first.
    shape: Vec<u64>,
    /// From the end of the header on.
    data_offsets: [u64; 2],
}

/// The header's entries; a name that occurs twice stays twice.
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

/// The tensors of the file called `file`, with the file's names, in the order of their data. Shapes
/// are in GGUF order, `shape[0]` contiguous; offsets count from the start of the file.
///
/// # Errors
/// [`Error::InvalidModelFile`] for a damaged or hostile header and [`Error::UnsupportedModel`] for
/// types that are no floats, both naming file and offence; what `source` fails with.
pub async fn read<S: ByteSource>(file: &str, source: &S) -> Result<Vec<TensorInfo>> {
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
    let mut header = vec![0; header_bytes as usize];
    source.read_at(LENGTH_BYTES, &mut header).await?;
    let Entries(entries) =
        serde_json::from_slice(&header).map_err(|error| invalid(format!("the header: {error}")))?;
    if entries.len() > MAX_TENSORS {
        return Err(invalid(format!(
            "{} tensors; the limit is {MAX_TENSORS}",
            entries.len()
        )));
    }
    let data_start = LENGTH_BYTES + header_bytes;
    let mut tensors = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let ty = match entry.dtype.as_str() {
            "F32" => TensorType::F32,
            "F16" => TensorType::F16,
            "BF16" => TensorType::BF16,
            other => {
                return Err(Error::UnsupportedModel(format!(
                    "{}: tensor {} has the type {}; F32, F16 and BF16 can be read",
                    quoted(file),
                    quoted(&name),
                    quoted(other)
                )));
            }
        };
        let mut shape = entry.shape;
        shape.reverse();
        let size_bytes = checked_size_bytes(&name, &shape, ty)?;
        let [start, end] = entry.data_offsets;
        if end.checked_sub(start) != Some(size_bytes) || end > file_bytes - data_start {
            return Err(invalid(format!(
                "tensor {} of {size_bytes} bytes has the data offsets {start} to {end}; the file has \
                 {} bytes of data",
                quoted(&name),
                file_bytes - data_start
            )));
        }
        tensors.push(TensorInfo {
            name,
            shape,
            ty,
            offset_bytes: data_start + start,
            size_bytes,
        });
    }
    check_apart(&tensors)?;
    tensors.sort_by_key(|tensor| tensor.offset_bytes);
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;

    /// Reads a file of this header and that much data.
    fn read_of(header: &str, data_bytes: usize) -> Result<Vec<TensorInfo>> {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.resize(file.len() + data_bytes, 0);
        pollster::block_on(read("m.safetensors", &BytesSource(file)))
    }

    fn entry(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
    }

    #[test]
    fn sound_headers_read() {
        let (a, b) = (
            entry("a", "F16", "[2,3]", "[4,16]"),
            entry("b", "F32", "[1]", "[0,4]"),
        );
        let header = format!(r#"{{"__metadata__":{{"format":"pt"}},{a},{b}}}   "#);
        let tensors = read_of(&header, 16).unwrap();
        assert_eq!((&*tensors[0].name, &*tensors[1].name), ("b", "a"));
        assert_eq!(tensors[1].shape, [3, 2]);
        assert_eq!(tensors[1].offset_bytes, 8 + header.len() as u64 + 4);
        assert!(read_of("{}", 0).unwrap().is_empty());
    }

    #[test]
    fn hostile_headers_are_refused_by_name() {
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
                "2^64",
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
            let error = read_of(&header, 16).unwrap_err().to_string();
            assert!(error.contains(said), "{header}: {error}");
        }
    }

    #[test]
    fn lengths_beyond_the_file_are_refused() {
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
