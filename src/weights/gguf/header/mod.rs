//! Decodes a GGUF header and checks every count, length, offset and name before use. No allocation is larger
//! than what the size of the file justifies.

mod cursor;
mod values;

use cursor::{Cursor, invalid};

use super::{
    contents::{Gguf, MAGIC},
    metadata::Metadata,
};
use crate::{
    Error, Result,
    tensor_types::{TensorType, ggml_type_name},
    weights::{
        quoted::quoted,
        source::ByteSource,
        tensor::{MAX_DIMS, TensorInfo, check_apart, checked_size_bytes},
    },
};

/// The maximum number of metadata entries and of tensors accepted. Real files have about 50 and under 3,000.
const MAX_ENTRIES: u64 = 1 << 16;
/// Longest key or name accepted; the limit of GGUF's specification.
const MAX_NAME_BYTES: u64 = (1 << 16) - 1;

impl Gguf {
    /// Reads the header, in growing chunks, and nothing after it.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for a damaged or hostile file and [`Error::UnsupportedModel`] for
    /// unsupported versions and tensor types, both with the reason; errors of `source`.
    pub async fn read<S: ByteSource>(source: &S) -> Result<Gguf> {
        let mut cursor = Cursor::new(source);
        let version = read_version(&mut cursor).await?;
        // The smallest entries: name, rank, one dimension, type and offset of a tensor; name, type and one
        // byte of a key.
        let tensor_count = read_count(&mut cursor, "tensors", 8 + 4 + 8 + 4 + 8).await?;
        let entry_count = read_count(&mut cursor, "metadata entries", 8 + 4 + 1).await?;

        let metadata = read_metadata(&mut cursor, entry_count).await?;
        let mut tensors = Vec::new();
        for index in 0..tensor_count {
            let tensor = read_tensor(&mut cursor).await;
            tensors.push(tensor.map_err(|error| located(error, || format!("tensor {index}")))?);
        }
        let header_bytes = cursor.position_bytes();
        let mut gguf = Gguf::new(metadata, tensors)?;
        gguf.version = version;
        make_offsets_absolute(&mut gguf, header_bytes, source.size_bytes())?;
        Ok(gguf)
    }
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
        // Version numbers are small, so the lower half of a byte-swapped one is zero.
        _ if version != 0 && version & 0xFFFF == 0 => Err(Error::UnsupportedModel(format!(
            "a big-endian GGUF file (version {})",
            version.swap_bytes()
        ))),
        _ => Err(Error::UnsupportedModel(format!(
            "GGUF version {version}; versions 2 and 3 can be read"
        ))),
    }
}

/// A number of entries, each of which takes at least `entry_bytes` of the rest of the file.
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
            .map_err(|error| located(error, || format!("the name of metadata entry {index}")))?;
        let value = values::read_value(cursor)
            .await
            .map_err(|error| located(error, || format!("metadata key {}", quoted(&key))))?;
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

/// bitnet.cpp's own type, which llama.cpp does not read. Its layout depends on the processor.
const I2_S: u32 = 36;

/// Reads an entry. Its `offset_bytes` is relative to the start of the tensor data.
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
        let other = match type_id {
            I2_S => "; of BitNet, files of TQ2_0 and folders with packed weights run",
            _ => "",
        };
        Error::UnsupportedModel(format!(
            "{} has the tensor type {type_name} (ggml type {type_id}){other}",
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

/// Makes offsets absolute and checks that the data of all tensors is aligned, inside the file and apart.
fn make_offsets_absolute(gguf: &mut Gguf, header_bytes: u64, file_bytes: u64) -> Result<()> {
    let alignment_bytes = gguf.alignment_bytes;
    let data_start = header_bytes.next_multiple_of(alignment_bytes);
    for tensor in &mut gguf.tensors {
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
    let ranges = gguf.tensors.iter();
    check_apart(ranges.map(|it| (&*it.name, it.offset_bytes, it.size_bytes)))
}

/// Adds to an error where in the file it is.
fn located(error: Error, location: impl FnOnce() -> String) -> Error {
    match error {
        Error::InvalidModelFile(what) => Error::InvalidModelFile(format!("{}: {what}", location())),
        Error::UnsupportedModel(what) => Error::UnsupportedModel(format!("{}: {what}", location())),
        other => other,
    }
}
