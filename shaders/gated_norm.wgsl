// The RMS norm of each group of a row, and its gate; or the gate alone. One workgroup per group and token.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, GROUPS * LEN]
@group(0) @binding(B_gate) var<storage, read> gate: array<f32>; // [tokens, STRIDE]
@group(0) @binding(B_norm) var<storage, read> norm: array<f32>; // [NORM_LEN]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, GROUPS * LEN]

var<workgroup> partial_sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first = workgroup.x * LEN;
    let row = workgroup.y * GROUPS * LEN;
    let gates = workgroup.y * STRIDE + AT;
    var scale = 1.0;
    if (NORMALIZES) {
        scale = rms_scale(row, gates, first, local);
    }
    for (var i = local + first; i < first + LEN; i += WORKGROUP) {
        out[row + i] = x[row + i] * silu(gate[gates + i]) * scale * norm[i % NORM_LEN];
    }
}

fn rms_scale(row: u32, gates: u32, first: u32, local: u32) -> f32 {
    var sum = 0.0;
    for (var i = local + first; i < first + LEN; i += WORKGROUP) {
        var value = x[row + i];
        if (GATE_FIRST) {
            value *= silu(gate[gates + i]);
        }
        sum += value * value;
    }
    partial_sums[local] = sum;
    workgroupBarrier();
    sum = 0.0;
    for (var lane = 0u; lane < WORKGROUP; lane++) {
        sum += partial_sums[lane];
    }
    return inverseSqrt(sum / f32(LEN) + EPS);
}

fn silu(v: f32) -> f32 {
    return v / (1.0 + exp(-v));
}
