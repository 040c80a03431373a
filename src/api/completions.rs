//! `POST /completions`: from a validated request to the answer, whole or in chunks (specification
//! 2.3, 8, 10 and 12). Knows the order of things; each thing is another file's.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::stream;

use super::Handler;
use super::choice::{Choice, Form, Piece};
use super::constraint::{self, CallReader};
use super::deadline::Deadline;
use super::error::Failure;
use super::http::Response;
use super::logprobs::Listing;
use super::merge::Pieces;
use super::models::ReadyModel;
use super::prompt::{FittedPrompt, Wanted};
use super::ranking;
use super::request::{CompletionRequest, Output, Prompt, Suffix};
use super::response::{self, Head, Members, Usage};
use super::sse::{self, KeepAlive};
use super::stop_ids::StopIds;
use super::switches::{Switches, TextOffsetBase};
use crate::Result;
use crate::engine::Events;
use crate::engine::generation::{Generation, SamplingDefaults, ScoreRequest};
use crate::grammar::Grammar;

/// Answers the request in `body`; every check is made before the response's head.
pub(super) async fn complete(handler: &Handler, body: &[u8]) -> Result<Response> {
    let switches = &handler.switches;
    let mut request = CompletionRequest::parse(body, switches, |name| handler.warn_unknown(name))?;
    let mut deadline = Deadline::new(&*handler.host, switches.request_timeout_ms);
    let ready = handler.models.ready(&request.model, switches);
    let (model_id, model) = deadline.limit(ready).await?;

    let prompts = std::mem::take(&mut request.prompts);
    let mut prompts = fit_prompts(prompts, &request, &model, switches)?;
    request.sampling.check_vocabulary(model.vocab_size())?;
    let constraint = constraint::compile(&request.constraint, &model)?;
    if let Some(most) = constraint.as_ref().and_then(Grammar::max_tokens) {
        for prompt in &mut prompts {
            prompt.max_tokens = prompt.max_tokens.min(most);
        }
    }
    let prompts: Vec<Rc<FittedPrompt>> = prompts.into_iter().map(Rc::new).collect();
    let form = Rc::new(form(&request, &model, switches));
    let generations = generations(&request, &model, switches, &prompts, constraint, &form)?;
    let events = model.engine.submit(generations)?;
    let first = events.iter().filter_map(|candidates| candidates.first());
    let cached_tokens = first.map(Events::cached_prompt_tokens).collect();

    let choices = prompts.iter().zip(events).flat_map(|(prompt, candidates)| {
        let choice = |events| Choice::new(events, prompt.clone(), form.clone());
        candidates.into_iter().map(choice)
    });
    let answer = Answer {
        head: Head {
            schema_url: switches.schema_url.clone(),
            id: super::random_id::completion_id(),
            created_s: handler.host.now_ms() / 1000,
            model: model_id,
            system_fingerprint: model.fingerprint.text(),
        },
        pieces: Pieces::new(choices.collect()),
        completion_tokens: vec![0; prompts.len() * request.output.best_of],
        prompt_tokens: prompts.iter().map(|prompt| prompt.ids.len()).collect(),
        cached_tokens,
        n: request.output.n,
        best_of: request.output.best_of,
        members: Members {
            logprobs: request.output.logprobs.is_some(),
            token_ids: request.output.tokens_as_ids,
        },
        deadline,
    };
    let mut response = if request.output.stream {
        let chunks = chunks(
            answer,
            request.output.include_usage,
            request.output.continuous_usage,
        );
        let chunks = KeepAlive::new(
            Box::pin(chunks),
            Rc::clone(&handler.host),
            switches.keep_alive_ms,
        );
        Response::events(Box::pin(chunks))
    } else {
        Response::json(200, answer.whole().await?)
    };
    let dropped_tokens: usize = prompts.iter().map(|prompt| prompt.dropped_tokens).sum();
    if dropped_tokens > 0 {
        response.push_header("x-prompt-truncated", &dropped_tokens.to_string());
    }
    Ok(response)
}

/// All prompts as the model gets them; the first that does not fit fails the request.
fn fit_prompts(
    prompts: Vec<Prompt>,
    request: &CompletionRequest,
    model: &ReadyModel,
    switches: &Switches,
) -> Result<Vec<FittedPrompt>> {
    let echo = request.output.echo;
    let has_logprobs = request.output.logprobs.is_some();
    let wanted = Wanted {
        text: echo || (has_logprobs && switches.text_offset_base == TextOffsetBase::Prompt),
        places: echo && has_logprobs,
    };
    let default_max_tokens = switches.default_max_tokens;
    let fitted = prompts
        .into_iter()
        .map(|prompt| FittedPrompt::new(prompt, request, model, default_max_tokens, wanted));
    fitted.collect()
}

/// What all choices of the request have in common.
fn form(request: &CompletionRequest, model: &ReadyModel, switches: &Switches) -> Form {
    Form {
        tokenizer: model.tokenizer.clone(),
        length: request.length.clone(),
        stop_ids: StopIds::new(&model.tokenizer, &request.length),
        echo: request.output.echo,
        suffix: match &request.suffix {
            Suffix::Append(suffix) => suffix.clone(),
            Suffix::None | Suffix::FillInMiddle(_) => String::new(),
        },
        listing: Listing::new(&model.tokenizer, &request.output),
        wants_ids: request.output.tokens_as_ids,
        offsets_count_prompt: switches.text_offset_base == TextOffsetBase::Prompt,
        calls: CallReader::new(&request.constraint, model.call_format),
    }
}

/// What the engine is to generate, one for each prompt.
fn generations(
    request: &CompletionRequest,
    model: &ReadyModel,
    switches: &Switches,
    prompts: &[Rc<FittedPrompt>],
    constraint: Option<Grammar>,
    form: &Form,
) -> Result<Vec<Generation>> {
    let Output {
        n,
        best_of,
        logprobs,
        logprobs_mode,
        echo,
        ..
    } = request.output;
    let model_defaults = match switches.use_model_generation_defaults {
        true => model.sampling_defaults,
        false => SamplingDefaults::default(),
    };
    let tokenizer = &model.tokenizer;
    let sampling = request.sampling.params(&model_defaults, tokenizer)?;
    let is_ranked = best_of > n;
    let scores = (logprobs.is_some() || is_ranked).then(|| ScoreRequest {
        top: logprobs.unwrap_or(0),
        mode: logprobs_mode,
    });
    let generation = |prompt: &Rc<FittedPrompt>| Generation {
        prompt: prompt.ids.clone().into(),
        max_tokens: prompt.max_tokens,
        candidates: u32::try_from(best_of).unwrap_or(u32::MAX),
        sampling: sampling.clone(),
        constraint: constraint.clone(),
        scores,
        prompt_scores: logprobs.filter(|_| echo),
        stop_ids: form.stop_ids.ids(),
    };
    Ok(prompts.iter().map(generation).collect())
}

/// An admitted request on its way to an answer; dropping it cancels the generation.
struct Answer {
    head: Head,
    /// Of all candidates, the first prompt's first.
    pieces: Pieces,
    /// Of each candidate so far.
    completion_tokens: Vec<usize>,
    /// Of each prompt.
    prompt_tokens: Vec<usize>,
    /// Those of each prompt that earlier requests had left in the cache.
    cached_tokens: Vec<Rc<Cell<usize>>>,
    /// Choices returned per prompt.
    n: usize,
    /// Candidates generated per prompt.
    best_of: usize,
    members: Members,
    deadline: Deadline,
}

impl Answer {
    async fn next_piece(&mut self) -> Result<Option<(usize, Piece)>> {
        let next = self.deadline.limit(self.pieces.next()).await?;
        if let Some((candidate, piece)) = &next {
            self.completion_tokens[*candidate] = piece.completion_tokens;
        }
        Ok(next)
    }

    /// Of the whole request: each prompt once, every candidate.
    fn usage(&self) -> Usage {
        Usage::new(
            self.prompt_tokens.iter().sum(),
            self.cached_tokens.iter().map(|tokens| tokens.get()).sum(),
            self.completion_tokens.iter().sum(),
        )
    }

    /// Of one candidate so far.
    fn candidate_usage(&self, candidate: usize) -> Usage {
        let prompt = candidate / self.best_of;
        Usage::new(
            self.prompt_tokens[prompt],
            self.cached_tokens[prompt].get(),
            self.completion_tokens[candidate],
        )
    }

    /// The non-streaming body.
    async fn whole(mut self) -> Result<Vec<u8>> {
        let mut wholes = vec![Piece::default(); self.completion_tokens.len()];
        while let Some((candidate, piece)) = self.next_piece().await? {
            wholes[candidate].append(piece);
        }
        let returned = wholes.chunks(self.best_of).flat_map(|wholes| {
            let means = wholes.iter().map(mean_logprob).collect::<Vec<_>>();
            let ranked = match self.best_of > self.n {
                true => ranking::best(&means, self.n),
                false => (0..self.n).collect(),
            };
            ranked.into_iter().map(|candidate| &wholes[candidate])
        });
        let choices: Vec<_> = returned
            .enumerate()
            .map(|(index, whole)| response::Choice::new(index, whole, self.members))
            .collect();
        let usage = Some(Some(self.usage()));
        Ok(response::completion(&self.head, &choices, usage))
    }
}

fn mean_logprob(whole: &Piece) -> Option<f64> {
    whole.finish.as_ref().and_then(|finish| finish.mean_logprob)
}

/// The events of a streaming answer (specification 10.5), the last one being `[DONE]`. There are as many
/// candidates as choices: ranking would need them whole.
fn chunks(
    answer: Answer,
    include_usage: bool,
    continuous_usage: bool,
) -> impl futures_core::Stream<Item = Vec<u8>> {
    enum Phase {
        Pieces(Box<Answer>),
        Done,
        Closed,
    }
    let pieces = Phase::Pieces(Box::new(answer));
    stream::unfold(pieces, move |phase| async move {
        let mut answer = match phase {
            Phase::Pieces(answer) => answer,
            Phase::Done => return Some((sse::DONE.to_vec(), Phase::Closed)),
            Phase::Closed => return None,
        };
        match answer.next_piece().await {
            Ok(Some((index, piece))) => {
                let choice = response::Choice::new(index, &piece, answer.members);
                let running = continuous_usage.then(|| answer.candidate_usage(index));
                let usage = include_usage.then_some(running);
                let chunk = response::completion(&answer.head, &[choice], usage);
                Some((sse::event(&chunk), Phase::Pieces(answer)))
            }
            Ok(None) if include_usage => {
                let usage = Some(Some(answer.usage()));
                let chunk = response::completion(&answer.head, &[], usage);
                Some((sse::event(&chunk), Phase::Done))
            }
            Ok(None) => Some((sse::DONE.to_vec(), Phase::Closed)),
            // Dropping the answer ends the generation.
            Err(error) => {
                let event = sse::event(&Failure::from(&error).body());
                Some((event, Phase::Done))
            }
        }
    })
}
