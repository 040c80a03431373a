// Sums over the LANES neighbouring lanes that share a row and belong to several subgroups: by shuffles within a subgroup (see
// shuffles.wgsl), then through workgroup memory. A call takes one barrier, or two if there are several TOKENS. Only lane 0
// of each row gets the sums.
const PARTS = LANES / SUBGROUP_LANES;
var<workgroup> partial_sums: array<Sum, WORKGROUP / SUBGROUP_LANES * ROWS_PER_GROUP>;
var<workgroup> partial_squares: array<f32, WORKGROUP / SUBGROUP_LANES>;

fn reduce_lanes(
    sums: ptr<function, array<Sum, ROWS_PER_GROUP>>,
    sum_of_squares: ptr<function, f32>,
    local: u32,
) {
    shuffle_sums(sums, sum_of_squares);
    let part = local / SUBGROUP_LANES;
    if (local % SUBGROUP_LANES == 0u) {
        for (var i = 0u; i < ROWS_PER_GROUP; i++) {
            partial_sums[part * ROWS_PER_GROUP + i] = (*sums)[i];
        }
        partial_squares[part] = *sum_of_squares;
    }
    workgroupBarrier();
    if (local % LANES == 0u) {
        for (var p = part + 1u; p < part + PARTS; p++) {
            for (var i = 0u; i < ROWS_PER_GROUP; i++) {
                (*sums)[i] += partial_sums[p * ROWS_PER_GROUP + i];
            }
            *sum_of_squares += partial_squares[p];
        }
    }
    if (TOKENS > 1u) {
        workgroupBarrier();
    }
}
