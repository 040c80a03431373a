// Vectors of the KV memory in IEEE half elements. The kernel declares `kv: array<KvWord>` with the
// access it needs; a vector's index is that in [page, k|v, page token, KV_DIM / 4].
alias KvWord = vec2<u32>;

// By shifts, as what is stored is finite: quicker than unpack2x16float on software adapters. Sign,
// exponent and mantissa move to their places in an f32 whose exponent is 112 too small.
fn kv_decode(pairs: vec2<u32>) -> vec4<f32> {
    let halves = vec4<i32>(vec4<u32>(pairs.x << 16u, pairs.x, pairs.y << 16u, pairs.y));
    let bits = vec4<u32>(halves >> vec4<u32>(3u)) & vec4<u32>(0x8fffe000u);
    return bitcast<vec4<f32>>(bits) * 0x1p112f;
}

fn kv_load(vector: u32) -> vec4<f32> {
    return kv_decode(kv[vector]);
}
