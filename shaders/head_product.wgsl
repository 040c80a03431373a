// For each head of each token: its prefix, then the product of the head's matrix with a part of the head's columns of x. One
// lane per two elements of a head, for TOKENS tokens.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, HEADS, X_LEN]; the part is of COLS columns from X_AT on
@group(0) @binding(B_matrix) var<storage, read> matrix: array<u32>; // [HEADS, COLS, ROWS / 2], f16 of two neighboring rows
@group(0) @binding(B_prefix) var<storage, read> prefix: array<f32>; // [tokens, HEADS, PREFIX]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, HEADS, PREFIX + ROWS]

const PAIRS: u32 = (PREFIX + ROWS) / 2u; // of a head

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let head = global.x / PAIRS;
    if (head >= HEADS) {
        return;
    }
    let first = global.y * TOKENS;
    let at = global.x % PAIRS * 2u;
    var sums: array<vec2<f32>, TOKENS>;
    if (at < PREFIX) {
        for (var t = 0u; t < TOKENS; t++) {
            let source = ((first + t) * HEADS + head) * PREFIX + at;
            sums[t] = vec2<f32>(prefix[source], prefix[source + 1u]);
        }
    } else {
        let pair = (at - PREFIX) / 2u;
        for (var column = 0u; column < COLS; column++) {
            let weights = unpack2x16float(matrix[(head * COLS + column) * (ROWS / 2u) + pair]);
            for (var t = 0u; t < TOKENS; t++) {
                sums[t] += weights * x[((first + t) * HEADS + head) * X_LEN + X_AT + column];
            }
        }
    }
    for (var t = 0u; t < TOKENS; t++) {
        let to = ((first + t) * HEADS + head) * PAIRS * 2u + at;
        out[to] = sums[t].x;
        out[to + 1u] = sums[t].y;
    }
}
