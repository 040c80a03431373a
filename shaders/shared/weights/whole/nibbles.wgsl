// All nibbles of a block, of which byte j has element j in its low nibble and element j + 16 in its high one.
struct weights_Nibbles {
    words: vec4<u32>,
}

fn weights_nibbles(at: u32) -> weights_Nibbles {
    return weights_Nibbles(weights_quants[at]);
}

// Nibbles 16 * half + 4 * word and the next three, as bytes of a word.
fn weights_four_nibbles(nibbles: weights_Nibbles, half: u32, word: u32) -> u32 {
    return (nibbles.words[word] >> (half * 4u)) & 0x0f0f0f0fu;
}
