// out[token] = (x[token] - mean) / sqrt(variance + EPS) * norm + bias. One workgroup per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_norm) var<storage, read> norm: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(B_bias) var<storage, read> bias: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

var<workgroup> partial_sums: array<f32, WORKGROUP>;

// The sum over all lanes. Every lane adds all values, so that one barrier replaces a tree of them.
fn sum_lanes(local: u32, value: f32) -> f32 {
    workgroupBarrier();
    partial_sums[local] = value;
    workgroupBarrier();
    var sum = 0.0;
    for (var lane = 0u; lane < WORKGROUP; lane++) {
        sum += partial_sums[lane];
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first = workgroup.x * (COLS / 4u);
    var sum = 0.0;
    for (var i = local; i < COLS / 4u; i += WORKGROUP) {
        sum += dot(x[first + i], vec4<f32>(1.0));
    }
    let mean = sum_lanes(local, sum) / f32(COLS);
    // The variance is computed from differences, because subtracting large squares would lose precision.
    sum = 0.0;
    for (var i = local; i < COLS / 4u; i += WORKGROUP) {
        let difference = x[first + i] - mean;
        sum += dot(difference, difference);
    }
    let scale = inverseSqrt(sum_lanes(local, sum) / f32(COLS) + EPS);
    for (var i = local; i < COLS / 4u; i += WORKGROUP) {
        out[first + i] = (x[first + i] - mean) * scale * norm[i] + bias[i];
    }
}
