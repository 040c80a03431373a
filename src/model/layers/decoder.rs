//! A decoder: embedding, blocks of attention and feed-forward, norm, output projection.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};

use super::{
    attention::Attention,
    feed_forward::FeedForward,
    linear::{Linear, Norm},
};
use crate::ops::{
    Finish, Variant, add_positions::add_positions, embedding::embedding, kv_memory::KvMemory,
    last_row::last_row, matrix::Matrix, step::Step,
};

/// One layer.
#[derive(Module, Debug)]
pub struct Block {
    /// Attention, with its norms and residual.
    pub attention: Attention,
    /// Feed-forward, with its norms and residual.
    pub feed_forward: FeedForward,
}

/// The whole model.
#[derive(Module, Debug)]
pub struct Decoder {
    /// `token_embd`, `[vocab, dim]`
    pub token_embd: Matrix,
    /// Factor of embeddings.
    #[module(skip)]
    pub embedding_scale: f32,
    /// `position_embd`, `[positions, dim]`, if positions are learned.
    pub position_embd: Option<Matrix>,
    /// `blk.N`
    pub blocks: Vec<Block>,
    /// `output_norm`
    pub output_norm: Norm,
    /// `output`, `[vocab, dim]`. In a tied model it shares the data of `token_embd`.
    pub output: Linear,
    /// Scale or soft cap of the logits.
    #[module(skip)]
    pub logits: Finish,
}

impl Decoder {
    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for block in &mut self.blocks {
            block.attention.set_variant(variant);
            block.feed_forward.set_variant(variant);
        }
        self.output_norm.variant = variant;
        self.output.variant = variant;
    }

    /// Feeds the step's tokens, `ids` `[tokens]`. Returns the residual stream `[tokens, dim]`.
    pub fn forward(&self, ids: Tensor<1, Int>, kv: &mut [KvMemory], step: &Step) -> Tensor<2> {
        let mut x = embedding(ids, &self.token_embd, self.embedding_scale);
        if let Some(table) = &self.position_embd {
            x = add_positions(x, table, step);
        }
        for (block, kv) in self.blocks.iter().zip(kv) {
            x = block.attention.forward(x, kv, step);
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
        self.all_logits(last)
    }

    /// Logits `[tokens, vocab]` after every token.
    pub fn all_logits(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.normed(x, Some(&self.output_norm), self.logits)
    }
}
