//! Plain Rust: the reference of the other instruction sets, and what machines without any of them use.

use std::array::from_fn;

use super::{Kernel, Simd, Weights, half_exponent};
use crate::{half::f16_to_f32, inputs::Inputs};

#[derive(Clone, Copy)]
pub(crate) struct Scalar;

#[inline(always)]
unsafe fn bytes(at: *const u8) -> [u8; 8] {
    unsafe { at.cast::<[u8; 8]>().read_unaligned() }
}

/// Applies a function to the units of 16 bits.
#[inline(always)]
fn units(a: [u8; 32], f: impl Fn(u16) -> u16) -> [u8; 32] {
    from_fn(|i| {
        let at = i & !1;
        f(u16::from_le_bytes([a[at], a[at + 1]])).to_le_bytes()[i & 1]
    })
}

impl Simd for Scalar {
    type Bytes = [u8; 32];
    type Ints = [i32; 8];
    type Floats = [f32; 8];
    type Input = [i8; 4];
    type Sum = [i32; 8];

    #[inline(always)]
    unsafe fn load(at: *const u8) -> [u8; 32] {
        unsafe { at.cast::<[u8; 32]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> [u8; 32] {
        [byte; 32]
    }

    #[inline(always)]
    unsafe fn and(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        from_fn(|i| a[i] & b[i])
    }

    #[inline(always)]
    unsafe fn or(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        from_fn(|i| a[i] | b[i])
    }

    #[inline(always)]
    unsafe fn shl(a: [u8; 32], bits: u32) -> [u8; 32] {
        units(a, |unit| unit << bits)
    }

    #[inline(always)]
    unsafe fn shr(a: [u8; 32], bits: u32) -> [u8; 32] {
        units(a, |unit| unit >> bits)
    }

    #[inline(always)]
    unsafe fn table(table: &[i8; 16], indices: [u8; 32]) -> [u8; 32] {
        indices.map(|index| table[usize::from(index & 15)] as u8)
    }

    #[inline(always)]
    unsafe fn inputs(x: &Inputs, _weights: Weights, at: usize) -> *const u8 {
        unsafe { x.quants.add(at).cast() }
    }

    #[inline(always)]
    unsafe fn input(x: *const u8, _weights: Weights, at: usize) -> [i8; 4] {
        unsafe { x.add(at).cast::<[i8; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn begin(weights: Weights, offset: *const i32) -> [i32; 8] {
        match weights {
            Weights::Shifted(_) => [unsafe { *offset }; 8],
            _ => [0; 8],
        }
    }

    #[inline(always)]
    unsafe fn dot(weights: Weights, mut sum: [i32; 8], w: [u8; 32], x: [i8; 4]) -> [i32; 8] {
        for r in 0..8 {
            for j in 0..4 {
                let byte = w[4 * r + j];
                let weight = match weights {
                    Weights::Signed => i32::from(byte as i8),
                    _ => i32::from(byte),
                };
                sum[r] += weight * i32::from(x[j]);
            }
        }
        sum
    }

    #[inline(always)]
    unsafe fn flush(sum: [i32; 8]) -> [i32; 8] {
        sum
    }

    #[inline(always)]
    unsafe fn end(_weights: Weights, sum: [i32; 8], _offset: *const i32) -> [i32; 8] {
        sum
    }

    #[inline(always)]
    unsafe fn f32s(at: *const u8) -> [f32; 8] {
        unsafe { at.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn f16s(at: *const u8) -> [f32; 8] {
        unsafe { at.cast::<[u16; 8]>().read_unaligned() }.map(f16_to_f32)
    }

    #[inline(always)]
    unsafe fn bf16s(at: *const u8) -> [f32; 8] {
        let upper = unsafe { at.cast::<[u16; 8]>().read_unaligned() };
        upper.map(|upper| f32::from_bits(u32::from(upper) << 16))
    }

    #[inline(always)]
    unsafe fn exponents(at: *const u8) -> [f32; 8] {
        unsafe { bytes(at) }.map(half_exponent)
    }

    #[inline(always)]
    unsafe fn u8s(at: *const u8) -> [f32; 8] {
        unsafe { bytes(at) }.map(f32::from)
    }

    #[inline(always)]
    unsafe fn i8s(at: *const u8) -> [f32; 8] {
        unsafe { bytes(at) }.map(|byte| f32::from(byte as i8))
    }

    #[inline(always)]
    unsafe fn u4s(at: *const u8) -> [[f32; 8]; 2] {
        let bytes = unsafe { bytes(at) };
        [
            bytes.map(|byte| f32::from(byte & 15)),
            bytes.map(|byte| f32::from(byte >> 4)),
        ]
    }

    #[inline(always)]
    unsafe fn floats(ints: [i32; 8]) -> [f32; 8] {
        ints.map(|int| int as f32)
    }

    #[inline(always)]
    unsafe fn splat_f32(at: *const f32) -> [f32; 8] {
        [unsafe { *at }; 8]
    }

    #[inline(always)]
    unsafe fn zero() -> [f32; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        from_fn(|r| a[r] + b[r])
    }

    #[inline(always)]
    unsafe fn sub(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        from_fn(|r| a[r] - b[r])
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        from_fn(|r| a[r] * b[r])
    }

    #[inline(always)]
    unsafe fn store(a: [f32; 8], at: *mut f32) {
        unsafe { at.cast::<[f32; 8]>().write_unaligned(a) }
    }

    unsafe fn tile<K: Kernel, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    ) {
        unsafe { K::tile::<Scalar, T>(panel, cols, x, token, out) }
    }
}
