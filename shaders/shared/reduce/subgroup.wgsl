// Sums over the LANES neighbouring lanes that share a row, all in one subgroup (see shuffles.wgsl).
fn reduce_lanes(
    sums: ptr<function, array<Sum, ROWS_PER_GROUP>>,
    sum_of_squares: ptr<function, f32>,
    local: u32,
) {
    shuffle_sums(sums, sum_of_squares);
}
