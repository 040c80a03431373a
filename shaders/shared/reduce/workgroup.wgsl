// Sums over the LANES neighbouring lanes that share a row, through workgroup memory: one barrier,
// and one between the calls for several TOKENS. Only lane 0 of each row gets the sum.
var<workgroup> partial_sums: array<f32, WORKGROUP * SUMS>;

fn reduce_lanes(sums: ptr<function, array<f32, SUMS>>, local: u32) {
    for (var i = 0u; i < SUMS; i++) {
        partial_sums[local * SUMS + i] = (*sums)[i];
    }
    workgroupBarrier();
    if (local % LANES == 0u) {
        for (var i = 0u; i < SUMS; i++) {
            var value = 0.0;
            for (var lane = 0u; lane < LANES; lane++) {
                value += partial_sums[(local + lane) * SUMS + i];
            }
            (*sums)[i] = value;
        }
    }
    if (TOKENS > 1u) {
        workgroupBarrier();
    }
}
