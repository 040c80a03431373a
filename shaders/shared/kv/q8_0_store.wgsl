// Writes the vectors of a block of the KV memory, of which `vector` is the first. With q8_0.wgsl, for
// kernels that may write to `kv`.
fn kv_store(vector: u32, values: array<vec4<f32>, STORE_VECTORS>) {
    var peaks = vec4<f32>(0.0);
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        peaks = max(peaks, abs(values[i]));
    }
    let peak = max(max(peaks.x, peaks.y), max(peaks.z, peaks.w));
    var per_quant = 0.0;
    if (peak > 0.0) {
        per_quant = 127.0 / peak;
    }
    let block = vector / BLOCK_VECTORS * BLOCK_WORDS;
    kv[block] = bitcast<u32>(peak / 127.0);
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        let quants = vec4<i32>(floor(values[i] * per_quant + vec4<f32>(0.5)));
        let bytes = vec4<u32>(quants) & vec4<u32>(255u);
        kv[block + 1u + i] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    }
}
