// Blocks of 32 quants of two bits, value = factor * (q - 1). Bits 2 * i of byte j of word k are element 16 * k + 4 * i + j.
struct weights_Block {
    quants: vec2<u32>,
    factor: f32,
}

// Weights 4 * i to 4 * i + 3.
fn weights_four(block: weights_Block, i: u32) -> vec4<f32> {
    let q = (block.quants[i / 4u] >> (i % 4u * 2u)) & 0x03030303u;
    return block.factor * (weights_bytes(q) - 1.0);
}
