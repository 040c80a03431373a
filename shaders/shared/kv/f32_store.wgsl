// Writes a vector of the KV memory. With f32.wgsl, for kernels that may write to `kv`.
fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    kv[vector] = values[0];
}

// What loads give after a store.
fn kv_kept(values: array<vec4<f32>, STORE_VECTORS>) -> array<vec4<f32>, STORE_VECTORS> {
    return values;
}
