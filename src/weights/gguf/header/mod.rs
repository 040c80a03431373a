//! Decodes a GGUF header and checks every count, length, offset and name in it before use. Reads
//! no tensor data, and allocates nothing that the file's own bytes do not back.

mod cursor;
mod values;

use std::collections::HashMap;

use cursor::Cursor;

use super::tensor::{MAX_DIMS, check_apart, checked_size_bytes};
use super::{Gguf, MAGIC, Metadata, TensorInfo, alignment_bytes, quoted};
use crate::weights::blocks::ggml_type_name;
use crate::weights::{ByteSource, TensorType};
use crate::{Error, Result};

/// Most metadata entries and most tensors accepted. Real files have about 50 and under 3,000.
const MAX_ENTRIES: u64 = 1 << 16;
/// Longest key or name accepted; the limit of GGUF's specification.
const MAX_NAME_BYTES: u64 = (1 << 16) - 1;

pub(super) async fn read<S: ByteSource>(source: &S) -> Result<Gguf> {
    let mut cursor = Cursor::new(source);
    let version = read_version(&mut cursor).await?;
    // Smallest entries: a tensor's name, rank, one dimension, type, offset; a key's name, type and
    // one byte.
    let tensor_count = read_count(&mut cursor, "tensors", 8 + 4 + 8 + 4 + 8).await?;
    let entry_count = read_count(&mut cursor, "metadata entries", 8 + 4 + 1).await?;

    let metadata = read_metadata(&mut cursor, entry_count).await?;
    let alignment_bytes = alignment_bytes(&metadata)?;
    let mut tensors = Vec::new();
    let mut index_of = HashMap::new();
    for index in 0..tensor_count {
        let tensor = read_tensor(&mut cursor)
            .await
            .map_err(|error| at(error, || format!("tensor {index}")))?;
        if index_of
            .insert(tensor.name.clone(), tensors.len())
            .is_some()
        {
            return Err(invalid(format!(
                "two tensors are named {}",
                quoted(&tensor.name)
            )));
        }
        tensors.push(tensor);
    }
    place(
        &mut tensors,
        cursor.position_bytes(),
        alignment_bytes,
        source.size_bytes(),
    )?;
    check_apart(
        tensors
            .iter()
            .map(|it| (&*it.name, it.offset_bytes, it.size_bytes)),
    )?;
    Ok(Gguf {
        version,
        metadata,
        tensors,
        alignment_bytes,
        index_of,
    })
}

async fn read_version<S: ByteSource>(cursor: &mut Cursor<'_, S>) -> Result<u32> {
    let magic: [u8; 4] = cursor.array().await?;
    if magic != MAGIC {
        return Err(invalid(format!(
            "it starts with \"{}\", not \"GGUF\"",
            magic.escape_ascii()
        )));
    }
    let version = cursor.u32().await?;
    match version {
        2 | 3 => Ok(version),
        // The numbers of versions are small: swapped, they have their low half empty.
        _ if version != 0 && version & 0xFFFF == 0 => Err(Error::UnsupportedModel(format!(
            "a big-endian GGUF file (version {})",
            version.swap_bytes()
        ))),
        _ => Err(Error::UnsupportedModel(format!(
            "GGUF version {version}; versions 2 and 3 can be read"
        ))),
    }
}

/// A count of entries, each of which takes at least `entry_bytes` of the rest of the file.
async fn read_count<S: ByteSource>(
    cursor: &mut Cursor<'_, S>,
    what: &str,
    entry_bytes: u64,
) -> Result<u64> {
    let count = cursor.u64().await?;
    let remaining_bytes = cursor.remaining_bytes();
    if count > remaining_bytes / entry_bytes {
        return Err(invalid(format!(
            "it claims {count} {what}, but only {remaining_bytes} bytes follow"
        )));
    }
    if count > MAX_ENTRIES {
        return Err(invalid(format!(
            "it claims {count} {what}; the limit is {MAX_ENTRIES}"
        )));
    }
    Ok(count)
}

async fn read_metadata<S: ByteSource>(cursor: &mut Cursor<'_, S>, count: u64) -> Result<Metadata> {
    let mut metadata = Metadata::new();
    for index in 0..count {
        let key = cursor
            .string(MAX_NAME_BYTES)
            .await
            .map_err(|error| at(error, || format!("the name of metadata entry {index}")))?;
        let value = values::read_value(cursor)
            .await
            .map_err(|error| at(error, || format!("metadata key {}", quoted(&key))))?;
        if metadata.get(&key).is_some() {
            return Err(invalid(format!(
                "metadata key {} occurs twice",
                quoted(&key)
            )));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// Reads an entry; `offset_bytes` still counts from the start of the tensor data.
async fn read_tensor<S: ByteSource>(cursor: &mut Cursor<'_, S>) -> Result<TensorInfo> {
    let name = cursor.string(MAX_NAME_BYTES).await?;
    if name.is_empty() {
        return Err(invalid("its name is empty"));
    }
    let rank = cursor.u32().await?;
    if rank as usize > MAX_DIMS {
        return Err(invalid(format!(
            "{} has {rank} dimensions, not 1 to {MAX_DIMS}",
            quoted(&name)
        )));
    }
    let mut shape = Vec::with_capacity(rank as usize);
    for _ in 0..rank {
        shape.push(cursor.u64().await?);
    }
    let type_id = cursor.u32().await?;
    let ty = TensorType::from_gguf_id(type_id).ok_or_else(|| {
        let type_name = ggml_type_name(type_id).unwrap_or("unknown");
        Error::UnsupportedModel(format!(
            "{} has the tensor type {type_name} (ggml type {type_id})",
            quoted(&name)
        ))
    })?;
    let size_bytes = checked_size_bytes(&name, &shape, ty)?;
    let offset_bytes = cursor.u64().await?;
    Ok(TensorInfo {
        name,
        shape,
        ty,
        offset_bytes,
        size_bytes,
    })
}

/// Makes offsets absolute and checks that the data is aligned and inside the file.
fn place(
    tensors: &mut [TensorInfo],
    header_bytes: u64,
    alignment_bytes: u64,
    file_bytes: u64,
) -> Result<()> {
    let data_start = header_bytes.next_multiple_of(alignment_bytes);
    for tensor in tensors {
        let relative = tensor.offset_bytes;
        let wrong = |what: String| {
            invalid(format!(
                "tensor {} at data offset {relative} {what}",
                quoted(&tensor.name)
            ))
        };
        if !relative.is_multiple_of(alignment_bytes) {
            return Err(wrong(format!("is not aligned to {alignment_bytes} bytes")));
        }
        let start = data_start.checked_add(relative);
        let end = start.and_then(|start| start.checked_add(tensor.size_bytes));
        let (Some(start), Some(_)) = (start, end.filter(|&end| end <= file_bytes)) else {
            return Err(wrong(format!(
                "takes {} bytes, past the end of the file of {file_bytes} bytes whose data \
                 starts at {data_start}",
                tensor.size_bytes
            )));
        };
        tensor.offset_bytes = start;
    }
    Ok(())
}

fn invalid(what: impl Into<String>) -> Error {
    Error::InvalidModelFile(what.into())
}

/// Says where in the file an error arose.
fn at(error: Error, place: impl FnOnce() -> String) -> Error {
    match error {
        Error::InvalidModelFile(what) => Error::InvalidModelFile(format!("{}: {what}", place())),
        Error::UnsupportedModel(what) => Error::UnsupportedModel(format!("{}: {what}", place())),
        other => other,
    }
}
