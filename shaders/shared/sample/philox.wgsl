// Philox4x32-10, as src/sample/philox.rs: words only.

// Low and high word of a product.
fn multiply(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return vec2<u32>((other << 16u) | (low & 0xffffu), a1 * b1 + (middle >> 16u) + (other >> 16u));
}

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
