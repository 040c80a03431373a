//! The order of quants in the kernels' layout: per block of 32 columns, bits of equal rank together,
//! so that one mask and one shift bring four neighbouring quants into the bytes of a word. Knows no
//! type.

/// Elements per block of the kernels.
pub(super) const LEN: usize = 32;

/// 16 bytes: byte j has the lower four bits of element j low and those of element j + 16 high.
pub(super) fn push_nibbles(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let nibbles: [u8; LEN / 2] = std::array::from_fn(|j| quant(j) & 15 | quant(j + 16) << 4);
    out.extend(nibbles);
}

/// 8 bytes, two words: bits 2 * i of byte j of word k are the lower two bits of element 16 * k + 4 * i + j.
pub(super) fn push_pairs(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let pairs: [u8; LEN / 4] = std::array::from_fn(|byte| {
        let first = byte / 4 * 16 + byte % 4;
        (0..4).fold(0, |bits, i| bits | (quant(first + 4 * i) & 3) << (2 * i))
    });
    out.extend(pairs);
}

/// 4 bytes, one word: bit i of byte j is the lowest bit of element 4 * i + j.
pub(super) fn push_bits(out: &mut Vec<u8>, quant: impl Fn(usize) -> u8) {
    let bits: [u8; LEN / 8] =
        std::array::from_fn(|j| (0..8).fold(0, |bits, i| bits | (quant(4 * i + j) & 1) << i));
    out.extend(bits);
}
