//! Makes the rules of the engine from the fields that forbid tokens (specification 4.3 and 5, stage 5).

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::api::error::fault;
use crate::api::models::ReadyModel;
use crate::api::plan::Plan;
use crate::engine::generation::TokenRules;
use crate::text::Tokenizer;
use crate::{RequestFault, Result};

/// The rules of the plan, whose choices end at `stop_ids`.
///
/// # Errors
/// `conflicting_parameters` if no token may begin a completion.
pub(super) fn of(
    plan: &Plan,
    model: &ReadyModel,
    stop_ids: &[u32],
) -> Result<Option<Rc<TokenRules>>> {
    let restrictions = &plan.restrictions;
    let allowed = restrictions.allowed_token_ids.as_deref();
    let words = sequences(&restrictions.bad_words, &model.tokenizer)?;
    let banned = plan.sampling.banned(&model.tokenizer)?;
    let forbidden = words
        .into_iter()
        .chain(banned.into_iter().map(|id| vec![id]));
    let rules = TokenRules::new(
        model.vocab_size(),
        allowed,
        plan.length.min_tokens,
        forbidden,
    );
    if rules
        .as_ref()
        .is_some_and(|it| !it.allows_a_first(stop_ids))
    {
        let param = match (allowed, restrictions.bad_words.is_empty()) {
            (Some(_), _) => "allowed_token_ids",
            (None, false) => "bad_words",
            (None, true) => "logit_bias",
        };
        let message = format!("{param}: together with other fields it forbids every token");
        return Err(fault(RequestFault::ConflictingParameters, param, message));
    }
    Ok(rules.map(Rc::new))
}

/// The sequences of ids that are one of `words`, with or without a space before it: those that the tokenizer makes, and
/// single tokens with that text.
fn sequences(words: &[String], tokenizer: &Tokenizer) -> Result<BTreeSet<Vec<u32>>> {
    let mut sequences = BTreeSet::new();
    let mut spellings = BTreeSet::new();
    for word in words {
        let bare = match word.trim_start() {
            "" => word,
            bare => bare,
        };
        for text in [bare.to_owned(), format!(" {bare}")] {
            sequences.insert(tokenizer.encode(&text, false)?);
            spellings.insert(text.into_bytes());
        }
    }
    if !spellings.is_empty() {
        let ids = 0..tokenizer.vocab_size() as u32;
        let is_word = |id: &u32| spellings.contains(tokenizer.token_bytes(*id));
        sequences.extend(ids.filter(is_word).map(|id| vec![id]));
    }
    Ok(sequences)
}
