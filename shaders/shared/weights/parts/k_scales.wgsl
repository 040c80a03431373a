// Scales of Q4_K and Q5_K: an f16 d and an f16 for the minima, then 12 bytes of 6-bit scales and
// minima of eight blocks, as in the file.

// Factor and offset of block `run` of a super-block: value = factor * q + offset.
fn weights_affine(scales: vec4<u32>, run: u32) -> vec2<f32> {
    let bytes = scales.yzw >> vec3<u32>(run % 4u * 8u);
    // The lower four bits of blocks 4 to 7 are in the last word, their upper two bits above the six bits of
    // blocks 0 to 3.
    let late = (vec2<u32>(bytes.z, bytes.z >> 4u) & vec2<u32>(15u)) | ((bytes.xy >> vec2<u32>(2u)) & vec2<u32>(48u));
    let sixes = select(bytes.xy & vec2<u32>(63u), late, run >= 4u);
    return unpack2x16float(scales.x) * vec2<f32>(vec2<i32>(sixes)) * vec2<f32>(1.0, -1.0);
}
