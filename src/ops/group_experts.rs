//! Pairs of a token and an expert, sorted by expert into tiles of one expert each, so that kernels
//! for many tokens read an expert's weights once per tile. What a pair gets does not depend on its
//! tile.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    Variant,
    backend::{Ops, output_words, twin_output_words},
    kernel::Kernel,
    shader,
};

/// Most pairs of a tile.
pub const TILE_PAIRS: usize = 16;
/// No expert, where a tile is not used; no pair, where a tile is not full.
pub const NONE: u32 = u32::MAX;

const WORKGROUP: usize = 128;

/// Sorts the pairs of `experts` `[tokens, used]`, numbers below `count`; gives
/// `[tiles, 1 + TILE_PAIRS]`: an expert and its pairs, [`NONE`] where there is none.
pub fn group_experts(experts: Tensor<2, Int>, count: usize) -> Tensor<2, Int> {
    Tensor::from_dispatch(Dispatch::group_experts(experts.into_dispatch(), count))
}

/// Tiles that `pairs` of so many `experts` fill at worst: when each has one pair more than fills its
/// tiles.
pub fn tiles(pairs: usize, experts: usize) -> usize {
    (pairs + pairs.min(experts) * (TILE_PAIRS - 1)) / TILE_PAIRS
}

/// The composed kernel.
pub fn kernel(experts: usize) -> Kernel {
    tile_constants(Kernel::new("group_experts"))
        .binding("experts")
        .binding("groups")
        .constant("EXPERTS", experts)
        .constant("WORKGROUP", WORKGROUP)
        .module(shader::kernel::GROUP_EXPERTS)
}

fn tile_constants(kernel: Kernel) -> Kernel {
    kernel
        .constant("TILE_PAIRS", TILE_PAIRS)
        .constant("NONE", NONE as usize)
}

/// What the kernels of tiles share: the bindings `groups` and `x`, and the tile in memory or
/// registers. So many neighbouring pairs read the same row of `x`.
pub(super) fn tile_modules(kernel: Kernel, pairs_per_input: usize, variant: Variant) -> Kernel {
    let kernel = tile_constants(kernel)
        .binding("groups")
        .binding("x")
        .constant("PAIRS_PER_INPUT", pairs_per_input)
        .module(shader::expert_tile::PAIRS);
    if variant.barrier_free {
        let kernel = kernel.variant(variant).constant("WORKGROUP", TILE_LANES);
        kernel.module(shader::expert_tile::LANES)
    } else {
        kernel.module(shader::expert_tile::WORKGROUP)
    }
}

/// Lanes of a workgroup whose lanes have tiles of their own.
const TILE_LANES: usize = 16;
/// Rows of weights of a tile: of a lane, and of a workgroup.
const LANE_ROWS: usize = 8;
const WORKGROUP_ROWS: usize = 64;

/// Workgroups of tiles by `rows` of an expert, counting those of all matrices.
pub(super) fn workgroups(groups: &CubeTensor, rows: usize, variant: Variant) -> [u32; 3] {
    let [tiles, _] = groups.shape().dims();
    let tile_rows = if variant.barrier_free {
        LANE_ROWS * TILE_LANES
    } else {
        WORKGROUP_ROWS
    };
    [rows.div_ceil(tile_rows) as u32, tiles as u32, 1]
}

pub(super) fn launch(experts: CubeTensor, count: usize) -> CubeTensor {
    let tiles = tiles(experts.shape().num_elements(), count);
    let groups = output_words(&experts, [tiles, 1 + TILE_PAIRS]);
    kernel(count).launch(&[&experts, &groups], [1, 1, 1]);
    groups
}

pub(super) fn twin(experts: FlexTensor, count: usize) -> FlexTensor {
    let experts = experts.storage::<u32>();
    let tiles = tiles(experts.len(), count);
    let mut words = Vec::with_capacity(tiles * (1 + TILE_PAIRS));
    for expert in 0..count as u32 {
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

/// The experts of tiles and their pairs.
pub(super) fn parse(groups: &[u32]) -> Vec<(usize, Vec<usize>)> {
    let tiles = groups.chunks_exact(1 + TILE_PAIRS);
    let used = tiles.take_while(|tile| tile[0] != NONE);
    let parsed = used.map(|tile| {
        let pairs = tile[1..].iter().filter(|&&pair| pair != NONE);
        (tile[0] as usize, pairs.map(|&pair| pair as usize).collect())
    });
    parsed.collect()
}
