//! What the device says of a chosen token, in words of a ring.

use super::layout::{RING, TOP};
use crate::ops::argmax::INVALID_TOKEN;
use crate::sample::{Sampled, Sampler, ScoreRequest, TokenScore};
use crate::{Error, Result};

/// Chosen instead of a token when a mask leaves nothing.
pub const DEAD_END: u32 = u32::MAX - 1;

/// Id (or INVALID_TOKEN, or DEAD_END), raw log-probability, wanted log-probability, mirostat's limit
/// after it, the best ids, their log-probabilities.
pub(super) const RESULT_WORDS: usize = 4 + 2 * TOP;

/// Reads what a slot chose at a position (tokens before it), of the last [`RING`] ones, and
/// mirostat's limit after it. `score` is what its row asked for.
///
/// # Errors
/// [`Error::InvalidLogits`] for NaN, +inf or nothing finite; [`Error::GrammarDeadEnd`] if the mask
/// left nothing. What is read of later positions then means nothing.
pub fn parse(
    results: &[u32],
    slot: usize,
    position: usize,
    score: Option<ScoreRequest>,
) -> Result<(Sampled, f32)> {
    let words = &results[at(slot, position)..][..RESULT_WORDS];
    let float = |word: usize| f32::from_bits(words[word]);
    let id = match words[0] {
        INVALID_TOKEN => return Err(Error::InvalidLogits { position }),
        DEAD_END => return Err(Error::GrammarDeadEnd { position }),
        id => id,
    };
    let score = score.map(|score| TokenScore {
        id,
        logprob: float(2),
        raw_logprob: float(1),
        // A vocabulary may have fewer.
        top: (0..score.top.min(TOP))
            .map(|i| (words[4 + i], float(4 + TOP + i)))
            .filter(|(id, _)| *id != INVALID_TOKEN)
            .collect(),
    });
    Ok((Sampled { id, score }, float(3)))
}

/// Writes what `sampler` chose: the twin of what the kernel writes.
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
