// Blocks of 32 nibbles with a factor and an offset. Byte j holds element j in its low nibble and
// element j + 16 in its high one.
struct weights_Block {
    nibbles: weights_Nibbles,
    factor: f32,
    offset: f32,
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_four_nibbles(block.nibbles, half, word);
    return block.factor * weights_bytes(q) + block.offset;
}
