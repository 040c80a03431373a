//! The inputs of products as kernels read them, in tiles of tokens. `activations` prepares them.

/// Columns of a block, which share a scale.
pub(crate) const BLOCK: usize = 32;

/// The maximum number of tokens of a tile. The kernel module and the module that calls it agree on it.
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

/// The inputs that kernels read. Tokens are in tiles; a tile has all its columns, block by block, and a block has those of each
/// token. A block is 32 columns, or 4 for floats. So token `t` of the tile that starts at token `s` has the columns of
/// block `b` at `s * cols + (b * tokens of the tile + t) * columns of a block`, and its scale at `s * blocks + b *
/// tokens of the tile + t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Inputs {
    pub(crate) tokens: usize,
    pub(crate) cols: usize,
    /// The values themselves, for types of floats.
    pub(crate) values: *const f32,
    /// Integers in -127..=127.
    pub(crate) quants: *const i8,
    /// The quants in the order of simd128: of 4 quants, the first and third, then the second and fourth.
    pub(crate) pairs: *const i16,
    /// The input of relaxed SIMD with signed weights: for 4 quants, the positive ones or zero, then the magnitudes of the
    /// negative ones or zero.
    pub(crate) signs: *const u8,
    /// The scale of each block.
    pub(crate) scales: *const f32,
    /// The sum of the quants of each group of a block, multiplied by minus the zero point of the weights (128 for signed weights).
    pub(crate) offsets: *const i32,
    /// The sum of the quants of each group of a block, multiplied by the scale.
    pub(crate) sums: *const f32,
}
