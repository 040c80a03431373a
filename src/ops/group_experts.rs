//! Sorts pairs of a token and an expert into tiles of one expert each, so that kernels for many tokens read
//! an expert's weights once per tile. The result of a pair does not depend on its tile.
//!
//! Experts stay where the file has them: one matrix per tensor, the rows of an expert below those of the previous one.
//! Few tokens take four dispatches over a grid of rows and (token, expert) pairs. Many tokens are sorted by expert into
//! tiles of 16 pairs, whose weights are unpacked once. The result of a pair does not depend on its tile. Unused tiles
//! of the worst case return at once.

use super::{arithmetic::Arithmetic, op::*, tile, variant::Variant};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) experts: IntTensor<B>,
    pub(super) count: usize,
}

op! {
    fn group_experts(Arguments) -> IntTensor<Self>
}

/// Maximum number of pairs in a tile.
pub const TILE_PAIRS: usize = 16;
/// The expert of an unused tile, and the missing pairs of a tile that is not full.
pub const NONE: u32 = u32::MAX;

const WORKGROUP: usize = 128;

/// Sorts the pairs of `experts` `[tokens, used]`, which are numbers below `count`. Returns
/// `[tiles, 1 + TILE_PAIRS]`: an expert and its pairs, or [`NONE`].
pub fn group_experts(experts: Tensor<2, Int>, count: usize) -> Tensor<2, Int> {
    Tensor::from_dispatch(Dispatch::group_experts(Arguments {
        experts: experts.into_dispatch(),
        count,
    }))
}

/// Tiles that `pairs` of `experts` need in the worst case, when each expert has one pair more than fills
/// its tiles.
fn tiles(pairs: usize, experts: usize) -> usize {
    (pairs + pairs.min(experts) * (TILE_PAIRS - 1)) / TILE_PAIRS
}

/// The composed kernel.
pub fn kernel(experts: usize) -> Kernel {
    tile_constants(Kernel::new("group_experts"))
        .binding("experts")
        .binding("groups")
        .constant("EXPERTS", experts)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("group_experts"))
}

fn tile_constants(kernel: Kernel) -> Kernel {
    kernel
        .constant("TILE_PAIRS", TILE_PAIRS)
        .constant("NONE", NONE as usize)
}

/// Adds what the kernels of tiles share: the entry point, the bindings `groups` and `x`, and the tile of
/// `matrices` matrices in workgroup memory or registers. `pairs_per_input` neighbouring pairs read the
/// same row of `x`.
pub(super) fn tile_modules(
    kernel: Kernel,
    matrices: usize,
    pairs_per_input: usize,
    variant: Variant,
) -> Kernel {
    let kernel = tile_constants(kernel)
        .binding("groups")
        .binding("x")
        .constant("PAIRS_PER_INPUT", pairs_per_input)
        .module(wgsl!("shared/expert_tile/pairs"));
    let kernel = tile::lines(Arithmetic::F32.blocks(kernel), matrices);
    if variant.barrier_free {
        variant
            .enable(kernel)
            .constant("LANE_ROWS", LANE_ROWS / matrices)
            .constant("WORKGROUP", TILE_LANES)
            .module(wgsl!("shared/expert_tile/lanes"))
            .module(wgsl!("expert_matmul_lanes"))
    } else {
        kernel
            .constant("MATRICES", matrices)
            .constant("LANE_ROWS", 4 / matrices)
            .module(wgsl!("shared/expert_tile/workgroup"))
            .module(wgsl!("expert_matmul"))
    }
}

/// Lanes of a workgroup in which every lane has its own tile.
const TILE_LANES: usize = 16;
/// Rows of weights in the tile of a lane and of a workgroup.
const LANE_ROWS: usize = 8;
const WORKGROUP_ROWS: usize = 64;

/// Workgroups for all tiles by `rows` of an expert, counting the rows of all matrices.
pub(super) fn workgroups(groups: &CubeTensor, rows: usize, variant: Variant) -> [u32; 3] {
    let [tiles, _] = groups.shape().dims();
    let tile_rows = if variant.barrier_free {
        LANE_ROWS * TILE_LANES
    } else {
        WORKGROUP_ROWS
    };
    [rows.div_ceil(tile_rows) as u32, tiles as u32, 1]
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let tiles = tiles(args.experts.shape().num_elements(), args.count);
    let groups = output_words(&args.experts, [tiles, 1 + TILE_PAIRS]);
    kernel(args.count).launch(&[&args.experts, &groups], [1, 1, 1]);
    groups
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { experts, .. } = args;
    let experts = experts.storage::<u32>();
    let tiles = tiles(experts.len(), args.count);
    let mut words = Vec::with_capacity(tiles * (1 + TILE_PAIRS));
    for expert in 0..args.count as u32 {
        let pairs: Vec<u32> = (0..experts.len() as u32)
            .filter(|&pair| experts[pair as usize] == expert)
            .collect();
        for tile in pairs.chunks(TILE_PAIRS) {
            words.push(expert);
            words.extend(tile);
            words.resize(words.len().next_multiple_of(1 + TILE_PAIRS), NONE);
        }
    }
    words.resize(tiles * (1 + TILE_PAIRS), NONE);
    twin_output_words(words, [tiles, 1 + TILE_PAIRS])
}

/// The expert and the pairs of each used tile.
pub(super) fn parse(groups: &[u32]) -> Vec<(usize, Vec<usize>)> {
    let tiles = groups.chunks_exact(1 + TILE_PAIRS);
    let used = tiles.take_while(|tile| tile[0] != NONE);
    let parsed = used.map(|tile| {
        let pairs = tile[1..].iter().filter(|&&pair| pair != NONE);
        (tile[0] as usize, pairs.map(|&pair| pair as usize).collect())
    });
    parsed.collect()
}

/// Each pair of `experts` `[tokens, used]` as a tile of its own, for twins that work on tiles.
pub(super) fn single_pairs(experts: &[u32]) -> Vec<(usize, Vec<usize>)> {
    let pairs = experts.iter().enumerate();
    pairs
        .map(|(pair, &expert)| (expert as usize, vec![pair]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::route_experts::MAX_EXPERTS;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(MAX_EXPERTS)]);
    }
}
