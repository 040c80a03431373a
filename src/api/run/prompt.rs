//! From a prompt of the request to token ids that fit the context, and to the text that `echo` returns
//! (specification 4.2, 7.4 and 11).

use std::rc::Rc;

use super::context::{self, DefaultLength, Fit};
use super::conversation;
use super::images::{PromptImages, Supply};
use crate::api::error::fault;
use crate::api::fields::{
    Conversation, KeptTokens, Length, Prompt, PromptPart, PromptTokens, TruncationSide,
};
use crate::api::models::{ReadyModel, Texts};
use crate::api::plan::{Plan, Suffix};
use crate::engine::generation;
use crate::text::{Detokenizer, Pause, Place, Special, Tokenizer};
use crate::{Error, RequestFault, Result};

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
    /// Where each id from `echoed_from` on is in `text`; empty unless requested.
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

/// The ids of a prompt and, if requested, where they are in its text.
type Tokens = (Vec<u32>, Vec<Place>);

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
        let PromptTokens { add_special, kept } = plan.prompt_tokens;
        let texts = &model.texts();
        let truncates = plan.length.truncate_sequence || kept != KeptTokens::All;
        if let Prompt::Text(text) = &prompt {
            match truncates {
                true => check_words("prompt", text)?,
                false => check_size(text, texts)?,
            }
        }
        if let Suffix::FillInMiddle(suffix) = &plan.suffix {
            check_size(suffix, texts)?;
        }
        let mut tail = String::new();
        let (text, (ids, places), images) = match (prompt, &plan.suffix) {
            (Prompt::Conversation(chat), _) => {
                let placeholder = model.images.map(|reader| reader.format.placeholder());
                let mut rendered =
                    conversation::render_prompt(*chat, &model.tokenizer, placeholder)?;
                match truncates {
                    true => check_words("prompt", &rendered.text)?,
                    false => check_size(&rendered.text, texts)?,
                }
                tail = rendered.tail();
                let images = supply.take_for_text(&rendered.text)?;
                rendered.text = images.place_in_text(rendered.text);
                (
                    None,
                    (
                        rendered.tokenize_in_slices(&model.tokenizer, pause).await?,
                        Vec::new(),
                    ),
                    images,
                )
            }
            (Prompt::Text(text), Suffix::FillInMiddle(suffix)) => {
                let tokens = tokenize_around(&text, suffix, &model.tokenizer, pause).await?;
                let images = supply.take_for_ids(&tokens.0)?;
                let ids = images.place_in_ids(tokens.0, &model.tokenizer)?;
                (Some(text), (ids, tokens.1), images)
            }
            (Prompt::Text(text), _) => {
                let written = supply.with_own_placeholders(text.clone());
                let images = supply.take_for_text(&written)?;
                let written = images.place_in_text(written);
                let tokens = tokenize(&written, add_special, texts, wanted.places, pause).await?;
                (Some(text), tokens, images)
            }
            (Prompt::Tokens(ids), _) => {
                let ids = checked(ids, texts)?;
                let images = supply.take_for_ids(&ids)?;
                let ids = images.place_in_ids(ids, &model.tokenizer)?;
                (None, (ids, Vec::new()), images)
            }
            (Prompt::Mixed(parts), _) => {
                let ids = mixed(&parts, add_special, texts, check_size, pause).await?;
                let ids = checked(ids, texts)?;
                let images = supply.take_for_ids(&ids)?;
                let ids = images.place_in_ids(ids, &model.tokenizer)?;
                (None, (ids, Vec::new()), images)
            }
        };
        let mut ids = images.spread(ids)?;
        let context_tokens = texts.context_tokens;
        let cut_tokens = match kept {
            KeptTokens::AtMost(tokens, _) => ids.len().min(tokens),
            KeptTokens::All | KeptTokens::Fitting(_) => ids.len(),
        };
        let length = Length {
            truncate_sequence: plan.length.truncate_sequence
                || matches!(kept, KeptTokens::Fitting(_)),
            ..plan.length.clone()
        };
        let Fit {
            kept_tokens,
            max_tokens,
        } = context::fit(cut_tokens, context_tokens, &length, default_length)?;
        if kept_tokens < ids.len() && !images.is_empty() {
            let reason = "a prompt with images cannot be truncated";
            return Err(supply.fault(RequestFault::ConflictingParameters, reason));
        }
        if (wanted.places || plan.logprobs.prompt.is_some()) && !images.is_empty() {
            let reason = "the tokens of a prompt with images have no log-probabilities";
            return Err(supply.fault(RequestFault::ConflictingParameters, reason));
        }
        let cut = ids.len() - kept_tokens;
        let is_end_cut = cut > 0 && kept.side() == TruncationSide::Right;
        // What precedes the prompt in the text.
        let mut before = Vec::new();
        if is_end_cut {
            ids.truncate(kept_tokens);
            tail.clear();
        } else {
            before.extend(ids.drain(..cut));
        }
        let echoed_from = match plan.echo_last {
            Some(last) => ids.len().saturating_sub(last),
            None => 0,
        };
        let (text, places) = match text {
            _ if !wanted.text => Default::default(),
            Some(text) if cut == 0 && echoed_from == 0 => (text, places),
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
            // A shortened prompt may begin in the middle of a text.
            _ => {
                before.extend(&ids[..echoed_from]);
                decode(&ids[echoed_from..], &before, &model.tokenizer)
            }
        };
        Ok(FittedPrompt {
            ids,
            images,
            dropped_tokens: cut,
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

/// The ids of `prompt` as the model would receive them, before the context rules. It may exceed the context, but a
/// text of more than [`MAX_UNFIT_BYTES`] must not with any tokenization.
pub(in crate::api) async fn ids_of(
    prompt: Prompt,
    add_special: bool,
    model: &Texts,
    pause: Pause<'_>,
) -> Result<Vec<u32>> {
    match prompt {
        Prompt::Text(text) => {
            check_bytes(&text, model)?;
            Ok(tokenize(&text, add_special, model, false, pause).await?.0)
        }
        Prompt::Conversation(chat) => {
            let rendered = conversation::render_prompt(*chat, &model.tokenizer, None)?;
            check_bytes(&rendered.text, model)?;
            rendered.tokenize_in_slices(&model.tokenizer, pause).await
        }
        Prompt::Tokens(ids) => checked(ids, model),
        Prompt::Mixed(parts) => {
            let ids = mixed(&parts, add_special, model, check_bytes, pause).await?;
            checked(ids, model)
        }
    }
}

/// The text that the chat template makes of a conversation.
pub(in crate::api) fn text_of(chat: Conversation, tokenizer: &Tokenizer) -> Result<String> {
    Ok(conversation::render_prompt(chat, tokenizer, None)?.plain_text())
}

/// Longest text that is tokenized although it may not fit the context.
const MAX_UNFIT_BYTES: usize = 1 << 20;

fn check_bytes(text: &str, model: &Texts) -> Result<()> {
    match text.len() > MAX_UNFIT_BYTES {
        true => check_size(text, model),
        false => Ok(()),
    }
}

/// Rejects a text that exceeds the context with any tokenization. Tokenizing megabytes would take many seconds before
/// the prompt is rejected.
fn check_size(text: &str, model: &Texts) -> Result<()> {
    const CHECKED_FROM_BYTES: usize = 1 << 16;
    if text.len() < CHECKED_FROM_BYTES {
        return Ok(());
    }
    let context_tokens = model.context_tokens;
    let prompt_tokens = model.tokenizer.fewest_tokens(text.len());
    if prompt_tokens <= context_tokens {
        return Ok(());
    }
    let sent = format!(
        "The prompt has {} bytes of text, which are at least {prompt_tokens} tokens",
        text.len()
    );
    Err(Error::exceeds_context("prompt", context_tokens, sent))
}

/// Rejects a text that is truncated after tokenization if a word or a run of spaces in it is very long: it is tokenized
/// without a pause.
pub(in crate::api) fn check_words(param: &str, text: &str) -> Result<()> {
    const MAX_WORD_BYTES: usize = 1 << 20;
    if text.len() <= MAX_WORD_BYTES {
        return Ok(());
    }
    let mut words = text
        .as_bytes()
        .chunk_by(|a, b| (*a == b' ') == (*b == b' '));
    match words.any(|word| word.len() > MAX_WORD_BYTES) {
        true => Err(fault(
            RequestFault::OutOfRange,
            param,
            format!(
                "{param}: a text that is truncated must not have {MAX_WORD_BYTES} bytes without a space"
            ),
        )),
        false => Ok(()),
    }
}

async fn tokenize(
    text: &str,
    add_special: bool,
    model: &Texts,
    places: bool,
    pause: Pause<'_>,
) -> Result<Tokens> {
    let (tokenizer, special) = (&model.tokenizer, added(add_special));
    let (mut ids, mut places) = match places {
        true => {
            tokenizer
                .encode_placed_in_slices(text, special, pause)
                .await?
        }
        false => (
            tokenizer.encode_in_slices(text, special, pause).await?,
            Vec::new(),
        ),
    };
    if ids.is_empty() {
        let start = model.tokenizer.document_start_id().ok_or_else(|| {
            fault(
                RequestFault::InvalidValue,
                "prompt",
                "prompt is empty, and the model has no token that starts a document",
            )
        })?;
        ids.push(start);
        places.push(Place::default());
    }
    Ok((ids, places))
}

fn added(add_special: bool) -> Special {
    match add_special {
        true => Special::Added,
        false => Special::None,
    }
}

/// The ids of parts that follow each other. Special tokens are added only to a string at the beginning. `check` bounds the
/// strings.
async fn mixed(
    parts: &[PromptPart],
    add_special: bool,
    model: &Texts,
    check: impl Fn(&str, &Texts) -> Result<()>,
    pause: Pause<'_>,
) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part {
            PromptPart::Token(id) => ids.push(*id),
            PromptPart::Text(text) => {
                check(text, model)?;
                let special = added(add_special && index == 0);
                let part = model.tokenizer.encode_in_slices(text, special, pause);
                ids.extend(part.await?);
            }
        }
    }
    Ok(ids)
}

/// The model's fill-in-the-middle prompt for the gap between `text` and `suffix`.
async fn tokenize_around(
    text: &str,
    suffix: &str,
    tokenizer: &Tokenizer,
    pause: Pause<'_>,
) -> Result<Tokens> {
    let around = tokenizer.encode_around(text, suffix, pause).await?;
    around.ok_or_else(|| {
        fault(
            RequestFault::UnsupportedParameter,
            "suffix",
            "suffix: the model has no fill-in-the-middle tokens",
        )
    })
}

/// `ids`, if all are in the vocabulary.
fn checked(ids: Vec<u32>, model: &Texts) -> Result<Vec<u32>> {
    let vocab_size = model.vocab_size;
    match ids.iter().find(|id| **id as usize >= vocab_size) {
        None => Ok(ids),
        Some(id) => Err(fault(
            RequestFault::OutOfRange,
            "prompt",
            format!("prompt: the token id {id} is not below the vocabulary size {vocab_size}"),
        )),
    }
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
