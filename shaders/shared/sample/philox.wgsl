// Philox4x32-10 as in src/sample/philox.rs, in u32 arithmetic only.

// The uniform number of a position, in units of 2^-24.
fn uniform_24(seed: vec2<u32>, candidate: u32, position: u32) -> u32 {
    var counter = vec4<u32>(position, 0u, candidate, 0u);
    var key = seed;
    for (var round = 0u; round < 10u; round++) {
        let first = multiply(0xD2511F53u, counter.x);
        let second = multiply(0xCD9E8D57u, counter.z);
        counter = vec4<u32>(
            second.y ^ counter.y ^ key.x,
            second.x,
            first.y ^ counter.w ^ key.y,
            first.x,
        );
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter.x >> 8u;
}
