// out = residual + x * sigmoid(gate), with a gate per element or per token. One lane per element.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, COLS]
@group(0) @binding(B_gate) var<storage, read> gate: array<f32>; // [tokens, STRIDE]
@group(0) @binding(B_residual) var<storage, read> residual: array<f32>; // [tokens, COLS], if RESIDUAL
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, COLS]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x >= COLS) {
        return;
    }
    let at = global.y * COLS + global.x;
    let column = select(global.x, 0u, PER_TOKEN);
    var value = x[at] / (1.0 + exp(-gate[global.y * STRIDE + AT + column]));
    if (RESIDUAL) {
        value += residual[at];
    }
    out[at] = value;
}
