// activate(gate) * other_half(up).
fn gated(token: u32, row: u32, gate: f32, up: f32) -> f32 {
    return activate(gate) * other_half(up);
}
