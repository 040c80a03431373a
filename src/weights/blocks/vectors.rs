//! Blocks that another implementation decoded and encoded (`scripts/vectors/block_vectors.py`), for
//! tests.

use super::TensorType;

/// Blocks of one type and their values.
pub(crate) struct BlockVectors {
    pub(crate) ty: TensorType,
    pub(crate) bytes: Vec<u8>,
    pub(crate) values: Vec<f32>,
}

/// What each type's blocks mean.
pub(crate) fn decoded() -> Vec<BlockVectors> {
    parse("decode", |bytes, values| (bytes, values))
}

/// The blocks that each type's values become.
pub(crate) fn encoded() -> Vec<BlockVectors> {
    parse("encode", |values, bytes| (bytes, values))
}

fn parse(kind: &str, order: impl Fn(Vec<u8>, Vec<u8>) -> (Vec<u8>, Vec<u8>)) -> Vec<BlockVectors> {
    let lines = include_str!("vectors.txt").lines();
    let of_kind = lines.filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let vectors = of_kind.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let ty = TensorType::ALL.iter().find(|ty| ty.name() == words[0]);
        let (bytes, values) = order(unhex(words[1]), unhex(words[2]));
        let values = values.as_chunks().0.iter();
        BlockVectors {
            ty: *ty.expect("a type"),
            bytes,
            values: values.map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        }
    });
    vectors.collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}
