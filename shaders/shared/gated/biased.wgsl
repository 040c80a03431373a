// activate(gate) * other_half(up), both with a bias.
@group(0) @binding(B_delta) var<storage, read> delta: array<f32>; // [gates | ups, ROWS]

fn gated(token: u32, row: u32, gate: f32, up: f32) -> f32 {
    return activate(gate + delta[row]) * other_half(up + delta[row + ROWS]);
}
