// The state of a step: what moves between replays of a captured graph. Layout as in ops/step.rs.
// A row is one token: a chunk is rows of one sequence, a batch is a row of each of several.
@group(0) @binding(B_step) var<storage, read> step: array<u32>;

// How many rows of this step hold tokens; the rest is padding.
fn step_tokens() -> u32 {
    return step[STEP_TOKENS];
}

// Tokens in a row's sequence before the row's own.
fn row_position(row: u32) -> u32 {
    return step[STEP_ROWS + row * ROW_WORDS];
}

// Word at which the block table of a row's sequence starts.
fn row_table(row: u32) -> u32 {
    return step[STEP_ROWS + row * ROW_WORDS + 1u];
}

// Index of the first vector of the token at `position` in the KV memory
// [page, k|v, page token, KV_DIM].
fn kv_row(table: u32, position: u32, value: u32) -> u32 {
    let page = step[table + position / PAGE_TOKENS];
    return ((page * 2u + value) * PAGE_TOKENS + position % PAGE_TOKENS) * KV_DIM;
}
