//! Decodes metadata values.

use super::cursor::{Cursor, invalid};
use crate::{
    Error, Result,
    weights::{
        gguf::metadata::{MetadataArray, MetadataValue, ValueType, with_number_types},
        source::ByteSource,
    },
};

/// Longest single string accepted: chat templates and licenses are well below it.
const MAX_STRING_BYTES: u64 = 16 << 20;
/// The maximum number of elements of an array accepted; 16 times the largest vocabulary. It bounds the memory that
/// an array of empty strings takes.
const MAX_ELEMENTS: u64 = 1 << 22;
/// Numbers are decoded in pieces of this size, so that an array is not buffered twice.
const PIECE_ELEMENTS: u64 = 1 << 15;

pub(super) async fn read_value<S: ByteSource>(cursor: &mut Cursor<'_, S>) -> Result<MetadataValue> {
    macro_rules! read {
        ($($variant:ident($number:ty)),*) => {
            match read_type(cursor).await? {
                $(ValueType::$variant => {
                    MetadataValue::$variant(<$number>::from_le_bytes(cursor.array().await?))
                })*
                ValueType::Bool => MetadataValue::Bool(decode_bool(cursor.array().await?)?),
                ValueType::String => MetadataValue::String(cursor.string(MAX_STRING_BYTES).await?),
                ValueType::Array => MetadataValue::Array(read_array(cursor).await?),
            }
        };
    }
    Ok(with_number_types!(read))
}

async fn read_type<S: ByteSource>(cursor: &mut Cursor<'_, S>) -> Result<ValueType> {
    let id = cursor.u32().await?;
    ValueType::from_id(id).ok_or_else(|| invalid(format!("unknown value type {id}")))
}

async fn read_array<S: ByteSource>(cursor: &mut Cursor<'_, S>) -> Result<MetadataArray> {
    let element_type = read_type(cursor).await?;
    let count = cursor.u64().await?;
    macro_rules! read {
        ($($variant:ident($number:ty)),*) => {
            match element_type {
                $(ValueType::$variant => MetadataArray::$variant(
                    read_numbers(cursor, count, <$number>::from_le_bytes).await?,
                ),)*
                ValueType::Bool => {
                    let bytes = read_numbers(cursor, count, |byte: [u8; 1]| byte).await?;
                    MetadataArray::Bool(bytes.into_iter().map(decode_bool).collect::<Result<_>>()?)
                }
                ValueType::String => MetadataArray::String(read_strings(cursor, count).await?),
                ValueType::Array => {
                    return Err(Error::UnsupportedModel("an array of arrays".into()));
                }
            }
        };
    }
    Ok(with_number_types!(read))
}

async fn read_numbers<S: ByteSource, T, const N: usize>(
    cursor: &mut Cursor<'_, S>,
    count: u64,
    decode: fn([u8; N]) -> T,
) -> Result<Vec<T>> {
    check_count(cursor, count, N as u64)?;
    let mut numbers = Vec::with_capacity(count as usize);
    let mut left = count;
    while left > 0 {
        let piece = left.min(PIECE_ELEMENTS);
        let bytes = cursor.bytes(piece * N as u64).await?;
        numbers.extend(bytes.as_chunks().0.iter().map(|&bytes| decode(bytes)));
        left -= piece;
    }
    Ok(numbers)
}

async fn read_strings<S: ByteSource>(
    cursor: &mut Cursor<'_, S>,
    count: u64,
) -> Result<Vec<String>> {
    const LENGTH_BYTES: u64 = 8;
    check_count(cursor, count, LENGTH_BYTES)?;
    // The vector grows, because a `String` takes three times the 8 bytes that the file must have for each.
    let mut strings = Vec::new();
    for _ in 0..count {
        strings.push(cursor.string(MAX_STRING_BYTES).await?);
    }
    Ok(strings)
}

/// Checks that `count` elements of at least `element_bytes` each can follow.
fn check_count<S: ByteSource>(
    cursor: &Cursor<'_, S>,
    count: u64,
    element_bytes: u64,
) -> Result<()> {
    let remaining_bytes = cursor.remaining_bytes();
    if count > remaining_bytes / element_bytes {
        return Err(invalid(format!(
            "an array of {count} elements, but only {remaining_bytes} bytes of the file remain"
        )));
    }
    if count > MAX_ELEMENTS {
        return Err(invalid(format!(
            "an array of {count} elements; the limit is {MAX_ELEMENTS}"
        )));
    }
    Ok(())
}

fn decode_bool([byte]: [u8; 1]) -> Result<bool> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(invalid(format!("a bool of value {byte}"))),
    }
}
