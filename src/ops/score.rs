//! Log-probabilities of given tokens and of the best ones, row by row of logits, in a few words per
//! row that are cheap to read back.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{Ops, output_words, twin_output_words},
    kernel::Kernel,
    shader,
};

/// A power of two: best values and sums are found by halving.
const WORKGROUP: usize = 256;

/// Stands for the log-probability of a row that holds NaN, +inf or nothing finite: a NaN.
const INVALID_SCORE: u32 = 0x7fc0_0000;

/// What a row says.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScore {
    /// Log-probability of the given token, at most 0; may be `-inf`.
    pub logprob: f32,
    /// The best tokens and their log-probabilities, descending, lower ids first on ties. The given
    /// token has the same number here.
    pub top: Vec<(u32, f32)>,
}

/// Scores rows of `logits` `[tokens, vocab]`: the log-probability of the row's token in `next`
/// `[tokens]`, each below `vocab`, and the `top` best tokens, at most `vocab`. Gives
/// `[tokens, score_words(top)]`, to be read with [`parse`].
pub fn score(logits: Tensor<2>, next: Tensor<1, Int>, top: usize) -> Tensor<2, Int> {
    Tensor::from_dispatch(Dispatch::score(
        logits.into_dispatch(),
        next.into_dispatch(),
        top,
    ))
}

/// Words of a row's score.
pub fn score_words(top: usize) -> usize {
    1 + 2 * top
}

/// Reads a row's words; `None` if its logits hold NaN, +inf or nothing finite.
pub fn parse(words: &[u32]) -> Option<RowScore> {
    let (&logprob, best) = words.split_first()?;
    let (ids, values) = best.split_at(best.len() / 2);
    let values = values.iter().map(|&bits| f32::from_bits(bits));
    (logprob != INVALID_SCORE).then(|| RowScore {
        logprob: f32::from_bits(logprob),
        top: ids.iter().copied().zip(values).collect(),
    })
}

/// The composed kernel.
pub fn kernel(vocab: usize, top: usize) -> Kernel {
    Kernel::new("score")
        .binding("logits")
        .binding("next")
        .binding("out")
        .constant("VOCAB", vocab)
        .constant("TOP", top)
        .constant("INVALID_SCORE", INVALID_SCORE as usize)
        .constant("WORKGROUP", WORKGROUP)
        .module(shader::kernel::SCORE)
}

pub(super) fn launch(logits: CubeTensor, next: CubeTensor, top: usize) -> CubeTensor {
    let [tokens, vocab] = logits.shape().dims();
    let out = output_words(&logits, [tokens, score_words(top)]);
    kernel(vocab, top).launch(&[&logits, &next, &out], [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(logits: FlexTensor, next: FlexTensor, top: usize) -> FlexTensor {
    let [tokens, vocab] = logits.shape().dims();
    let mut out = Vec::with_capacity(tokens * score_words(top));
    let rows = logits.storage::<f32>().chunks_exact(vocab);
    for (row, &next) in rows.zip(next.storage::<u32>()) {
        out.extend(row_words(row, next as usize, top));
    }
    twin_output_words(out, [tokens, score_words(top)])
}

fn row_words(logits: &[f32], next: usize, top: usize) -> Vec<u32> {
    let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !peak.is_finite() || logits.iter().any(|logit| logit.is_nan()) {
        return vec![INVALID_SCORE; score_words(top)];
    }
    let sum: f32 = logits.iter().map(|logit| (logit - peak).exp()).sum();
    let normalizer = peak + sum.ln();
    let logprob = |id: usize| (logits[id] - normalizer).min(0.0).to_bits();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // Without NaN; stable: lower ids first on ties.
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).expect("no NaN"));
    let best = &order[..top];
    let mut words = vec![logprob(next)];
    words.extend(best.iter().map(|&id| id as u32));
    words.extend(best.iter().map(|&id| logprob(id)));
    words
}
