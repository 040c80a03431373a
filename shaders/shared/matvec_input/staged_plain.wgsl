// An input vector without a norm, through the memory of the workgroup.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [1, COLS / 4]

// The inputs of STAGED blocks. After the eight vectors of a block follows one of padding, so that the lanes of neighbouring
// blocks use different banks.
var<workgroup> staged: array<vec4<f32>, STAGED * 9u>;

// Loads the inputs of STAGED blocks (zero past COLS).
fn stage_inputs(first_block: u32, local: u32) {
    workgroupBarrier(); // Until all lanes have used the blocks before.
    for (var i = local; i < STAGED * 8u; i += WORKGROUP) {
        let at = first_block * 8u + i;
        if (at < COLS / 4u) {
            staged[i + i / 8u] = x[at];
        } else {
            staged[i + i / 8u] = vec4<f32>(0.0);
        }
    }
    workgroupBarrier();
}

// Reads the 32 inputs of a staged block. Returns 0, because no norm needs the sum of squares.
fn load_input(token: u32, block: u32, out: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let start = block % STAGED * 9u;
    for (var i = 0u; i < 8u; i++) {
        (*out)[i] = staged[start + i];
    }
    return 0.0;
}

fn input_scale(sum_of_squares: f32) -> f32 {
    return 1.0;
}
