// activate(gate) * other_half(up), both with a bias of the expert that the kernel is at.
@group(0) @binding(B_delta) var<storage, read> delta: array<f32>; // [experts, gates | ups, ROWS]

fn gated(token: u32, row: u32, gate: f32, up: f32) -> f32 {
    let at = own_expert * 2u * ROWS + row;
    return activate(gate + delta[at]) * other_half(up + delta[at + ROWS]);
}
