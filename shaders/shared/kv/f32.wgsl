// Vectors of the KV memory as they are. The kernel declares `kv: array<KvWord>` with the access it
// needs; a vector's index is that in [page, k|v, page token, KV_DIM / 4].
alias KvWord = vec4<f32>;

fn kv_load(vector: u32) -> vec4<f32> {
    return kv[vector];
}
