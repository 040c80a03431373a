// A token's 32 inputs of a block, zero past COLS.
fn load_x(token: u32, block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var i = 0u; i < 8u; i++) { // unrolled
        let column = block * 8u + i;
        (*out)[i] = vec4<f32>(0.0);
        if (COLS % 32u == 0u || column < COLS / 4u) {
            (*out)[i] = x[token * (COLS / 4u) + column];
        }
    }
}
