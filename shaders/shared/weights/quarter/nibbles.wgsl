// The nibbles of whole/nibbles.wgsl that belong to a lane's quarter of a block. Only their word is read.
struct weights_Nibbles {
    own: u32,
}

fn weights_nibbles(at: u32) -> weights_Nibbles {
    return weights_Nibbles(weights_quants[at][quarter]);
}

// Nibbles 16 * half + 4 * word and the next three, as bytes of a word. `word` is the quarter.
fn weights_four_nibbles(nibbles: weights_Nibbles, half: u32, word: u32) -> u32 {
    return (nibbles.own >> (half * 4u)) & 0x0f0f0f0fu;
}
