// Factors of the experts' shares.
@group(0) @binding(B_scales) var<storage, read> scales: array<f32>; // [EXPERTS]

fn expert_scale(expert: u32) -> f32 {
    return scales[expert];
}
