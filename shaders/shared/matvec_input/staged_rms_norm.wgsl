// An input vector with an RMS norm, through the memory of the workgroup. The lanes of a row together read all of x, so the
// same pass gives the sum of squares. The scale is applied to the result.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [1, COLS / 4]
@group(0) @binding(B_norm) var<storage, read> norm: array<vec4<f32>>; // [COLS / 4]

// The inputs and the norm's weights of STAGED blocks, padded as in `staged_plain`.
var<workgroup> staged: array<vec4<f32>, STAGED * 9u>;
var<workgroup> staged_norm: array<vec4<f32>, STAGED * 9u>;

// Loads the inputs of STAGED blocks (zero past COLS).
fn stage_inputs(first_block: u32, local: u32) {
    workgroupBarrier(); // Until all lanes have used the blocks before.
    for (var i = local; i < STAGED * 8u; i += WORKGROUP) {
        let at = first_block * 8u + i;
        if (at < COLS / 4u) {
            staged[i + i / 8u] = x[at];
            staged_norm[i + i / 8u] = norm[at];
        } else {
            staged[i + i / 8u] = vec4<f32>(0.0);
            staged_norm[i + i / 8u] = vec4<f32>(0.0);
        }
    }
    workgroupBarrier();
}

// Reads the 32 inputs of a staged block and returns the sum of their squares.
fn load_input(token: u32, block: u32, out: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let start = block % STAGED * 9u;
    var sum_of_squares = 0.0;
    for (var i = 0u; i < 8u; i++) {
        let value = staged[start + i];
        sum_of_squares += dot(value, value);
        (*out)[i] = value * staged_norm[start + i];
    }
    return sum_of_squares;
}

fn input_scale(sum_of_squares: f32) -> f32 {
    return inverseSqrt(sum_of_squares / f32(COLS) + EPS);
}
