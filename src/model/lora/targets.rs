//! The products of a decoder that adapters add to, and which tensors of its file they are of. Knows no
//! adapter.

use std::collections::BTreeMap;

use super::LowRank;
use crate::model::{attention::Qkv, decoder::Decoder, feed_forward::FeedForward, linear::Linear};

/// GGUF's name of the matrix that makes logits.
pub(super) const OUTPUT: &str = "output.weight";

/// A product.
pub(super) struct Target<'a> {
    /// The tensors whose rows its matrix has.
    pub(super) parts: Vec<Part>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// What is added to it.
    pub(super) low_rank: &'a mut Option<LowRank>,
}

/// A tensor in the matrix of a product.
pub(super) struct Part {
    /// GGUF's name.
    pub(super) name: String,
    /// Where its rows begin.
    pub(super) first_row: usize,
    /// Heads of its rows, where they are of queries or keys alone.
    pub(super) heads: Option<usize>,
}

impl Part {
    fn of(name: String, first_row: usize) -> Part {
        Part {
            name: format!("{name}.weight"),
            first_row,
            heads: None,
        }
    }

    fn with_heads(self, heads: usize) -> Part {
        Part {
            heads: Some(heads),
            ..self
        }
    }
}

/// All that there are, of a model with these `matrices`.
pub(super) fn targets<'a>(
    decoder: &'a mut Decoder,
    matrices: &BTreeMap<String, [usize; 2]>,
) -> Vec<Target<'a>> {
    let mut targets = Vec::new();
    for (layer, block) in decoder.blocks.iter_mut().enumerate() {
        let part = |name: &str, first_row| Part::of(format!("blk.{layer}.{name}"), first_row);
        let is_there = |part: &Part| matrices.contains_key(&part.name);
        let attention = &mut block.attention;
        let (heads, kv_heads) = (attention.shape.heads, attention.shape.kv_heads);
        let (q, kv) = (attention.shape.q_dim(), attention.shape.kv_dim());
        match &mut attention.attn_qkv {
            Qkv::Fused(linear) => {
                let joined = part("attn_qkv", 0);
                let parts = match is_there(&joined) {
                    true => vec![joined],
                    false => vec![
                        part("attn_q", 0).with_heads(heads),
                        part("attn_k", q).with_heads(kv_heads),
                        part("attn_v", q + kv),
                    ],
                };
                targets.push(Target::of(linear, parts));
            }
            Qkv::Split([q, k, v]) => {
                targets.push(Target::of(q, vec![part("attn_q", 0).with_heads(heads)]));
                targets.push(Target::of(k, vec![part("attn_k", 0).with_heads(kv_heads)]));
                targets.push(Target::of(v, vec![part("attn_v", 0)]));
            }
        }
        let output = vec![part("attn_output", 0)];
        targets.push(Target::of(&mut attention.attn_output, output));
        match &mut block.feed_forward {
            FeedForward::Gated(layer) => {
                let ffn = layer.ffn_gate.shape.rows;
                let gate = part("ffn_gate", 0);
                targets.push(Target {
                    parts: match is_there(&gate) {
                        true => vec![gate, part("ffn_up", ffn)],
                        // One tensor with the rows of both.
                        false => vec![part("ffn_up", 0)],
                    },
                    rows: 2 * ffn,
                    cols: layer.ffn_gate.shape.cols,
                    low_rank: &mut layer.low_rank,
                });
                targets.push(Target::of(&mut layer.ffn_down, vec![part("ffn_down", 0)]));
            }
            FeedForward::Plain(layer) => {
                targets.push(Target::of(&mut layer.ffn_up, vec![part("ffn_up", 0)]));
                targets.push(Target::of(&mut layer.ffn_down, vec![part("ffn_down", 0)]));
            }
            // Experts' matrices are multiplied by kernels that add nothing.
            FeedForward::Experts(_) => {}
        }
    }
    let output = Part {
        name: OUTPUT.into(),
        first_row: 0,
        heads: None,
    };
    targets.push(Target::of(&mut decoder.output, vec![output]));
    targets
}

impl<'a> Target<'a> {
    fn of(linear: &'a mut Linear, parts: Vec<Part>) -> Target<'a> {
        Target {
            parts,
            rows: linear.weight.shape.rows,
            cols: linear.weight.shape.cols,
            low_rank: &mut linear.low_rank,
        }
    }
}
