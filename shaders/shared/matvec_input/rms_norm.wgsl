// Input vectors with an RMS norm. The lanes of a row together read all of x, so the same pass gives the sum
// of squares. The scale is applied to the result.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_norm) var<storage, read> norm: array<vec4<f32>>; // [COLS / 4]

// The number of tokens. Not a constant, so that steps of all sizes up to TOKENS share a pipeline and
// compilers do not unroll the loop over tokens.
fn input_tokens() -> u32 {
    return min(arrayLength(&x) / (COLS / 4u), TOKENS);
}

// Loads a token's inputs of the lane's part of a block (zero past COLS) and returns the sum of their squares.
fn load_input(token: u32, block: u32, out: ptr<function, Fours>) -> f32 {
    var sum_of_squares = 0.0;
    for (var i = 0u; i < FOURS; i++) {
        let at = block * 8u + four_at(i);
        if (COLS % 32u == 0u || at < COLS / 4u) {
            let value = x[token * (COLS / 4u) + at];
            sum_of_squares += dot(value, value);
            (*out)[i] = value * norm[at];
        } else {
            (*out)[i] = vec4<f32>(0.0);
        }
    }
    return sum_of_squares;
}

fn input_scale(sum_of_squares: f32) -> f32 {
    return inverseSqrt(sum_of_squares / f32(COLS) + EPS);
}
