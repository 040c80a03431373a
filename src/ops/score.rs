//! Log-probabilities of given tokens and of the best tokens, for each row of logits. The result is a few
//! words per row, which are cheap to read back.
//!
//! Prompts are scored on the device, a few positions at a time. A number and a short list per token are read back,
//! never a row of logits.

use inpage_cpu::lanes::log_sum_exp::log_sum_exp;

use super::op::*;
use crate::kernel::{Kernel, wgsl};
use crate::sample::best_tokens;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) logits: FloatTensor<B>,
    pub(super) next: IntTensor<B>,
    pub(super) top: usize,
}

op! {
    fn score(Arguments) -> IntTensor<Self>
}

/// A power of two, because best values and sums are reduced by halving.
const WORKGROUP: usize = 256;

/// The log-probability of a row that contains NaN, +inf or nothing finite: a NaN.
const INVALID_SCORE: u32 = 0x7fc0_0000;

/// The score of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScore {
    /// Log-probability of the given token, at most 0; may be `-inf`.
    pub logprob: f32,
    /// The best tokens and their log-probabilities, in descending order, lower ids first on ties. If the
    /// given token is among them, its log-probability has the same bits.
    pub top: Vec<(u32, f32)>,
}

/// Scores rows of `logits` `[tokens, vocab]`: the log-probability of the row's token in `next`
/// `[tokens]`, each below `vocab`, and the `top` best tokens, at most `vocab`. Returns
/// `[tokens, score_words(top)]`; [`parse`] decodes a row.
pub fn score(logits: Tensor<2>, next: Tensor<1, Int>, top: usize) -> Tensor<2, Int> {
    Tensor::from_dispatch(Dispatch::score(Arguments {
        logits: logits.into_dispatch(),
        next: next.into_dispatch(),
        top,
    }))
}

/// Words of the score of a row.
pub fn score_words(top: usize) -> usize {
    1 + 2 * top
}

/// Decodes the words of a row; `None` if its logits contain NaN, +inf or nothing finite.
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
        .module(wgsl!("score"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, vocab] = args.logits.shape().dims();
    let out = output_words(&args.logits, [tokens, score_words(args.top)]);
    kernel(vocab, args.top).launch(&[&args.logits, &args.next, &out], [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { next, .. } = args;
    let [tokens, vocab] = args.logits.shape().dims();
    let mut out = Vec::with_capacity(tokens * score_words(args.top));
    let rows = args.logits.storage::<f32>().chunks_exact(vocab);
    for (row, &next) in rows.zip(next.storage::<u32>()) {
        out.extend(row_words(row, next as usize, args.top));
    }
    twin_output_words(out, [tokens, score_words(args.top)])
}

fn row_words(logits: &[f32], next: usize, top: usize) -> Vec<u32> {
    let Some(normalizer) = log_sum_exp(logits) else {
        return vec![INVALID_SCORE; score_words(top)];
    };
    let logprob = |logit: f32| (logit - normalizer).min(0.0).to_bits();
    let best: Vec<(u32, f32)> = best_tokens(logits, top).collect();
    let mut words = vec![logprob(logits[next])];
    words.extend(best.iter().map(|&(id, _)| id));
    words.extend(best.iter().map(|&(_, logit)| logprob(logit)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([0, 20].map(|top| kernel(517, top)));
    }
}
