// Selects the token with the largest logit (the lowest id on ties), writes it as the input of the next
// step, advances the step to that single token and appends it to the chosen ids. A row with NaN or +inf,
// or without any finite logit, selects INVALID_TOKEN instead. One workgroup.
@group(0) @binding(B_logits) var<storage, read> logits: array<f32>; // [VOCAB]
@group(0) @binding(B_ids) var<storage, read_write> ids: array<u32>; // [1]
@group(0) @binding(B_step) var<storage, read_write> step: array<u32>;
@group(0) @binding(B_chosen) var<storage, read_write> chosen: array<u32>; // [CHOSEN]

var<workgroup> best_values: array<f32, WORKGROUP>;
var<workgroup> best_ids: array<u32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) local: u32) {
    var best_value = -3.4028234e38;
    var best_id = INVALID_TOKEN;
    var invalid = false;
    for (var id = local; id < VOCAB; id += WORKGROUP) {
        let value = logits[id];
        // Tests the bits: compilers may assume that there is no NaN.
        let bits = bitcast<u32>(value);
        let finite = (bits & 0x7f800000u) != 0x7f800000u;
        invalid = invalid || (!finite && bits != 0xff800000u);
        if (finite && (value > best_value || best_id == INVALID_TOKEN)) {
            best_value = value;
            best_id = id;
        }
    }
    best_values[local] = best_value;
    best_ids[local] = best_id;
    if (invalid) {
        best_values[local] = 3.4028234e38;
        best_ids[local] = INVALID_TOKEN - 1u;
    }
    workgroupBarrier();
    if (local == 0u) {
        for (var lane = 0u; lane < WORKGROUP; lane++) {
            let id = best_ids[lane];
            if (id == INVALID_TOKEN - 1u) {
                invalid = true;
            } else if (id != INVALID_TOKEN) {
                let value = best_values[lane];
                if (best_id == INVALID_TOKEN || value > best_value || (value == best_value && id < best_id)) {
                    best_value = value;
                    best_id = id;
                }
            }
        }
        if (invalid) {
            best_id = INVALID_TOKEN;
        }
        ids[0] = best_id;
        // The tokens of this step are part of the sequence now. The next step feeds the selected id.
        let last = STEP_ROWS + (step[STEP_TOKENS] - 1u) * ROW_WORDS;
        step[STEP_ROWS] = step[last] + 1u;
        step[STEP_ROWS + 1u] = step[last + 1u];
        step[STEP_TOKENS] = 1u;
        chosen[step[STEP_CHOSEN] % CHOSEN] = best_id;
        step[STEP_CHOSEN] += 1u;
    }
}
