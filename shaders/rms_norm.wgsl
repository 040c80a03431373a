// x[token] / rms(x[token]) * norm, with or without the residual stream. One workgroup per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_norm) var<storage, read> norm: array<vec4<f32>>; // [COLS / 4]

var<workgroup> partial_sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first = workgroup.x * (COLS / 4u);
    var sum = 0.0;
    for (var i = local; i < COLS / 4u; i += WORKGROUP) {
        let value = x[first + i];
        sum += dot(value, value);
    }
    partial_sums[local] = sum;
    workgroupBarrier();
    // Every lane adds all partial sums, so that one barrier replaces a tree of them.
    sum = 0.0;
    for (var lane = 0u; lane < WORKGROUP; lane++) {
        sum += partial_sums[lane];
    }
    let factor = inverseSqrt(sum / f32(COLS) + EPS);
    for (var i = local; i < COLS / 4u; i += WORKGROUP) {
        store_vector(first + i, x[first + i] * factor * norm[i]);
    }
}
