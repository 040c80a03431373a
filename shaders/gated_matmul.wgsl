// out[token, row] = silu(dot(gate[row], x[token])) * dot(up[row], x[token]); tiles as in matmul.wgsl,
// 32 tokens by 16 rows of each matrix.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]

var<workgroup> x_tile: array<vec4<f32>, 256>; // [32 columns / 4, 32 tokens]
var<workgroup> w_tile: array<vec4<f32>, 256>; // [32 columns / 4, 16 gate rows then 16 up rows]

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Not a constant: steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    let first_row = workgroup.x * 16u;
    let first_token = workgroup.y * 32u;
    let my_row = (local % 8u) * 2u;
    let my_token = (local / 8u) * 4u;
    var gates: array<array<f32, 2>, 4>;
    var ups: array<array<f32, 2>, 4>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        let line = local % 32u;
        if (local < 32u) {
            let at = min(first_row + line % 16u, ROWS - 1u) * BLOCKS + block;
            if (line < 16u) {
                gate_load(at, &values);
            } else {
                up_load(at, &values);
            }
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
                for (var r = 0u; r < 2u; r++) {
                    gates[t][r] += dot(value, w_tile[i * 32u + my_row + r]);
                    ups[t][r] += dot(value, w_tile[i * 32u + 16u + my_row + r]);
                }
            }
        }
        workgroupBarrier();
    }
    for (var t = 0u; t < 4u; t++) {
        for (var r = 0u; r < 2u; r++) {
            let token = first_token + my_token + t;
            let row = first_row + my_row + r;
            if (token < tokens && row < ROWS) {
                store(token * ROWS + row, row, silu(gates[t][r]) * ups[t][r]);
            }
        }
    }
}
