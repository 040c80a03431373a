//! The loops over the columns of one panel, for a tile of tokens: one for quantized types, one for floats. Knows
//! neither threads nor rows of the result.

use std::marker::PhantomData;

use crate::{
    inputs::Inputs,
    simd::{Kernel, Simd, Weights},
    tensor_types::{Floats, Quantized},
};

/// Runs a block once for each token `$t` below `$count`, unrolled. At most 4.
macro_rules! tokens {
    ($t:ident < $count:ident, $block:block) => {
        tokens!(@ $t, $count, $block, 0, 1, 2, 3)
    };
    (@ $t:ident, $count:ident, $block:block, $($token:literal),*) => {
        $(if $count > $token {
            let $t: usize = $token;
            $block
        })*
    };
}

/// Runs a block for each vector `$i` of a block of 32 columns, unrolled.
macro_rules! vectors {
    ($i:ident, $block:block) => {
        vectors!(@ $i, $block, 0, 1, 2, 3, 4, 5, 6, 7)
    };
    (@ $i:ident, $block:block, $($vector:literal),*) => {
        $({
            let $i: usize = $vector;
            $block
        })*
    };
}

/// The kernel of a quantized ty.
pub(crate) struct Blocks<Q>(PhantomData<Q>);

impl<Q: Quantized> Kernel for Blocks<Q> {
    /// Longer than other functions: sums in registers cannot be passed to parts of it.
    #[inline(always)]
    unsafe fn tile<S: Simd, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    ) {
        unsafe {
            let blocks = cols / 32;
            let mut totals = [S::zero(); T];
            let mut unit = panel;
            // Indices of the current block's inputs, scales and sums.
            let mut input = token * cols;
            let mut scale = token * blocks;
            for _ in 0..blocks / Q::RUNS {
                let scales = unit.add(Q::RUNS * Q::RUN_BYTES);
                let head = Q::head::<S>(scales);
                for run in 0..Q::RUNS {
                    let planes = unit.add(run * Q::RUN_BYTES);
                    let factors = Q::factors::<S>(head, scales, run);
                    // Types without offsets or sums have none to point to.
                    let offsets = x.offsets.wrapping_add(scale * Q::GROUPS);
                    let mut sums = [S::begin(Q::WEIGHTS, offsets); T];
                    tokens!(t < T, {
                        sums[t] = S::begin(Q::WEIGHTS, offsets.wrapping_add(t * Q::GROUPS));
                    });
                    let mut first = [None; T];
                    let inputs = S::inputs(x, Q::WEIGHTS, input);
                    vectors!(i, {
                        let w = Q::vector::<S>(planes, i);
                        tokens!(t < T, {
                            let x = S::input(inputs, Q::WEIGHTS, 32 * t + 4 * i);
                            sums[t] = S::dot(Q::WEIGHTS, sums[t], w, x);
                        });
                        if Q::WEIGHTS != Weights::Signed && (i + 1_usize).is_multiple_of(Q::FLUSH) {
                            tokens!(t < T, {
                                sums[t] = S::flush(sums[t]);
                            });
                        }
                        if Q::GROUPS == 2 && i == 3 {
                            tokens!(t < T, {
                                let offset = offsets.wrapping_add(t * 2);
                                first[t] = Some(S::end(Q::WEIGHTS, sums[t], offset));
                                sums[t] = S::begin(Q::WEIGHTS, offset.wrapping_add(1));
                            });
                        }
                    });
                    tokens!(t < T, {
                        let offset = offsets.wrapping_add(t * Q::GROUPS + Q::GROUPS - 1);
                        let last = S::end(Q::WEIGHTS, sums[t], offset);
                        let dots = [first[t].unwrap_or(last), last];
                        let x_scale = x.scales.add(scale + t);
                        let x_sums = x.sums.wrapping_add((scale + t) * Q::GROUPS);
                        totals[t] = Q::add::<S>(totals[t], dots, factors, x_scale, x_sums);
                    });
                    input += 32 * T;
                    scale += T;
                }
                unit = scales.add(Q::SCALE_BYTES);
            }
            tokens!(t < T, {
                S::store(totals[t], out.add(8 * t));
            });
        }
    }
}

/// The kernel of a type of plain floats.
pub(crate) struct Columns<F>(PhantomData<F>);

impl<F: Floats> Kernel for Columns<F> {
    /// Even and odd columns have sums of their own, which are added at the end: additions then do not wait for
    /// each other.
    #[inline(always)]
    unsafe fn tile<S: Simd, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    ) {
        unsafe {
            let mut even = [S::zero(); T];
            let mut odd = [S::zero(); T];
            let mut at = panel;
            let mut input = x.values.add(token * cols);
            for _ in 0..cols / 4 {
                let w = F::columns::<S>(at);
                tokens!(t < T, {
                    let x = input.add(4 * t);
                    even[t] = S::add(even[t], S::mul(w[0], S::splat_f32(x)));
                    odd[t] = S::add(odd[t], S::mul(w[1], S::splat_f32(x.add(1))));
                    even[t] = S::add(even[t], S::mul(w[2], S::splat_f32(x.add(2))));
                    odd[t] = S::add(odd[t], S::mul(w[3], S::splat_f32(x.add(3))));
                });
                at = at.add(32 * F::BYTES);
                input = input.add(4 * T);
            }
            tokens!(t < T, {
                S::store(S::add(even[t], odd[t]), out.add(8 * t));
            });
        }
    }
}
