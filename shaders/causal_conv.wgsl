// A causal convolution of each channel over the tokens of its sequence. Inputs of earlier steps are in the sequence's
// state. One lane per channel, and per row with BY_ROWS; else a lane passes through all rows.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, STRIDE]
@group(0) @binding(B_weights) var<storage, read> weights: array<f32>; // [CHANNELS, TAPS]; the last tap is of the token itself
@group(0) @binding(B_bias) var<storage, read> bias: array<f32>; // [CHANNELS]
@group(0) @binding(B_states) var<storage, read_write> states: array<f32>; // [slot, SLOT_WORDS], of which [TAPS - 1, CHANNELS]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, CHANNELS]

// The value that is convolved. With GATED, rows of x are B, C and x.
fn input(row: u32, channel: u32) -> f32 {
    let at = row * STRIDE + AT + channel;
    if (GATED) {
        return x[at] * x[at + 2u * CHANNELS];
    }
    return x[at];
}

// Rows of the same sequence directly before a row, up to the taps.
fn rows_before(row: u32) -> u32 {
    var rows = 0u;
    while (rows + 1u < TAPS && rows < row && row_table(row - rows - 1u) == row_table(row)) {
        rows++;
    }
    return rows;
}

// The input `back` tokens before a row's token, of which the step has `rows`; zero before the sequence.
fn earlier(row: u32, rows: u32, back: u32, channel: u32) -> f32 {
    if (back <= rows) {
        return input(row - back, channel);
    }
    if (row_position(row) < back) {
        return 0.0;
    }
    let kept = TAPS - 1u + rows - back;
    return states[row_state(row) * SLOT_WORDS + kept * CHANNELS + channel];
}

fn convolve(row: u32, channel: u32) {
    let rows = rows_before(row);
    var sum = bias[channel];
    for (var tap = 0u; tap < TAPS; tap++) {
        sum += weights[channel * TAPS + tap] * earlier(row, rows, TAPS - 1u - tap, channel);
    }
    if (GATED) {
        sum *= x[row * STRIDE + AT + CHANNELS + channel];
    } else {
        sum = sum / (1.0 + exp(-sum));
    }
    out[row * CHANNELS + channel] = sum;
}

// Keeps the last inputs of a sequence, whose last row this is. A kept input is read before it is overwritten.
fn keep(row: u32, channel: u32) {
    let rows = rows_before(row);
    for (var i = 0u; i + 1u < TAPS; i++) {
        let value = earlier(row, rows, TAPS - 2u - i, channel);
        states[row_state(row) * SLOT_WORDS + i * CHANNELS + channel] = value;
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let channel = global.x;
    let tokens = step_tokens();
    if (channel >= CHANNELS || global.y >= tokens) {
        return;
    }
    if (BY_ROWS) {
        convolve(global.y, channel);
        return;
    }
    for (var row = 0u; row < tokens; row++) {
        if (CONVOLVES) {
            convolve(row, channel);
        }
        if (row + 1u == tokens || row_table(row + 1u) != row_table(row)) {
            keep(row, channel);
        }
    }
}
