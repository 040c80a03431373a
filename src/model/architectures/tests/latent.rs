//! The configurations of models whose keys and values are latents, and of those whose layers are repeated.

use super::*;
use crate::model::config::{DenseLayers, DensePlaces, Latent, Passes};

fn latent(changes: &[(&'static str, MetadataValue)]) -> Result<ModelConfig> {
    let mut keys: Vec<(&str, MetadataValue)> = vec![
        ("attention.kv_lora_rank", 32u32.into()),
        ("attention.key_length", 40u32.into()),
        ("attention.value_length", 32u32.into()),
        ("attention.key_length_mla", 24u32.into()),
        ("attention.value_length_mla", 20u32.into()),
        ("rope.dimension_count", 8u32.into()),
    ];
    keys.extend_from_slice(changes);
    read("deepseek2", 3, &keys)
}

#[test]
fn latents_have_one_key_for_all_heads() {
    let config = latent(&[]).unwrap();
    let sizes = Latent {
        query_rank: None,
        rank: 32,
        plain: 16,
        value: 20,
    };
    assert_eq!(config.latent, Some(sizes));
    assert_eq!((config.kv_heads, config.head_dim), (1, 40));
    assert_eq!(config.attention_scale, Some(24f32.sqrt().recip()));
    let text = refusal(latent(&[("attention.key_length_mla", 8u32.into())]));
    assert!(text.contains("heads of 8 elements"), "{text}");
}

#[test]
fn yarn_of_latents_is_a_factor_of_scores() {
    let config = latent(&[
        ("rope.scaling.type", "yarn".into()),
        ("rope.scaling.factor", 40f32.into()),
        ("rope.scaling.original_context_length", 4096u32.into()),
        ("rope.scaling.yarn_log_multiplier", 0.0707f32.into()),
    ])
    .unwrap();
    let grown = 0.0707 * 40f32.ln() + 1.0;
    let scale = config.attention_scale.unwrap();
    assert!((scale - grown * grown / 24f32.sqrt()).abs() < 1e-6);
    let scaling = config.rope().unwrap().scaling;
    assert!(matches!(scaling, Scaling::Yarn { magnitude: 1.0, .. }));
}

#[test]
fn experts_of_deepseek_have_a_factor_and_a_shared_one() {
    let experts = |changes: &[(&'static str, MetadataValue)]| {
        let keys = [
            ("expert_count", 8u32.into()),
            ("expert_used_count", 2u32.into()),
            ("expert_shared_count", 2u32.into()),
            ("expert_feed_forward_length", 48u32.into()),
            ("expert_weights_scale", 2.5f32.into()),
            ("leading_dense_block_count", 1u32.into()),
        ];
        latent(&[&keys, changes].concat())
    };
    let config = experts(&[]).unwrap();
    let dense = DenseLayers {
        places: DensePlaces::First(1),
        ffn_dim: 128,
    };
    assert_eq!(config.dense_layers, Some(dense));
    assert_eq!((config.ffn_dim, config.experts_scale), (48, 2.5));
    let found = config.feed_forward.experts().unwrap();
    assert_eq!(found.shared.unwrap().ffn_dim, 96);
    assert!(!found.is_sigmoid && !found.normalized);
    let config = experts(&[("expert_gating_func", 2u32.into())]).unwrap();
    assert!(config.feed_forward.experts().unwrap().is_sigmoid);
    let text = refusal(experts(&[("expert_gating_func", 3u32.into())]));
    assert!(text.contains("expert_gating_func 3"), "{text}");
}

#[test]
fn layers_of_nanbeige_are_passed_several_times() {
    let passes = |count: u32| read("nanbeige", 3, &[("num_loops", count.into())]);
    let config = passes(2).unwrap();
    assert_eq!(config.layers.len(), 6);
    let expected = Passes {
        layers: 3,
        has_norm: true,
    };
    assert_eq!(config.passes, expected);
    assert_eq!(passes(1).unwrap().layers.len(), 3);
    let text = refusal(passes(1 << 20));
    assert!(text.contains("passes of 3 layers"), "{text}");
}
