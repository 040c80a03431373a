//! A prompt that fits the context, and the text that `echo` returns (specification 4.2, 7.4 and 11).

use std::rc::Rc;

use super::context::{self, DefaultLength, Fit};
use super::images::{PromptImages, Supply};
use super::tokenized::Tokenized;
use crate::api::fields::{KeptTokens, Length, Prompt, TruncationSide};
use crate::api::models::ReadyModel;
use crate::api::plan::Plan;
use crate::engine::generation;
use crate::text::{Detokenizer, Pause, Place, Tokenizer};
use crate::{RequestFault, Result};

/// A prompt as the model receives it.
#[derive(Debug)]
pub(super) struct FittedPrompt {
    /// The token ids, at least one. An image has the id of its row token once per row.
    pub ids: Vec<u32>,
    /// The images' rows.
    pub images: PromptImages,
    /// Tokens cut from its start or its end.
    pub dropped_tokens: usize,
    /// Upper bound on the tokens of a completion; the context holds them.
    pub max_tokens: usize,
    /// The prompt as text, as `echo` returns it; empty unless requested.
    pub text: String,
    /// The place of each id from `echoed_from` on in `text`; empty unless requested.
    pub places: Vec<Place>,
    /// The end of a rendered conversation; empty for other prompts.
    pub tail: String,
    /// The first id whose text is echoed.
    pub echoed_from: usize,
}

/// The parts of a prompt that are needed besides its ids. Both cost time for a long prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub text: bool,
    /// The places of tokens in the text. They need the text, too.
    pub places: bool,
}

impl FittedPrompt {
    /// Tokenizes `prompt`, with pauses, and applies the context rules.
    pub(super) async fn new(
        prompt: Prompt,
        plan: &Plan,
        model: &ReadyModel,
        default_length: DefaultLength,
        wanted: Wanted,
        supply: &mut Supply,
        pause: Pause<'_>,
    ) -> Result<FittedPrompt> {
        let Tokenized {
            text,
            ids,
            places,
            images,
            mut tail,
        } = Tokenized::of(prompt, plan, model, wanted.places, supply, pause).await?;
        let mut ids = images.spread(ids)?;
        let context_tokens = model.engine.context_tokens();
        let Fit {
            kept_tokens,
            max_tokens,
        } = fit(ids.len(), plan, context_tokens, default_length)?;
        let dropped_tokens = ids.len() - kept_tokens;
        if !images.is_empty() {
            let lists_prompt = wanted.places || plan.logprobs.prompt.is_some();
            check_images(supply, dropped_tokens, lists_prompt)?;
        }
        let is_end_cut =
            dropped_tokens > 0 && plan.prompt_tokens.kept.side() == TruncationSide::Right;
        // The tokens that precede the prompt in the text.
        let mut before = Vec::new();
        if is_end_cut {
            ids.truncate(kept_tokens);
            tail.clear();
        } else {
            before.extend(ids.drain(..dropped_tokens));
        }
        let echoed_from = plan
            .echo_last
            .map_or(0, |last| ids.len().saturating_sub(last));
        let is_whole = dropped_tokens == 0 && echoed_from == 0;
        let (text, places) = match text {
            _ if !wanted.text => Default::default(),
            Some(text) if is_whole => (text, places),
            // The start-of-text token that was added is not echoed.
            Some(text)
                if is_end_cut
                    && echoed_from == 0
                    && starts_alone(&text, &ids, &model.tokenizer) =>
            {
                let (text, mut places) = decode(&ids[1..], &ids[..1], &model.tokenizer);
                places.insert(0, Place::default());
                (text, places)
            }
            // A shortened prompt may begin in the middle of a string.
            _ => {
                before.extend(&ids[..echoed_from]);
                decode(&ids[echoed_from..], &before, &model.tokenizer)
            }
        };
        Ok(FittedPrompt {
            ids,
            images,
            dropped_tokens,
            max_tokens,
            text,
            places,
            tail,
            echoed_from,
        })
    }

    /// The prompt in the form that the engine takes.
    pub(super) fn for_engine(&self) -> generation::Prompt {
        self.images.prompt(&self.ids)
    }
}

/// Refuses what a prompt with images cannot have.
fn check_images(supply: &Supply, dropped_tokens: usize, lists_prompt: bool) -> Result<()> {
    let refuse = |reason| Err(supply.fault(RequestFault::ConflictingParameters, reason));
    if dropped_tokens > 0 {
        return refuse("a prompt with images cannot be truncated");
    }
    if lists_prompt {
        return refuse("the tokens of a prompt with images have no log-probabilities");
    }
    Ok(())
}

/// The number of tokens of a prompt that are kept, and of those that a completion may have.
fn fit(
    prompt_tokens: usize,
    plan: &Plan,
    context_tokens: usize,
    default_length: DefaultLength,
) -> Result<Fit> {
    let kept = plan.prompt_tokens.kept;
    let prompt_tokens = match kept {
        KeptTokens::AtMost(tokens, _) => prompt_tokens.min(tokens),
        KeptTokens::All | KeptTokens::Fitting(_) => prompt_tokens,
    };
    let truncates = plan.length.truncate_sequence || matches!(kept, KeptTokens::Fitting(_));
    let length = Length {
        truncate_sequence: truncates,
        ..plan.length.clone()
    };
    context::fit(prompt_tokens, context_tokens, &length, default_length)
}

/// Whether the first of `ids` is a start-of-text token that `text` does not have.
fn starts_alone(text: &str, ids: &[u32], tokenizer: &Tokenizer) -> bool {
    let bos = tokenizer.bos_id().filter(|bos| ids.first() == Some(bos));
    bos.is_some_and(|bos| !text.as_bytes().starts_with(tokenizer.token_bytes(bos)))
}

/// The text of `ids` after `before`, special tokens included.
fn decode(ids: &[u32], before: &[u32], tokenizer: &Rc<Tokenizer>) -> (String, Vec<Place>) {
    let mut detokenizer = Detokenizer::new(Rc::clone(tokenizer), before, false);
    let mut text = String::new();
    let mut places = Vec::with_capacity(ids.len());
    for &id in ids {
        places.push(Place {
            start: detokenizer.start_of(id),
            drops_space: detokenizer.drops_space(),
        });
        text.push_str(&detokenizer.push(id));
    }
    text.push_str(&detokenizer.finish());
    (text, places)
}
