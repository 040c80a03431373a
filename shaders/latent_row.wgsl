// Rows whose first columns stay, and whose others have an RMS norm. One workgroup per token.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, KEPT + LEN]
@group(0) @binding(B_norm) var<storage, read> norm: array<f32>; // [LEN]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, KEPT + LEN]

var<workgroup> partial_sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup.x * (KEPT + LEN);
    var sum = 0.0;
    for (var i = local; i < LEN; i += WORKGROUP) {
        let value = x[row + KEPT + i];
        sum += value * value;
    }
    partial_sums[local] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var lane = 0u; lane < WORKGROUP; lane++) {
        sum += partial_sums[lane];
    }
    let scale = inverseSqrt(sum / f32(LEN) + EPS);
    for (var i = local; i < KEPT; i += WORKGROUP) {
        out[row + i] = x[row + i];
    }
    for (var i = local; i < LEN; i += WORKGROUP) {
        out[row + KEPT + i] = x[row + KEPT + i] * scale * norm[i];
    }
}
