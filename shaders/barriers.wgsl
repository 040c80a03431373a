// Executes BARRIERS barriers and nothing else, to measure what they cost.

@group(0) @binding(B_out) var<storage, read_write> out: array<u32>; // [WORKGROUPS]

var<workgroup> count: u32;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // The initial content of workgroup memory is undefined.
    if (local == 0u) {
        count = 0u;
    }
    workgroupBarrier();
    for (var i = 0u; i < BARRIERS; i++) {
        if (local == i % WORKGROUP) {
            count += 1u;
        }
        workgroupBarrier();
    }
    if (local == 0u) {
        out[workgroup.x] = count;
    }
}
