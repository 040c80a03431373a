//! The common part of Q4_K and Q5_K: the scales of a super-block (an f16 d, an f16 dmin, and eight scales and minima
//! of six bits each in 12 bytes), the search for them, the order of nibbles in the file, and the scales of a unit of panels.

use super::{codec::f16_at, quantized::copy_f16};
use crate::{half::f16_from_f32, simd::Simd};

/// Elements that share a scale.
const RUN: usize = 32;

/// Bytes of the scales in the file; super-blocks begin with them.
pub(super) const FILE_BYTES: usize = 2 + 2 + 12;
/// Bytes of the scales of a unit of panels. There, scales and minima are bytes: those of 8 rows for the scale of each
/// run, then for the minima; then d and dmin.
pub(super) const UNIT_BYTES: usize = D + 32;
const MINIMA: usize = 8 * 8;
const D: usize = 2 * MINIMA;

/// Factor and minimum of a run of 32 elements: value = factor * q - minimum.
pub(super) fn file_factors(scales: &[u8], run: usize) -> (f32, f32) {
    let (scale, minimum) = file_scales(scales, run);
    let (d, dmin) = (f16_at(scales, 0), f16_at(scales, 2));
    (d * f32::from(scale), dmin * f32::from(minimum))
}

/// Scale and minimum of a run. Each of the first four has a byte for its scale and one for its minimum; their upper
/// two bits belong to the last four, whose lower four bits share a byte.
fn file_scales(block: &[u8], run: usize) -> (u8, u8) {
    let packed = &block[4..FILE_BYTES];
    if run < 4 {
        return (packed[run] & 63, packed[run + 4] & 63);
    }
    let low = packed[run + 4];
    (
        low & 15 | packed[run - 4] >> 6 << 4,
        low >> 4 | packed[run] >> 6 << 4,
    )
}

/// The lower four bits of 256 quants as in the file: 32 bytes for each two runs, the first run low.
pub(super) fn push_run_nibbles(out: &mut Vec<u8>, quants: &[u8; 256]) {
    for runs in quants.chunks_exact(2 * RUN) {
        let (low, high) = runs.split_at(RUN);
        out.extend(low.iter().zip(high).map(|(low, high)| low & 15 | high << 4));
    }
}

/// ggml's search for the scale of a run: `steps` candidates around quants of 0 to `greatest`.
pub(super) struct Search {
    pub(super) greatest: u8,
    /// The first candidate stretches the range by this many quants; each further one by 0.1 more.
    pub(super) first: f32,
    pub(super) steps: usize,
}

/// Scales as stored, and quants for them, of 256 elements: ggml's `quantize_row_q4_K_ref` and
/// `quantize_row_q5_K_ref` without the packing of quants.
pub(super) fn quantize(x: &[f32; 256], search: &Search) -> ([u8; FILE_BYTES], [u8; 256]) {
    let mut quants = [0; 256];
    let runs = x.as_chunks::<RUN>().0;
    let best: [(f32, f32); 8] = std::array::from_fn(|run| {
        let (scale, minimum, found) = search.best(&runs[run]);
        quants[run * RUN..][..RUN].copy_from_slice(&found);
        (scale, minimum)
    });
    let greatest = |of: fn(&(f32, f32)) -> f32| best.iter().map(of).fold(0.0, f32::max);
    let (scale, minimum) = (greatest(|best| best.0), greatest(|best| best.1));
    let sixes = |value: f32, greatest: f32| {
        let inverse = if greatest > 0.0 { 63.0 / greatest } else { 0.0 };
        (inverse * value).round_ties_even().min(63.0) as u8
    };
    let mut stored = [0; FILE_BYTES];
    stored[..2].copy_from_slice(&f16_from_f32(scale / 63.0).to_le_bytes());
    stored[2..4].copy_from_slice(&f16_from_f32(minimum / 63.0).to_le_bytes());
    for (run, best) in best.iter().enumerate() {
        let (scale, minimum) = (sixes(best.0, scale), sixes(best.1, minimum));
        let packed = &mut stored[4..];
        if run < 4 {
            packed[run] = scale;
            packed[run + 4] = minimum;
        } else {
            packed[run + 4] = scale & 15 | minimum << 4;
            packed[run - 4] |= scale >> 4 << 6;
            packed[run] |= minimum >> 4 << 6;
        }
    }
    for run in 0..8 {
        let (factor, minimum) = file_factors(&stored, run);
        // A run without a scale keeps the quants of the search.
        if factor != 0.0 {
            for i in run * RUN..(run + 1) * RUN {
                let q = ((x[i] + minimum) / factor).round_ties_even();
                quants[i] = q.clamp(0.0, f32::from(search.greatest)) as u8;
            }
        }
    }
    (stored, quants)
}

impl Search {
    /// ggml's `make_qkx2_quants`: scale, minimum (negated, at least zero) and quants of the candidate
    /// with the least squared error, weighted by the root mean square plus |x|.
    fn best(&self, x: &[f32; RUN]) -> (f32, f32, [u8; RUN]) {
        let greatest = f32::from(self.greatest);
        let squares = x.iter().fold(0.0f32, |sum, x| sum + x * x);
        let mean = (squares / RUN as f32).sqrt();
        let weights = x.map(|x| mean + x.abs());
        let min = x.iter().fold(0.0f32, |min, &x| min.min(x));
        let max = x.iter().fold(f32::MIN, |max, &x| max.max(x));
        let (mut sum_w, mut sum_x) = (0.0f32, 0.0f32);
        for (x, w) in x.iter().zip(weights) {
            sum_w += w;
            sum_x += w * x;
        }
        if max <= min {
            return (0.0, -min, [0; RUN]);
        }
        let quantized = |inverse: f32, min: f32| {
            let q = |x: f32| (inverse * (x - min)).round_ties_even();
            x.map(|x| q(x).clamp(0.0, greatest))
        };
        let error = |quants: &[f32; RUN], scale: f32, min: f32| {
            let mut sum = 0.0f32;
            for i in 0..RUN {
                let difference = scale * quants[i] + min - x[i];
                sum += weights[i] * (difference * difference);
            }
            sum
        };
        let inverse = greatest / (max - min);
        let (mut scale, mut minimum) = (1.0 / inverse, min);
        let mut quants = quantized(inverse, min);
        let mut least = error(&quants, scale, minimum);
        for step in 0..=self.steps {
            let stretched = self.first + 0.1 * step as f32 + greatest;
            // From the best minimum so far.
            let candidate = quantized(stretched / (max - minimum), minimum);
            let (mut sum_q, mut sum_qq, mut sum_xq) = (0.0f32, 0.0f32, 0.0f32);
            for i in 0..RUN {
                let (w, q) = (weights[i], candidate[i]);
                sum_q += w * q;
                sum_qq += w * q * q;
                sum_xq += w * q * x[i];
            }
            let determinant = sum_w * sum_qq - sum_q * sum_q;
            if determinant > 0.0 {
                let mut this_scale = (sum_w * sum_xq - sum_x * sum_q) / determinant;
                let mut this_minimum = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
                if this_minimum > 0.0 {
                    this_minimum = 0.0;
                    this_scale = sum_xq / sum_qq;
                }
                let this_error = error(&candidate, this_scale, this_minimum);
                if this_error < least {
                    (quants, least) = (candidate, this_error);
                    (scale, minimum) = (this_scale, this_minimum);
                }
            }
        }
        (scale, -minimum, quants.map(|q| q as u8))
    }
}

/// Writes the scales of a block to those of a unit.
pub(super) fn pack(block: &[u8], row: usize, scales: &mut [u8]) {
    for run in 0..8 {
        let (scale, minimum) = file_scales(block, run);
        scales[8 * run + row] = scale;
        scales[MINIMA + 8 * run + row] = minimum;
    }
    copy_f16(block, 0, row, &mut scales[D..]);
    copy_f16(block, 2, row, &mut scales[D + 16..]);
}

/// Factor and minimum of a run.
pub(super) fn of_run(scales: &[u8], row: usize, run: usize) -> (f32, f32) {
    let (d, dmin) = (
        f16_at(scales, D + 2 * row),
        f16_at(scales, D + 16 + 2 * row),
    );
    (
        d * f32::from(scales[8 * run + row]),
        dmin * f32::from(scales[MINIMA + 8 * run + row]),
    )
}

/// d and dmin.
///
/// # Safety
/// The same conditions as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
    unsafe { [S::f16s(scales.add(D)), S::f16s(scales.add(D + 16))] }
}

/// Factors and minima of a run.
///
/// # Safety
/// The same conditions as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn factors<S: Simd>(
    [d, dmin]: [S::Floats; 2],
    scales: *const u8,
    run: usize,
) -> [S::Floats; 2] {
    unsafe {
        [
            S::mul(d, S::u8s(scales.add(8 * run))),
            S::mul(dmin, S::u8s(scales.add(MINIMA + 8 * run))),
        ]
    }
}

/// The parts of [`super::Quantized`] that types with these scales share.
macro_rules! scales_and_minima {
    () => {
        const SUMS: bool = true;
        const SCALE_BYTES: usize = $crate::tensor_types::k_scales::UNIT_BYTES;

        fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
            $crate::tensor_types::k_scales::pack(block, row, scales);
        }

        fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
            let (factor, minimum) = $crate::tensor_types::k_scales::of_run(scales, row, run);
            quants.map(|q| factor * f32::from(q) - minimum)
        }

        type Head<S: Simd> = [S::Floats; 2];
        type Factors<S: Simd> = [S::Floats; 2];

        #[inline(always)]
        unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
            unsafe { $crate::tensor_types::k_scales::head::<S>(scales) }
        }

        #[inline(always)]
        unsafe fn factors<S: Simd>(
            head: [S::Floats; 2],
            scales: *const u8,
            run: usize,
        ) -> [S::Floats; 2] {
            unsafe { $crate::tensor_types::k_scales::factors::<S>(head, scales, run) }
        }

        #[inline(always)]
        unsafe fn add<S: Simd>(
            total: S::Floats,
            dots: [S::Ints; 2],
            [factor, minimum]: [S::Floats; 2],
            x_scale: *const f32,
            x_sums: *const f32,
        ) -> S::Floats {
            unsafe {
                let total = $crate::tensor_types::quantized::add_scaled::<S>(
                    total, dots[0], factor, x_scale,
                );
                S::sub(total, S::mul(minimum, S::splat_f32(x_sums)))
            }
        }
    };
}
pub(super) use scales_and_minima;
