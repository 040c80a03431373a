// out[token, row] = dot(weights[row], x[token]) for a tile of 32 tokens by 32 rows per workgroup of
// 64 lanes, each computing 4 tokens by 4 rows. One block of 32 columns at a time goes through
// workgroup memory, dequantized on the way.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

var<workgroup> x_tile: array<vec4<f32>, 256>; // [32 columns / 4, 32 tokens]
var<workgroup> w_tile: array<vec4<f32>, 256>; // [32 columns / 4, 32 rows]

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Not a constant: steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    let first_row = workgroup.x * 32u;
    let first_token = workgroup.y * 32u;
    let my_row = (local % 8u) * 4u;
    let my_token = (local / 8u) * 4u;
    var sums: array<array<f32, 4>, 4>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        // Lanes 0..32 fetch one row's block each, lanes 32..64 one token's.
        let line = local % 32u;
        if (local < 32u) {
            weights_load(min(first_row + line, ROWS - 1u) * BLOCKS + block, &values);
            for (var i = 0u; i < 8u; i++) {
                w_tile[i * 32u + line] = values[i];
            }
        } else {
            let token = min(first_token + line, arrayLength(&x) / (COLS / 4u) - 1u);
            for (var i = 0u; i < 8u; i++) {
                let column = block * 8u + i;
                var value = vec4<f32>(0.0);
                if (COLS % 32u == 0u || column < COLS / 4u) {
                    value = x[token * (COLS / 4u) + column];
                }
                x_tile[i * 32u + line] = value;
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            for (var t = 0u; t < 4u; t++) {
                let value = x_tile[i * 32u + my_token + t];
                for (var r = 0u; r < 4u; r++) {
                    sums[t][r] += dot(value, w_tile[i * 32u + my_row + r]);
                }
            }
        }
        workgroupBarrier();
    }
    for (var t = 0u; t < 4u; t++) {
        for (var r = 0u; r < 4u; r++) {
            let token = first_token + my_token + t;
            let row = first_row + my_row + r;
            if (token < tokens && row < ROWS) {
                store(token * ROWS + row, row, sums[t][r]);
            }
        }
    }
}
