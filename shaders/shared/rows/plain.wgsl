// A row of the output is a row of one matrix. Its sum is an f32.

// The dot product of a block with 32 inputs.
fn dot_block(block: u32, inputs: ptr<function, Block>) -> f32 {
    return weights_dot(block, inputs);
}

// Loads a block of a line, one of `lines` in a tile.
fn load_line(line: u32, lines: u32, block: u32, out: ptr<function, Block>) {
    weights_load(block, out);
}

// Selects the sum of row `row` from the sums of a lane's four lines.
fn sum_of_four(lines: vec4<f32>, row: u32) -> f32 {
    return lines[row];
}

// Selects the sum of row `row` from the sums of a lane's eight lines.
fn sum_of_eight(low: vec4<f32>, high: vec4<f32>, row: u32) -> f32 {
    return select(high, low, row < 4u)[row % 4u];
}

fn store_sum(token: u32, row: u32, sum: f32) {
    store(token * ROWS + row, row, sum);
}
