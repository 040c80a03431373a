//! A decoder: embedding, blocks of attention and feed-forward, norm, output projection. An encoder is the same
//! without the projection; its tokens attend to each other.

use burn::tensor::{Int, Tensor};

use super::{
    feed_forward::FeedForward,
    layer_input::{LayerInput, LayerInputs},
    linear::{Linear, Norm},
    mixer::{LayerMemory, Mixer},
    mtp_head::MtpHead,
    token_types::TokenTypes,
};
use crate::ops::{
    Finish, InPlace, Variant,
    add_given::{GivenRows, add_given},
    add_positions::add_positions,
    embedding::embedding,
    embedding_or_row::embedding_or_row,
    last_row::last_row,
    matrix::Matrix,
    step::Step,
};

/// One layer.
#[derive(Debug, Clone)]
pub struct Block {
    /// Attention, a recurrence or both, with norms and residual.
    pub mixer: Mixer,
    /// Feed-forward, with its norms and residual.
    pub feed_forward: FeedForward,
    /// The layer's vector of each token.
    pub input: Option<Box<LayerInput>>,
    /// The layer of the file that it is built from.
    pub file_layer: usize,
    /// Whether the output norm of the decoder follows: another pass through the same layers begins.
    pub is_normed: bool,
    /// The index of the first memory that it uses, among those of all layers.
    pub memory_index: usize,
}

/// A product with the pooled vector of a text.
#[derive(Debug, Clone)]
pub struct Dense {
    /// The product.
    pub linear: Linear,
    /// The function of its result.
    pub finish: Finish,
}

impl Dense {
    /// The hyperbolic tangent.
    pub const TANH: Finish = Finish::SoftCap {
        scale: 1.0,
        cap: 1.0,
    };
}

/// The whole model.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// `token_embd`, `[vocab, dim]`
    pub token_embd: Matrix,
    /// Factor of embeddings.
    pub embedding_scale: f32,
    /// `position_embd`, `[positions, dim]`, if positions are learned.
    pub position_embd: Option<Matrix>,
    /// Types of tokens.
    pub token_types: Option<TokenTypes>,
    /// Vectors of each token for all layers.
    pub layer_inputs: Option<LayerInputs>,
    /// `token_embd_norm`, of the sum of embeddings.
    pub embedding_norm: Option<Norm>,
    /// `blk.N`
    pub blocks: Vec<Block>,
    /// A head that predicts the token after the next one. Boxed, so that a decoder is small: a load moves it on the stack.
    pub mtp_head: Option<Box<MtpHead>>,
    /// `output_norm`
    pub output_norm: Option<Norm>,
    /// `output`, `[vocab, dim]`. In a tied model it shares the data of `token_embd`.
    pub output: Linear,
    /// Products with the pooled vector of a text: `dense_2`, `dense_3` or those of a classifier.
    pub dense: Vec<Dense>,
    /// First layers to whose outputs given rows add values.
    pub deepstack_layers: usize,
    /// Scale or soft cap of the logits.
    pub logits: Finish,
    /// Whether tokens attend to each other. K and V of one layer at a time are kept then.
    pub is_whole: bool,
}

impl Decoder {
    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        for block in &mut self.blocks {
            block.mixer.set_variant(variant);
            block.feed_forward.set_variant(variant);
            if let Some(input) = &mut block.input {
                input.set_variant(variant);
            }
        }
        if let Some(inputs) = &mut self.layer_inputs {
            inputs.set_variant(variant);
        }
        if let Some(head) = &mut self.mtp_head {
            head.set_variant(variant);
        }
        let norms = self.output_norm.iter_mut().chain(&mut self.embedding_norm);
        norms.for_each(|norm| norm.variant = variant);
        let dense = self.dense.iter_mut().map(|dense| &mut dense.linear);
        let outputs = dense.chain([&mut self.output]);
        outputs.for_each(|linear| linear.variant = variant);
    }

    /// Feeds the step's tokens, `ids` `[tokens]`; those beyond the embedding table are rows of `given`. Returns the
    /// residual stream `[tokens, dim]`.
    pub fn forward(
        &self,
        ids: Tensor<1, Int>,
        given: Option<&InPlace>,
        memory: &mut [LayerMemory],
        step: &Step,
    ) -> Tensor<2> {
        let mut x = match given {
            Some(rows) => {
                embedding_or_row(ids.clone(), &self.token_embd, rows, self.embedding_scale)
            }
            None => embedding(ids.clone(), &self.token_embd, self.embedding_scale),
        };
        if let Some(table) = &self.position_embd {
            x = add_positions(x, table, step);
        }
        if let Some(types) = &self.token_types {
            x = types.add_to(x);
        }
        if let Some(norm) = &self.embedding_norm {
            x = norm.apply(x);
        }
        let inputs = self.layer_inputs.as_ref();
        let inputs = inputs.map(|inputs| inputs.forward(x.clone()));
        for (layer, block) in self.blocks.iter().enumerate() {
            let memories = &mut memory[if self.is_whole { 0 } else { block.memory_index }..];
            x = block.mixer.forward(x, memories, step);
            x = block.feed_forward.forward(x);
            if let (Some(input), Some(inputs)) = (&block.input, &inputs) {
                x = input.forward(x, inputs.clone());
            }
            if block.is_normed {
                x = self.normed(x);
            }
            if let Some(given) = given.filter(|_| layer < self.deepstack_layers) {
                // The buffer holds the rows of the embedding, then those of each of these layers.
                let part_rows = given.get().dims()[0] / x.dims()[1] / (1 + self.deepstack_layers);
                let rows = GivenRows {
                    table_rows: self.token_embd.shape.rows,
                    first: (1 + layer) * part_rows,
                };
                x = add_given(x, ids.clone(), given, rows);
            }
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
        self.output
            .normed(x, self.output_norm.as_ref(), self.logits)
    }

    /// `x` after the output norm, `[tokens, dim]`.
    pub fn normed(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.output_norm {
            Some(norm) => norm.apply(x),
            None => x,
        }
    }

    /// The products with pooled vectors `[inputs, dim]`.
    pub fn densed(&self, pooled: Tensor<2>) -> Tensor<2> {
        let each = self.dense.iter();
        each.fold(pooled, |x, dense| {
            dense.linear.normed(x, None, dense.finish)
        })
    }
}
