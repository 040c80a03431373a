//! The CPU twins of `weights_load`: one block of 32 columns of each format.

use half::{bf16, f16};

use super::{BLOCK_COLS, Format};

type Values = [f32; BLOCK_COLS];

/// The values that quants of ggml's IQ4 types stand for.
const IQ4: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

/// Twice the values of 4-bit floats, in order.
const E2M1_DOUBLED: [f32; 16] = [
    -12.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0,
];

impl Format {
    /// Decodes block `block`: the CPU twin of `weights_load`.
    pub fn decode(self, quants: &[u32], scales: &[u32], block: usize) -> Values {
        // Blocks that lie together: those of a super-block, where quants of one sort follow each other.
        let (bytes, blocks) = self.scale_bytes();
        let words = blocks * self.block_words();
        let quants: &[u8] = bytemuck::cast_slice(&quants[block / blocks * words..][..words]);
        let scales: &[u8] = bytemuck::cast_slice(scales);
        let scales = &scales[block / blocks * bytes..][..bytes];
        let run = block % blocks;
        match self {
            Format::F32 => std::array::from_fn(|i| {
                f32::from_le_bytes(std::array::from_fn(|byte| quants[4 * i + byte]))
            }),
            Format::F16 => std::array::from_fn(|i| half_at(quants, i)),
            Format::Bf16 => std::array::from_fn(|i| {
                bf16::from_le_bytes([quants[2 * i], quants[2 * i + 1]]).to_f32()
            }),
            Format::Q8_0 => {
                let d = half_at(scales, 0);
                std::array::from_fn(|i| d * f32::from(quants[i] as i8))
            }
            Format::Q4_0 => {
                let d = half_at(scales, 0);
                std::array::from_fn(|i| d * (f32::from(nibble(quants, i)) - 8.0))
            }
            Format::Q4_1 => {
                let (d, m) = (half_at(scales, 0), half_at(scales, 1));
                std::array::from_fn(|i| d * f32::from(nibble(quants, i)) + m)
            }
            Format::Q5_0 => {
                let d = half_at(scales, 2);
                std::array::from_fn(|i| d * (f32::from(five(quants, scales, i)) - 16.0))
            }
            Format::Q5_1 => {
                let (d, m) = (half_at(scales, 2), half_at(scales, 3));
                std::array::from_fn(|i| d * f32::from(five(quants, scales, i)) + m)
            }
            Format::Q2K => {
                let (d, dmin) = (half_at(scales, 8), half_at(scales, 9));
                std::array::from_fn(|i| {
                    let scale = scales[run * 2 + i / 16];
                    let q = f32::from(pair(&quants[run * 8..], i));
                    d * f32::from(scale & 15) * q - dmin * f32::from(scale >> 4)
                })
            }
            Format::Q3K => {
                let d = half_at(scales, 6);
                let quants = &quants[run * 12..];
                std::array::from_fn(|i| {
                    let q = pair(quants, i) | bit(&quants[8..], i) << 2;
                    let group = run * 2 + i / 16;
                    let low = scales[group % 8] >> (group / 8 * 4) & 15;
                    let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
                    d * (f32::from(low | high << 4) - 32.0) * (f32::from(q) - 4.0)
                })
            }
            Format::Q4K => {
                let (factor, minimum) = k_scale(scales, run);
                let quants = &quants[run * 16..];
                std::array::from_fn(|i| factor * f32::from(nibble(quants, i)) - minimum)
            }
            Format::Q5K => {
                let (factor, minimum) = k_scale(scales, run);
                let (low, high) = (&quants[run * 16..], &quants[128 + run * 4..]);
                std::array::from_fn(|i| factor * f32::from(five(low, high, i)) - minimum)
            }
            Format::Q6K => {
                let d = half_at(scales, 8);
                std::array::from_fn(|i| {
                    let low = nibble(&quants[run * 16..], i);
                    let q = low | pair(&quants[128 + run * 8..], i) << 4;
                    let scale = scales[run * 2 + i / 16] as i8;
                    d * f32::from(scale) * (f32::from(q) - 32.0)
                })
            }
            Format::Iq4Nl => {
                let d = half_at(scales, 0);
                std::array::from_fn(|i| d * IQ4[usize::from(nibble(quants, i))])
            }
            Format::Iq4Xs => {
                let low = scales[4 + run / 2] >> (run % 2 * 4) & 15;
                let high = scales[2 + run / 4] >> (run % 4 * 2) & 3;
                let factor = half_at(scales, 0) * (f32::from(low | high << 4) - 32.0);
                let quants = &quants[run * 16..];
                std::array::from_fn(|i| factor * IQ4[usize::from(nibble(quants, i))])
            }
            Format::Mxfp4 => {
                // 2^(e - 128), subnormal where e is 0 or 1.
                let half = f32::from_bits(match scales[0] {
                    e @ 0..=1 => 0x0020_0000 << e,
                    e => u32::from(e - 1) << 23,
                });
                std::array::from_fn(|i| half * E2M1_DOUBLED[usize::from(nibble(quants, i))])
            }
        }
    }
}

/// The f16 of two bytes at `2 * index`.
fn half_at(bytes: &[u8], index: usize) -> f32 {
    f16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]]).to_f32()
}

fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 16] >> (i / 16 * 4) & 15
}

fn pair(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 16 * 4 + i % 4] >> (i % 16 / 4 * 2) & 3
}

fn bit(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 4] >> (i / 4) & 1
}

/// Five bits: a nibble and the bit above it.
fn five(nibbles: &[u8], bits: &[u8], i: usize) -> u8 {
    nibble(nibbles, i) | bit(bits, i) << 4
}

/// Factor and minimum of block `run` of a Q4_K or Q5_K super-block.
fn k_scale(scales: &[u8], run: usize) -> (f32, f32) {
    let bytes = |word: usize| scales[4 + word * 4 + run % 4];
    let (scale, minimum) = match run {
        0..4 => (bytes(0) & 63, bytes(1) & 63),
        _ => (
            bytes(2) & 15 | bytes(0) >> 2 & 48,
            bytes(2) >> 4 | bytes(1) >> 2 & 48,
        ),
    };
    let (d, dmin) = (half_at(scales, 0), half_at(scales, 1));
    (d * f32::from(scale), dmin * f32::from(minimum))
}
