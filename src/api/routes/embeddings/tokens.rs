//! From an input of `POST /embeddings` to token ids: the tokens that the tokenizer adds at both ends, and truncation
//! (specification 19.1).

use crate::api::fields::{
    KeptTokens, Prompt, PromptPart, PromptTokens, TruncationSide, invalid_value, out_of_range,
};
use crate::api::models::ReadyEmbedder;
use crate::api::run::check_words;
use crate::text::{Pause, Special};
use crate::{Error, Result};

/// The ids of an input.
pub(super) struct Tokens {
    pub ids: Vec<u32>,
    /// Tokens that were cut off.
    pub dropped: usize,
}

/// Ids between those that the tokenizer adds.
#[derive(Default)]
struct Framed {
    before: Vec<u32>,
    ids: Vec<u32>,
    after: Vec<u32>,
}

/// The ids of an input: a text with the tokens that the model's tokenizer adds, or the ids as given.
pub(super) async fn of(
    input: Prompt,
    options: PromptTokens,
    model: &ReadyEmbedder,
    pause: Pause<'_>,
) -> Result<Tokens> {
    let framed = match input {
        Prompt::Text(text) => {
            check_text(&text, options, model)?;
            if options.kept == KeptTokens::All {
                let special = match options.add_special {
                    true => Special::Added,
                    false => Special::None,
                };
                let ids = model.tokenizer.encode_in_slices(&text, special, pause);
                return Ok(Tokens {
                    ids: ids.await?,
                    dropped: 0,
                });
            }
            framed(&text, options, model, pause).await?
        }
        Prompt::Tokens(ids) => Framed {
            ids: checked(ids, model)?,
            ..Framed::default()
        },
        Prompt::Mixed(parts) => mixed(parts, options, model, pause).await?,
        Prompt::Conversation(_) => {
            return Err(Error::Internal("an input of another route".into()));
        }
    };
    cut(framed, options.kept, model.engine.context_tokens())
}

/// The ids of parts that follow each other. The tokenizer adds its tokens to a text at the beginning and to one at the end.
async fn mixed(
    parts: Vec<PromptPart>,
    options: PromptTokens,
    model: &ReadyEmbedder,
    pause: Pause<'_>,
) -> Result<Framed> {
    let mut all = Framed::default();
    let last = parts.len() - 1;
    for (index, part) in parts.into_iter().enumerate() {
        match part {
            PromptPart::Token(id) => all.ids.extend(checked(vec![id], model)?),
            PromptPart::Text(text) if text.is_empty() => {}
            PromptPart::Text(text) => {
                check_text(&text, options, model)?;
                let part = framed(&text, options, model, pause).await?;
                all.ids.extend(part.ids);
                if index == 0 {
                    all.before = part.before;
                }
                if index == last {
                    all.after = part.after;
                }
            }
        }
    }
    match all.ids.is_empty() {
        true => Err(invalid_value("input", "has no tokens")),
        false => Ok(all),
    }
}

/// The ids of a text, apart from those that the tokenizer adds.
async fn framed(
    text: &str,
    options: PromptTokens,
    model: &ReadyEmbedder,
    pause: Pause<'_>,
) -> Result<Framed> {
    let encode = |special| model.tokenizer.encode_in_slices(text, special, pause);
    let ids = encode(Special::None).await?;
    if !options.add_special {
        return Ok(Framed {
            ids,
            ..Framed::default()
        });
    }
    let whole = encode(Special::Added).await?;
    let added = whole.len().saturating_sub(ids.len());
    let start = (0..=added).find(|start| whole[*start..].starts_with(&ids));
    let start = start.ok_or_else(|| Error::Internal("added tokens change a text".into()))?;
    Ok(Framed {
        before: whole[..start].to_vec(),
        after: whole[start + ids.len()..].to_vec(),
        ids,
    })
}

/// Cuts what exceeds the limit. The added tokens stay.
fn cut(framed: Framed, kept: KeptTokens, context_tokens: usize) -> Result<Tokens> {
    let Framed {
        before,
        mut ids,
        after,
    } = framed;
    let added = before.len() + after.len();
    let limit = match kept {
        KeptTokens::All => usize::MAX,
        KeptTokens::Fitting(_) => context_tokens,
        KeptTokens::AtMost(tokens, _) => tokens,
    };
    let dropped = (ids.len() + added).saturating_sub(limit);
    if dropped > 0 && dropped >= ids.len() {
        let bounds = format!("above {added}, the number of tokens that the tokenizer adds");
        return Err(out_of_range("truncate_prompt_tokens", &bounds, limit));
    }
    match kept.side() {
        TruncationSide::Left => drop(ids.drain(..dropped)),
        TruncationSide::Right => ids.truncate(ids.len() - dropped),
    }
    Ok(Tokens {
        ids: [before, ids, after].concat(),
        dropped,
    })
}

/// `ids`, if the model has all of them.
fn checked(ids: Vec<u32>, model: &ReadyEmbedder) -> Result<Vec<u32>> {
    let known = model.tokenizer.vocab_size().min(model.engine.vocab_size());
    match ids.iter().find(|id| **id as usize >= known) {
        Some(id) => {
            let bounds = format!("made of token ids below {known}");
            Err(out_of_range("input", &bounds, id))
        }
        None => Ok(ids),
    }
}

/// Rejects an empty text and one that takes too long to tokenize.
fn check_text(text: &str, options: PromptTokens, model: &ReadyEmbedder) -> Result<()> {
    if text.is_empty() {
        return Err(invalid_value("input", "must not be an empty string"));
    }
    check_length("input", text, options.kept != KeptTokens::All, model)
}

/// Rejects a text of the field `param` that takes too long to tokenize. `is_cut`: it is cut to some of its tokens.
pub(in crate::api::routes) fn check_length(
    param: &str,
    text: &str,
    is_cut: bool,
    model: &ReadyEmbedder,
) -> Result<()> {
    match is_cut && model.tokenizer.fewest_tokens(text.len()) > 0 {
        true => check_words(param, text),
        false => check_size(param, text, model),
    }
}

/// Rejects a text that exceeds the context with any tokenization, without tokenizing megabytes, and a long text for a
/// tokenizer that drops text: the number of its tokens says nothing, and it is tokenized without a pause.
fn check_size(param: &str, text: &str, model: &ReadyEmbedder) -> Result<()> {
    const CHECKED_FROM_BYTES: usize = 1 << 16;
    const MAX_DROPPED_BYTES: usize = 1 << 20;
    let context_tokens = model.engine.context_tokens();
    if text.len() < CHECKED_FROM_BYTES {
        return Ok(());
    }
    let fits = match model.tokenizer.fewest_tokens(text.len()) {
        0 => text.len() <= MAX_DROPPED_BYTES,
        fewest => fewest <= context_tokens,
    };
    if fits {
        return Ok(());
    }
    let sent = format!(
        "A text of \"{param}\" has {} bytes, which is too long",
        text.len()
    );
    Err(Error::exceeds_context(param, context_tokens, sent))
}
