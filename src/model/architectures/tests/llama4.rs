//! The configurations of Llama 4.

use super::*;
use crate::model::config::{DenseLayers, DensePlaces};

const EXPERTS: [(&str, u32); 3] = [
    ("expert_count", 16),
    ("expert_used_count", 1),
    ("expert_feed_forward_length", 48),
];

fn llama4(changes: &[(&'static str, MetadataValue)]) -> ModelConfig {
    let mut keys: Vec<(&str, MetadataValue)> = EXPERTS
        .iter()
        .map(|(key, value)| (*key, (*value).into()))
        .collect();
    keys.extend_from_slice(changes);
    read("llama4", 8, &keys).unwrap()
}

#[test]
fn every_fourth_layer_attends_to_everything_without_rotation() {
    let config = llama4(&[("interleave_moe_layer_step", 1u32.into())]);
    let temperature = Temperature {
        tokens: 8192,
        offset: 1,
        growth: 0.1,
    };
    for (i, layer) in config.layers.iter().enumerate() {
        if i == 3 || i == 7 {
            assert_eq!((layer.window, layer.rope), (None, LayerRope::None));
            assert_eq!(layer.temperature, Some(temperature));
        } else {
            let chunk = Some(Window::Chunk(8192));
            assert_eq!((layer.window, layer.rope), (chunk, LayerRope::Global));
            assert_eq!(layer.temperature, None);
        }
    }
    assert_eq!(config.qk_norm, QkNorm::Unweighted);
    assert_eq!(config.dense_layers, None);
    let without = llama4(&[("attention.sliding_window", 0u32.into())]);
    let is_plain = |layer: &LayerConfig| *layer == LayerConfig::PLAIN;
    assert!(without.layers.iter().all(is_plain));
}

#[test]
fn experts_are_in_the_last_layer_of_each_period() {
    let config = llama4(&[
        ("interleave_moe_layer_step", 2u32.into()),
        ("expert_count", 128u32.into()),
    ]);
    assert_eq!(config.qk_norm, QkNorm::None);
    let dense = DenseLayers {
        places: DensePlaces::AllButEvery(2),
        ffn_dim: 128,
    };
    assert_eq!(config.dense_layers, Some(dense));
    let widths = [0, 1, 2, 3].map(|layer| config.feed_forward_of(layer).1);
    assert_eq!(widths, [128, 48, 128, 48]);
    let experts = config.feed_forward.experts().unwrap();
    assert!(experts.is_sigmoid && experts.scales_inputs && !experts.normalized);
    assert_eq!(experts.shared.unwrap().ffn_dim, 48);
    let without = [0, 2].map(|count: u32| {
        let dense = llama4(&[
            ("interleave_moe_layer_step", 0u32.into()),
            ("expert_count", count.into()),
            ("expert_used_count", 0u32.into()),
        ]);
        (dense.feed_forward, dense.dense_layers)
    });
    assert_eq!(
        without,
        [(FeedForwardKind::Gated(Activation::Silu), None); 2]
    );
}
