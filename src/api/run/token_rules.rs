//! Makes the rules of the engine from the fields that forbid tokens (specification 4.3 and 5, stage 5) or bound the reasoning
//! (specification 22.1).

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::api::error::fault;
use crate::api::fields::Constraint;
use crate::api::models::ReadyModel;
use crate::api::plan::Plan;
use crate::engine::generation::{SpanBudget, TokenRules};
use crate::text::Tokenizer;
use crate::{RequestFault, Result};

/// The rules of the plan, whose choices end at `stop_ids`. `prompt_tail` is the end of its first prompt.
///
/// # Errors
/// `conflicting_parameters` if no token may begin a completion, `unsupported_parameter` for a bound on reasoning of a model
/// that does not end it with a token of its own.
pub(super) fn of(
    plan: &Plan,
    model: &ReadyModel,
    stop_ids: &[u32],
    prompt_tail: &str,
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
    let rules = match reasoning_budget(plan, model, prompt_tail)? {
        Some(budget) => Some(TokenRules::with_budget(rules, model.vocab_size(), budget)),
        None => rules,
    };
    Ok(rules.map(Rc::new))
}

/// The bound on the reasoning of a message, if there may be any. A constraint of the whole output leaves no place for it.
fn reasoning_budget(
    plan: &Plan,
    model: &ReadyModel,
    prompt_tail: &str,
) -> Result<Option<SpanBudget>> {
    let tags = model.chat_form().reasoning_after(prompt_tail);
    let budget = plan.message.and_then(|message| message.thinking_budget);
    let (Some(budget), Some((open, close))) = (budget, tags) else {
        return Ok(None);
    };
    let max_tokens = budget.tokens;
    // A budget that is as large as the answer may be bounds nothing.
    let limit = plan.length.max_tokens.as_ref().map(|it| it.tokens);
    let is_bound = limit.is_none_or(|limit| max_tokens < limit);
    if !is_bound || matches!(plan.constraint, Constraint::Grammar { .. }) {
        return Ok(None);
    }
    let tokenizer = &model.tokenizer;
    let Some(close) = tokenizer.named_id(close) else {
        let message = format!(
            "{}: a budget is not supported: this model ends its thinking with a text, not with a token",
            budget.field
        );
        let kind = RequestFault::UnsupportedParameter;
        return Err(fault(kind, budget.field, message));
    };
    let open = match open {
        None => Vec::new(),
        Some(open) => match tokenizer.named_id(open) {
            Some(id) => vec![id],
            None => tokenizer.encode(open, false)?,
        },
    };
    Ok(Some(SpanBudget {
        open,
        close,
        max_tokens,
        partial: model.partial_characters(),
    }))
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
