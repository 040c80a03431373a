//! The way of a plan to the engine: the model, the images, the prompts that fit, the constraint, and the generations that are
//! submitted. What comes out of the engine is read in `mod.rs`.

use std::rc::Rc;

use super::Run;
use super::candidate_text::CandidateText;
use super::constraint;
use super::context::DefaultLength;
use super::deadline::Deadline;
use super::images::Supply;
use super::merge::Pieces;
use super::next_turn::NextTurn;
use super::prompt::{FittedPrompt, Wanted};
use super::text_options::TextOptions;
use super::token_rules;
use crate::api::endpoint::Endpoint;
use crate::api::expected_wait::RequestTimer;
use crate::api::fields::{Prediction, Prompt, check_ids};
use crate::api::models::ReadyModel;
use crate::api::plan::Plan;
use crate::api::progress::{Delivered, Position};
use crate::api::switches::{Switches, TextOffsetBase};
use crate::engine::Events;
use crate::engine::generation::{
    DraftRules, Generation, SamplingDefaults, SamplingParams, ScoreRequest,
};
use crate::grammar::Grammar;
use crate::text::{Pause, Special};
use crate::{Error, Result};

impl Run {
    /// Waits for the model if the switches say so, makes the checks that need it, and submits the plan
    /// to the engine. With the position of an `earlier` run, the pieces that it delivered are left out: the
    /// request is run again with the same seeds, which choose the same tokens.
    pub(in crate::api) async fn start(
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
        check_vocabulary(&plan, &model)?;
        let constraint = constrain(&plan, &model, switches, &mut prompts)?;
        let prompts: Vec<Rc<FittedPrompt>> = prompts.into_iter().map(Rc::new).collect();
        let prediction = deadline.limit(prediction(&plan, &model, &pause)).await?;
        let options = TextOptions::new(&plan, &model, switches, prediction.clone());
        let options = Rc::new(options);
        let mut generations = generations(&plan, &model, switches, &prompts, constraint, &options)?;
        let delivered = match earlier {
            Some(earlier) => continued(earlier, &mut generations)?,
            None => vec![Delivered::default(); prompts.len() * plan.best_of],
        };
        let seeds = generations.iter().map(|it| it.sampling.seed).collect();
        let sampling = generations.first().map(|it| it.sampling.clone());
        let (reservation, limit) = (supply.take_reservation(), deadline.time_limit());
        let events = model.engine.submit_at(reservation, generations, limit)?;
        let timer = RequestTimer::start(&endpoint.pace, &endpoint.host);

        let message = plan.message;
        let first = events.iter().filter_map(|candidates| candidates.first());
        Ok(Run {
            model_id,
            system_fingerprint: model.fingerprint.text(),
            dropped_tokens: prompts.iter().map(|prompt| prompt.dropped_tokens).sum(),
            sampling: sampling.unwrap_or_default(),
            parallel_calls: message.is_none_or(|it| it.allows_parallel_calls(&model)),
            seeds,
            cached_tokens: first.map(Events::cached_prompt_tokens).collect(),
            prompt_tokens: prompts.iter().map(|prompt| prompt.ids.len()).collect(),
            pieces: Pieces::new(candidates_of(&prompts, events, &options, &delivered)),
            delivered,
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
}

/// Refuses token ids that the model does not have.
fn check_vocabulary(plan: &Plan, model: &ReadyModel) -> Result<()> {
    let vocab = model.vocab_size();
    plan.sampling.check_vocabulary(vocab)?;
    plan.restrictions.check_vocabulary(vocab)?;
    check_ids("stop_token_ids", &plan.length.stop_token_ids, vocab)
}

/// The compiled constraint. One that ends by itself also limits the tokens of each prompt.
fn constrain(
    plan: &Plan,
    model: &ReadyModel,
    switches: &Switches,
    prompts: &mut [FittedPrompt],
) -> Result<Option<Grammar>> {
    let prompt_tail = prompts.first().map_or("", |prompt| &prompt.tail);
    let turn = plan.message.map(|message| (message, prompt_tail));
    let constraint = constraint::compile(&plan.constraint, turn, model, switches)?;
    if let Some(most) = constraint.as_ref().and_then(Grammar::max_tokens) {
        for prompt in prompts {
            prompt.max_tokens = prompt.max_tokens.min(most);
        }
    }
    Ok(constraint)
}

/// The part of each candidate that an earlier run delivered. The generations get that run's seeds.
///
/// # Errors
/// [`Error::Internal`] for the position of a request with other candidates.
fn continued(earlier: &Position, generations: &mut [Generation]) -> Result<Vec<Delivered>> {
    let candidates: usize = generations.iter().map(|it| it.candidates as usize).sum();
    if earlier.seeds.len() != generations.len() || earlier.candidates.len() != candidates {
        return Err(Error::Internal("the position is of another request".into()));
    }
    for (generation, seed) in generations.iter_mut().zip(&earlier.seeds) {
        generation.sampling.seed = *seed;
    }
    Ok(earlier.candidates.clone())
}

/// The candidates that are not yet delivered to their end, with their indices. The others are dropped, which cancels them.
fn candidates_of(
    prompts: &[Rc<FittedPrompt>],
    events: Vec<Vec<Events>>,
    options: &Rc<TextOptions>,
    delivered: &[Delivered],
) -> Vec<(usize, CandidateText)> {
    let candidates = prompts.iter().zip(events).flat_map(|(prompt, candidates)| {
        let candidate = |events| CandidateText::new(events, prompt.clone(), options.clone());
        candidates.into_iter().map(candidate)
    });
    let unfinished = candidates.enumerate().filter_map(|(index, candidate)| {
        let delivered = delivered[index];
        (!delivered.is_finished).then(|| (index, candidate.after(delivered)))
    });
    unfinished.collect()
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
    options: &TextOptions,
) -> Result<Vec<Generation>> {
    let stop_ids = options.stop_ids.ids();
    let model_defaults = recommended(plan, model, switches);
    let sampling = plan.sampling.params(&model_defaults, &model.tokenizer)?;
    let is_ranked = plan.best_of > plan.n;
    let scores = (plan.logprobs.top.is_some() || is_ranked).then(|| ScoreRequest {
        top: plan.logprobs.top.unwrap_or(0),
        mode: plan.logprobs.mode,
    });
    let prompt_tail = prompts.first().map_or("", |prompt| &prompt.tail);
    let rules = token_rules::of(plan, model, &stop_ids, prompt_tail)?;
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
                // Equal prompts without a seed are sampled independently.
                seed: plan.sampling.seed()?,
                ..sampling.clone()
            },
            constraint: constraint.clone(),
            scores,
            rules: rules.clone(),
            prompt_scores,
            stop_ids: stop_ids.clone(),
            drafts: DraftRules {
                prediction: options.prediction.clone(),
                min_tokens: plan.drafting.min_tokens,
                max_tokens: plan.drafting.max_tokens.unwrap_or(usize::MAX),
            },
        })
    };
    prompts.iter().map(generation).collect()
}
