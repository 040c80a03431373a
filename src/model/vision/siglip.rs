//! The common part of families with the tower of SigLIP (Zhai et al. 2023, <https://arxiv.org/abs/2303.15343>): images of one
//! size, whose patches have learned positions.

use super::{folder::Size, read::invalid};
use crate::{
    Result,
    model::{architectures::Names, config::Keys},
};

/// Counts of all towers.
pub const SIZES: &[Size] = &[
    ("image_size", "image_size", 224),
    ("intermediate_size", "feed_forward_length", 3072),
    ("num_hidden_layers", "block_count", 12),
];
/// Modules of the tower.
pub const TENSORS: Names = &[
    ("embeddings.patch_embedding", "v.patch_embd"),
    ("embeddings.position_embedding", "v.position_embd"),
    ("post_layernorm", "v.post_ln"),
    ("encoder.layers.*.layer_norm1", "v.blk.*.ln1"),
    ("encoder.layers.*.layer_norm2", "v.blk.*.ln2"),
    ("encoder.layers.*.self_attn.q_proj", "v.blk.*.attn_q"),
    ("encoder.layers.*.self_attn.k_proj", "v.blk.*.attn_k"),
    ("encoder.layers.*.self_attn.v_proj", "v.blk.*.attn_v"),
    ("encoder.layers.*.self_attn.out_proj", "v.blk.*.attn_out"),
    ("encoder.layers.*.mlp.fc1", "v.blk.*.ffn_up"),
    ("encoder.layers.*.mlp.fc2", "v.blk.*.ffn_down"),
];
/// Tensors that rows of images do not need: a pooling head.
pub const IGNORED: &[&str] = &["head.", "embeddings.position_ids"];

/// Patches on each side of the squares that a projector joins, and patches of an image.
pub fn squares(keys: &Keys, image_size: usize, patch_size: usize) -> Result<[usize; 2]> {
    let patches = image_size / patch_size;
    let key = "projector.scale_factor";
    let side = keys.size_or(key, 4)?;
    match patches.is_multiple_of(side) {
        true => Ok([side, patches.pow(2)]),
        false => Err(invalid(key, "no divisor of the patches")),
    }
}
