// Blocks of 32 nibbles that are indices into the table of ggml's IQ4 types: -127, -104, -83, -65,
// -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113. Byte j holds element j in its low nibble and
// element j + 16 in its high one.
struct weights_Block {
    nibbles: weights_Nibbles,
    factor: f32,
}

// Weights 16 * half + 4 * word and the next three. A table with a variable index would be kept in memory. This polynomial
// differs from the sixteen integers by less than 0.4763, so rounding gives them exactly.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_bytes(weights_four_nibbles(block.nibbles, half, word));
    let value = (((1.32472017e-3 * q + 4.12168241e-2) * q - 1.50018358) * q + 24.7432457) * q - 127.043602;
    return block.factor * round(value);
}
