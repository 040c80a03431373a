//! Runs a plan: admits it to the engine (`start.rs`) and yields the text of its candidates, piece by piece or whole
//! (specification 2.3, 8 and 12). The routes turn the result into JSON.

mod candidate_text;
#[cfg(test)]
mod candidate_text_tests;
mod constraint;
mod context;
mod conversation;
mod counts;
mod deadline;
mod decoded_image;
mod images;
mod logprobs;
mod merge;
mod message_text;
mod next_turn;
mod piece;
mod prompt;
mod prompt_listing;
mod ranking;
mod remote_images;
mod start;
mod stop_ids;
mod text_options;
mod token_list;
mod token_rules;
mod tokenized;

use std::cell::Cell;
use std::rc::Rc;

use super::expected_wait::RequestTimer;
use super::host::Host;
use super::progress::Delivered;
use crate::Result;
use crate::engine::EngineHandle;
use crate::engine::generation::SamplingParams;
use crate::text::Tokenizer;
use merge::Pieces;
use next_turn::NextTurn;

pub(super) use counts::{PerfMetrics, PredictedTokens, TokenCounts};
pub(super) use deadline::Deadline;
pub(super) use logprobs::{Entry, TopEntry};
pub(super) use piece::{Finish, Piece, RawOutput, StopReason};
pub(super) use prompt_listing::{PromptListing, RankedToken};
pub(super) use tokenized::{check_words, ids_of, text_of};

/// An admitted request; dropping it cancels the generation.
pub(super) struct Run {
    /// Canonical id of the model.
    pub model_id: String,
    pub system_fingerprint: String,
    /// Tokens cut from the prompts.
    pub dropped_tokens: usize,
    /// The parameters in use, of the first prompt.
    pub sampling: SamplingParams,
    /// Whether a message may hold several calls.
    pub parallel_calls: bool,
    /// The seed of each prompt, as requested or drawn at random.
    pub seeds: Vec<i64>,
    /// Pieces of all candidates, which are numbered prompt by prompt.
    pieces: Pieces,
    /// The delivered part of each candidate.
    delivered: Vec<Delivered>,
    /// The number of tokens of each prompt.
    prompt_tokens: Vec<usize>,
    /// The number of tokens of each prompt that were found in the prefix cache.
    cached_tokens: Vec<Rc<Cell<usize>>>,
    /// Choices returned per prompt.
    n: usize,
    /// Candidates generated per prompt.
    best_of: usize,
    /// Tokens of the prediction of each candidate.
    prediction_tokens: Option<usize>,
    /// The times when the request was admitted and when its first token came, in milliseconds since 1970.
    started_ms: u64,
    first_token_ms: Option<u64>,
    host: Rc<dyn Host>,
    deadline: Deadline,
    /// Measures how long the request takes.
    _timer: RequestTimer,
    /// The engine, and the conversation that is prepared for its next turn.
    engine: EngineHandle,
    next_turn: Option<NextTurn>,
    /// Names the tokens of log-probabilities.
    pub tokenizer: Rc<Tokenizer>,
}

impl Run {
    /// The next piece of any candidate, with the candidate's index; `None` after the last one. After an
    /// error the run must be dropped.
    pub(super) async fn next_piece(&mut self) -> Result<Option<(usize, Piece)>> {
        let next = self.deadline.limit(self.pieces.next()).await?;
        if let Some((candidate, piece)) = &next {
            self.delivered[*candidate] = piece.delivered();
            if self.first_token_ms.is_none() {
                self.first_token_ms = Some(self.host.now_ms());
            }
            if let Some(next_turn) = &mut self.next_turn {
                next_turn.take(piece);
            }
            if piece.finish.is_some()
                && let Some(next_turn) = self.next_turn.take()
            {
                self.engine.prepare(|| next_turn.prompt());
            }
        }
        Ok(next)
    }

    /// The returned choices, whole: the `n` best candidates of each prompt.
    pub(super) async fn choices(&mut self) -> Result<Vec<Piece>> {
        let mut candidates = vec![Piece::default(); self.delivered.len()];
        while let Some((candidate, piece)) = self.next_piece().await? {
            candidates[candidate].append(piece);
        }
        let mut choices = Vec::with_capacity(self.prompt_tokens.len() * self.n);
        for of_prompt in candidates.chunks_mut(self.best_of) {
            let means = of_prompt.iter().map(mean_logprob).collect::<Vec<_>>();
            let ranked = match self.best_of > self.n {
                true => ranking::best(&means, self.n),
                false => (0..self.n).collect(),
            };
            choices.extend(
                ranked
                    .into_iter()
                    .map(|i| std::mem::take(&mut of_prompt[i])),
            );
        }
        Ok(choices)
    }

    /// Prepares no next turn: no request continues the conversation as it is.
    pub(super) fn skip_next_turn(&mut self) {
        self.next_turn = None;
    }

    /// The delivered part of each candidate, earlier runs included.
    pub(super) fn delivered(&self) -> &[Delivered] {
        &self.delivered
    }

    /// The time that the request took so far.
    pub(super) fn perf_metrics(&self) -> PerfMetrics {
        let since_start = |at_ms: u64| at_ms.saturating_sub(self.started_ms);
        let now_ms = self.host.now_ms();
        PerfMetrics {
            counts: self.counts(),
            first_token_ms: since_start(self.first_token_ms.unwrap_or(now_ms)),
            total_ms: since_start(now_ms),
        }
    }

    /// Whether every candidate was delivered to its end.
    pub(super) fn is_over(&self) -> bool {
        self.delivered.iter().all(|it| it.is_finished)
    }

    /// The token counts of the whole request so far: each prompt once, and every candidate.
    pub(super) fn counts(&self) -> TokenCounts {
        TokenCounts {
            prompt: self.prompt_tokens.iter().sum(),
            cached: self.cached_tokens.iter().map(|tokens| tokens.get()).sum(),
            completion: self.delivered.iter().map(|it| it.tokens).sum(),
            reasoning: self.delivered.iter().map(|it| it.reasoning_tokens).sum(),
            predicted: self.predicted(&self.delivered),
        }
    }

    /// The tokens of the predictions of these candidates, by whether they came.
    fn predicted(&self, candidates: &[Delivered]) -> Option<PredictedTokens> {
        let predicted = self.prediction_tokens? * candidates.len();
        let accepted: usize = candidates.iter().map(|it| it.predicted_tokens).sum();
        Some(PredictedTokens {
            accepted,
            // The numbers of an earlier run come from outside.
            rejected: predicted.saturating_sub(accepted),
        })
    }

    /// The token counts of one candidate so far.
    pub(super) fn candidate_counts(&self, candidate: usize) -> TokenCounts {
        let prompt = candidate / self.best_of;
        TokenCounts {
            prompt: self.prompt_tokens[prompt],
            cached: self.cached_tokens[prompt].get(),
            completion: self.delivered[candidate].tokens,
            reasoning: self.delivered[candidate].reasoning_tokens,
            predicted: self.predicted(&self.delivered[candidate..=candidate]),
        }
    }
}

fn mean_logprob(whole: &Piece) -> Option<f64> {
    whole.finish.as_ref().and_then(|finish| finish.mean_logprob)
}
