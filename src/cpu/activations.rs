//! The inputs of products: input rows quantized to 8 bits for quantized formats, as they are for floats, in the order
//! that the kernels read them. Ends where the product begins.

use crate::{
    format::{Format, by_format},
    formats::Quantized,
    simd::Weights,
};

/// Columns of a block, which share a scale.
const BLOCK: usize = 32;

/// Values that are quantized at once.
const LANES: usize = 8;

/// Most tokens of a tile. The relaxed-SIMD module and the module that calls it agree on it.
pub(crate) const TILE: usize = 4;

/// Tokens of the tile that starts where `left` tokens are left: as many as possible of 4, then 2, then 1.
#[inline(always)]
pub(crate) fn tile_tokens(left: usize) -> usize {
    match left {
        0..=1 => 1,
        left if left < TILE => 2,
        _ => TILE,
    }
}

/// Input rows, prepared for products with matrices of a format. Buffers are reused.
///
/// For quantized formats, each block of 32 columns has integers in -127..=127 and a scale, max |x| / 127. Integers are
/// rounded to nearest, ties to even. A block with a value that is not finite has the scale NaN, which all products of the
/// token then become.
#[derive(Default)]
pub struct Activations {
    format: Option<Format>,
    tokens: usize,
    cols: usize,
    values: Vec<f32>,
    quants: Vec<i8>,
    pairs: Vec<i16>,
    signs: Vec<u8>,
    scales: Vec<f32>,
    offsets: Vec<i32>,
    sums: Vec<f32>,
}

/// What kernels read. Tokens are in tiles; a tile has all its columns, block by block, and a block has those of each
/// token. A block is 32 columns, or 4 for floats. So token `t` of the tile that starts at token `s` has the columns of
/// block `b` at `s * cols + (b * tokens of the tile + t) * columns of a block`, and its scale at `s * blocks + b *
/// tokens of the tile + t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Inputs {
    pub(crate) tokens: usize,
    pub(crate) cols: usize,
    /// For formats of floats.
    pub(crate) values: *const f32,
    /// In -127..=127.
    pub(crate) quants: *const i8,
    /// For simd128: of 4 quants, the first and third, then the second and fourth.
    pub(crate) pairs: *const i16,
    /// For relaxed SIMD with signed weights: of 4 quants, the positive ones or zero, then the magnitudes of the
    /// negative ones or zero.
    pub(crate) signs: *const u8,
    /// Of blocks.
    pub(crate) scales: *const f32,
    /// Of the groups of blocks: sums of the quants, times minus what means zero in the weights. 128 for signed ones.
    pub(crate) offsets: *const i32,
    /// Of the groups of blocks: sums of the quants, times the scale.
    pub(crate) sums: *const f32,
}

/// How a format wants its inputs.
#[derive(Clone, Copy)]
struct Needs {
    groups: usize,
    weights: Weights,
    sums: bool,
}

impl Activations {
    /// Prepares `x`, which is `[tokens, cols]`, for products with matrices of a format.
    ///
    /// # Panics
    /// If `x` are not whole rows, or `cols` is not a multiple of [`Format::unit_cols`].
    pub fn set(&mut self, x: &[f32], cols: usize, format: Format) {
        assert!(
            cols > 0 && cols.is_multiple_of(format.unit_cols()) && x.len().is_multiple_of(cols),
            "{} inputs in rows of {cols} columns for {}",
            x.len(),
            format.name()
        );
        self.format = Some(format);
        self.tokens = x.len() / cols;
        self.cols = cols;
        by_format!(format, Q => {
            let needs = Needs {
                groups: Q::GROUPS,
                weights: Q::WEIGHTS,
                sums: Q::SUMS,
            };
            self.quantize(x, needs);
        }, F => self.order(x));
    }

    /// The format that the inputs are prepared for.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// The number of input rows.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub(crate) fn inputs(&self) -> Inputs {
        Inputs {
            tokens: self.tokens,
            cols: self.cols,
            values: self.values.as_ptr(),
            quants: self.quants.as_ptr(),
            pairs: self.pairs.as_ptr(),
            signs: self.signs.as_ptr(),
            scales: self.scales.as_ptr(),
            offsets: self.offsets.as_ptr(),
            sums: self.sums.as_ptr(),
        }
    }

    /// Copies floats in the order of tiles.
    fn order(&mut self, x: &[f32]) {
        self.values.resize(x.len(), 0.0);
        let mut token = 0;
        while token < self.tokens {
            let tokens = tile_tokens(self.tokens - token);
            let tile = token * self.cols..(token + tokens) * self.cols;
            let (from, to) = (&x[tile.clone()], &mut self.values[tile]);
            for (t, row) in from.chunks_exact(self.cols).enumerate() {
                let places = to.chunks_exact_mut(4).skip(t).step_by(tokens);
                for (four, place) in row.chunks_exact(4).zip(places) {
                    place.copy_from_slice(four);
                }
            }
            token += tokens;
        }
    }

    fn quantize(&mut self, x: &[f32], needs: Needs) {
        let blocks = x.len() / BLOCK;
        self.quants.resize(x.len(), 0);
        self.scales.resize(blocks, 0.0);
        if needs.weights != Weights::Unsigned {
            self.offsets.resize(blocks * needs.groups, 0);
        }
        if needs.sums {
            self.sums.resize(blocks * needs.groups, 0.0);
        }
        if cfg!(target_arch = "wasm32") {
            self.pairs.resize(x.len(), 0);
            if needs.weights == Weights::Signed {
                self.signs.resize(2 * x.len(), 0);
            }
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 is there.
            return unsafe { self.quantize_avx2(x, needs) };
        }
        self.quantize_blocks(x, needs);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn quantize_avx2(&mut self, x: &[f32], needs: Needs) {
        self.quantize_blocks(x, needs);
    }

    #[inline(always)]
    fn quantize_blocks(&mut self, x: &[f32], needs: Needs) {
        let row_blocks = self.cols / BLOCK;
        let mut token = 0;
        while token < self.tokens {
            let tokens = tile_tokens(self.tokens - token);
            for t in 0..tokens {
                let row = &x[(token + t) * self.cols..][..self.cols];
                for (block, x) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
                    self.quantize_block(x, token * row_blocks + block * tokens + t, needs);
                }
            }
            token += tokens;
        }
    }

    /// Quantizes a block, the one of index `at` in the order of tiles.
    #[inline(always)]
    fn quantize_block(&mut self, x: &[f32; BLOCK], at: usize, needs: Needs) {
        let (quants, scale) = quantized(x);
        for (to, q) in self.quants[at * BLOCK..][..BLOCK].iter_mut().zip(quants) {
            *to = q as i8;
        }
        self.scales[at] = scale;
        if needs.weights != Weights::Unsigned || needs.sums {
            let halves = half_sums(&quants);
            let sums = match needs.groups {
                1 => [halves[0] + halves[1], 0],
                _ => halves,
            };
            let zero = match needs.weights {
                Weights::Unsigned => None,
                Weights::Shifted(zero) => Some(zero),
                Weights::Signed => Some(128),
            };
            for (group, sum) in sums[..needs.groups].iter().enumerate() {
                if let Some(zero) = zero {
                    self.offsets[at * needs.groups + group] = -zero * sum;
                }
                if needs.sums {
                    self.sums[at * needs.groups + group] = *sum as f32 * scale;
                }
            }
        }
        if cfg!(target_arch = "wasm32") {
            let pairs = &mut self.pairs[at * BLOCK..][..BLOCK];
            for (pairs, q) in pairs
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(quants.as_chunks().0)
            {
                let [a, b, c, d]: [i32; 4] = *q;
                *pairs = [a, c, b, d].map(|q| q as i16);
            }
            if needs.weights == Weights::Signed {
                let signs = &mut self.signs[at * 2 * BLOCK..][..2 * BLOCK];
                for (signs, q) in signs
                    .as_chunks_mut::<8>()
                    .0
                    .iter_mut()
                    .zip(quants.as_chunks().0)
                {
                    let [a, b, c, d]: [i32; 4] = *q;
                    *signs = [a, b, c, d, -a, -b, -c, -d].map(|q| q.max(0) as u8);
                }
            }
        }
    }
}

/// The quants of a block, as i32, and their scale. Written over 8 lanes, for the compiler to make vectors of.
#[inline(always)]
fn quantized(x: &[f32; BLOCK]) -> ([i32; BLOCK], f32) {
    /// 3 * 2^22: a float of this size has no bits after the point, so that adding it rounds to an integer, which
    /// is then in its lowest bits.
    const ROUND: f32 = 12_582_912.0;
    /// Blocks with no larger magnitude count as zero: their inverse would not be finite.
    const LEAST: f32 = f32::from_bits((127 - 120) << 23);

    // Bits of magnitudes compare like the magnitudes, and NaN is the greatest.
    let mut greatest = [0; LANES];
    for x in x.as_chunks::<LANES>().0 {
        for (greatest, x) in greatest.iter_mut().zip(x) {
            *greatest = (x.to_bits() as i32 & i32::MAX).max(*greatest);
        }
    }
    let greatest = greatest.into_iter().fold(0, i32::max);
    let greatest = f32::from_bits(greatest as u32);
    if !greatest.is_finite() {
        return ([0; BLOCK], f32::NAN);
    }
    if greatest < LEAST {
        return ([0; BLOCK], 0.0);
    }
    let inverse = 127.0 / greatest;
    let mut quants = [0; BLOCK];
    for (q, x) in quants.iter_mut().zip(x) {
        *q = (x * inverse + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
    }
    (quants, greatest / 127.0)
}

/// The sum of each half of a block.
#[inline(always)]
fn half_sums(quants: &[i32; BLOCK]) -> [i32; 2] {
    let mut sums = [0; 2];
    for (sum, half) in sums.iter_mut().zip(quants.as_chunks::<{ BLOCK / 2 }>().0) {
        let mut lanes = [0; LANES];
        for quants in half.as_chunks::<LANES>().0 {
            for (lane, q) in lanes.iter_mut().zip(quants) {
                *lane += q;
            }
        }
        *sum = lanes.iter().sum();
    }
    sums
}
