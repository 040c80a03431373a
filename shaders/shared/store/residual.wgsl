// Writes a result plus the residual stream. `at` indexes out and residual [tokens, ROWS].
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>;
@group(0) @binding(B_residual) var<storage, read> residual: array<f32>;

fn store(at: u32, row: u32, value: f32) {
    out[at] = finish(value) + residual[at];
}
