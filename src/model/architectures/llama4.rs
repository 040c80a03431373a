//! Llama 4 (Meta 2025, <https://ai.meta.com/blog/llama-4-multimodal-intelligence/>; the text model) and MobileLLM-R1: three of
//! four layers attend to their chunk of the context with rotated, normalized queries and keys, the fourth to everything
//! without rotation. Experts, whose inputs are multiplied by sigmoids, are beside a feed-forward that all tokens use, in all
//! layers or in every second one.

use super::{
    architecture::{AddKey, Architecture, Form, Names, Parameter},
    shared::set_experts_beside,
};
use crate::{
    Result,
    model::config::{
        ConfigJson, DenseLayers, DensePlaces, FeedForwardKind, Keys, LayerRope, ModelConfig,
        QkNorm, RopePairs, Shared, Temperature, Window,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "llama4",
    model_types: &["llama4_text"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    checkpoint_pairs: RopePairs::Adjacent,
    read_json,
    add_keys,
    json_sizes: &[
        ("num_local_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("interleave_moe_layer_step", EXPERT_PERIOD),
        ("moe_intermediate_size", "expert_feed_forward_length"),
    ],
    tensors: &[TENSORS],
    parameters: |_| PARAMETERS,
    other_parts: &["vision_model.", "multi_modal_projector."],
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("model.layers.*.feed_forward.gate_proj", "blk.*.ffn_gate"),
    ("model.layers.*.feed_forward.up_proj", "blk.*.ffn_up"),
    ("model.layers.*.feed_forward.down_proj", "blk.*.ffn_down"),
    ("model.layers.*.feed_forward.router", "blk.*.ffn_gate_inp"),
    (
        "model.layers.*.feed_forward.shared_expert.gate_proj",
        "blk.*.ffn_gate_shexp",
    ),
    (
        "model.layers.*.feed_forward.shared_expert.up_proj",
        "blk.*.ffn_up_shexp",
    ),
    (
        "model.layers.*.feed_forward.shared_expert.down_proj",
        "blk.*.ffn_down_shexp",
    ),
];

/// Checkpoints store the matrices of experts with a row per input.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        from: "model.layers.*.feed_forward.experts.gate_up_proj",
        to: &[
            ("blk.*.ffn_gate_exps.weight", Form::TransposedHalf(0)),
            ("blk.*.ffn_up_exps.weight", Form::TransposedHalf(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.feed_forward.experts.down_proj",
        to: &[("blk.*.ffn_down_exps.weight", Form::Transposed)],
    },
];

/// Period of the layers with experts: the last layer of each period has some. 0: no layer has experts.
const EXPERT_PERIOD: &str = "interleave_moe_layer_step";
/// Tokens of a chunk of the context. Converters write this key only if no layer has chunks, as 0.
const CHUNK_TOKENS: &str = "attention.sliding_window";
/// Positions with the same factor of queries, 0 for no factor, and its growth. Converters write neither.
const TEMPERATURE_TOKENS: &str = "attention.temperature_length";
const TEMPERATURE_GROWTH: &str = "attention.temperature_scale";
/// The values of all published models.
const USUAL_TOKENS: u32 = 8192;
const USUAL_GROWTH: f32 = 0.1;
/// The last layer of each period attends to everything.
const PERIOD_LAYERS: usize = 4;
/// The number of experts of the model without norms of queries and keys (Maverick). Files do not state it otherwise.
const EXPERTS_WITHOUT_NORMS: usize = 128;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    let experts = keys.size_or_zero("expert_count")?;
    if experts != Some(EXPERTS_WITHOUT_NORMS) {
        config.qk_norm = QkNorm::Unweighted;
    }
    let tokens = |key: &str| match keys.metadata().usize(&keys.name(key))? {
        None => Ok(Some(USUAL_TOKENS as usize)),
        Some(_) => keys.size_or_zero(key),
    };
    // In a model without chunks every layer attends to everything and rotates.
    if let Some(chunk) = tokens(CHUNK_TOKENS)? {
        let growth = keys.positive_or(TEMPERATURE_GROWTH, USUAL_GROWTH)?;
        let temperature = tokens(TEMPERATURE_TOKENS)?.map(|tokens| Temperature {
            tokens,
            offset: 1,
            growth,
        });
        for (i, layer) in config.layers.iter_mut().enumerate() {
            if (i + 1).is_multiple_of(PERIOD_LAYERS) {
                layer.rope = LayerRope::None;
                layer.temperature = temperature;
            } else {
                layer.window = Some(Window::Chunk(chunk));
            }
        }
    }
    let period = keys.size_or_zero(EXPERT_PERIOD)?;
    match (experts, period) {
        (Some(_), Some(period)) => set_feed_forward(keys, config, period),
        _ => Ok(()),
    }
}

fn set_feed_forward(keys: &Keys, config: &mut ModelConfig, period: usize) -> Result<()> {
    let width = keys.size("expert_feed_forward_length")?;
    let shared = Shared {
        ffn_dim: width,
        is_gated: false,
    };
    set_experts_beside(keys, config, false, Some(shared))?;
    if let FeedForwardKind::Experts(experts) = &mut config.feed_forward {
        experts.is_sigmoid = true;
        experts.scales_inputs = true;
    }
    config.dense_layers = (period > 1).then_some(DenseLayers {
        places: DensePlaces::AllButEvery(period),
        ffn_dim: config.ffn_dim,
    });
    config.ffn_dim = width;
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let experts = json.size("num_local_experts")?.unwrap_or(0) as usize;
    let key = "use_qk_norm";
    let is_normed = json.bool(key)? != Some(false);
    json.require(key, is_normed == (experts != EXPERTS_WITHOUT_NORMS))?;
    let key = "no_rope_layer_interval";
    let is_usual = json
        .size(key)?
        .is_none_or(|it| it as usize == PERIOD_LAYERS);
    // The list, which is compared with the configuration, says more.
    json.require(key, is_usual || json.get("no_rope_layers").is_some())?;
    json.add("interleave_moe_layer_step", 1);
    let layers = json.needed("num_hidden_layers")?;
    let period = json.needed("interleave_moe_layer_step")?;
    let key = "moe_layers";
    if let (Some(listed), true) = (json.numbers(key)?, experts > 0) {
        let has_experts = |layer: &u32| period > 0 && (layer + 1).is_multiple_of(period);
        let expected = (0..layers).filter(has_experts).map(|it| it as f32);
        json.require(key, listed.into_iter().eq(expected))?;
    }
    // The width of the experts, and that of the other layers.
    let width = json.needed("intermediate_size")?;
    json.set("moe_intermediate_size", width);
    if let Some(width) = json.size("intermediate_size_mlp")? {
        json.set("intermediate_size", width);
    }
    Ok(())
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let is_whole = |kinds: Vec<&str>| kinds.iter().all(|kind| *kind == "full_attention");
    let chunk = match json.strings("layer_types")?.is_some_and(is_whole) {
        true => 0,
        false => json.size("attention_chunk_size")?.unwrap_or(USUAL_TOKENS),
    };
    add(CHUNK_TOKENS, chunk.into());
    let key = "attn_temperature_tuning";
    // Some checkpoints have a number there.
    let has_temperature = json.get(key).is_none_or(|it| *it != false && *it != 0);
    let tokens = match has_temperature {
        true => json.size("floor_scale")?.unwrap_or(USUAL_TOKENS),
        false => 0,
    };
    add(TEMPERATURE_TOKENS, tokens.into());
    if let Some(growth) = json.number("attn_scale")? {
        add(TEMPERATURE_GROWTH, (growth as f32).into());
    }
    Ok(())
}
