// Vectors of a KV cache in f32. The kernel declares `kv: array<KvWord>` with the access it needs. A vector
// is indexed in [page, k|v, KV head, page token, VECTORS].
alias KvWord = vec4<f32>;

fn kv_load(vector: u32) -> vec4<f32> {
    return kv[vector];
}
