// Sums over the LANES neighbouring lanes that share a row: by shuffles among SUBGROUP_LANES neighbours (see subgroup.wgsl),
// then through workgroup memory. A call takes one barrier, or two if there are several TOKENS. Only lane 0 of each row gets
// the sums.
const PARTS = LANES / SUBGROUP_LANES;
var<workgroup> partial_sums: array<Sum, WORKGROUP / SUBGROUP_LANES * ROWS_PER_GROUP>;
var<workgroup> partial_squares: array<f32, WORKGROUP / SUBGROUP_LANES>;

fn reduce_lanes(
    sums: ptr<function, array<Sum, ROWS_PER_GROUP>>,
    sum_of_squares: ptr<function, f32>,
    local: u32,
) {
    let part = local / SUBGROUP_LANES;
    for (var i = 0u; i < ROWS_PER_GROUP; i++) {
        var value = (*sums)[i];
        for (var mask = SUBGROUP_LANES / 2u; mask > 0u; mask = mask / 2u) {
            value += subgroupShuffleXor(value, mask);
        }
        partial_sums[part * ROWS_PER_GROUP + i] = value;
    }
    var value = *sum_of_squares;
    for (var mask = SUBGROUP_LANES / 2u; mask > 0u; mask = mask / 2u) {
        value += subgroupShuffleXor(value, mask);
    }
    partial_squares[part] = value;
    workgroupBarrier();
    if (local % LANES == 0u) {
        for (var i = 0u; i < ROWS_PER_GROUP; i++) {
            var total = Sum();
            for (var p = part; p < part + PARTS; p++) {
                total += partial_sums[p * ROWS_PER_GROUP + i];
            }
            (*sums)[i] = total;
        }
        var total = 0.0;
        for (var p = part; p < part + PARTS; p++) {
            total += partial_squares[p];
        }
        *sum_of_squares = total;
    }
    if (TOKENS > 1u) {
        workgroupBarrier();
    }
}
