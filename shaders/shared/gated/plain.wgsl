// The product of a row of up with its activated gate.
fn gated(token: u32, row: u32, gate: f32, up: f32) -> f32 {
    return activate(gate) * up;
}
