// A tile of 16 tokens by 8 lines of weights in the registers of one lane, without workgroup memory or
// barriers. Four neighbouring lanes have different lines. Each of them loads the inputs of one token and
// broadcasts them to the other three.

@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

const TILE_TOKENS: u32 = 16u;

// Adds the products of a block: sums[token, half of the lines] += lines * x[first_token + token].
fn add_block(
    first_token: u32,
    block: u32,
    lane: u32,
    rows: ptr<function, array<array<vec4<f32>, 8>, 8>>,
    sums: ptr<function, array<vec4<f32>, 32>>,
) {
    let last_token = arrayLength(&x) / (COLS / 4u) - 1u;
    for (var i = 0u; i < 8u; i++) { // unrolled
        let column = block * 8u + i;
        let lower = mat4x4<f32>((*rows)[0][i], (*rows)[1][i], (*rows)[2][i], (*rows)[3][i]);
        let upper = mat4x4<f32>((*rows)[4][i], (*rows)[5][i], (*rows)[6][i], (*rows)[7][i]);
        for (var four = 0u; four < 4u; four++) { // unrolled
            let token = min(first_token + four * 4u + lane % 4u, last_token);
            var mine = vec4<f32>(0.0);
            if (COLS % 32u == 0u || column < COLS / 4u) {
                mine = x[token * (COLS / 4u) + column];
            }
            for (var t = 0u; t < 4u; t++) { // unrolled
                let value = quadBroadcast(mine, t);
                (*sums)[four * 8u + t * 2u] += value * lower;
                (*sums)[four * 8u + t * 2u + 1u] += value * upper;
            }
        }
    }
}
