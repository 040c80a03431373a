// The state of a step: what moves between replays of a captured graph. Layout as in ops/step.rs.
@group(0) @binding(B_step) var<storage, read> step: array<u32>;

// Tokens that were in the sequence before this step.
fn step_position() -> u32 {
    return step[0];
}

// How many rows of this step hold tokens; the rest is padding.
fn step_tokens() -> u32 {
    return step[1];
}

// Index of a token's first vector in the KV memory [page, k|v, page token, KV_DIM].
fn kv_row(token: u32, value: u32) -> u32 {
    let page = step[STEP_PAGES + token / PAGE_TOKENS];
    return ((page * 2u + value) * PAGE_TOKENS + token % PAGE_TOKENS) * KV_DIM;
}
