// Blocks of 32 quants of two bits, value = factor * (q - 1). Bits 2 * i of byte j of word k are element 16 * k + 4 * i + j.
struct weights_Block {
    quants: vec2<u32>,
    factor: f32,
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = (block.quants[half] >> (word * 2u)) & 0x03030303u;
    return block.factor * (weights_bytes(q) - 1.0);
}
