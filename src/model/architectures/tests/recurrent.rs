//! The configurations of models with recurrent layers.

use super::*;
use crate::{
    model::config::{LinearRecurrence, MemoryKind, Mixing, Recurrence, Rule},
    weights::MetadataArray,
};

fn array(sizes: &[i32]) -> MetadataValue {
    MetadataValue::Array(MetadataArray::I32(sizes.to_vec()))
}

fn recurrent(config: &ModelConfig) -> Vec<bool> {
    config.layers.iter().map(|it| it.mixing.recurs()).collect()
}

fn lfm2(heads: &[i32], taps: u32) -> Result<ModelConfig> {
    let keys = [
        ("attention.head_count_kv", array(heads)),
        ("shortconv.l_cache", taps.into()),
    ];
    read("lfm2", 3, &keys)
}

#[test]
fn layers_without_key_heads_are_convolutions() {
    let config = lfm2(&[0, 2, 0], 3).unwrap();
    assert_eq!(recurrent(&config), [true, false, true]);
    assert_eq!(config.recurrence, Some(Recurrence::ShortConv { taps: 3 }));
    assert_eq!(config.kv_heads, 2);
    for (heads, taps, wanted) in [
        (&[0, 2][..], 3, "2 entries for 3 layers"),
        (&[0, 0, 0], 3, "no size"),
        (&[0, 2, 0], 1, "a convolution of 1 tokens"),
        (&[0, 2, 0], 1000, "a convolution of 1000 tokens"),
    ] {
        let text = refusal(lfm2(heads, taps));
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn experts_of_lfm2_are_selected_by_sigmoids_behind_dense_layers() {
    let keys = |gating: u32| {
        [
            ("attention.head_count_kv", array(&[0, 2, 0])),
            ("shortconv.l_cache", 3u32.into()),
            ("expert_count", 8u32.into()),
            ("expert_used_count", 2u32.into()),
            ("expert_feed_forward_length", 48u32.into()),
            ("leading_dense_block_count", 2u32.into()),
            ("expert_gating_func", gating.into()),
        ]
    };
    let config = read("lfm2moe", 3, &keys(2)).unwrap();
    let gated = FeedForwardKind::Gated(Activation::Silu);
    assert_eq!(config.feed_forward_of(1), (gated, 128));
    let (FeedForwardKind::Experts(experts), 48) = config.feed_forward_of(2) else {
        panic!("{:?}", config.feed_forward_of(2));
    };
    assert!(experts.is_sigmoid && experts.normalized);
    let text = refusal(read("lfm2moe", 3, &keys(1)));
    assert!(text.contains("expert_gating_func"), "{text}");
}

fn ssm(state: u32, groups: u32, heads: u32, inner: u32) -> Vec<(&'static str, MetadataValue)> {
    vec![
        ("ssm.conv_kernel", 4u32.into()),
        ("ssm.state_size", state.into()),
        ("ssm.group_count", groups.into()),
        ("ssm.time_step_rank", heads.into()),
        ("ssm.inner_size", inner.into()),
    ]
}

#[test]
fn every_fourth_layer_of_qwen35_is_attention_unless_the_file_says_otherwise() {
    let mut keys = ssm(32, 2, 4, 128);
    let config = read("qwen35", 5, &keys).unwrap();
    assert_eq!(recurrent(&config), [true, true, true, false, true]);
    let linear = LinearRecurrence {
        rule: Rule::Delta,
        heads: 4,
        key_heads: 2,
        is_tiled: true,
        key_len: 32,
        value_len: 32,
        taps: 4,
        joins_inputs: false,
        may_lack_norm: false,
    };
    assert_eq!(config.recurrence, Some(Recurrence::Linear(linear)));
    // 3 x (2 x 64 + 128) inputs and 4 matrices of 32 x 32.
    let state_len = Recurrence::Linear(linear).state_len(config.dim);
    assert_eq!(state_len, 3 * 256 + 4 * 1024);
    keys.push(("nextn_predict_layers", 1u32.into()));
    let layers = [true, false, true, false, false].to_vec();
    let layers = MetadataValue::Array(MetadataArray::Bool(layers));
    keys.push(("attention.recurrent_layers", layers));
    let config = read("qwen35", 5, &keys).unwrap();
    assert_eq!(recurrent(&config), [true, false, true, false]);
    let ignored = [
        "blk.3.attn_q.weight",
        "blk.4.attn_q.weight",
        "blk.5.attn_q.weight",
    ];
    assert_eq!(ignored.map(|it| config.ignores(it)), [false, true, false]);
    for sizes in [
        (24, 2, 4, 96),
        (32, 3, 4, 128),
        (32, 2, 4, 130),
        (512, 1, 1, 512),
    ] {
        let text = refusal(read("qwen35", 4, &ssm(sizes.0, sizes.1, sizes.2, sizes.3)));
        assert!(text.contains("a recurrence of"), "{text}");
    }
    let text = refusal(read("qwen35", 4, &ssm(32, 2, 4, 64)));
    assert!(text.contains("different lengths"), "{text}");
}

#[test]
fn granite_hybrids_have_factors_and_no_positions() {
    let mut keys = ssm(16, 1, 4, 128);
    keys.extend([
        ("attention.head_count_kv", array(&[0, 2])),
        ("expert_count", 0u32.into()),
        ("rope.scaling.finetuned", false.into()),
        ("residual_scale", 0.5f32.into()),
        ("logit_scale", 4.0f32.into()),
    ]);
    let config = read("granitehybrid", 2, &keys).unwrap();
    assert!(config.layers.iter().all(|it| it.rope == LayerRope::None));
    assert_eq!((config.residual_scale, config.logit_scale), (0.5, 0.25));
    assert_eq!(recurrent(&config), [true, false]);
    let channels = config.recurrence.unwrap().channels(config.dim);
    assert_eq!(channels, 128 + 2 * 16);
}

#[test]
fn layers_of_falcon_h1_have_keys_and_a_state() {
    let config = read("falcon-h1", 2, &ssm(16, 1, 4, 128)).unwrap();
    assert!(config.layers.iter().all(|it| it.mixing == Mixing::Both));
    let memories: Vec<_> = config.memories().collect();
    let of_layer = |layer| [(layer, MemoryKind::Kv), (layer, MemoryKind::State)];
    assert_eq!(memories, [of_layer(0), of_layer(1)].concat());
    assert_eq!((config.embedding_scale, config.logit_scale), (1.0, 1.0));
}

#[test]
fn heads_of_qwen3_next_follow_their_key_heads() {
    let mut keys = ssm(32, 2, 4, 128);
    keys.extend([
        ("expert_count", 8u32.into()),
        ("expert_used_count", 2u32.into()),
        ("expert_feed_forward_length", 48u32.into()),
    ]);
    let config = read("qwen3next", 4, &keys).unwrap();
    let Some(Recurrence::Linear(it)) = config.recurrence else {
        panic!("{:?}", config.recurrence);
    };
    assert!(it.joins_inputs && !it.is_tiled);
}
