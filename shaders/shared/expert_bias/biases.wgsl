// The sum over a token's experts of share * bias.
@group(0) @binding(B_biases) var<storage, read> biases: array<f32>; // [experts, ROWS]

fn shared_bias(token: u32, row: u32) -> f32 {
    var sum = 0.0;
    for (var pair = token * USED; pair < (token + 1u) * USED; pair++) {
        sum += shares[pair] * biases[experts[pair] * ROWS + row];
    }
    return sum;
}
