// A row of the output combines a row of gate with the same row of up. Its sum is a vector of both. In a
// tile, the first half of the lines are rows of gate and the other half are the same rows of up.

// The dot products of a block of each matrix with 32 inputs.
fn dot_block(block: u32, inputs: ptr<function, Block>) -> vec2<f32> {
    return vec2<f32>(gate_dot(block, inputs), up_dot(block, inputs));
}

// Loads a block of a line, one of `lines` in a tile.
fn load_line(line: u32, lines: u32, block: u32, out: ptr<function, Block>) {
    if (line < lines / 2u) {
        gate_load(block, out);
    } else {
        up_load(block, out);
    }
}

// Selects the sums of row `row` from the sums of a lane's four lines.
fn sum_of_four(lines: vec4<f32>, row: u32) -> vec2<f32> {
    return vec2<f32>(lines[row], lines[row + 2u]);
}

// Selects the sums of row `row` from the sums of a lane's eight lines.
fn sum_of_eight(low: vec4<f32>, high: vec4<f32>, row: u32) -> vec2<f32> {
    return vec2<f32>(low[row], high[row]);
}

fn store_sum(token: u32, row: u32, sum: vec2<f32>) {
    store(token * ROWS + row, row, gated(token, row, sum.x, sum.y));
}
