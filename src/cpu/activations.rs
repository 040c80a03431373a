//! The inputs of products: input rows quantized to 8 bits for quantized types, as they are for floats, in the order
//! that the kernels read them. Ends where the product begins.

use crate::{
    inputs::{BLOCK, Inputs, tile_tokens},
    simd::{
        Weights,
        quantize::{self, Quantize},
    },
    tensor_types::{Quantized, TensorType, by_type},
};

/// Input rows, prepared for products with matrices of a ty. Buffers are reused.
///
/// For quantized types, each block of 32 columns has integers in -127..=127 and a scale, max |x| / 127. Integers are
/// rounded to nearest, ties to even. A block with a value that is not finite has the scale NaN, which all products of the
/// token then become.
#[derive(Default)]
pub struct Activations {
    ty: Option<TensorType>,
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

/// The form of a type's inputs.
#[derive(Clone, Copy)]
struct Needs {
    groups: usize,
    weights: Weights,
    sums: bool,
}

impl Activations {
    /// Prepares `x`, which is `[tokens, cols]`, for products with matrices of a ty.
    ///
    /// # Panics
    /// If `x` are not whole rows, or `cols` is not a multiple of [`TensorType::unit_cols`].
    pub fn set(&mut self, x: &[f32], cols: usize, ty: TensorType) {
        assert!(
            cols > 0 && cols.is_multiple_of(ty.unit_cols()) && x.len().is_multiple_of(cols),
            "{} inputs in rows of {cols} columns for {}",
            x.len(),
            ty.name()
        );
        self.ty = Some(ty);
        self.tokens = x.len() / cols;
        self.cols = cols;
        by_type!(ty, Q => {
            let needs = Needs {
                groups: Q::GROUPS,
                weights: Q::WEIGHTS,
                sums: Q::SUMS,
            };
            self.quantize(x, needs);
        }, F => self.order(x));
    }

    /// The type that the inputs are prepared for.
    pub(crate) fn ty(&self) -> Option<TensorType> {
        self.ty
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
        if cfg!(target_feature = "simd128") {
            self.pairs.resize(x.len(), 0);
            if needs.weights == Weights::Signed {
                self.signs.resize(2 * x.len(), 0);
            }
        }
        // SAFETY: the instruction sets are there.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                return self.quantize_avx2(x, needs);
            }
            #[cfg(target_feature = "simd128")]
            self.quantize_blocks::<quantize::Wasm>(x, needs);
            #[cfg(not(target_feature = "simd128"))]
            self.quantize_blocks::<quantize::Portable>(x, needs);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn quantize_avx2(&mut self, x: &[f32], needs: Needs) {
        // SAFETY: AVX2 is there.
        unsafe { self.quantize_blocks::<quantize::Avx2>(x, needs) }
    }

    /// # Safety
    /// The same conditions as for [`Quantize`].
    #[inline(always)]
    unsafe fn quantize_blocks<Q: Quantize>(&mut self, x: &[f32], needs: Needs) {
        let row_blocks = self.cols / BLOCK;
        let mut token = 0;
        while token < self.tokens {
            let tokens = tile_tokens(self.tokens - token);
            for t in 0..tokens {
                let row = &x[(token + t) * self.cols..][..self.cols];
                for (block, x) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
                    let at = token * row_blocks + block * tokens + t;
                    // SAFETY: as of this function.
                    unsafe { self.quantize_block::<Q>(x, at, needs) };
                }
            }
            token += tokens;
        }
    }

    /// Quantizes a block, the one of index `at` in the order of tiles.
    ///
    /// # Safety
    /// The same conditions as for [`Quantize`].
    #[inline(always)]
    unsafe fn quantize_block<Q: Quantize>(&mut self, x: &[f32; BLOCK], at: usize, needs: Needs) {
        /// Blocks with no larger magnitude count as zero: their inverse would not be finite.
        const LEAST: f32 = f32::from_bits((127 - 120) << 23);

        let quants = &mut self.quants.as_chunks_mut::<BLOCK>().0[at];
        // SAFETY: as of this function.
        let greatest = f32::from_bits(unsafe { Q::greatest(x) } as u32);
        let (scale, halves) = if (LEAST..f32::INFINITY).contains(&greatest) {
            // SAFETY: as of this function. Products round to -127..=127.
            let halves = unsafe { Q::quants(x, 127.0 / greatest, quants) };
            (greatest / 127.0, halves)
        } else {
            *quants = [0; BLOCK];
            let scale = if greatest < LEAST { 0.0 } else { f32::NAN };
            (scale, [0; 2])
        };
        self.scales[at] = scale;
        let sums = match needs.groups {
            1 => [halves[0] + halves[1], 0],
            _ => halves,
        };
        let groups = at * needs.groups..(at + 1) * needs.groups;
        let zero = match needs.weights {
            Weights::Unsigned => None,
            Weights::Shifted(zero) => Some(zero),
            Weights::Signed => Some(128),
        };
        if let Some(zero) = zero {
            for (to, sum) in self.offsets[groups.clone()].iter_mut().zip(sums) {
                *to = -zero * sum;
            }
        }
        if needs.sums {
            for (to, sum) in self.sums[groups].iter_mut().zip(sums) {
                *to = sum as f32 * scale;
            }
        }
        #[cfg(target_feature = "simd128")]
        {
            quantize::pairs(quants, &mut self.pairs.as_chunks_mut::<BLOCK>().0[at]);
            if needs.weights == Weights::Signed {
                let signs = self.signs.as_chunks_mut::<{ 2 * BLOCK }>().0;
                quantize::signs(quants, &mut signs[at]);
            }
        }
    }
}
