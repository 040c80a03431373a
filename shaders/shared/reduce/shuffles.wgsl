// Sums over SUBGROUP_LANES neighbouring lanes, without a barrier. SUBGROUP_LANES is a power of two and at most the smallest
// subgroup size, so the butterfly never leaves a subgroup. All lanes get the sums.
fn shuffle_sums(sums: ptr<function, array<Sum, ROWS_PER_GROUP>>, sum_of_squares: ptr<function, f32>) {
    for (var i = 0u; i < ROWS_PER_GROUP; i++) {
        var value = (*sums)[i];
        for (var mask = SUBGROUP_LANES / 2u; mask > 0u; mask = mask / 2u) {
            value += subgroupShuffleXor(value, mask);
        }
        (*sums)[i] = value;
    }
    var value = *sum_of_squares;
    for (var mask = SUBGROUP_LANES / 2u; mask > 0u; mask = mask / 2u) {
        value += subgroupShuffleXor(value, mask);
    }
    *sum_of_squares = value;
}
