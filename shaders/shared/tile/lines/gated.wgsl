// The first half of the lines of a tile are rows of gate and the other half are the same rows of up.

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
