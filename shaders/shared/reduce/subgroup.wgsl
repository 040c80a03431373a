// Sums over the LANES neighbouring lanes that share a row, without a barrier. LANES is a power of
// two and at most the smallest subgroup size, so the butterfly never leaves a subgroup.
fn reduce_lanes(
    sums: ptr<function, array<Sum, ROWS_PER_GROUP>>,
    sum_of_squares: ptr<function, f32>,
    local: u32,
) {
    for (var i = 0u; i < ROWS_PER_GROUP; i++) {
        var value = (*sums)[i];
        for (var mask = LANES / 2u; mask > 0u; mask = mask / 2u) {
            value += subgroupShuffleXor(value, mask);
        }
        (*sums)[i] = value;
    }
    var value = *sum_of_squares;
    for (var mask = LANES / 2u; mask > 0u; mask = mask / 2u) {
        value += subgroupShuffleXor(value, mask);
    }
    *sum_of_squares = value;
}
