// Writes blocks of the KV cache. Used with q8_0.wgsl by kernels that may write to `kv`.
fn kv_encode(values: array<vec4<f32>, STORE_VECTORS>) -> array<u32, BLOCK_WORDS> {
    var peaks = vec4<f32>(0.0);
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        peaks = max(peaks, abs(values[i]));
    }
    let peak = max(max(peaks.x, peaks.y), max(peaks.z, peaks.w));
    var per_quant = 0.0;
    if (peak > 0.0) {
        per_quant = 127.0 / peak;
    }
    var block: array<u32, BLOCK_WORDS>;
    block[0] = bitcast<u32>(peak / 127.0);
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        let quants = vec4<i32>(floor(values[i] * per_quant + vec4<f32>(0.5)));
        let bytes = vec4<u32>(quants) & vec4<u32>(255u);
        block[i + 1u] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    }
    return block;
}

// Writes the vectors of a block, of which `vector` is the first.
fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    let block = kv_encode(values);
    let at = vector / BLOCK_VECTORS * BLOCK_WORDS;
    kv[at] = block[0];
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        kv[at + 1u + i] = block[i + 1u];
    }
}

// The values that loads of the stored vectors return.
fn kv_kept(values: array<vec4<f32>, STORE_VECTORS>) -> array<vec4<f32>, STORE_VECTORS> {
    let block = kv_encode(values);
    var kept: array<vec4<f32>, STORE_VECTORS>;
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        kept[i] = kv_decode(bitcast<f32>(block[0]), block[i + 1u]);
    }
    return kept;
}
