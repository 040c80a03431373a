//! Llama (Touvron et al. 2023, <https://arxiv.org/abs/2302.13971>): embedding, blocks of attention
//! and gated feed-forward, norm, output projection.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};

use super::{
    attention::{Attention, Qkv},
    feed_forward::FeedForward,
    linear::{Linear, Norm},
};
use crate::ops::{
    Variant, embedding::embedding, kv_memory::KvMemory, last_row::last_row, matrix::Matrix,
    step::Step,
};

/// One layer.
#[derive(Module, Debug)]
pub struct Block {
    /// Attention, with its norm and residual.
    pub attention: Attention,
    /// Feed-forward, with its norm and residual.
    pub feed_forward: FeedForward,
}

/// The whole model.
#[derive(Module, Debug)]
pub struct Llama {
    /// `token_embd`, `[vocab, dim]`
    pub token_embd: Matrix,
    /// `blk.N`
    pub blocks: Vec<Block>,
    /// `output_norm`
    pub output_norm: Norm,
    /// `output`, `[vocab, dim]`; a tied model's is `token_embd` again.
    pub output: Linear,
    /// Radians per position, `[head_dim / 2]`.
    pub rope_freqs: Tensor<1>,
}

impl Llama {
    /// Computes by kernels of another form from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for Block {
            attention,
            feed_forward,
        } in &mut self.blocks
        {
            match &mut attention.attn_qkv {
                Qkv::Fused(linear) => linear.variant = variant,
                Qkv::Split(linears) => linears.iter_mut().for_each(|it| it.variant = variant),
            }
            attention.attn_output.variant = variant;
            feed_forward.variant = variant;
            feed_forward.ffn_down.variant = variant;
        }
        self.output.variant = variant;
    }

    /// Feeds the step's tokens, `ids` `[tokens]`; gives the residual stream `[tokens, dim]`.
    pub fn forward(&self, ids: Tensor<1, Int>, kv: &mut [KvMemory], step: &Step) -> Tensor<2> {
        let mut x = embedding(ids, &self.token_embd);
        for (block, kv) in self.blocks.iter().zip(kv) {
            x = block.attention.forward(x, &self.rope_freqs, kv, step);
            x = block.feed_forward.forward(x);
        }
        x
    }

    /// Logits `[1, vocab]` after the step's last token.
    pub fn last_logits(&self, x: Tensor<2>, step: &Step) -> Tensor<2> {
        let last = if x.dims()[0] == 1 {
            x
        } else {
            last_row(x, step)
        };
        self.output.normed(last, &self.output_norm)
    }

    /// Logits `[tokens, vocab]` after every token.
    pub fn all_logits(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.normed(x, &self.output_norm)
    }
}
