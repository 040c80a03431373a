//! Parts of several architectures: experts, query and key norms, windows.

use super::architecture::{AddKey, Form, Names, Parameter};
use crate::{
    Error, Result,
    model::config::{
        ConfigJson, Experts, FeedForwardKind, Keys, Mixing, ModelConfig, Shared, json,
        keys::missing,
    },
};

/// Norms of queries and keys in Hugging Face checkpoints.
pub const QK_NORM_TENSORS: Names = &[
    ("model.layers.*.self_attn.q_norm", "blk.*.attn_q_norm"),
    ("model.layers.*.self_attn.k_norm", "blk.*.attn_k_norm"),
];

/// A mixture of experts in Hugging Face checkpoints.
pub const EXPERT_TENSORS: Names = &[
    ("model.layers.*.mlp.gate", "blk.*.ffn_gate_inp"),
    (
        "model.layers.*.mlp.experts.*.gate_proj",
        "blk.*.ffn_gate_exps",
    ),
    ("model.layers.*.mlp.experts.*.up_proj", "blk.*.ffn_up_exps"),
    (
        "model.layers.*.mlp.experts.*.down_proj",
        "blk.*.ffn_down_exps",
    ),
];

/// A mixture of experts of which a tensor holds all gates, each followed by the other half.
pub const JOINED_EXPERTS: [Parameter; 2] = [
    Parameter {
        from: "model.layers.*.mlp.experts.gate_up_proj",
        to: &[
            ("blk.*.ffn_gate_exps.weight", Form::HalfRows(0)),
            ("blk.*.ffn_up_exps.weight", Form::HalfRows(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.mlp.experts.down_proj",
        to: &[("blk.*.ffn_down_exps.weight", Form::SAME)],
    },
];

/// The sizes of a mixture of experts in `config.json`.
pub const EXPERT_SIZES: Names = &[
    ("num_local_experts", "expert_count"),
    ("num_experts", "expert_count"),
    ("num_experts_per_tok", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
];

/// Replaces the feed-forward of `config` with the mixture of experts that the keys describe, which has its activation.
/// `normalized` as in [`Experts`].
pub fn set_experts(keys: &Keys, config: &mut ModelConfig, normalized: bool) -> Result<()> {
    if keys.size_or_zero("expert_shared_count")?.is_some() {
        return Err(keys.unsupported("shared experts"));
    }
    let experts = experts(keys, config, normalized)?;
    config.feed_forward = FeedForwardKind::Experts(experts);
    Ok(())
}

/// Same as [`set_experts`], with the feed-forward beside the experts that files may have. For `is_gated`, see [`Shared`].
pub fn set_experts_with_shared(
    keys: &Keys,
    config: &mut ModelConfig,
    normalized: bool,
    is_gated: bool,
) -> Result<()> {
    let width = keys.size_or_zero("expert_shared_feed_forward_length")?;
    set_experts_beside(
        keys,
        config,
        normalized,
        width.map(|ffn_dim| Shared { ffn_dim, is_gated }),
    )
}

/// Same as [`set_experts`], with the feed-forward `shared` beside the experts.
pub fn set_experts_beside(
    keys: &Keys,
    config: &mut ModelConfig,
    normalized: bool,
    shared: Option<Shared>,
) -> Result<()> {
    let experts = Experts {
        shared,
        ..experts(keys, config, normalized)?
    };
    config.feed_forward = FeedForwardKind::Experts(experts);
    Ok(())
}

fn experts(keys: &Keys, config: &ModelConfig, normalized: bool) -> Result<Experts> {
    let experts = Experts {
        count: keys.size("expert_count")?,
        used: keys.size("expert_used_count")?,
        normalized,
        activation: config.feed_forward.activation(),
        is_sigmoid: false,
        scales_inputs: false,
        groups: None,
        shared: None,
    };
    if experts.used > experts.count {
        return Err(Error::InvalidModelFile(format!(
            "{} of {} experts are used",
            experts.used, experts.count
        )));
    }
    Ok(experts)
}

/// Marks the layers without key heads as recurrent.
pub fn recurrent_without_kv_heads(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    let name = keys.name("attention.head_count_kv");
    let heads = keys.metadata().sizes(&name)?;
    let heads = heads.ok_or_else(|| missing(&name))?;
    if heads.len() != config.layers.len() {
        return Err(Error::InvalidModelFile(format!(
            "{name} has {} entries for {} layers",
            heads.len(),
            config.layers.len()
        )));
    }
    for (layer, heads) in config.layers.iter_mut().zip(heads) {
        if heads == 0 {
            layer.mixing = Mixing::Recurrence;
        }
    }
    Ok(())
}

/// Adds the key heads of each layer: none for those that `layer_types` calls recurrent.
pub fn kv_heads_of_layers(config: &ConfigJson, add: AddKey) -> Result<()> {
    let kinds = config.strings("layer_types")?;
    let kinds = kinds.ok_or_else(|| json::missing("layer_types"))?;
    let heads = config.needed("num_key_value_heads")?;
    let of_layers = kinds.iter().map(|kind| match *kind {
        "full_attention" | "attention" => heads as i32,
        _ => 0,
    });
    add(
        "attention.head_count_kv",
        of_layers.collect::<Vec<_>>().into(),
    );
    Ok(())
}

/// Gives all layers the sliding window of the file, if it states one.
pub fn window_in_all_layers(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, |_| true);
    Ok(())
}
