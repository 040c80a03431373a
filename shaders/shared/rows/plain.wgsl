// A row of the output is a row of one matrix. Its sum is an f32.

// The dot product of a block, or of the lane's part of it, with its inputs.
fn dot_block(block: u32, inputs: ptr<function, Block>) -> f32 {
    return weights_dot(block, inputs);
}

fn store_sum(token: u32, row: u32, sum: f32) {
    store(token * ROWS + row, row, sum);
}
