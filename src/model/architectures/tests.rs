//! The configurations that architectures read from metadata.

use super::*;
use crate::{
    model::config::{
        Activation, FeedForwardKind, LayerConfig, LayerRope, NormKind, NormPlaces, Positions,
        QkNorm, Scaling, Temperature, Window,
    },
    tensor_types::TensorType,
    weights::{BytesSource, GgufWriter, MetadataValue},
};

mod latent;
mod llama4;
mod recurrent;

/// A model of `layers` layers, 64 wide with four heads, in a file whose only tensor is an embedding.
fn read(name: &str, layers: u32, keys: &[(&str, MetadataValue)]) -> Result<ModelConfig> {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", name);
    let key = |key: &str| format!("{name}.{key}");
    for (size, value) in [
        ("block_count", layers),
        ("context_length", 4096),
        ("embedding_length", 64),
        ("feed_forward_length", 128),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
    ] {
        metadata.insert(key(size), value);
    }
    metadata.insert(key("attention.layer_norm_rms_epsilon"), 1e-6f32);
    for (name, value) in keys {
        metadata.insert(key(name), value.clone());
    }
    let mut writer = GgufWriter::new(metadata)?;
    writer.tensor("token_embd.weight", &[64, 3], TensorType::F32)?;
    let mut data = writer.start(Vec::new()).unwrap();
    data.write(&[0; 64 * 3 * 4]).unwrap();
    let file = data.finish().unwrap();
    read_config(&pollster::block_on(Gguf::read(&BytesSource(&file[..])))?)
}

fn refusal(result: Result<ModelConfig>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_llama_is_what_the_others_differ_from() {
    let config = read("llama", 2, &[]).unwrap();
    assert_eq!(
        (config.head_dim, config.q_dim(0), config.kv_dim(0)),
        (16, 64, 32)
    );
    assert_eq!((config.vocab, config.layers.len()), (3, 2));
    let rope = config.rope().unwrap();
    assert_eq!((rope.dims, rope.scaling), (16, Scaling::None));
    let pairs = |name: &str, keys: &[_]| read(name, 2, keys).unwrap().rope().unwrap().pairs;
    assert_eq!(pairs("llama", &[]), RopePairs::Adjacent);
    assert_eq!(pairs("qwen2", &[]), RopePairs::Halves);
    // A checkpoint that no converter reordered.
    let halves = [(ROPE_HALVES, true.into())];
    assert_eq!(pairs("llama", &halves), RopePairs::Halves);
}

#[test]
fn names_are_unique() {
    let types = ARCHITECTURES.iter().flat_map(|it| it.model_types);
    let bidirectional = ARCHITECTURES.iter();
    let bidirectional = bidirectional.flat_map(|it| it.bidirectional_model_types);
    for mut names in [
        names().collect(),
        types.copied().collect::<Vec<_>>(),
        bidirectional.copied().collect(),
    ] {
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

#[test]
fn unknown_architectures_and_keys_are_named() {
    let text = refusal(read("mamba", 2, &[]));
    assert!(
        text.contains("\"mamba\"") && text.contains("qwen3moe"),
        "{text}"
    );
    let text = refusal(read("llama", 2, &[("rope.scaling.type", "su".into())]));
    assert!(text.contains("rope scaling \"su\""), "{text}");
    let text = refusal(read("llama", 2, &[("rope.freq_base", f32::NAN.into())]));
    assert!(text.contains("llama.rope.freq_base"), "{text}");
    let text = refusal(read(
        "llama",
        2,
        &[("attention.head_count_kv", 3u32.into())],
    ));
    assert!(text.contains("no multiple of the KV heads"), "{text}");
}

#[test]
fn windows_and_ropes_follow_their_patterns() {
    let window = [("attention.sliding_window", 32u32.into())];
    let local = |config: &ModelConfig| -> Vec<bool> {
        let layers = config.layers.iter();
        layers
            .map(|layer| layer.window == Some(Window::Sliding(32)))
            .collect()
    };
    let gemma2 = read("gemma2", 4, &window).unwrap();
    assert_eq!(local(&gemma2), [true, false, true, false]);
    assert_eq!(
        (gemma2.attention_soft_cap, gemma2.logit_soft_cap),
        (Some(50.0), Some(30.0))
    );
    let gemma3 = read("gemma3", 7, &window).unwrap();
    assert_eq!(local(&gemma3), [true, true, true, true, true, false, true]);
    for layer in &gemma3.layers {
        let is_local = layer.rope == LayerRope::Local;
        assert_eq!(is_local, layer.window.is_some());
    }
    assert_eq!(gemma3.rope().unwrap().local_base, Some(10_000.0));
    assert_eq!(
        (gemma3.embedding_scale, gemma3.qk_norm),
        (8.0, QkNorm::Heads)
    );
    let smollm3 = read("smollm3", 5, &[]).unwrap();
    let has_rope: Vec<bool> = smollm3
        .layers
        .iter()
        .map(|l| l.rope != LayerRope::None)
        .collect();
    assert_eq!(has_rope, [true, true, true, false, true]);
    // A file may list its local layers; the others do not rotate.
    let flags = MetadataValue::Array(vec![false, true, true].into());
    let listed = [
        window[0].clone(),
        ("attention.sliding_window_pattern", flags),
    ];
    let exaone4 = |layers, keys: &[_]| read("exaone4", layers, keys);
    for (config, expected) in [
        (exaone4(3, &listed), vec![false, true, true]),
        (exaone4(4, &window), vec![true, true, true, false]),
    ] {
        let config = config.unwrap();
        assert_eq!(local(&config), expected);
        let rotates = config.layers.iter().map(|l| l.rope != LayerRope::None);
        assert_eq!(rotates.collect::<Vec<_>>(), expected);
    }
    let whole = exaone4(4, &[]).unwrap();
    assert!(
        whole
            .layers
            .iter()
            .all(|l| l.window.is_none() && l.rope == LayerRope::Global)
    );
    let text = refusal(exaone4(4, &listed));
    assert!(text.contains("3 entries for 4 layers"), "{text}");
    let experts = [
        window[0].clone(),
        ("expert_count", 4u32.into()),
        ("expert_used_count", 2u32.into()),
    ];
    let gpt_oss = read("gpt-oss", 3, &experts).unwrap();
    assert_eq!(local(&gpt_oss), [true, false, true]);
    assert!(gpt_oss.has_sinks && gpt_oss.has_gate_biases);
    // Some converters write zero for none.
    let none = read("llama", 1, &[("attention.sliding_window", 0u32.into())]).unwrap();
    assert_eq!(none.layers[0].window, None);
}

#[test]
fn layers_have_sizes_of_their_own_and_use_keys_of_earlier_ones() {
    let keys: [(&str, MetadataValue); 7] = [
        ("attention.sliding_window", 32u32.into()),
        (
            "attention.sliding_window_pattern",
            vec![true, true, false, true, false].into(),
        ),
        ("attention.key_length", 32u32.into()),
        ("attention.key_length_swa", 16u32.into()),
        ("attention.head_count_kv", vec![2i32, 2, 1, 2, 1].into()),
        ("feed_forward_length", vec![64i32, 64, 64, 128, 128].into()),
        ("attention.shared_kv_layers", 2u32.into()),
    ];
    let config = read("gemma4", 5, &keys).unwrap();
    let sizes = (0..5).map(|layer| {
        let sizes = config.sizes(layer);
        (sizes.kv_heads, sizes.head_dim, sizes.ffn_dim)
    });
    let expected = [
        (2, 16, 64),
        (2, 16, 64),
        (1, 32, 64),
        (2, 16, 128),
        (1, 32, 128),
    ];
    assert_eq!(sizes.collect::<Vec<_>>(), expected);
    let kv_layers: Vec<_> = config.layers.iter().map(|layer| layer.kv_layer).collect();
    assert_eq!(kv_layers, [None, None, None, Some(1), Some(2)]);
    assert_eq!(
        config
            .memories()
            .map(|(layer, _)| layer)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!((config.kv_dim(1), config.kv_dim(2)), (32, 32));
    let rope = config.rope().unwrap();
    assert_eq!((rope.dims, rope.local_dims), (32, 16));

    let text = refusal(read("gemma4", 4, &keys));
    assert!(
        text.contains("head_count_kv has 5 entries for 4 layers"),
        "{text}"
    );
    let text = refusal(read("gemma4", 5, &keys[..1]));
    assert!(text.contains("sliding_window_pattern is missing"), "{text}");
    let mut all = keys.clone();
    all[6].1 = 5u32.into();
    let text = refusal(read("gemma4", 5, &all));
    assert!(
        text.contains("layer 0 shares the keys of no layer"),
        "{text}"
    );
    all[6] = ("rope.dimension_count_swa", 24u32.into());
    let text = refusal(read("gemma4", 5, &all));
    assert!(text.contains("rotated elements"), "{text}");
}

#[test]
fn experts_are_counted_and_their_width_is_their_own() {
    let keys = [
        ("expert_count", 8u32.into()),
        ("expert_used_count", 2u32.into()),
        ("expert_feed_forward_length", 48u32.into()),
    ];
    let normalized = |config: &ModelConfig| match config.feed_forward {
        FeedForwardKind::Experts(experts) => {
            assert_eq!((experts.count, experts.used, config.ffn_dim), (8, 2, 48));
            experts.normalized
        }
        other => panic!("{other:?}"),
    };
    assert!(normalized(&read("qwen3moe", 1, &keys).unwrap()));
    assert!(!normalized(&read("olmoe", 1, &keys).unwrap()));
    let text = refusal(read(
        "qwen3moe",
        1,
        &[("expert_count", 1u32.into()), keys[1].clone()],
    ));
    assert!(text.contains("2 of 1 experts"), "{text}");
}

#[test]
fn older_models_have_layer_norms_and_no_gates() {
    let gpt2 = read("gpt2", 1, &[]).unwrap();
    assert_eq!(
        (gpt2.norm, &gpt2.positions),
        (NormKind::Layer, &Positions::Learned)
    );
    assert_eq!(gpt2.feed_forward, FeedForwardKind::Plain(Activation::Gelu));
    assert!(gpt2.rope().is_none());
    assert!(read("starcoder2", 1, &[]).unwrap().rope().is_some());
}

#[test]
fn scalings_are_read_where_they_are_written() {
    let yarn = [
        ("rope.scaling.type", "yarn".into()),
        ("rope.scaling.factor", 4.0f32.into()),
        ("rope.scaling.original_context_length", 1024u32.into()),
    ];
    match read("qwen2", 1, &yarn).unwrap().rope().unwrap().scaling {
        Scaling::Yarn {
            original_tokens,
            magnitude,
            ..
        } => {
            assert_eq!(original_tokens, 1024);
            assert!((magnitude - 1.138_63).abs() < 1e-5);
        }
        other => panic!("{other:?}"),
    }
    let original = |tokens: u32| [("rope.scaling.original_context_length", tokens.into())];
    let phi3 = |tokens| {
        read("phi3", 1, &original(tokens))
            .unwrap()
            .rope()
            .unwrap()
            .scaling
    };
    assert_eq!(phi3(4096), Scaling::None);
    let long = Scaling::Long {
        original_tokens: 2048,
        magnitude: 1.0,
    };
    assert_eq!(phi3(2048), long);
    // A factor of the scaling that cancels that of the rotated elements.
    let mut temperate = yarn.to_vec();
    temperate.push(("rope.scaling.yarn_log_multiplier", 1.0f32.into()));
    temperate.push(("attention.temperature_scale", 0.1f32.into()));
    let mistral3 = read("mistral3", 1, &temperate).unwrap();
    let temperature = Temperature {
        tokens: 1024,
        offset: 0,
        growth: 0.1,
    };
    assert_eq!(mistral3.layers[0].temperature, Some(temperature));
    match mistral3.rope().unwrap().scaling {
        Scaling::Yarn { magnitude, .. } => assert_eq!(magnitude, 1.0),
        other => panic!("{other:?}"),
    }
    let mistral3 = read("mistral3", 1, &yarn).unwrap();
    assert_eq!(mistral3.layers[0].temperature, None);
    let text = refusal(read("mistral3", 1, &temperate[4..]));
    assert!(text.contains("temperature_scale without YaRN"), "{text}");
    let minicpm = read("minicpm", 4, &[]).unwrap();
    let scales = |it: &ModelConfig| [it.embedding_scale, it.residual_scale, it.logit_scale];
    assert_eq!(scales(&minicpm), [12.0, 0.7, 4.0]);
    let own = [
        ("embedding_scale", 2.0f32.into()),
        ("residual_scale", 0.25f32.into()),
        ("logit_scale", 8.0f32.into()),
    ];
    assert_eq!(
        scales(&read("minicpm", 4, &own).unwrap()),
        [2.0, 0.25, 0.125]
    );
    let granite = read("granite", 1, &[("logit_scale", 8.0f32.into())]).unwrap();
    assert_eq!(granite.logit_scale, 0.125);
}

#[test]
fn encoders_attend_to_everything_and_need_a_pooling() {
    let pooling = |name: &str, more: &[(&str, MetadataValue)]| {
        let mut keys = vec![("pooling_type", 1u32.into())];
        keys.extend_from_slice(more);
        read(name, 6, &keys)
    };
    let bert = pooling("bert", &[]).unwrap();
    assert!(!bert.is_causal && bert.has_embedding_norm && !bert.has_output_norm);
    assert_eq!(
        (bert.norm, bert.norm_places),
        (NormKind::Layer, NormPlaces::ON_SUM)
    );
    assert_eq!(bert.positions, Positions::Learned);
    let nomic = pooling("nomic-bert", &[]).unwrap();
    assert_eq!(nomic.feed_forward, FeedForwardKind::Gated(Activation::Silu));
    assert!(nomic.rope().is_some() && !nomic.is_causal);
    let window = [("attention.sliding_window", 512u32.into())];
    let gemma = pooling("gemma-embedding", &window).unwrap();
    // Half of the window on each side, and the token itself.
    assert_eq!(
        (gemma.layers[0].window, gemma.layers[5].window),
        (Some(Window::Sliding(257)), None)
    );
    let sizes = [
        ("dense_2_feat_in", 64u32.into()),
        ("dense_2_feat_out", 96u32.into()),
        ("dense_3_feat_in", 96u32.into()),
        ("dense_3_feat_out", 32u32.into()),
    ];
    let dense = pooling("gemma-embedding", &sizes)
        .unwrap()
        .embedding
        .unwrap()
        .dense;
    assert_eq!(dense, [[64, 96], [96, 32]]);

    for name in ["bert", "nomic-bert", "gemma-embedding"] {
        let text = refusal(read(name, 6, &[]));
        assert!(text.contains("pooling_type"), "{text}");
    }
    let causal = [("attention.causal", true.into())];
    assert!(refusal(pooling("bert", &causal)).contains("causal"));
    let qwen = pooling("qwen3", &[]).unwrap();
    assert!(qwen.is_causal && qwen.embedding.is_some());
}
