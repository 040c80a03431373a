//! Test vectors of another implementation (`scripts/vectors/block_vectors.py`): the types of ggml, and decoded and
//! encoded blocks.

use super::TensorType;

/// The facts that ggml has about one of its types.
pub(crate) struct GgmlType {
    pub(crate) name: &'static str,
    pub(crate) gguf_id: u32,
    pub(crate) block_len: usize,
    pub(crate) block_bytes: usize,
}

/// File blocks of one type and their values.
pub(crate) struct BlockVectors {
    pub(crate) ty: TensorType,
    pub(crate) bytes: Vec<u8>,
    pub(crate) values: Vec<f32>,
}

/// All types of ggml.
pub(crate) fn types() -> Vec<GgmlType> {
    let types = lines("type").map(|words| GgmlType {
        name: words[0],
        gguf_id: words[1].parse().expect("a number"),
        block_len: words[2].parse().expect("a number"),
        block_bytes: words[3].parse().expect("a number"),
    });
    types.collect()
}

/// Decoded blocks of every supported type that has blocks.
pub(crate) fn decoded() -> Vec<BlockVectors> {
    parse("decode", |bytes, values| (bytes, values))
}

/// Encoded blocks of the types that both implementations can quantize to.
pub(crate) fn encoded() -> Vec<BlockVectors> {
    parse("encode", |values, bytes| (bytes, values))
}

fn parse(kind: &str, order: impl Fn(Vec<u8>, Vec<u8>) -> (Vec<u8>, Vec<u8>)) -> Vec<BlockVectors> {
    let vectors = lines(kind).filter_map(|words| {
        let ty = TensorType::ALL.iter().find(|ty| ty.name() == words[0])?;
        let (bytes, values) = order(unhex(words[1]), unhex(words[2]));
        let values = values.as_chunks().0.iter();
        Some(BlockVectors {
            ty: *ty,
            bytes,
            values: values.map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        })
    });
    vectors.collect()
}

/// The words after `kind` of the lines that start with it.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("vectors.txt").lines();
    let of_kind = lines.filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(' '));
    of_kind.map(|line| line.split(' ').collect())
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}
