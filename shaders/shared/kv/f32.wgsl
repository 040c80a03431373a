// Vectors of a KV cache in f32. The kernel declares `kv: array<KvWord>` with the access it needs. A vector
// is indexed in [page, k|v, page token, KV_DIM / 4].
alias KvWord = vec4<f32>;

fn kv_load(vector: u32) -> vec4<f32> {
    return kv[vector];
}
