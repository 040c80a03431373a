//! Implements the contract of a model that embeds. A causal model feeds each input in steps, in a KV cache
//! that nothing else uses. An encoder computes several inputs in one step.

use super::{Transformer, chunks::chunks, segment};
use crate::{
    Error, Result,
    engine::{
        SequenceMemory,
        embed::{EmbeddingInput, EmbeddingLimits, EmbeddingModel},
    },
    model::{
        config::embedding::{EmbeddingConfig, Pooling, normalize},
        kv_reservation::{ENCODER_BATCH_TEXTS, ENCODER_BATCH_TOKENS},
    },
    ops::step::{PAGE_TOKENS, Rotary, Segment},
};

impl EmbeddingModel for Transformer {
    fn embedding_limits(&self) -> EmbeddingLimits {
        let embedding = self.config.embedding.as_ref();
        let last = embedding.and_then(|it| it.dense.last());
        let classes = embedding.and_then(|it| it.classes);
        let (batch_tokens, batch_inputs) = match self.config.is_causal {
            true => (0, 1),
            false => (ENCODER_BATCH_TOKENS, ENCODER_BATCH_TEXTS),
        };
        EmbeddingLimits {
            vocab_size: self.config.token_ids,
            context_tokens: self.reservation.context_tokens,
            width: classes.unwrap_or(last.map_or(self.config.dim, |[_, rows]| *rows)),
            batch_tokens,
            batch_inputs,
        }
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        let no_pooling = || Error::Internal("embeddings of a model without pooling".into());
        let config = self.config.embedding.clone().ok_or_else(no_pooling)?;
        let EmbeddingConfig {
            pooling,
            normalizes,
            ..
        } = config;
        let pooled = match self.config.is_causal {
            true => {
                let mut pooled = Vec::with_capacity(inputs.len());
                for input in inputs {
                    let rows = self.token_vectors(&input.ids, pooling).await?;
                    pooled.push(pooling.of(&rows, self.config.dim));
                }
                pooled
            }
            false => {
                let mut pooled = Vec::with_capacity(inputs.len());
                let mut rest = inputs;
                while !rest.is_empty() {
                    let (batch, after) = rest.split_at(fitting(rest));
                    pooled.extend(self.encode(batch, pooling).await?);
                    rest = after;
                }
                pooled
            }
        };
        let mut vectors = self.steps.densed(pooled).await?;
        if normalizes {
            vectors.iter_mut().for_each(|vector| normalize(vector));
        }
        Ok(vectors)
    }
}

/// The types of the tokens of an input: 1 for those of a second text.
fn token_types(input: &EmbeddingInput) -> impl Iterator<Item = u32> {
    (0..input.ids.len()).map(|token| u32::from(token >= input.first_tokens))
}

/// The number of the first `inputs` (at least one) that a step of an encoder holds.
fn fitting(inputs: &[&EmbeddingInput]) -> usize {
    let mut tokens = 0;
    let inputs = inputs.iter().take(ENCODER_BATCH_TEXTS);
    let fitting = inputs.take_while(|input| {
        tokens += input.ids.len();
        tokens <= ENCODER_BATCH_TOKENS
    });
    fitting.count().max(1)
}

impl Transformer {
    /// The vectors of the tokens that `pooling` reads, after the output norm.
    async fn token_vectors(&mut self, input: &[u32], pooling: Pooling) -> Result<Vec<f32>> {
        let pages = 0..self.reservation.pages as u32;
        let mut memory = SequenceMemory::new(pages.collect());
        let mut rows = Vec::new();
        let parts: Vec<&[u32]> = chunks(input).collect();
        for (i, chunk) in parts.iter().enumerate() {
            self.check(&memory, chunk.len())?;
            let segment = segment(&memory, chunk.len(), Rotary::default());
            let fed = self.steps.feed_chunk(segment, chunk).await?;
            memory.len_tokens += chunk.len();
            let is_read = match pooling {
                Pooling::Mean => true,
                Pooling::First => i == 0,
                Pooling::Last => i + 1 == parts.len(),
            };
            if is_read {
                let normed = self.steps.normed(&fed, chunk.len());
                rows.extend(self.steps.floats(normed).await?);
            }
        }
        Ok(rows)
    }

    /// The pooled vectors of inputs that fit one step.
    async fn encode(
        &mut self,
        inputs: &[&EmbeddingInput],
        pooling: Pooling,
    ) -> Result<Vec<Vec<f32>>> {
        let mut next_page = 0;
        let pages = inputs.iter().map(|input| {
            let first = next_page;
            next_page += input.ids.len().div_ceil(PAGE_TOKENS) as u32;
            (first..next_page).collect::<Vec<u32>>()
        });
        let pages: Vec<Vec<u32>> = pages.collect();
        let context_tokens = self.reservation.context_tokens;
        if next_page as usize > self.reservation.pages
            || inputs.iter().any(|input| input.ids.len() > context_tokens)
        {
            return Err(Error::Internal("a step of texts that are too long".into()));
        }
        let segments = inputs.iter().zip(&pages).map(|(input, pages)| Segment {
            position: 0,
            tokens: input.ids.len(),
            pages,
            state: 0,
            is_seen_whole: false,
            rotary: Default::default(),
        });
        let segments: Vec<Segment> = segments.collect();
        let ids = inputs.iter().flat_map(|input| &input.ids).copied();
        let types = inputs.iter().flat_map(|input| token_types(input));
        let (ids, types) = (ids.collect(), types.collect());
        let rows = self.steps.encode(&segments, ids, types).await?;
        let width = self.config.dim;
        let mut rest = &rows[..];
        let pooled = inputs.iter().map(|input| {
            let (own, after) = rest.split_at(input.ids.len() * width);
            rest = after;
            pooling.of(own, width)
        });
        Ok(pooled.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{EmbeddingInput, fitting};
    use crate::model::kv_reservation::{ENCODER_BATCH_TEXTS, ENCODER_BATCH_TOKENS};

    #[test]
    fn a_step_holds_as_many_texts_as_fit_and_at_least_one() {
        let of = |lengths: &[usize]| {
            let texts = lengths.iter().map(|length| vec![1; *length].into());
            let texts: Vec<EmbeddingInput> = texts.collect();
            fitting(&texts.iter().collect::<Vec<_>>())
        };
        let all = ENCODER_BATCH_TOKENS;
        assert_eq!(of(&[all]), 1);
        assert_eq!(of(&[all + 1, 1]), 1);
        assert_eq!(of(&[all - 1, 1, 1]), 2);
        assert_eq!(of(&[1, all, 1]), 1);
        assert_eq!(of(&[1; ENCODER_BATCH_TEXTS + 1]), ENCODER_BATCH_TEXTS);
    }
}
