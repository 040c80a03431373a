//! Scales of groups of 16 columns in super-blocks of 256: a byte with a sign each, and an f16 d. The parts of
//! [`super::Quantized`] that Q3_K and Q6_K share.

use super::quantized::weighted;
use crate::simd::Simd;

/// Bytes of the scales of a unit: those of 8 rows for each group, then their d.
pub(super) const UNIT_BYTES: usize = D + 16;
/// The place of d in a unit.
pub(super) const D: usize = 16 * 8;

/// `total + (dots[0] * scales[0] + dots[1] * scales[1]) * d * x_scale`. The sum of both groups is exact: an integer below
/// 2^24.
///
/// # Safety
/// The same conditions as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn add<S: Simd>(
    total: S::Floats,
    dots: [S::Ints; 2],
    (d, scales): (S::Floats, [S::Floats; 2]),
    x_scale: *const f32,
) -> S::Floats {
    unsafe {
        let dots = [S::floats(dots[0]), S::floats(dots[1])];
        let product = S::mul(weighted::<S>(dots, scales), d);
        S::add(total, S::mul(product, S::splat_f32(x_scale)))
    }
}

/// Value = d * scale * (q - `$zero`). File blocks have d at `$d`, and `$scale` reads the byte of a group.
macro_rules! signed_scales {
    (zero: $zero:literal, d: $d:expr, scale: $scale:expr) => {
        const GROUPS: usize = 2;
        const WEIGHTS: Weights = Weights::Shifted($zero);
        const SCALE_BYTES: usize = $crate::tensor_types::group_scales::UNIT_BYTES;

        fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
            use $crate::tensor_types::{group_scales::D, quantized::copy_f16};
            let scale: fn(&[u8], usize) -> u8 = $scale;
            for group in 0..16 {
                scales[8 * group + row] = scale(block, group);
            }
            copy_f16(block, $d, row, &mut scales[D..]);
        }

        fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
            let d = f16_at(scales, $crate::tensor_types::group_scales::D + 2 * row);
            std::array::from_fn(|column| {
                let scale = scales[8 * (2 * run + column / 16) + row] as i8;
                d * f32::from(scale) * (f32::from(quants[column]) - $zero as f32)
            })
        }

        type Head<S: Simd> = S::Floats;
        /// d, and the scales of two groups.
        type Factors<S: Simd> = (S::Floats, [S::Floats; 2]);

        #[inline(always)]
        unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
            unsafe { S::f16s(scales.add($crate::tensor_types::group_scales::D)) }
        }

        #[inline(always)]
        unsafe fn factors<S: Simd>(
            d: S::Floats,
            scales: *const u8,
            run: usize,
        ) -> (S::Floats, [S::Floats; 2]) {
            unsafe {
                let scales = scales.add(16 * run);
                (d, [S::i8s(scales), S::i8s(scales.add(8))])
            }
        }

        #[inline(always)]
        unsafe fn add<S: Simd>(
            total: S::Floats,
            dots: [S::Ints; 2],
            factors: (S::Floats, [S::Floats; 2]),
            x_scale: *const f32,
            _x_sums: *const f32,
        ) -> S::Floats {
            unsafe { $crate::tensor_types::group_scales::add::<S>(total, dots, factors, x_scale) }
        }
    };
}
pub(super) use signed_scales;
