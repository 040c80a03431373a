// Blocks of 32 nibbles with a factor and an offset. Byte j holds element j in its low nibble and
// element j + 16 in its high one.
struct weights_Block {
    quants: vec4<u32>,
    factor: f32,
    offset: f32,
}

// Weights 4 * i to 4 * i + 3.
fn weights_four(block: weights_Block, i: u32) -> vec4<f32> {
    let q = (block.quants[i % 4u] >> (i / 4u * 4u)) & 0x0f0f0f0fu;
    return block.factor * weights_bytes(q) + block.offset;
}
