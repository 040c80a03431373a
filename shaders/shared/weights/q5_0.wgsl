// Q5_0 matrix: value = d * (q - 16) with 5-bit quants q and an f16 d per block. Scales: the fifth bits in
// four bytes, then d; six bytes per block, so two blocks share three words.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [rows * blocks * 3 / 2]

fn weights_open(block: u32) -> weights_Block {
    let at = block / 2u * 3u + block % 2u;
    let first = weights_scales[at];
    let second = weights_scales[at + 1u];
    let odd = block % 2u == 1u;
    let high = select(first, (first >> 16u) | (second << 16u), odd);
    let d = unpack2x16float(select(second, second >> 16u, odd)).x;
    return weights_Block(weights_nibbles(block), high, d, -16.0 * d);
}
