// Blocks of 32 quants of five bits with a factor and an offset: the lower four bits are nibbles, and bit i of byte j of
// `high` is the fifth bit of element 4 * i + j.
struct weights_Block {
    nibbles: weights_Nibbles,
    high: u32,
    factor: f32,
    offset: f32,
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let low = weights_four_nibbles(block.nibbles, half, word);
    let high = ((block.high >> (half * 4u + word)) & 0x01010101u) << 4u;
    return block.factor * weights_bytes(low | high) + block.offset;
}
