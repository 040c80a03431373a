// Vectors of a KV cache in f16. The kernel declares `kv: array<KvWord>` with the access it needs. A vector
// is indexed in [page, k|v, KV head, page token, VECTORS].
alias KvWord = vec2<u32>;

// Converts by shifts, which is faster than unpack2x16float on software adapters and valid because stored
// values are finite. Sign, exponent and mantissa move into an f32 whose exponent is 112 too small.
fn kv_decode(pairs: vec2<u32>) -> vec4<f32> {
    let halves = vec4<i32>(vec4<u32>(pairs.x << 16u, pairs.x, pairs.y << 16u, pairs.y));
    let bits = vec4<u32>(halves >> vec4<u32>(3u)) & vec4<u32>(0x8fffe000u);
    return bitcast<vec4<f32>>(bits) * 0x1p112f;
}

fn kv_load(vector: u32) -> vec4<f32> {
    return kv_decode(kv[vector]);
}
