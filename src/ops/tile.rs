//! The tiles of a product of many tokens, one per workgroup or one per lane.

use super::{arithmetic::Arithmetic, matrix::MatrixShape, variant::Variant};
use crate::kernel::{Kernel, wgsl};
use crate::tensor_types::TensorType;

/// Maximum number of tokens of a step for which tiles are always small.
pub const MAX_SMALL_TOKENS: usize = 32;

/// Outputs of one workgroup, `tokens` by `rows`.
#[derive(Clone, Copy)]
struct Tile {
    tokens: usize,
    rows: usize,
    /// Tokens of one lane, which computes four rows of each.
    lane_tokens: usize,
}

/// Half of the lanes load rows while the others load tokens. A lane uses each vector that it reads from
/// workgroup memory for 11 multiplications. Takes 16 KiB in f32, which every device has.
const LARGE: Tile = Tile {
    tokens: 64,
    rows: 64,
    lane_tokens: 8,
};
/// For steps that would fill at most half of a large tile, and for products of few large tiles: more
/// workgroups with less work each.
const SMALL: Tile = Tile {
    tokens: 16,
    rows: 32,
    lane_tokens: 2,
};

/// Tokens and rows of a lane's tile where barriers are expensive.
const LANE_TILE: [usize; 2] = [16, 8];
/// Lanes of a workgroup there.
const TILE_LANES: usize = 16;

/// The sizes differ in speed only: every tile adds the columns of a token in the same order.
fn tile(tokens: usize, rows: usize, variant: Variant) -> Tile {
    let large_tiles = tokens.div_ceil(LARGE.tokens) * rows.div_ceil(LARGE.rows);
    if tokens <= MAX_SMALL_TOKENS || large_tiles < variant.large_tiles_from as usize {
        SMALL
    } else {
        LARGE
    }
}

/// The arithmetic of tiles for matrices of `formats`.
pub(super) fn arithmetic(formats: &[TensorType], variant: Variant) -> Arithmetic {
    if variant.barrier_free {
        Arithmetic::F32
    } else {
        variant.matmul.on(formats)
    }
}

/// Adds the entry point, the modules and the constants of tiles of `tokens` by the rows of all matrices.
pub(super) fn modules(
    kernel: Kernel,
    tokens: usize,
    matrices: &[MatrixShape],
    arithmetic: Arithmetic,
    variant: Variant,
) -> Kernel {
    let kernel = lines(kernel, matrices.len());
    if variant.barrier_free {
        return variant
            .enable(arithmetic.blocks(kernel))
            .constant("LANE_ROWS", LANE_TILE[1] / matrices.len())
            .constant("WORKGROUP", TILE_LANES)
            .module(wgsl!("shared/tile/lane"))
            .module(wgsl!("matmul_lanes"));
    }
    let rows = matrices.iter().map(|matrix| matrix.rows).sum();
    let tile = tile(tokens, rows, variant);
    let kernel = arithmetic
        .blocks(kernel)
        .constant("MATRICES", matrices.len())
        .constant("TILE_TOKENS", tile.tokens)
        .constant("TILE_ROWS", tile.rows)
        .constant("LANE_TOKENS", tile.lane_tokens)
        .constant("LANE_ROWS", 4 / matrices.len())
        .module(match arithmetic {
            Arithmetic::F32 => wgsl!("shared/tile/f32"),
            Arithmetic::F16 => wgsl!("shared/tile/f16"),
            Arithmetic::I8 => wgsl!("shared/tile/i8"),
        });
    let kernel = match arithmetic {
        Arithmetic::F32 => kernel,
        Arithmetic::F16 | Arithmetic::I8 => kernel.module(wgsl!("shared/tile/x_block")),
    };
    kernel.module(wgsl!("matmul"))
}

/// Adds the module of a tile's lines, which are rows of one matrix or of two.
pub(super) fn lines(kernel: Kernel, matrices: usize) -> Kernel {
    kernel.module(match matrices {
        1 => wgsl!("shared/tile/lines/plain"),
        _ => wgsl!("shared/tile/lines/gated"),
    })
}

/// Workgroups of a product of `tokens` by `rows`, counting the rows of all matrices.
pub(super) fn workgroups(tokens: usize, rows: usize, variant: Variant) -> [u32; 3] {
    let [tile_tokens, tile_rows] = if variant.barrier_free {
        [LANE_TILE[0], LANE_TILE[1] * TILE_LANES]
    } else {
        let tile = tile(tokens, rows, variant);
        [tile.tokens, tile.rows]
    };
    let (x, y) = (rows.div_ceil(tile_rows), tokens.div_ceil(tile_tokens));
    [x as u32, y as u32, 1]
}
