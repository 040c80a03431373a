// Sums over the LANES neighbouring lanes that share a row, through workgroup memory. A call takes one
// barrier, or two if there are several TOKENS. Only lane 0 of each row gets the sums.
var<workgroup> partial_sums: array<Sum, WORKGROUP * ROWS_PER_GROUP>;
var<workgroup> partial_squares: array<f32, WORKGROUP>;

fn reduce_lanes(
    sums: ptr<function, array<Sum, ROWS_PER_GROUP>>,
    sum_of_squares: ptr<function, f32>,
    local: u32,
) {
    for (var i = 0u; i < ROWS_PER_GROUP; i++) {
        partial_sums[local * ROWS_PER_GROUP + i] = (*sums)[i];
    }
    partial_squares[local] = *sum_of_squares;
    workgroupBarrier();
    if (local % LANES == 0u) {
        for (var i = 0u; i < ROWS_PER_GROUP; i++) {
            var value = Sum();
            for (var lane = 0u; lane < LANES; lane++) {
                value += partial_sums[(local + lane) * ROWS_PER_GROUP + i];
            }
            (*sums)[i] = value;
        }
        var value = 0.0;
        for (var lane = 0u; lane < LANES; lane++) {
            value += partial_squares[local + lane];
        }
        *sum_of_squares = value;
    }
    if (TOKENS > 1u) {
        workgroupBarrier();
    }
}
