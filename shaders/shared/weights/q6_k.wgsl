// Q6_K matrix: super-blocks of eight blocks in groups of 16 elements, value = d * scale * (q - 32) with
// 6-bit quants q. Quants: the nibbles of eight blocks, byte j with element j low and j + 16 high, then
// the upper bits of each in two words: bits 2 * i of byte j of word k are element 16 * k + 4 * i + j.
// Scales: 16 signed bytes, an f16 d and two bytes of padding.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [super-blocks, 12]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [super-blocks, 5]

struct weights_Block {
    nibbles: weights_Nibbles,
    high: vec2<u32>,
    factors: vec2<f32>,
}

fn weights_open(block: u32) -> weights_Block {
    let superblock = block / 8u;
    let run = block % 8u;
    let scales = bitcast<i32>(weights_scales[superblock * 5u + run / 2u] << (16u - run % 2u * 16u));
    let d = unpack2x16float(weights_scales[superblock * 5u + 4u]).x;
    let nibbles = weights_nibbles(superblock * 12u + run);
    let highs = weights_quants[superblock * 12u + 8u + run / 2u];
    let high = select(highs.xy, highs.zw, run % 2u == 1u);
    return weights_Block(nibbles, high, d * vec2<f32>(vec2<i32>((scales << 8u) >> 24u, scales >> 24u)));
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let low = weights_four_nibbles(block.nibbles, half, word);
    let high = ((block.high[half] >> (word * 2u)) & 0x03030303u) << 4u;
    return block.factors[half] * (weights_bytes(low | high) - 32.0);
}
