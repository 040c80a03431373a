// The parameters of each row of a step and of each sampler slot, which the host writes. Layout:
// ops/sample/layout.rs.
@group(0) @binding(B_params) var<storage, read> params: array<u32>;

// The slot whose sampler samples a row; NO_SLOT for padding.
fn row_slot(row: u32) -> u32 {
    return params[row * CHOICE_WORDS];
}

fn row_options(row: u32) -> u32 {
    return params[row * CHOICE_WORDS + 1u];
}

fn slot_word(slot: u32, word: u32) -> u32 {
    return params[SLOTS_AT + slot * SLOT_WORDS + word];
}

fn slot_float(slot: u32, word: u32) -> f32 {
    return bitcast<f32>(slot_word(slot, word));
}

fn slot_has(slot: u32, stages: u32) -> bool {
    return (slot_word(slot, SLOT_STAGES) & stages) != 0u;
}

// Whether `id` is in the set of token ids that starts at `word`.
fn slot_set_has(slot: u32, word: u32, id: u32) -> bool {
    return id < VOCAB && ((slot_word(slot, word + id / 32u) >> (id % 32u)) & 1u) == 1u;
}

// Whether weights are needed: for the draw, or for log-probabilities after all stages.
fn row_weighs(row: u32, slot: u32) -> bool {
    return !slot_has(slot, STAGE_GREEDY) || (row_options(row) & ROW_PROCESSED) != 0u;
}
