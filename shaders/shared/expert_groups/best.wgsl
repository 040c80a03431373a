// Leaves out all experts but those of the GROUPS_USED best groups, the lower number on ties. The experts of a group follow
// each other. A module of shared/routing has the key of a group.
const GROUP_EXPERTS: u32 = EXPERTS / GROUPS;

var<workgroup> group_keys: array<u32, GROUPS>;

// Sets the keys of experts that are left out to 0.
fn leave_out_groups(local: u32) {
    for (var group = local; group < GROUPS; group += WORKGROUP) {
        var largest = 0u;
        var second = 0u;
        for (var i = 0u; i < GROUP_EXPERTS; i++) {
            let order = orders[group * GROUP_EXPERTS + i];
            second = max(second, min(largest, order));
            largest = max(largest, order);
        }
        group_keys[group] = routing_group_key(largest, second);
    }
    workgroupBarrier();
    for (var expert = local; expert < EXPERTS; expert += WORKGROUP) {
        let group = expert / GROUP_EXPERTS;
        var rank = 0u;
        for (var other = 0u; other < GROUPS; other++) {
            let is_equal = group_keys[other] == group_keys[group];
            let before = group_keys[other] > group_keys[group] || (is_equal && other < group);
            rank += select(0u, 1u, before);
        }
        if (rank >= GROUPS_USED) {
            orders[expert] = 0u;
        }
    }
    workgroupBarrier();
}
