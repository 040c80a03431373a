//! Gemma 4 (Gemma Team 2026, <https://ai.google.dev/gemma/docs/core>): images in the largest size with their aspect ratio,
//! rotary positions beside those of two learned tables, limits of the values around matrices, and means of squares of
//! patches. Only of models whose images are seen in order: those with vectors per layer (E2B, E4B).

use super::{
    config::{
        Join, LearnedPositions, ProjectorKind, ProjectorNorm, Squares, TowerKind, VisionConfig,
    },
    family::Family,
    folder::{FolderJson, FolderKind},
    grids,
};
use crate::{
    Result,
    images::{Filter, ImageGeometry, ImageMarkup},
    model::config::{
        Activation, FeedForwardKind, Keys, NormKind, NormPlaces, Positions, QkNorm, RopePairs,
    },
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "gemma4v",
    tower: TowerKind {
        frames: 1,
        has_patch_bias: false,
        positions: LearnedPositions::PerAxis,
        ffn_dim_of_tensors: false,
        has_limits: true,
        squares,
        projector: ProjectorKind {
            join: Join::LargeMean,
            norm: Some(ProjectorNorm {
                name: None,
                kind: NormKind::Rms,
                eps: None,
                is_optional: false,
            }),
            linears: &["mm.input_projection"],
            is_transposed: false,
        },
        is_seen_whole: false,
        needs_layer_inputs: true,
        places_rows: false,
        markup: ImageMarkup {
            before_all: "<|image>",
            after_whole: "<image|>",
            ..ImageMarkup::plain("<|image|>")
        },
        filter: Filter::Bicubic,
    },
    configure,
    folder: FolderKind {
        model_types: &["gemma4"],
        sizes: &[&[
            ("patch_size", "patch_size", 16),
            ("hidden_size", "embedding_length", 768),
            ("intermediate_size", "feed_forward_length", 3072),
            ("num_hidden_layers", "block_count", 16),
            ("num_attention_heads", "attention.head_count", 12),
            ("pooling_kernel_size", SIDE, 3),
        ]],
        activations: &["gelu_pytorch_tanh"],
        mean: [0.0; 3],
        std: [1.0; 3],
        add,
        prefixes: &["vision_tower.", "embed_vision."],
        tensors: &[
            &[
                ("patch_embedder.input_proj", "v.patch_embd"),
                // Neither a weight of a module nor in its place.
                (
                    "patch_embedder.position_embedding_table",
                    "v.position_embd.weight",
                ),
                ("encoder.layers.*.input_layernorm", "v.blk.*.ln1"),
                (
                    "encoder.layers.*.post_attention_layernorm",
                    "v.blk.*.attn_post_norm",
                ),
                ("encoder.layers.*.pre_feedforward_layernorm", "v.blk.*.ln2"),
                (
                    "encoder.layers.*.post_feedforward_layernorm",
                    "v.blk.*.ffn_post_norm",
                ),
                ("encoder.layers.*.self_attn.q_norm", "v.blk.*.attn_q_norm"),
                ("encoder.layers.*.self_attn.k_norm", "v.blk.*.attn_k_norm"),
                ("embedding_projection", "mm.input_projection"),
            ],
            LIMITED,
        ],
        has_linear_patches: true,
        ..FolderKind::PLAIN
    },
};

/// Matrices, whose limits are beside the modules that hold them.
const LIMITED: &[(&str, &str)] = &[
    ("encoder.layers.*.self_attn.q_proj", "v.blk.*.attn_q"),
    ("encoder.layers.*.self_attn.k_proj", "v.blk.*.attn_k"),
    ("encoder.layers.*.self_attn.v_proj", "v.blk.*.attn_v"),
    ("encoder.layers.*.self_attn.o_proj", "v.blk.*.attn_out"),
    ("encoder.layers.*.mlp.gate_proj", "v.blk.*.ffn_gate"),
    ("encoder.layers.*.mlp.up_proj", "v.blk.*.ffn_up"),
    ("encoder.layers.*.mlp.down_proj", "v.blk.*.ffn_down"),
    ("encoder.layers.*.self_attn.q_proj.linear", "v.blk.*.attn_q"),
    ("encoder.layers.*.self_attn.k_proj.linear", "v.blk.*.attn_k"),
    ("encoder.layers.*.self_attn.v_proj.linear", "v.blk.*.attn_v"),
    (
        "encoder.layers.*.self_attn.o_proj.linear",
        "v.blk.*.attn_out",
    ),
    ("encoder.layers.*.mlp.gate_proj.linear", "v.blk.*.ffn_gate"),
    ("encoder.layers.*.mlp.up_proj.linear", "v.blk.*.ffn_up"),
    ("encoder.layers.*.mlp.down_proj.linear", "v.blk.*.ffn_down"),
];

const SIDE: &str = "projector.scale_factor";
/// The maximum number of rows, if a folder states it. llama.cpp has no such key.
const ROWS: &str = "max_rows";
/// The maximum number of rows of an image where nothing states them, and whatever a file says: the values of the model's own processor.
const MAX_ROWS: [usize; 2] = [280, 1120];
/// Base of the rotary frequencies.
const BASE: f32 = 100.0;

fn squares(keys: &Keys, _: usize, patch_size: usize) -> Result<Squares> {
    let side = keys.size_or(SIDE, 3)?;
    if side > 8 || patch_size > 128 {
        return Err(keys.unsupported("squares of more pixels than supported"));
    }
    let rows = keys.size_or(ROWS, MAX_ROWS[0])?.min(MAX_ROWS[1]);
    Ok(Squares {
        side,
        max_patches: rows * side.pow(2),
        geometry: ImageGeometry::Largest {
            side: side * patch_size,
            rows,
        },
    })
}

fn configure(_: &Keys, config: &mut VisionConfig) -> Result<()> {
    // The model's own code subtracts a half and doubles after the normalization.
    for (mean, std) in config.mean.iter_mut().zip(&mut config.std) {
        (*mean, *std) = (*mean + 0.5 * *std, 0.5 * *std);
    }
    let layers = &mut config.layers;
    grids::turn_by_places(layers);
    if let Positions::Rotary(rope) = &mut layers.positions {
        rope.base = BASE;
        rope.pairs = RopePairs::Quarters;
    }
    layers.norm = NormKind::Rms;
    layers.norm_places = NormPlaces::BOTH;
    layers.has_output_norm = false;
    layers.qk_norm = QkNorm::Heads;
    layers.has_value_norm = true;
    layers.attention_scale = Some(1.0);
    // Converters do not state the activation.
    layers.feed_forward = FeedForwardKind::Gated(Activation::Gelu);
    Ok(())
}

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let vision = &folder.vision;
    let activation = vision.str("hidden_activation")?;
    let is_known = activation.is_none_or(|it| it == "gelu_pytorch_tanh");
    vision.require("hidden_activation", is_known)?;
    let base = match vision.object("rope_parameters")? {
        Some(rope) => rope.number("rope_theta")?,
        None => None,
    };
    vision.require(
        "rope_parameters",
        base.is_none_or(|it| it == f64::from(BASE)),
    )?;
    vision.require("standardize", vision.bool("standardize")? != Some(true))?;
    if let Some(eps) = vision.number("rms_norm_eps")? {
        metadata.insert("clip.vision.attention.layer_norm_epsilon", eps as f32);
    }
    let rows = match &folder.preprocessor {
        Some(preprocessor) => preprocessor.size("max_soft_tokens")?,
        None => None,
    };
    if let Some(rows) = rows {
        metadata.insert(format!("clip.vision.{ROWS}"), rows);
    }
    Ok(())
}
