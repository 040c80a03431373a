// A row of the output combines a row of gate with the same row of up. Its sum is a vector of both.

// The dot products of a block of each matrix, or of the lane's part of it, with its inputs.
fn dot_block(block: u32, inputs: ptr<function, Block>) -> vec2<f32> {
    return vec2<f32>(gate_dot(block, inputs), up_dot(block, inputs));
}

fn store_sum(token: u32, row: u32, sum: vec2<f32>) {
    store(token * ROWS + row, row, gated(token, row, sum.x, sum.y));
}
