// Finishes a product and writes it. `at` indexes out [tokens, ROWS].
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>;

fn store(at: u32, row: u32, value: f32) {
    out[at] = add_residual(at, finish(add_delta(at, add_bias(row, value))));
}
