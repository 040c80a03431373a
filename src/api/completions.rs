//! `POST /completions`: from a validated request to the answer, whole or in chunks (API.md
//! sections 2.3, 10 and 12). Knows the order of things; each thing is another file's.

use std::rc::Rc;

use futures_util::stream;

use super::Handler;
use super::choice::{Choice, Piece, StopIds};
use super::context;
use super::deadline::Deadline;
use super::error::{Failure, fault};
use super::http::Response;
use super::models::ReadyModel;
use super::request::{CompletionRequest, Prompt, SamplingDefaults};
use super::response::{self, Head, Usage};
use super::sse::{self, KeepAlive};
use crate::engine::generation::Generation;
use crate::text::{Detokenizer, Tokenizer};
use crate::{RequestFault, Result};

/// Answers the request in `body`; every check is made before the response's head.
pub(super) async fn complete(handler: &Handler, body: &[u8]) -> Result<Response> {
    let switches = &handler.switches;
    let request = CompletionRequest::parse(body, switches, |name| handler.warn_unknown(name))?;
    let mut deadline = Deadline::new(&*handler.host, switches.request_timeout_ms);
    let ready = handler.models.ready(&request.model, switches);
    let (model_id, model) = deadline.limit(ready).await?;

    let mut prompt = tokenise(&request.prompts[0], &model)?;
    request
        .sampling
        .check_vocabulary(model.tokenizer.vocab_size())?;
    let fit = context::fit(
        prompt.len(),
        model.engine.context_tokens(),
        &request.length,
        switches.default_max_tokens,
    )?;
    let dropped: Vec<u32> = prompt.drain(..prompt.len() - fit.kept_tokens).collect();
    let echo = request
        .output
        .echo
        .then(|| echo_text(&request.prompts[0], &dropped, &prompt, &model.tokenizer));
    let stop_ids = StopIds::new(&model.tokenizer, &request.length);
    let model_defaults = match switches.use_model_generation_defaults {
        true => model.sampling_defaults,
        false => SamplingDefaults::default(),
    };
    let events = match fit.max_tokens {
        0 => None,
        max_tokens => Some(
            model
                .engine
                .submit(vec![Generation {
                    prompt: prompt.clone(),
                    max_tokens,
                    candidates: 1,
                    sampling: request.sampling.params(&model_defaults, &model.tokenizer)?,
                    constraint: None,
                    scores: None,
                    prompt_scores: None,
                    stop_ids: stop_ids.ids(),
                }])?
                .remove(0)
                .remove(0),
        ),
    };
    let answer = Answer {
        head: Head {
            schema_url: switches.schema_url.clone(),
            id: super::random_id::completion_id(),
            created_s: handler.host.now_ms() / 1000,
            model: model_id,
            system_fingerprint: model.fingerprint,
        },
        choice: Choice::new(events, &prompt, stop_ids, &request.length, fit.max_tokens),
        echo: echo.unwrap_or_default(),
        prompt_tokens: prompt.len(),
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
    if !dropped.is_empty() {
        response.push_header("x-prompt-truncated", &dropped.len().to_string());
    }
    Ok(response)
}

/// The ids of a prompt: text by the tokenizer's rules, ids as given but checked.
fn tokenise(prompt: &Prompt, model: &ReadyModel) -> Result<Vec<u32>> {
    let vocab_size = model.tokenizer.vocab_size().min(model.engine.vocab_size());
    match prompt {
        Prompt::Tokens(ids) => match ids.iter().find(|id| **id as usize >= vocab_size) {
            None => Ok(ids.clone()),
            Some(id) => Err(fault(
                RequestFault::OutOfRange,
                "prompt",
                format!("prompt: the token id {id} is not below the vocabulary size {vocab_size}"),
            )),
        },
        Prompt::Text(text) => {
            let ids = model.tokenizer.encode(text, true)?;
            if !ids.is_empty() {
                return Ok(ids);
            }
            let start = model.tokenizer.document_start_id();
            start.map(|id| vec![id]).ok_or_else(|| {
                fault(
                    RequestFault::InvalidValue,
                    "prompt",
                    "prompt is empty, and the model has no token that starts a document",
                )
            })
        }
    }
}

/// What `echo` puts before the completion: text verbatim, ids decoded with their special tokens.
fn echo_text(prompt: &Prompt, dropped: &[u32], kept: &[u32], tokenizer: &Rc<Tokenizer>) -> String {
    match prompt {
        Prompt::Text(text) if dropped.is_empty() => text.clone(),
        Prompt::Tokens(ids) if dropped.is_empty() => tokenizer.decode(ids, false),
        // The rest of a shortened prompt goes on in the middle of a text.
        Prompt::Text(_) | Prompt::Tokens(_) => {
            let mut detokenizer = Detokenizer::new(Rc::clone(tokenizer), dropped, false);
            let mut text: String = kept.iter().map(|id| detokenizer.push(*id)).collect();
            text.push_str(&detokenizer.finish());
            text
        }
    }
}

/// An admitted request on its way to an answer; dropping it cancels the generation.
struct Answer {
    head: Head,
    choice: Choice,
    /// Goes before the first text; empty afterwards.
    echo: String,
    prompt_tokens: usize,
    deadline: Deadline,
}

impl Answer {
    async fn next_piece(&mut self) -> Result<Piece> {
        let mut piece = self.deadline.limit(self.choice.next_piece()).await?;
        if !self.echo.is_empty() {
            piece.text.insert_str(0, &std::mem::take(&mut self.echo));
        }
        Ok(piece)
    }

    fn usage(&self) -> Usage {
        Usage::new(self.prompt_tokens, self.choice.completion_tokens)
    }

    /// The non-streaming body.
    async fn whole(mut self) -> Result<Vec<u8>> {
        let mut whole = Piece::default();
        while whole.finish.is_none() {
            let piece = self.next_piece().await?;
            whole.text.push_str(&piece.text);
            whole.finish = piece.finish;
        }
        let usage = Some(Some(self.usage()));
        Ok(self.body(&whole, usage))
    }

    fn body(&self, piece: &Piece, usage: response::UsageMember) -> Vec<u8> {
        let choice = response::Choice {
            index: 0,
            text: &piece.text,
            logprobs: (),
            finish_reason: piece.finish,
        };
        response::completion(&self.head, &[choice], usage)
    }
}

/// The events of a streaming answer (section 10.5), the last one being `[DONE]`.
fn chunks(
    answer: Answer,
    include_usage: bool,
    continuous_usage: bool,
) -> impl futures_core::Stream<Item = Vec<u8>> {
    enum Phase {
        Text(Box<Answer>),
        Usage(Head, Usage),
        Done,
        Closed,
    }
    stream::unfold(Phase::Text(Box::new(answer)), move |phase| async move {
        match phase {
            Phase::Text(mut answer) => match answer.next_piece().await {
                Ok(piece) => {
                    let running = continuous_usage.then(|| answer.usage());
                    let usage_member = include_usage.then_some(running);
                    let event = sse::event(&answer.body(&piece, usage_member));
                    let next = match (piece.finish, include_usage) {
                        (None, _) => Phase::Text(answer),
                        (Some(_), true) => Phase::Usage(answer.head.clone(), answer.usage()),
                        (Some(_), false) => Phase::Done,
                    };
                    Some((event, next))
                }
                // Dropping the answer ends the generation.
                Err(error) => {
                    let event = sse::event(&Failure::from(&error).body());
                    Some((event, Phase::Done))
                }
            },
            Phase::Usage(head, usage) => {
                let event = sse::event(&response::completion(&head, &[], Some(Some(usage))));
                Some((event, Phase::Done))
            }
            Phase::Done => Some((sse::DONE.to_vec(), Phase::Closed)),
            Phase::Closed => None,
        }
    })
}
