//! Scales of blocks of 32 columns: an f16, or an f16 and a minimum. The parts of [`super::Quantized`] that the types
//! with such blocks share.

/// A run has one factor.
macro_rules! one_factor {
    () => {
        type Head<S: Simd> = S::Floats;
        type Factors<S: Simd> = S::Floats;

        #[inline(always)]
        unsafe fn add<S: Simd>(
            total: S::Floats,
            dots: [S::Ints; 2],
            factor: S::Floats,
            x_scale: *const f32,
            _x_sums: *const f32,
        ) -> S::Floats {
            unsafe {
                crate::tensor_types::quantized::add_scaled::<S>(total, dots[0], factor, x_scale)
            }
        }
    };
}
pub(super) use one_factor;

/// A unit has the f16 scales of 8 rows, which file blocks have at an offset, by default at their start.
macro_rules! one_scale {
    () => {
        $crate::tensor_types::block_scales::one_scale!(0);
    };
    ($at:expr) => {
        const SCALE_BYTES: usize = 16;

        fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
            crate::tensor_types::quantized::copy_f16(block, $at, row, scales);
        }

        $crate::tensor_types::block_scales::one_factor!();

        #[inline(always)]
        unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
            unsafe { S::f16s(scales) }
        }

        #[inline(always)]
        unsafe fn factors<S: Simd>(head: S::Floats, _scales: *const u8, _run: usize) -> S::Floats {
            head
        }
    };
}
pub(super) use one_scale;

/// A unit has the f16 scales of 8 rows, then their minimums.
macro_rules! scale_and_minimum {
    () => {
        const SUMS: bool = true;
        const SCALE_BYTES: usize = 32;

        fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
            crate::tensor_types::quantized::copy_f16(block, 0, row, scales);
            crate::tensor_types::quantized::copy_f16(block, 2, row, &mut scales[16..]);
        }

        type Head<S: Simd> = [S::Floats; 2];
        type Factors<S: Simd> = [S::Floats; 2];

        #[inline(always)]
        unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
            unsafe { [S::f16s(scales), S::f16s(scales.add(16))] }
        }

        #[inline(always)]
        unsafe fn factors<S: Simd>(
            head: [S::Floats; 2],
            _scales: *const u8,
            _run: usize,
        ) -> [S::Floats; 2] {
            head
        }

        #[inline(always)]
        unsafe fn add<S: Simd>(
            total: S::Floats,
            dots: [S::Ints; 2],
            [d, m]: [S::Floats; 2],
            x_scale: *const f32,
            x_sums: *const f32,
        ) -> S::Floats {
            unsafe {
                let total =
                    crate::tensor_types::quantized::add_scaled::<S>(total, dots[0], d, x_scale);
                S::add(total, S::mul(m, S::splat_f32(x_sums)))
            }
        }

        fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
            let at = |at| crate::tensor_types::codec::f16_at(scales, at + 2 * row);
            let (d, m) = (at(0), at(16));
            quants.map(|q| d * f32::from(q) + m)
        }
    };
}
pub(super) use scale_and_minimum;
