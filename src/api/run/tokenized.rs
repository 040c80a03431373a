//! From a prompt of the request to token ids (specification 4.2). Whether they fit the context is decided in `prompt`; here
//! are refused only those that cannot fit, or would take too long.

use super::conversation;
use super::deadline::Deadline;
use super::images::{PromptImages, Supply};
use crate::api::endpoint::Endpoint;
use crate::api::error::fault;
use crate::api::fields::images::RequestImages;
use crate::api::fields::{Conversation, KeptTokens, Prompt, PromptPart};
use crate::api::models::{PromptTokenizer, ReadyModel};
use crate::api::plan::{Plan, Suffix};
use crate::text::{Pause, Place, Special, Tokenizer};
use crate::{Error, RequestFault, Result};

/// A prompt as tokens.
pub(super) struct Tokenized {
    /// The string that it was given as.
    pub text: Option<String>,
    /// An image is the token of its placeholder.
    pub ids: Vec<u32>,
    /// The place of each id in `text`; empty unless requested.
    pub places: Vec<Place>,
    pub images: PromptImages,
    /// The end of a rendered conversation; empty for other prompts.
    pub tail: String,
}

/// The ids of a prompt and, if requested, where they are in its text.
type Tokens = (Vec<u32>, Vec<Place>);

impl Tokenized {
    /// Tokenizes `prompt`, with pauses.
    pub(super) async fn of(
        prompt: Prompt,
        plan: &Plan,
        model: &ReadyModel,
        places: bool,
        supply: &mut Supply,
        pause: Pause<'_>,
    ) -> Result<Tokenized> {
        let add_special = plan.prompt_tokens.add_special;
        let tokenizer = &model.prompt_tokenizer();
        if let Prompt::Text(text) = &prompt {
            check_length(text, plan, tokenizer)?;
        }
        if let Suffix::FillInMiddle(suffix) = &plan.suffix {
            check_size(suffix, tokenizer)?;
        }
        match (prompt, &plan.suffix) {
            (Prompt::Conversation(chat), _) => {
                let placeholder = model.images.map(|reader| reader.format.placeholder());
                let mut rendered =
                    conversation::render_prompt(*chat, &model.tokenizer, placeholder)?;
                check_length(&rendered.text, plan, tokenizer)?;
                let tail = rendered.tail();
                let images = supply.take_for_text(&rendered.text)?;
                rendered.text = images.place_in_text(rendered.text);
                let ids = rendered.tokenize_in_slices(&model.tokenizer, pause).await?;
                Ok(Tokenized {
                    text: None,
                    ids,
                    places: Vec::new(),
                    images,
                    tail,
                })
            }
            (Prompt::Text(text), Suffix::FillInMiddle(suffix)) => {
                let (ids, places) = tokenize_around(&text, suffix, &model.tokenizer, pause).await?;
                let images = supply.take_for_ids(&ids)?;
                Ok(Tokenized {
                    ids: images.place_in_ids(ids, &model.tokenizer)?,
                    text: Some(text),
                    places,
                    images,
                    tail: String::new(),
                })
            }
            (Prompt::Text(text), _) => {
                let written = supply.with_own_placeholders(text.clone());
                let images = supply.take_for_text(&written)?;
                let written = images.place_in_text(written);
                let (ids, places) =
                    tokenize(&written, add_special, tokenizer, places, pause).await?;
                Ok(Tokenized {
                    text: Some(text),
                    ids,
                    places,
                    images,
                    tail: String::new(),
                })
            }
            (Prompt::Mixed(parts), _) => {
                let ids = mixed(&parts, add_special, tokenizer, check_size, pause).await?;
                Tokenized::of_ids(ids, model, supply)
            }
            (Prompt::Tokens(ids), _) => Tokenized::of_ids(ids, model, supply),
        }
    }

    /// A prompt that was given as ids, at least in part.
    fn of_ids(ids: Vec<u32>, model: &ReadyModel, supply: &mut Supply) -> Result<Tokenized> {
        let ids = checked(ids, &model.prompt_tokenizer())?;
        let images = supply.take_for_ids(&ids)?;
        Ok(Tokenized {
            text: None,
            ids: images.place_in_ids(ids, &model.tokenizer)?,
            places: Vec::new(),
            images,
            tail: String::new(),
        })
    }
}

/// Rejects a text that tokenization cannot make fit, or that takes too long to tokenize.
fn check_length(text: &str, plan: &Plan, tokenizer: &PromptTokenizer) -> Result<()> {
    match plan.length.truncate_sequence || plan.prompt_tokens.kept != KeptTokens::All {
        true => check_words("prompt", text),
        false => check_size(text, tokenizer),
    }
}

/// The ids of `prompt` with its `images` as the model would receive them, before the context rules. The model does not
/// run. The prompt may exceed the context, but a text of more than [`MAX_UNFIT_BYTES`] must not with any tokenization.
pub(in crate::api) async fn ids_of(
    prompt: Prompt,
    images: &RequestImages,
    add_special: bool,
    model: &PromptTokenizer,
    endpoint: &Endpoint,
) -> Result<Vec<u32>> {
    let mut deadline = Deadline::new(&*endpoint.host, endpoint.switches.request_timeout_ms);
    let supply = Supply::measure(images, model, endpoint);
    let mut supply = deadline.limit(supply).await?;
    let pause: Pause<'_> = &|| endpoint.host.sleep_ms(0);
    match prompt {
        Prompt::Text(text) => {
            check_bytes(&text, model)?;
            Ok(tokenize(&text, add_special, model, false, pause).await?.0)
        }
        Prompt::Conversation(chat) => {
            let placeholder = model.images.map(|reader| reader.format.placeholder());
            let mut rendered = conversation::render_prompt(*chat, &model.tokenizer, placeholder)?;
            check_bytes(&rendered.text, model)?;
            let images = supply.take_for_text(&rendered.text)?;
            rendered.text = images.place_in_text(rendered.text);
            supply.finish()?;
            let ids = rendered.tokenize_in_slices(&model.tokenizer, pause).await?;
            images.spread(ids)
        }
        Prompt::Tokens(ids) => checked(ids, model),
        Prompt::Mixed(parts) => {
            let ids = mixed(&parts, add_special, model, check_bytes, pause).await?;
            checked(ids, model)
        }
    }
}

/// The text that the chat template makes of a conversation. An image is the placeholder that the template writes.
pub(in crate::api) fn text_of(chat: Conversation, model: &PromptTokenizer) -> Result<String> {
    let placeholder = model.images.map(|reader| reader.format.placeholder());
    let rendered = conversation::render_prompt(chat, &model.tokenizer, placeholder)?;
    Ok(rendered.plain_text())
}

/// Longest text that is tokenized although it may not fit the context.
const MAX_UNFIT_BYTES: usize = 1 << 20;

fn check_bytes(text: &str, model: &PromptTokenizer) -> Result<()> {
    match text.len() > MAX_UNFIT_BYTES {
        true => check_size(text, model),
        false => Ok(()),
    }
}

/// Rejects a text that exceeds the context with any tokenization. Tokenizing megabytes would take many seconds before
/// the prompt is rejected.
fn check_size(text: &str, model: &PromptTokenizer) -> Result<()> {
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
    model: &PromptTokenizer,
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
    model: &PromptTokenizer,
    check: impl Fn(&str, &PromptTokenizer) -> Result<()>,
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
fn checked(ids: Vec<u32>, model: &PromptTokenizer) -> Result<Vec<u32>> {
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
