// Writes a vector of the KV memory. With f16.wgsl, for kernels that may write to `kv`.
fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    // The largest half: what is beyond must not become infinite.
    let value = clamp(values[0], vec4<f32>(-65504.0), vec4<f32>(65504.0));
    kv[vector] = vec2<u32>(pack2x16float(value.xy), pack2x16float(value.zw));
}
