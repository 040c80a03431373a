//! DeepSeek V2 and V3, and what is converted to GGUF as such: multi-head latent attention, and experts beside a feed-forward
//! that all tokens use (DeepSeek-AI 2024, <https://arxiv.org/abs/2405.04434>). Youtu-LLM has the attention alone.

use super::{
    architecture::{AddKey, Architecture, Form, Names, Parameter},
    shared::{EXPERT_TENSORS, set_experts_beside},
};
use crate::{
    Error, Result,
    model::config::{
        ConfigJson, DenseLayers, DensePlaces, ExpertGroups, Experts, FeedForwardKind, Keys, Latent,
        ModelConfig, RopePairs, Scaling, Shared,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "deepseek2",
    model_types: &["deepseek_v2", "deepseek_v3", "youtu"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    checkpoint_pairs: RopePairs::Adjacent,
    read_json,
    add_keys,
    json_sizes: &[
        ("q_lora_rank", "attention.q_lora_rank"),
        ("kv_lora_rank", "attention.kv_lora_rank"),
        ("n_routed_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("n_shared_experts", "expert_shared_count"),
        ("first_k_dense_replace", "leading_dense_block_count"),
        ("n_group", "expert_group_count"),
        ("topk_group", "expert_group_used_count"),
    ],
    json_numbers: &[("routed_scaling_factor", "expert_weights_scale")],
    tensors: &[TENSORS, EXPERT_TENSORS],
    parameters: |_| PARAMETERS,
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("model.layers.*.self_attn.q_a_proj", "blk.*.attn_q_a"),
    (
        "model.layers.*.self_attn.q_a_layernorm",
        "blk.*.attn_q_a_norm",
    ),
    ("model.layers.*.self_attn.q_b_proj", "blk.*.attn_q_b"),
    (
        "model.layers.*.self_attn.kv_a_proj_with_mqa",
        "blk.*.attn_kv_a_mqa",
    ),
    (
        "model.layers.*.self_attn.kv_a_layernorm",
        "blk.*.attn_kv_a_norm",
    ),
    ("model.layers.*.self_attn.kv_b_proj", "blk.*.attn_kv_b"),
    (
        "model.layers.*.mlp.shared_experts.gate_proj",
        "blk.*.ffn_gate_shexp",
    ),
    (
        "model.layers.*.mlp.shared_experts.up_proj",
        "blk.*.ffn_up_shexp",
    ),
    (
        "model.layers.*.mlp.shared_experts.down_proj",
        "blk.*.ffn_down_shexp",
    ),
];

const PARAMETERS: &[Parameter] = &[Parameter {
    from: "model.layers.*.mlp.gate.e_score_correction_bias",
    to: &[("blk.*.exp_probs_b.bias", Form::SAME)],
}];

/// `expert_gating_func` of a softmax, and of sigmoids.
const SOFTMAX: u32 = 1;
const SIGMOID: u32 = 2;
/// The factor by which YaRN's magnitude grows with the logarithm of the longer context. Files hold its product with a
/// multiplier.
const YARN_GROWTH: f32 = 0.1;
/// Groups of experts, and how many of them a token chooses, where a `config.json` of DeepSeek V3 does not state them.
const V3_GROUPS: (u32, u32) = (8, 4);
const YARN_MULTIPLIER: &str = "rope.scaling.yarn_log_multiplier";

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let rotated = json.needed("qk_rope_head_dim")?;
    json.set("head_dim", rotated);
    let key = "attention_bias";
    json.require(key, json.bool(key)? != Some(true))?;
    let key = "rope_interleave";
    json.require(key, json.bool(key)? != Some(false))?;
    // The choice of experts: among all, or among some groups.
    let key = "topk_method";
    let (default, grouped) = match json.str("model_type")? {
        Some("deepseek_v3") => ("noaux_tc", "noaux_tc"),
        _ => ("greedy", "group_limited_greedy"),
    };
    let method = json.str(key)?.unwrap_or(default);
    json.require(key, [default, grouped].contains(&method))?;
    if method != grouped {
        json.remove("n_group");
    } else if default == grouped && json.get("n_routed_experts").is_some() {
        json.add("n_group", V3_GROUPS.0);
        json.add("topk_group", V3_GROUPS.1);
    }
    Ok(())
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let plain = json.needed("qk_nope_head_dim")?;
    let rotated = json.needed("qk_rope_head_dim")?;
    add("attention.key_length", plain.saturating_add(rotated).into());
    add("attention.value_length", json.needed("v_head_dim")?.into());
    let normalizes = json.bool("norm_topk_prob")?.unwrap_or(false);
    add("expert_weights_norm", normalizes.into());
    let is_v3 = json.str("model_type")? == Some("deepseek_v3");
    add(
        "expert_gating_func",
        if is_v3 { SIGMOID } else { SOFTMAX }.into(),
    );
    let scaling = match json.object("rope_scaling")? {
        Some(scaling) => Some(scaling),
        None => json.object("rope_parameters")?,
    };
    let Some(scaling) = scaling else {
        return Ok(());
    };
    let kind = scaling.str("rope_type")?.or(scaling.str("type")?);
    if let (Some("yarn"), Some(factor)) = (kind, scaling.number("factor")?) {
        let (one, all) = (scaling.number("mscale")?, scaling.number("mscale_all_dim")?);
        let growth = f64::from(YARN_GROWTH) * factor.max(1.0).ln();
        let all = all.filter(|it| *it != 0.0);
        let magnitude = match (one.filter(|it| *it != 0.0), all) {
            (Some(one), Some(all)) => (one * growth + 1.0) / (all * growth + 1.0),
            _ => growth + 1.0,
        };
        add("rope.scaling.attn_factor", (magnitude as f32).into());
        if let Some(all) = all {
            add(YARN_MULTIPLIER, (YARN_GROWTH * all as f32).into());
        }
    }
    Ok(())
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    let rotated = config.rope().map_or(0, |rope| rope.dims);
    // In files with matrices of keys and values of their own, the plain keys are the lengths of the latent.
    let length = |of_head: &str, other: &str| match keys.size_if(of_head)? {
        Some(length) => Ok(length),
        None => keys.size(other),
    };
    let key = length("attention.key_length_mla", "attention.key_length")?;
    let value = length("attention.value_length_mla", "attention.value_length")?;
    let rank = keys.size("attention.kv_lora_rank")?;
    if key <= rotated || !value.is_multiple_of(2) || !rank.is_multiple_of(2) {
        return Err(keys.unsupported(&format!(
            "heads of {key} elements, {rotated} of them rotated, values of {value} and a latent of {rank}"
        )));
    }
    config.latent = Some(Latent {
        query_rank: keys.size_or_zero("attention.q_lora_rank")?,
        rank,
        plain: key - rotated,
        value,
    });
    config.head_dim = rotated + rank;
    config.kv_heads = 1;
    config.attention_scale = Some(attention_scale(keys, config, key)?);
    set_feed_forward(keys, config)
}

/// The factor of scores, and with YaRN that of what is rotated.
fn attention_scale(keys: &Keys, config: &mut ModelConfig, key: usize) -> Result<f32> {
    let mut scale = (key as f32).sqrt().recip();
    let of_rotated = keys.positive_or("rope.scaling.attn_factor", 1.0)?;
    let multiplier = keys.positive(YARN_MULTIPLIER)?.unwrap_or(0.0);
    if let Some(rope) = config.rope_mut()
        && let Scaling::Yarn {
            factor, magnitude, ..
        } = &mut rope.scaling
    {
        *magnitude = of_rotated;
        let grown = multiplier * factor.max(1.0).ln() + 1.0;
        scale *= grown * grown;
    }
    Ok(scale)
}

fn set_feed_forward(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if keys.size_or_zero("expert_count")?.is_none() {
        return Ok(());
    }
    let width = keys.size("expert_feed_forward_length")?;
    let shared = keys.size_or_zero("expert_shared_count")?;
    let shared = shared.map(|count| Shared {
        ffn_dim: count * width,
        is_gated: false,
    });
    let normalized = keys.bool("expert_weights_norm")?.unwrap_or(false);
    set_experts_beside(keys, config, normalized, shared)?;
    let gating = keys.metadata().u32(&keys.name("expert_gating_func"))?;
    if let FeedForwardKind::Experts(experts) = &mut config.feed_forward {
        experts.is_sigmoid = match gating {
            None | Some(0) | Some(SOFTMAX) => false,
            Some(SIGMOID) => true,
            Some(other) => return Err(keys.unsupported(&format!("expert_gating_func {other}"))),
        };
        experts.groups = groups(keys, experts)?;
    }
    config.experts_scale = keys.positive_or("expert_weights_scale", 1.0)?;
    let dense = keys.size_or_zero("leading_dense_block_count")?;
    config.dense_layers = dense.map(|layers| DenseLayers {
        places: DensePlaces::First(layers),
        ffn_dim: config.ffn_dim,
    });
    config.ffn_dim = width;
    Ok(())
}

/// The groups that experts are chosen from.
fn groups(keys: &Keys, experts: &Experts) -> Result<Option<ExpertGroups>> {
    let Some(count) = keys
        .size_or_zero("expert_group_count")?
        .filter(|it| *it > 1)
    else {
        return Ok(None);
    };
    let used = keys.size("expert_group_used_count")?;
    // A group of sigmoids is ranked by the sum of two experts.
    let least = if experts.is_sigmoid { 2 } else { 1 };
    let len = experts.count / count;
    let is_valid = experts.count.is_multiple_of(count)
        && len >= least
        && used <= count
        && used * len >= experts.used;
    match is_valid {
        true => Ok((used < count).then_some(ExpertGroups { count, used })),
        false => Err(Error::InvalidModelFile(format!(
            "{} of {} experts in {used} of {count} groups",
            experts.used, experts.count
        ))),
    }
}
