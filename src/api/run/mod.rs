//! Runs a plan: admits it to the engine and yields the text of its candidates, piece by piece or whole
//! (specification 2.3, 8 and 12). The routes turn the result into JSON.

mod candidate_text;
#[cfg(test)]
mod candidate_text_tests;
mod constraint;
mod context;
mod conversation;
mod deadline;
mod decoded_image;
mod images;
mod logprobs;
mod merge;
mod message_text;
mod next_turn;
mod prompt;
mod prompt_listing;
mod ranking;
mod remote_images;
mod stop_ids;
mod token_rules;
mod tokenized;

use std::cell::Cell;
use std::rc::Rc;

use super::endpoint::Endpoint;
use super::expected_wait::RequestTimer;
use super::fields::{Constraint, Length, Prediction, Prompt, check_ids};
use super::host::Host;
use super::models::ReadyModel;
use super::plan::{Plan, Suffix};
use super::progress::{Delivered, Position};
use super::switches::{Switches, TextOffsetBase};
use crate::engine::generation::{
    DraftRules, Generation, SamplingDefaults, SamplingParams, ScoreRequest,
};
use crate::engine::{EngineHandle, Events};
use crate::grammar::Grammar;
use crate::text::{Pause, Special, Tokenizer};
use crate::{Error, Result};
use candidate_text::{CandidateText, TextOptions};
use constraint::CallReader;
use context::DefaultLength;
pub(super) use deadline::Deadline;
use images::Supply;
use logprobs::Listing;
use merge::Pieces;
use message_text::MessageOptions;
use next_turn::NextTurn;
use prompt::{FittedPrompt, Wanted};
use prompt_listing::PromptLister;
use stop_ids::StopIds;

pub(super) use candidate_text::{Finish, Piece, RawOutput, StopReason};
pub(super) use logprobs::{Entry, TopEntry};
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
    /// A message may hold several calls.
    pub parallel_calls: bool,
    /// The seed of each prompt, as requested or drawn at random.
    pub seeds: Vec<i64>,
    /// Pieces of all candidates, which are numbered prompt by prompt.
    pieces: Pieces,
    /// The delivered part of each candidate.
    delivered: Vec<Delivered>,
    /// The number of tokens of each prompt.
    prompt_tokens: Vec<usize>,
    /// For each prompt, the tokens found in the prefix cache.
    cached_tokens: Vec<Rc<Cell<usize>>>,
    /// Choices returned per prompt.
    n: usize,
    /// Candidates generated per prompt.
    best_of: usize,
    /// Tokens of the prediction of each candidate.
    prediction_tokens: Option<usize>,
    /// When the request was admitted and when its first token came, in milliseconds since 1970.
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

/// The time that a request took so far, and its tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerfMetrics {
    pub counts: TokenCounts,
    pub first_token_ms: u64,
    pub total_ms: u64,
}

/// Tokens of a request or of a part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCounts {
    pub prompt: usize,
    /// Prompt tokens that were found in the prefix cache.
    pub cached: usize,
    pub completion: usize,
    /// The number of tokens of the completion that are reasoning.
    pub reasoning: usize,
    /// The tokens of the predictions; `None` if the request has no prediction.
    pub predicted: Option<PredictedTokens>,
}

/// Tokens of the predictions of all candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PredictedTokens {
    /// The tokens that the completions have where they are expected.
    pub accepted: usize,
    /// The other tokens of the predictions.
    pub rejected: usize,
}

impl Run {
    /// Waits for the model if the switches say so, makes the checks that need it, and submits the plan
    /// to the engine. With the position of an `earlier` run, the pieces that it delivered are left out: the
    /// request is run again with the same seeds, which choose the same tokens.
    pub(super) async fn start(
        endpoint: &Endpoint,
        mut plan: Plan,
        earlier: Option<&Position>,
    ) -> Result<Run> {
        let switches = &endpoint.switches;
        let started_ms = endpoint.host.now_ms();
        let mut deadline = Deadline::new(&*endpoint.host, switches.request_timeout_ms);
        let ready = endpoint
            .models
            .ready(&plan.model, switches, || endpoint.host.now_ms());
        let (model_id, model) = deadline.limit(ready).await?;

        let candidates = plan.prompts.len() * plan.best_of;
        let supply = Supply::read(&plan.images, &model, candidates, endpoint);
        let mut supply = deadline.limit(supply).await?;
        let next_turn = next_turn(&plan, &model, switches).filter(|_| earlier.is_none());
        let pause = || endpoint.host.sleep_ms(0);
        let prompts = fit_prompts(&mut plan, &model, switches, &mut supply, &pause);
        let mut prompts = deadline.limit(prompts).await?;
        let next_turn =
            next_turn.and_then(|turn| Some(turn.with_images(prompts.first()?.images.clone())));
        plan.sampling.check_vocabulary(model.vocab_size())?;
        plan.restrictions.check_vocabulary(model.vocab_size())?;
        check_ids(
            "stop_token_ids",
            &plan.length.stop_token_ids,
            model.vocab_size(),
        )?;
        let prompt_tail = prompts.first().map_or("", |prompt| &prompt.tail);
        let turn = plan.message.map(|message| (message, prompt_tail));
        let constraint = constraint::compile(&plan.constraint, turn, &model, switches)?;
        if let Some(most) = constraint.as_ref().and_then(Grammar::max_tokens) {
            for prompt in &mut prompts {
                prompt.max_tokens = prompt.max_tokens.min(most);
            }
        }
        let prompts: Vec<Rc<FittedPrompt>> = prompts.into_iter().map(Rc::new).collect();
        let prediction = deadline.limit(prediction(&plan, &model, &pause)).await?;
        let options = Rc::new(text_options(&plan, &model, switches, prediction.clone()));
        let stop_ids = options.stop_ids.ids();
        let mut generations =
            generations(&plan, &model, switches, &prompts, constraint, &stop_ids)?;
        for generation in &mut generations {
            generation.drafts = DraftRules {
                prediction: prediction.clone(),
                min_tokens: plan.drafting.min_tokens,
                max_tokens: plan.drafting.max_tokens.unwrap_or(usize::MAX),
            };
        }
        let delivered = match earlier {
            Some(earlier) => earlier.candidates.clone(),
            None => vec![Delivered::default(); prompts.len() * plan.best_of],
        };
        let is_of_this = earlier.is_none_or(|earlier| earlier.seeds.len() == prompts.len());
        if !is_of_this || delivered.len() != prompts.len() * plan.best_of {
            return Err(Error::Internal("the position is of another request".into()));
        }
        if let Some(earlier) = earlier {
            for (generation, seed) in generations.iter_mut().zip(&earlier.seeds) {
                generation.sampling.seed = *seed;
            }
        }
        let seeds = generations.iter().map(|it| it.sampling.seed).collect();
        let sampling = generations.first().map(|it| it.sampling.clone());
        let events = model.engine.submit_at(
            supply.take_reservation(),
            generations,
            deadline.time_limit(),
        )?;
        let timer = RequestTimer::start(&endpoint.pace, &endpoint.host);

        let first = events.iter().filter_map(|candidates| candidates.first());
        let cached_tokens = first.map(Events::cached_prompt_tokens).collect();
        let candidates = prompts.iter().zip(events).flat_map(|(prompt, candidates)| {
            let candidate = |events| CandidateText::new(events, prompt.clone(), options.clone());
            candidates.into_iter().map(candidate)
        });
        // A candidate that was delivered to its end is dropped, which cancels it.
        let candidates = candidates.enumerate().filter_map(|(index, candidate)| {
            let delivered = delivered[index];
            (!delivered.is_finished).then(|| (index, candidate.after(delivered)))
        });
        Ok(Run {
            model_id,
            system_fingerprint: model.fingerprint.text(),
            dropped_tokens: prompts.iter().map(|prompt| prompt.dropped_tokens).sum(),
            sampling: sampling.unwrap_or_default(),
            parallel_calls: plan
                .message
                .is_none_or(|message| message.allows_parallel_calls(&model)),
            seeds,
            pieces: Pieces::new(candidates.collect()),
            delivered,
            prompt_tokens: prompts.iter().map(|prompt| prompt.ids.len()).collect(),
            cached_tokens,
            n: plan.n,
            best_of: plan.best_of,
            prediction_tokens: prediction.map(|it| it.len()),
            started_ms,
            first_token_ms: None,
            host: endpoint.host.clone(),
            deadline,
            _timer: timer,
            engine: model.engine.clone(),
            next_turn,
            tokenizer: model.tokenizer.clone(),
        })
    }

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

/// The next turn to prepare, for a conversation that one message continues.
fn next_turn(plan: &Plan, model: &ReadyModel, switches: &Switches) -> Option<NextTurn> {
    match &plan.prompts[..] {
        [Prompt::Conversation(chat)] if switches.prepare_next_turn && plan.best_of == 1 => {
            Some(NextTurn::new((**chat).clone(), model.tokenizer.clone()))
        }
        _ => None,
    }
}

/// Takes the prompts out of the plan and fits them; the first that does not fit fails the request.
async fn fit_prompts(
    plan: &mut Plan,
    model: &ReadyModel,
    switches: &Switches,
    supply: &mut Supply,
    pause: Pause<'_>,
) -> Result<Vec<FittedPrompt>> {
    let has_logprobs = plan.logprobs.top.is_some();
    let wanted = Wanted {
        text: plan.echo || (has_logprobs && switches.text_offset_base == TextOffsetBase::Prompt),
        places: plan.echo && has_logprobs,
    };
    let default_length = match plan.message {
        Some(_) => DefaultLength::of_message(
            switches.default_max_message_tokens,
            recommended(plan, model, switches).max_tokens,
        ),
        None => DefaultLength::of_text(switches.default_max_tokens),
    };
    let mut fitted = Vec::with_capacity(plan.prompts.len());
    for prompt in std::mem::take(&mut plan.prompts) {
        let prompt = FittedPrompt::new(prompt, plan, model, default_length, wanted, supply, pause);
        fitted.push(prompt.await?);
    }
    supply.finish()?;
    Ok(fitted)
}

/// The token ids of the plan's prediction.
async fn prediction(
    plan: &Plan,
    model: &ReadyModel,
    pause: Pause<'_>,
) -> Result<Option<Rc<[u32]>>> {
    let ids = match &plan.drafting.prediction {
        None => return Ok(None),
        Some(Prediction::Text(text)) => {
            let ids = model.tokenizer.encode_in_slices(text, Special::None, pause);
            ids.await?
        }
        Some(Prediction::Ids(ids)) => {
            check_ids("speculation", ids, model.vocab_size())?;
            ids.clone()
        }
    };
    Ok(Some(ids.into()))
}

/// The options that all candidates of the plan have in common.
fn text_options(
    plan: &Plan,
    model: &ReadyModel,
    switches: &Switches,
    prediction: Option<Rc<[u32]>>,
) -> TextOptions {
    let is_constrained = plan.constraint.covers_everything();
    let is_message = plan.message.is_some();
    // The reader of a message needs the special tokens around calls, and removes them.
    let is_read = is_message && matches!(plan.constraint, Constraint::Tools(_));
    // No special token's text enters any other constrained completion.
    let length = Length {
        skip_special_tokens: plan.length.skip_special_tokens || (is_constrained && !is_read),
        ..plan.length.clone()
    };
    TextOptions {
        tokenizer: model.tokenizer.clone(),
        stop_ids: StopIds::new(&model.tokenizer, &length, is_constrained, is_message),
        length,
        echo: plan.echo,
        suffix: match &plan.suffix {
            Suffix::Append(suffix) => suffix.clone(),
            Suffix::None | Suffix::FillInMiddle(_) => String::new(),
        },
        listing: plan
            .logprobs
            .top
            .map(|top| Listing::new(&model.tokenizer, plan.logprobs.tokens_as_ids, top)),
        wants_ids: plan.logprobs.tokens_as_ids || plan.logprobs.token_ids,
        wants_raw: plan.raw_output,
        prompt_listing: (plan.logprobs.token_ids || plan.logprobs.prompt.is_some()).then(|| {
            PromptLister {
                tokenizer: model.tokenizer.clone(),
                wants_ids: plan.logprobs.token_ids,
                top: plan.logprobs.prompt,
            }
        }),
        offsets_count_prompt: switches.text_offset_base == TextOffsetBase::Prompt,
        calls: CallReader::new(&plan.constraint, model.output_form),
        message: plan.message.map(|message| MessageOptions {
            form: model.chat_form(),
            tools: match &plan.constraint {
                Constraint::Tools(calls) => calls.tools.clone(),
                Constraint::None | Constraint::Grammar { .. } => Vec::new(),
            },
            parallel_calls: message.allows_parallel_calls(model),
            is_forced: matches!(&plan.constraint, Constraint::Tools(calls) if calls.is_forced),
            is_content: matches!(plan.constraint, Constraint::Grammar { .. }),
        }),
        prediction,
        repeats_delivered: plan.repeats_delivered,
    }
}

/// The sampling defaults that the model recommends for such a plan.
fn recommended(plan: &Plan, model: &ReadyModel, switches: &Switches) -> SamplingDefaults {
    let is_message = plan.message.is_some();
    match switches.use_model_generation_defaults.hold(is_message) {
        true => model.sampling_defaults,
        false => SamplingDefaults::default(),
    }
}

/// The generations for the engine, one per prompt.
fn generations(
    plan: &Plan,
    model: &ReadyModel,
    switches: &Switches,
    prompts: &[Rc<FittedPrompt>],
    constraint: Option<Grammar>,
    stop_ids: &[u32],
) -> Result<Vec<Generation>> {
    let model_defaults = recommended(plan, model, switches);
    let sampling = plan.sampling.params(&model_defaults, &model.tokenizer)?;
    let is_ranked = plan.best_of > plan.n;
    let scores = (plan.logprobs.top.is_some() || is_ranked).then(|| ScoreRequest {
        top: plan.logprobs.top.unwrap_or(0),
        mode: plan.logprobs.mode,
    });
    let prompt_tail = prompts.first().map_or("", |prompt| &prompt.tail);
    let rules = token_rules::of(plan, model, stop_ids, prompt_tail)?;
    let prompt_scores = plan
        .logprobs
        .top
        .filter(|_| plan.echo)
        .max(plan.logprobs.prompt);
    let generation = |prompt: &Rc<FittedPrompt>| {
        Ok(Generation {
            prompt: prompt.for_engine(),
            max_tokens: prompt.max_tokens,
            candidates: u32::try_from(plan.best_of).unwrap_or(u32::MAX),
            sampling: SamplingParams {
                // Without a seed, equal prompts are drawn independently.
                seed: plan.sampling.seed()?,
                ..sampling.clone()
            },
            constraint: constraint.clone(),
            scores,
            rules: rules.clone(),
            prompt_scores,
            stop_ids: stop_ids.to_vec(),
            drafts: DraftRules::default(),
        })
    };
    prompts.iter().map(generation).collect()
}
