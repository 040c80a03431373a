//! The matrix products of a decoder that adapters can add to, and the tensors that their matrices consist
//! of.

use std::collections::BTreeMap;

use crate::model::layers::{
    attention::Qkv, decoder::Decoder, feed_forward::FeedForward, linear::Linear, low_rank::LowRank,
};

/// GGUF name of the matrix that computes logits.
pub(super) const OUTPUT: &str = "output.weight";

/// A matrix product.
pub(super) struct Target<'a> {
    /// The tensors whose rows its matrix consists of.
    pub(super) tensors: Vec<TargetTensor>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// The adapters that are added to it.
    pub(super) low_rank: &'a mut Option<LowRank>,
}

/// A tensor in the matrix of a product.
pub(super) struct TargetTensor {
    /// GGUF name.
    pub(super) name: String,
    /// Its first row in the matrix.
    pub(super) first_row: usize,
    /// Number of heads of its rows, if these are only queries or only keys.
    pub(super) heads: Option<usize>,
}

impl TargetTensor {
    fn new(name: String, first_row: usize) -> TargetTensor {
        TargetTensor {
            name: format!("{name}.weight"),
            first_row,
            heads: None,
        }
    }

    fn with_heads(self, heads: usize) -> TargetTensor {
        TargetTensor {
            heads: Some(heads),
            ..self
        }
    }
}

/// All targets of a model whose file holds these `matrices`.
pub(super) fn targets<'a>(
    decoder: &'a mut Decoder,
    matrices: &BTreeMap<String, [usize; 2]>,
) -> Vec<Target<'a>> {
    let mut targets = Vec::new();
    for (layer, block) in decoder.blocks.iter_mut().enumerate() {
        let tensor =
            |name: &str, first_row| TargetTensor::new(format!("blk.{layer}.{name}"), first_row);
        let exists = |tensor: &TargetTensor| matrices.contains_key(&tensor.name);
        let attention = &mut block.attention;
        let (heads, kv_heads) = (attention.shape.heads, attention.shape.kv_heads);
        let (q, kv) = (attention.shape.q_dim(), attention.shape.kv_dim());
        match &mut attention.attn_qkv {
            Qkv::Fused(linear) => {
                let fused = tensor("attn_qkv", 0);
                let tensors = match exists(&fused) {
                    true => vec![fused],
                    false => vec![
                        tensor("attn_q", 0).with_heads(heads),
                        tensor("attn_k", q).with_heads(kv_heads),
                        tensor("attn_v", q + kv),
                    ],
                };
                targets.push(Target::new(linear, tensors));
            }
            Qkv::Split([q, k, v]) => {
                targets.push(Target::new(q, vec![tensor("attn_q", 0).with_heads(heads)]));
                targets.push(Target::new(
                    k,
                    vec![tensor("attn_k", 0).with_heads(kv_heads)],
                ));
                targets.push(Target::new(v, vec![tensor("attn_v", 0)]));
            }
        }
        let output = vec![tensor("attn_output", 0)];
        targets.push(Target::new(&mut attention.attn_output, output));
        match &mut block.feed_forward {
            FeedForward::Gated(layer) => {
                let ffn = layer.ffn_gate.shape.rows;
                let gate = tensor("ffn_gate", 0);
                targets.push(Target {
                    tensors: match exists(&gate) {
                        true => vec![gate, tensor("ffn_up", ffn)],
                        // One tensor holds the rows of both.
                        false => vec![tensor("ffn_up", 0)],
                    },
                    rows: 2 * ffn,
                    cols: layer.ffn_gate.shape.cols,
                    low_rank: &mut layer.low_rank,
                });
                targets.push(Target::new(
                    &mut layer.ffn_down,
                    vec![tensor("ffn_down", 0)],
                ));
            }
            FeedForward::Plain(layer) => {
                targets.push(Target::new(&mut layer.ffn_up, vec![tensor("ffn_up", 0)]));
                targets.push(Target::new(
                    &mut layer.ffn_down,
                    vec![tensor("ffn_down", 0)],
                ));
            }
            // The kernels of experts have no place for adapters.
            FeedForward::Experts(_) => {}
        }
    }
    let output = TargetTensor {
        name: OUTPUT.into(),
        first_row: 0,
        heads: None,
    };
    targets.push(Target::new(&mut decoder.output, vec![output]));
    targets
}

impl<'a> Target<'a> {
    fn new(linear: &'a mut Linear, tensors: Vec<TargetTensor>) -> Target<'a> {
        Target {
            tensors,
            rows: linear.weight.shape.rows,
            cols: linear.weight.shape.cols,
            low_rank: &mut linear.low_rank,
        }
    }
}
