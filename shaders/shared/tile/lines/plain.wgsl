// A line of a tile is a row of one matrix.

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
