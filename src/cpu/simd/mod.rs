//! The vector operations that the products are written over, and their instruction sets. Knows bytes, integers and
//! floats in the order of panels; knows no tensor type.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub(crate) mod quantize;
#[cfg(not(target_feature = "simd128"))]
pub(crate) mod scalar;
#[cfg(target_feature = "simd128")]
pub(crate) mod wasm;

use crate::inputs::Inputs;

/// The kind of the bytes of weights, to choose the operands of dot products.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weights {
    /// 0 to 127, as they are.
    Unsigned,
    /// 0 to 127; this one means zero.
    Shifted(i32),
    /// Bytes from -128 to 127.
    Signed,
}

/// Operations of one instruction set. A vector has 8 lanes, one per row of a panel. Lane `r` of `Bytes` holds 4
/// columns of row `r`.
///
/// All implementations give equal bits: integers are exact, and each operation on floats rounds once. Inputs are
/// in -127..=127, so that no intermediate sum saturates.
///
/// # Safety
/// The instruction set must be there; all functions inline into ones that have it enabled. Pointers must be valid
/// for what is read or written; they need no alignment.
pub(crate) trait Simd: Copy + 'static {
    /// 8 rows of 4 bytes.
    type Bytes: Copy;
    /// 8 rows of an i32.
    type Ints: Copy;
    /// 8 rows of an f32.
    type Floats: Copy;
    /// 4 quantized inputs, the same for each row.
    type Input: Copy;
    /// Dot products under way.
    type Sum: Copy;

    /// Reads 32 bytes.
    unsafe fn load(at: *const u8) -> Self::Bytes;
    /// The same byte everywhere.
    unsafe fn splat(byte: u8) -> Self::Bytes;
    unsafe fn and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    unsafe fn or(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Shifts units of 16 bits left; `bits` is a constant.
    unsafe fn shl(a: Self::Bytes, bits: u32) -> Self::Bytes;
    /// Shifts units of 16 bits right; `bits` is a constant.
    unsafe fn shr(a: Self::Bytes, bits: u32) -> Self::Bytes;
    /// Replaces each byte, which is 0 to 15, with its entry of the table.
    unsafe fn table(table: &[i8; 16], indices: Self::Bytes) -> Self::Bytes;

    /// The start of the inputs at index `at`.
    unsafe fn inputs(x: &Inputs, weights: Weights, at: usize) -> *const u8;
    /// The inputs of 4 columns, the first of which is `at` after `x`.
    unsafe fn input(x: *const u8, weights: Weights, at: usize) -> Self::Input;
    /// Starts a dot product; `offset` is what [`Inputs`] has for the weights.
    unsafe fn begin(weights: Weights, offset: *const i32) -> Self::Sum;
    /// Adds the products of 4 columns.
    unsafe fn dot(weights: Weights, sum: Self::Sum, w: Self::Bytes, x: Self::Input) -> Self::Sum;
    /// Must be called after so many calls of `dot` that the greatest weights add up to at most 129, for weights
    /// that are not signed.
    unsafe fn flush(sum: Self::Sum) -> Self::Sum;
    /// Ends a dot product, after `flush`.
    unsafe fn end(weights: Weights, sum: Self::Sum, offset: *const i32) -> Self::Ints;

    /// Reads 8 f32.
    unsafe fn f32s(at: *const u8) -> Self::Floats;
    /// Reads 8 f16.
    unsafe fn f16s(at: *const u8) -> Self::Floats;
    /// Reads 8 f16 of each of 4 columns.
    #[inline(always)]
    unsafe fn f16_columns(at: *const u8) -> [Self::Floats; 4] {
        unsafe {
            [
                Self::f16s(at),
                Self::f16s(at.add(16)),
                Self::f16s(at.add(32)),
                Self::f16s(at.add(48)),
            ]
        }
    }
    /// Reads 8 bf16.
    unsafe fn bf16s(at: *const u8) -> Self::Floats;
    /// Reads 8 bytes e and gives 2^(e - 128).
    unsafe fn exponents(at: *const u8) -> Self::Floats;
    /// Reads 8 u8.
    unsafe fn u8s(at: *const u8) -> Self::Floats;
    /// Reads 8 i8.
    unsafe fn i8s(at: *const u8) -> Self::Floats;
    /// Reads 8 bytes and gives their lower and their upper 4 bits.
    unsafe fn u4s(at: *const u8) -> [Self::Floats; 2];
    unsafe fn floats(ints: Self::Ints) -> Self::Floats;
    /// One f32 for all rows.
    unsafe fn splat_f32(at: *const f32) -> Self::Floats;
    unsafe fn zero() -> Self::Floats;
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn store(a: Self::Floats, at: *mut f32);

    /// Runs [`Kernel::tile`] with the instruction set enabled and stores its sums, 8 rows for each token.
    unsafe fn tile<K: Kernel, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    );
}

/// The product of a panel and the inputs of some tokens.
pub(crate) trait Kernel {
    /// Writes `T` times 8 sums to `out`: tokens `token..token + T`, which are a tile of the inputs.
    ///
    /// # Safety
    /// The same conditions as for [`Simd`]. The panel must have `cols` columns, and the inputs too.
    unsafe fn tile<S: Simd, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    );
}

/// 2^(e - 128): half of the scale of an MXFP4 block.
pub(crate) fn half_exponent(e: u8) -> f32 {
    f32::from_bits(match e {
        // Subnormal.
        0..=1 => 0x0020_0000 << e,
        e => u32::from(e - 1) << 23,
    })
}
