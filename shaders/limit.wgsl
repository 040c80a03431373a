// out = finish(clamp(x, lower, upper)). One lane per vector, one row of workgroups per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_bounds) var<storage, read> bounds: array<f32>; // [2], lower and upper
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x < COLS / 4u) {
        let at = global.y * (COLS / 4u) + global.x;
        let limited = min(max(x[at], vec4(bounds[0])), vec4(bounds[1]));
        out[at] = vec4(finish(limited.x), finish(limited.y), finish(limited.z), finish(limited.w));
    }
}
