// DRY: finds the length of the longest repetition that each token would continue, for the slot of every row.
// Marks of a slot are 0 between steps: `sample_choose` clears what this kernel sets.
@group(0) @binding(B_accounts) var<storage, read_write> accounts: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let slot = row_slot(workgroup.y);
    if (slot == NO_SLOT) {
        return;
    }
    if (!slot_has(slot, STAGE_DRY)) {
        return;
    }
    let account = slot * ACCOUNT_WORDS;
    let history = account + ACCOUNT_HISTORY;
    let len = atomicLoad(&accounts[account + ACCOUNT_LEN]);
    if (len < 2u) {
        return;
    }
    let last = atomicLoad(&accounts[history + len - 1u]);
    if (slot_set_has(slot, SLOT_BREAKERS, last)) {
        return;
    }
    for (var i = workgroup.x * WORKGROUP + local; i + 1u < len; i += workgroups.x * WORKGROUP) {
        if (atomicLoad(&accounts[history + i]) != last) {
            continue;
        }
        let next = atomicLoad(&accounts[history + i + 1u]);
        if (next >= VOCAB || slot_set_has(slot, SLOT_BREAKERS, next)) {
            continue;
        }
        var length = 1u;
        while (length <= i && length < DRY_MAX_LENGTH) {
            let id = atomicLoad(&accounts[history + len - 1u - length]);
            if (id != atomicLoad(&accounts[history + i - length]) || slot_set_has(slot, SLOT_BREAKERS, id)) {
                break;
            }
            length++;
        }
        atomicMax(&accounts[account + ACCOUNT_MARKS + next], length);
    }
}
