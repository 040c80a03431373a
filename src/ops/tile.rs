//! How a product of many tokens is cut into tiles, one per workgroup or one per lane. Knows nothing
//! of what a tile's sums are for.

use super::{Arithmetic, Variant, kernel::Kernel, shader};
use crate::tensor_types::TensorType;

/// Most tokens of a step for which tiles are small.
pub const MAX_SMALL_TOKENS: usize = 32;

/// Outputs of one workgroup, `tokens` by `rows`.
#[derive(Clone, Copy)]
struct Tile {
    tokens: usize,
    rows: usize,
    /// Tokens of one lane; it has four rows of each.
    lane_tokens: usize,
}

/// Half of the lanes load rows while the others load tokens; a vector of workgroup memory that a lane
/// reads serves 11 multiplications. 16 KiB of f32, what every device has.
const LARGE: Tile = Tile {
    tokens: 64,
    rows: 64,
    lane_tokens: 8,
};
/// For steps that would fill the large tile by half at most, and for few large tiles: more workgroups,
/// each with less to do.
const SMALL: Tile = Tile {
    tokens: 16,
    rows: 32,
    lane_tokens: 2,
};

/// Tokens and rows of a lane's tile, and lanes of a workgroup, where barriers are dear.
const LANE_TILE: [usize; 2] = [16, 8];
const TILE_LANES: usize = 16;

/// The sizes differ in speed alone: every tile adds a token's columns in the same order.
fn tile(tokens: usize, rows: usize, variant: Variant) -> Tile {
    let large_tiles = tokens.div_ceil(LARGE.tokens) * rows.div_ceil(LARGE.rows);
    if tokens <= MAX_SMALL_TOKENS || large_tiles < variant.large_tiles_from as usize {
        SMALL
    } else {
        LARGE
    }
}

/// The arithmetic of tiles of matrices of `formats`.
pub(super) fn arithmetic(formats: &[TensorType], variant: Variant) -> Arithmetic {
    if variant.barrier_free {
        Arithmetic::F32
    } else {
        variant.matmul.on(formats)
    }
}

/// Appends the modules that sum up a tile of `tokens` by `rows`, counting the rows of all matrices, and
/// their constants.
pub(super) fn tiles(
    kernel: Kernel,
    [tokens, rows]: [usize; 2],
    arithmetic: Arithmetic,
    variant: Variant,
) -> Kernel {
    if variant.barrier_free {
        return kernel
            .variant(variant)
            .constant("WORKGROUP", TILE_LANES)
            .module(shader::tile::LANE);
    }
    let tile = tile(tokens, rows, variant);
    let kernel = arithmetic
        .blocks(kernel)
        .constant("TILE_TOKENS", tile.tokens)
        .constant("TILE_ROWS", tile.rows)
        .constant("LANE_TOKENS", tile.lane_tokens)
        .module(match arithmetic {
            Arithmetic::F32 => shader::tile::F32,
            Arithmetic::F16 => shader::tile::F16,
            Arithmetic::I8 => shader::tile::I8,
        });
    match arithmetic {
        Arithmetic::F32 => kernel,
        Arithmetic::F16 | Arithmetic::I8 => kernel.module(shader::tile::X_BLOCK),
    }
}

/// Workgroups of a matmul of `tokens` by `rows`, counting the rows of all its matrices.
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
