// Writes a vector of the KV cache. Used with f16.wgsl by kernels that may write to `kv`.
fn kv_encode(value: vec4<f32>) -> vec2<u32> {
    // 65504 is the largest finite f16. Larger values must not become infinite.
    let finite = clamp(value, vec4<f32>(-65504.0), vec4<f32>(65504.0));
    return vec2<u32>(pack2x16float(finite.xy), pack2x16float(finite.zw));
}

fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    kv[vector] = kv_encode(values[0]);
}

// The values that a load of the stored vector returns.
fn kv_kept(values: array<vec4<f32>, STORE_VECTORS>) -> array<vec4<f32>, STORE_VECTORS> {
    return array<vec4<f32>, STORE_VECTORS>(kv_decode(kv_encode(values[0])));
}
