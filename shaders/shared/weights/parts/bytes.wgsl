// The bytes of a word. Converting them one by one from signed integers is fastest on software adapters and
// not slower on others.
fn weights_bytes(q: u32) -> vec4<f32> {
    let a = vec4<i32>(i32(q & 255u), i32((q >> 8u) & 255u), i32((q >> 16u) & 255u), i32(q >> 24u));
    return vec4<f32>(a);
}
