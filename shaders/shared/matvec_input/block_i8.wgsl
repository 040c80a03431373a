// A token's inputs of a block, for products of bytes. Each lane quantizes what it reads, once for all rows
// of its group. This saves a launch and a barrier.
fn load_block(token: u32, block: u32, out: ptr<function, Block>) -> f32 {
    var values: array<vec4<f32>, 8>;
    let sum_of_squares = load_input(token, block, &values);
    quantize_block(&values, out);
    return sum_of_squares;
}
