// A token's inputs of a block, for products in f32.
fn load_block(token: u32, block: u32, out: ptr<function, Block>) -> f32 {
    return load_input(token, block, out);
}
