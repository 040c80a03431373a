//! Results of the sampler kernels: a ring of sampled tokens per slot.

use super::layout::{RESULT_WORDS, RING, TOP};
use crate::ops::argmax::INVALID_TOKEN;
use crate::sample::{Sampled, Sampler, ScoreRequest, TokenScore};
use crate::{Error, Result};

/// The word in place of a token id when the mask leaves no token.
pub const DEAD_END: u32 = u32::MAX - 1;

/// Reads the token that a slot sampled at a position (the number of tokens before it), one of the last
/// [`RING`], and mirostat's limit after it. `score` is the row's request.
///
/// # Errors
/// [`Error::InvalidLogits`] for NaN, +inf or nothing finite; [`Error::GrammarDeadEnd`] if the mask
/// left nothing. Results of later positions are then meaningless.
pub fn parse(
    results: &[u32],
    slot: usize,
    position: usize,
    score: Option<ScoreRequest>,
) -> Result<(Sampled, f32)> {
    let words = &results[at(slot, position)..][..RESULT_WORDS];
    // The sum makes -0.0, which some devices compute for a probability of one, 0.0.
    let float = |word: usize| f32::from_bits(words[word]) + 0.0;
    let id = match words[0] {
        INVALID_TOKEN => return Err(Error::InvalidLogits { position }),
        DEAD_END => return Err(Error::GrammarDeadEnd { position }),
        id => id,
    };
    let score = score.map(|score| TokenScore {
        id,
        logprob: float(2),
        raw_logprob: float(1),
        // The vocabulary may have fewer tokens.
        top: (0..score.top.min(TOP))
            .map(|i| (words[4 + i], float(4 + TOP + i)))
            .filter(|(id, _)| *id != INVALID_TOKEN)
            .collect(),
    });
    Ok((Sampled { id, score }, float(3)))
}

/// Writes the result of `sampler`: the twin of the kernel's writes.
pub(super) fn write(
    results: &mut [u32],
    slot: usize,
    position: usize,
    sampled: &Result<Sampled>,
    sampler: &Sampler,
) {
    let words = &mut results[at(slot, position)..][..RESULT_WORDS];
    words[3] = sampler.mirostat_mu().unwrap_or(0.0).to_bits();
    words[0] = match sampled {
        Ok(sampled) => sampled.id,
        Err(Error::GrammarDeadEnd { .. }) => DEAD_END,
        Err(_) => INVALID_TOKEN,
    };
    if let Ok(Sampled {
        score: Some(score), ..
    }) = sampled
    {
        words[1] = score.raw_logprob.to_bits();
        words[2] = score.logprob.to_bits();
        words[4..4 + TOP].fill(INVALID_TOKEN);
        for (i, (id, logprob)) in score.top.iter().enumerate() {
            words[4 + i] = *id;
            words[4 + TOP + i] = logprob.to_bits();
        }
    }
}

fn at(slot: usize, position: usize) -> usize {
    (slot * RING + position % RING) * RESULT_WORDS
}
