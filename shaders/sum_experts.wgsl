// out[token, row] = residual[token, row] + the sum over a token's experts of share * products[pair, row], and of their
// biases.
@group(0) @binding(B_products) var<storage, read> products: array<f32>; // [tokens, USED, ROWS]
@group(0) @binding(B_shares) var<storage, read> shares: array<f32>; // [tokens, USED]

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let token = workgroup.y;
    let row = workgroup.x * WORKGROUP + local;
    if (row < ROWS) {
        var sum = 0.0;
        for (var pair = token * USED; pair < (token + 1u) * USED; pair++) {
            sum += shares[pair] * products[pair * ROWS + row];
        }
        store(token * ROWS + row, row, sum + shared_bias(token, row));
    }
}
