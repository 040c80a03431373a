// 32 values as signed bytes, four per word: value = scale * byte.
struct Block {
    words: array<u32, 8>,
    scale: f32,
    // The sum of the bytes; unset in blocks of matrices.
    sum: i32,
}

// Rounds `values` to bytes with a scale that maps the largest magnitude to 127. NaN stays NaN.
fn quantize_block(values: ptr<function, array<vec4<f32>, 8>>, out: ptr<function, Block>) {
    let peak = peak_of(values);
    let scale = scale_to(1.0, peak);
    var sum = 0;
    for (var i = 0u; i < 8u; i++) { // unrolled
        let word = pack4x8snorm((*values)[i] * scale);
        (*out).words[i] = word;
        sum += dot4I8Packed(word, 0x01010101u);
    }
    (*out).scale = peak / 127.0;
    (*out).sum = sum;
}
