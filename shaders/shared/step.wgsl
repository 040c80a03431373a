// The state of a step, which changes between replays of a captured graph. ops/step.rs defines the layout.
// A row is one token. A chunk has rows of one sequence; a batch has one row of each of several sequences.
@group(0) @binding(B_step) var<storage, read> step: array<u32>;

// Rows of this step that are tokens; the others are padding.
fn step_tokens() -> u32 {
    return step[STEP_TOKENS];
}

// Tokens that precede a row's token in its sequence.
fn row_position(row: u32) -> u32 {
    return step[STEP_ROWS + row * ROW_WORDS];
}

// First word of the block table of a row's sequence.
fn row_table(row: u32) -> u32 {
    return step[STEP_ROWS + row * ROW_WORDS + 1u];
}

// Tokens that a row's sequence had when the step was set, those of the step included.
fn row_length(row: u32) -> u32 {
    return step[row_table(row) - 1u];
}

// The slot of the state of a row's sequence.
fn row_state(row: u32) -> u32 {
    return step[row_table(row) - 5u];
}

// The first token of a row's segment.
fn row_first(row: u32) -> u32 {
    return step[row_table(row) - 4u];
}

// Tokens of its sequence that a row sees in causal attention: those up to its own, or up to the end of its image.
fn row_end(row: u32) -> u32 {
    return max(row_position(row) + 1u, step[row_table(row) - 2u]);
}

// A part of a row's rotary position: 0 is time, 1 the row and 2 the column of an image. Rows that were advanced since
// the step was set have none of their own.
fn row_rotary(row: u32, part: u32) -> u32 {
    let position = row_position(row);
    let rotary = step[STEP_ROTARY];
    if (rotary > 0u && position < row_length(row)) {
        return step[rotary + 3u * row + part];
    }
    return position + step[row_table(row) - 3u];
}
