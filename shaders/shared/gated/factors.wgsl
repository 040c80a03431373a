// activate(factor * gate) * other_half(up), with a factor of each pair of a token and an expert.
@group(0) @binding(B_factors) var<storage, read> factors: array<f32>; // [tokens, USED]

fn gated(pair: u32, row: u32, gate: f32, up: f32) -> f32 {
    return activate(factors[pair] * gate) * other_half(up);
}
