//! The order of quants in the layout of the kernels. In a kernel block of 32 columns, bits of equal rank are
//! together, so that one mask and one shift bring four neighboring quants into the bytes of a word.

/// Columns of a kernel block, for every type.
pub const BLOCK_COLS: usize = 32;

/// Elements of a kernel block.
pub(super) type Values = [f32; BLOCK_COLS];

/// 16 bytes: byte j has the lower four bits of element j in its low nibble and those of element j + 16 in
/// its high nibble.
pub(super) fn push_nibbles(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let nibbles: [u8; BLOCK_COLS / 2] = std::array::from_fn(|j| quant(j) & 15 | quant(j + 16) << 4);
    out.extend(nibbles);
}

/// The four bits of element `i`, as [`push_nibbles`] stores them.
pub(super) fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 16] >> (i / 16 * 4) & 15
}

/// 8 bytes, two words: bits 2 * i of byte j of word k are the lower two bits of element 16 * k + 4 * i + j.
pub(super) fn push_pairs(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let pairs: [u8; BLOCK_COLS / 4] = std::array::from_fn(|byte| {
        let first = byte / 4 * 16 + byte % 4;
        (0..4).fold(0, |bits, i| bits | (quant(first + 4 * i) & 3) << (2 * i))
    });
    out.extend(pairs);
}

/// The two bits of element `i`, as [`push_pairs`] stores them.
pub(super) fn pair(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 16 * 4 + i % 4] >> (i % 16 / 4 * 2) & 3
}

/// 4 bytes, one word: bit i of byte j is the lowest bit of element 4 * i + j.
pub(super) fn push_bits(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let bits: [u8; BLOCK_COLS / 8] =
        std::array::from_fn(|j| (0..8).fold(0, |bits, i| bits | (quant(4 * i + j) & 1) << i));
    out.extend(bits);
}

/// The bit of element `i`, as [`push_bits`] stores it.
pub(super) fn bit(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 4] >> (i / 4) & 1
}

/// The five bits of element `i`: a nibble and the bit above it.
pub(super) fn five_bits(nibbles: &[u8], bits: &[u8], i: usize) -> u8 {
    nibble(nibbles, i) | bit(bits, i) << 4
}
