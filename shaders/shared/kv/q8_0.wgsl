// Vectors of a KV cache in blocks of 32 elements of a head: an f32 scale, then 32 signed bytes. The kernel
// declares `kv: array<KvWord>` with the access it needs. A vector is indexed in
// [page, k|v, KV head, page token, VECTORS].
alias KvWord = u32;

const BLOCK_VECTORS: u32 = 8u;
const BLOCK_WORDS: u32 = 9u;

// Unpacks the signed bytes one by one, which is faster than unpack4xI8 on software adapters.
fn kv_decode(scale: f32, quants: u32) -> vec4<f32> {
    let bytes = vec4<i32>(vec4<u32>(quants << 24u, quants << 16u, quants << 8u, quants));
    return vec4<f32>(bytes >> vec4<u32>(24u)) * scale;
}

fn kv_load(vector: u32) -> vec4<f32> {
    let block = vector / BLOCK_VECTORS * BLOCK_WORDS;
    return kv_decode(bitcast<f32>(kv[block]), kv[block + 1u + vector % BLOCK_VECTORS]);
}
