// Writes a vector of the KV cache. Used with f32.wgsl by kernels that may write to `kv`.
fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    kv[vector] = values[0];
}

// The values that a load of the stored vector returns.
fn kv_kept(values: array<vec4<f32>, STORE_VECTORS>) -> array<vec4<f32>, STORE_VECTORS> {
    return values;
}
