//! A head that predicts the token after the next one (multi-token prediction: DeepSeek-AI 2024,
//! <https://arxiv.org/abs/2412.19437>): one more layer, which sees a token together with the stream before it.
//! The use of its predictions is decided elsewhere.

use burn::tensor::Tensor;

use super::{
    attention::Attention,
    feed_forward::FeedForward,
    linear::{Linear, Norm},
};
use crate::ops::{Finish, Variant, kv_memory::KvMemory, matrix::Matrix, step::Step};

/// `output_norm(layer(eh_proj([enorm(embedding), hnorm(stream)])))`
#[derive(Debug, Clone)]
pub struct MtpHead {
    /// `nextn.enorm`
    pub embedding_norm: Norm,
    /// `nextn.hnorm`
    pub stream_norm: Norm,
    /// The columns of `nextn.eh_proj` for the embedding.
    pub from_embedding: Linear,
    /// The columns of `nextn.eh_proj` for the stream.
    pub from_stream: Linear,
    /// Attention, with its norms and residual.
    pub attention: Attention,
    /// Feed-forward, with its norms and residual.
    pub feed_forward: FeedForward,
    /// `nextn.shared_head_norm`, or that of the decoder.
    pub output_norm: Norm,
    /// `nextn.embed_tokens`, where it is not the table of the decoder.
    pub token_embd: Option<Matrix>,
    /// `nextn.shared_head_head`, where it is not the output of the decoder.
    pub output: Option<Linear>,
    /// The index of its memory, after those of the layers.
    pub memory_index: usize,
}

impl MtpHead {
    /// `embeddings` of tokens `[tokens, dim]`, and the decoder's `stream` after the token before each of them,
    /// normalized, `[tokens, dim]`: the stream that predicts the tokens after them, normalized. Without a stream, which is
    /// not always known, it predicts worse. Writes K and V of the tokens.
    pub fn forward(
        &self,
        embeddings: Tensor<2>,
        stream: Option<Tensor<2>>,
        kv: &mut KvMemory,
        step: &Step,
    ) -> Tensor<2> {
        let x = self
            .attention
            .forward(self.input(embeddings, stream), kv, step);
        self.output_norm.apply(self.feed_forward.forward(x))
    }

    /// Same as [`forward`](Self::forward), but computes only K and V.
    pub fn remember(
        &self,
        embeddings: Tensor<2>,
        stream: Option<Tensor<2>>,
        kv: &mut KvMemory,
        step: &Step,
    ) {
        self.attention
            .remember(self.input(embeddings, stream), kv, step);
    }

    fn input(&self, embeddings: Tensor<2>, stream: Option<Tensor<2>>) -> Tensor<2> {
        let norm = Some(&self.embedding_norm);
        let x = self.from_embedding.normed(embeddings, norm, Finish::Plain);
        let Some(stream) = stream else {
            return x;
        };
        let (stream, norm) = Norm::input(Some(&self.stream_norm), stream);
        self.from_stream
            .product(stream, norm, Finish::Plain, Some(x))
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        let norms = [
            &mut self.embedding_norm,
            &mut self.stream_norm,
            &mut self.output_norm,
        ];
        norms.into_iter().for_each(|norm| norm.variant = variant);
        let linears = [&mut self.from_embedding, &mut self.from_stream];
        let linears = linears.into_iter().chain(&mut self.output);
        linears.for_each(|linear| linear.variant = variant);
        self.attention.set_variant(variant);
        self.feed_forward.set_variant(variant);
    }
}
