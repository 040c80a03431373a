// 64-bit integers: low word, high word.

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

fn wide_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn wide_less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// a * b in three words.
fn wide_times(a: vec2<u32>, b: u32) -> vec3<u32> {
    let low = multiply(a.x, b);
    let high = multiply(a.y, b);
    let middle = wide_add(vec2<u32>(low.y, 0u), high);
    return vec3<u32>(low.x, middle);
}

// A sum of fixed-point weights as a float.
fn wide_weight(sum: vec2<u32>) -> f32 {
    return f32(sum.y) * 2.44140625e-4 + f32(sum.x) * 5.684341886080802e-14;
}
