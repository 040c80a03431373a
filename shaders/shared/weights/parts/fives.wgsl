// Blocks of 32 quants of five bits with a factor and an offset. Byte j of `low` holds the nibbles of
// elements j and j + 16; bit i of byte j of `high` is the fifth bit of element 4 * i + j.
struct weights_Block {
    low: vec4<u32>,
    high: u32,
    factor: f32,
    offset: f32,
}

// Weights 4 * i to 4 * i + 3.
fn weights_four(block: weights_Block, i: u32) -> vec4<f32> {
    let low = (block.low[i % 4u] >> (i / 4u * 4u)) & 0x0f0f0f0fu;
    let high = ((block.high >> i) & 0x01010101u) << 4u;
    return block.factor * weights_bytes(low | high) + block.offset;
}
