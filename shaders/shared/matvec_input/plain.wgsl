// Input vectors without a norm.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

// The number of tokens. Not a constant, so that steps of all sizes up to TOKENS share a pipeline and
// compilers do not unroll the loop over tokens.
fn input_tokens() -> u32 {
    return min(arrayLength(&x) / (COLS / 4u), TOKENS);
}

// Loads a token's inputs of the lane's part of a block (zero past COLS). Returns 0, because no norm needs the sum of squares.
fn load_input(token: u32, block: u32, out: ptr<function, Fours>) -> f32 {
    for (var i = 0u; i < FOURS; i++) {
        let at = block * 8u + four_at(i);
        if (COLS % 32u == 0u || at < COLS / 4u) {
            (*out)[i] = x[token * (COLS / 4u) + at];
        } else {
            (*out)[i] = vec4<f32>(0.0);
        }
    }
    return 0.0;
}

fn input_scale(sum_of_squares: f32) -> f32 {
    return 1.0;
}
