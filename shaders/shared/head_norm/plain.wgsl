// Q and K without a norm.
fn head_scale(token: u32, head: u32) -> f32 {
    return 1.0;
}

fn head_weight(head: u32, vector: u32) -> vec4<f32> {
    return vec4<f32>(1.0);
}
