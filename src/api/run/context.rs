//! Fits a prompt and its completion into the model's context (specification 11).

use crate::api::fields::{Length, MaxTokens};
use crate::api::switches::{ContextLengthExceededBehavior, DefaultMaxTokens};
use crate::{Error, Result};

/// The part of a request that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// Tokens used of the prompt, counted from its end.
    pub kept_tokens: usize,
    /// Upper bound on generated tokens; with `kept_tokens` at most the context.
    pub max_tokens: usize,
}

/// The length of a completion without `max_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultLength {
    /// The number of tokens that applies as if the request asked for it.
    Tokens(usize),
    /// The length that the context leaves, but no more than this.
    Remaining { at_most: usize },
}

impl DefaultLength {
    pub(super) const ALL: DefaultLength = DefaultLength::Remaining {
        at_most: usize::MAX,
    };

    /// The default length of a text completion.
    pub(super) fn of_text(default: DefaultMaxTokens) -> DefaultLength {
        match default {
            DefaultMaxTokens::Tokens(tokens) => DefaultLength::Tokens(tokens),
            DefaultMaxTokens::Context(_) => DefaultLength::ALL,
        }
    }

    /// The default length of a message, for which a model may have its own limit.
    pub(super) fn of_message(default: DefaultMaxTokens, of_model: Option<usize>) -> DefaultLength {
        let default = match default {
            DefaultMaxTokens::Tokens(tokens) => tokens,
            DefaultMaxTokens::Context(_) => usize::MAX,
        };
        DefaultLength::Remaining {
            at_most: of_model.unwrap_or(default),
        }
    }
}

/// Fits a prompt of `prompt_tokens` and the requested length into a context of `context_tokens`.
pub(super) fn fit(
    prompt_tokens: usize,
    context_tokens: usize,
    length: &Length,
    default: DefaultLength,
) -> Result<Fit> {
    let default = match length.fills_context {
        true => DefaultLength::ALL,
        false => default,
    };
    let requested = match (length.max_tokens, default) {
        (Some(given), _) => given.tokens,
        (None, DefaultLength::Tokens(tokens)) => tokens,
        // At least one, so that a prompt that fills the context is an error.
        (None, DefaultLength::Remaining { at_most }) => {
            let remaining_tokens = context_tokens.saturating_sub(prompt_tokens);
            remaining_tokens.min(at_most.max(length.min_tokens)).max(1)
        }
    };
    let is_too_long = |prompt_tokens: usize| {
        prompt_tokens > context_tokens || (prompt_tokens == context_tokens && requested > 0)
    };
    let mut kept_tokens = prompt_tokens;
    if length.truncate_sequence && is_too_long(prompt_tokens) {
        kept_tokens = match requested {
            0 => context_tokens,
            _ => {
                let requested_at_most = requested.min(context_tokens.saturating_sub(1)).max(1);
                context_tokens.saturating_sub(requested_at_most).max(1)
            }
        };
    }
    let prompt = format!("The prompt has {kept_tokens} tokens");
    let given = match length.max_tokens {
        Some(MaxTokens { name, tokens }) => format!(", and {name} is {tokens}"),
        None if kept_tokens == context_tokens => ", which leave none to generate".to_owned(),
        None => String::new(),
    };
    if is_too_long(kept_tokens) {
        let sent = format!("{prompt}{given}");
        return Err(Error::exceeds_context("prompt", context_tokens, sent));
    }
    let left_tokens = context_tokens - kept_tokens;
    if requested > left_tokens && length.exceeded_behavior == ContextLengthExceededBehavior::Error {
        let (param, sent) = match length.max_tokens {
            Some(MaxTokens { name, .. }) => (name, format!("{prompt}{given}")),
            None => (
                "max_tokens",
                format!("{prompt}, and a completion has up to {requested} by default"),
            ),
        };
        return Err(Error::exceeds_context(param, context_tokens, sent));
    }
    Ok(Fit {
        kept_tokens,
        max_tokens: requested.min(left_tokens),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::switches::ContextWord;
    use ContextLengthExceededBehavior::{Error as Refuse, Truncate};

    const C: usize = 32;

    fn length(
        max_tokens: usize,
        behavior: ContextLengthExceededBehavior,
        truncate: bool,
    ) -> Length {
        Length {
            max_tokens: Some(MaxTokens {
                name: "max_tokens",
                tokens: max_tokens,
            }),
            fills_context: false,
            stop: Vec::new(),
            stop_regex: Vec::new(),
            stop_token_ids: Vec::new(),
            min_tokens: 0,
            include_stop: false,
            skip_special_tokens: true,
            ignore_eos: false,
            exceeded_behavior: behavior,
            truncate_sequence: truncate,
        }
    }

    /// `(kept, max_tokens)`, or the parameter at fault.
    fn fit_of(
        prompt_tokens: usize,
        max_tokens: usize,
        behavior: ContextLengthExceededBehavior,
        truncate: bool,
    ) -> std::result::Result<(usize, usize), String> {
        let length = length(max_tokens, behavior, truncate);
        match fit(prompt_tokens, C, &length, DefaultLength::Tokens(16)) {
            Ok(fit) => Ok((fit.kept_tokens, fit.max_tokens)),
            Err(Error::Request { param, message, .. }) => {
                let known = "This model's maximum context length is 32 tokens. The prompt has ";
                assert!(message.starts_with(known), "{message}");
                let given = format!(" tokens, and max_tokens is {max_tokens}.");
                assert!(message.ends_with(&given), "{message}");
                Err(param.unwrap())
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_request_that_fits_is_unchanged() {
        for truncate in [false, true] {
            for behavior in [Truncate, Refuse] {
                assert_eq!(fit_of(30, 2, behavior, truncate), Ok((30, 2)));
                assert_eq!(fit_of(C, 0, behavior, truncate), Ok((C, 0)));
            }
        }
    }

    #[test]
    fn case_113_the_completion_does_not_fit() {
        assert_eq!(fit_of(C - 4, 50, Truncate, false), Ok((C - 4, 4)));
        assert_eq!(fit_of(C - 4, 50, Truncate, true), Ok((C - 4, 4)));
        assert_eq!(fit_of(C - 4, usize::MAX, Truncate, true), Ok((C - 4, 4)));
        let refused = fit_of(C - 4, 50, Refuse, false);
        assert_eq!(refused, Err("max_tokens".into()));
    }

    #[test]
    fn case_114_the_prompt_does_not_fit() {
        for behavior in [Truncate, Refuse] {
            assert_eq!(fit_of(C + 10, 8, behavior, false), Err("prompt".into()));
            assert_eq!(fit_of(C, 1, behavior, false), Err("prompt".into()));
            assert_eq!(fit_of(C + 1, 0, behavior, false), Err("prompt".into()));
        }
    }

    #[test]
    fn a_long_prompt_keeps_its_end() {
        assert_eq!(fit_of(C + 10, 8, Truncate, true), Ok((C - 8, 8)));
        assert_eq!(fit_of(C, 8, Refuse, true), Ok((C - 8, 8)));
        assert_eq!(fit_of(C + 1, 0, Truncate, true), Ok((C, 0)));
        // More is requested than the context holds: one prompt token is kept.
        assert_eq!(fit_of(C, 1000, Truncate, true), Ok((1, C - 1)));
        assert_eq!(fit_of(C, 1000, Refuse, true), Err("max_tokens".into()));
    }

    #[test]
    fn tiny_contexts_do_not_overflow() {
        let length = length(5, Truncate, true);
        for context_tokens in 0..3 {
            for prompt_tokens in 1..4 {
                let fitted = fit(
                    prompt_tokens,
                    context_tokens,
                    &length,
                    DefaultLength::Tokens(16),
                );
                if let Ok(fitted) = fitted {
                    assert!(fitted.kept_tokens + fitted.max_tokens <= context_tokens);
                }
            }
        }
    }

    #[test]
    fn the_default_length() {
        let mut length = length(0, Refuse, false);
        length.max_tokens = None;
        let fit_default = |length: &Length, default| fit(10, C, length, default);
        let most = |default| fit_default(&length, default).map(|fit| fit.max_tokens);
        assert_eq!(most(DefaultLength::Tokens(16)), Ok(16));
        assert_eq!(most(DefaultLength::ALL), Ok(C - 10));
        // A limit is no request: what does not fit is no error.
        assert_eq!(most(DefaultLength::Remaining { at_most: 4 }), Ok(4));
        assert_eq!(most(DefaultLength::Remaining { at_most: 99 }), Ok(C - 10));
        length.min_tokens = 6;
        let at_least = fit_default(&length, DefaultLength::Remaining { at_most: 4 });
        assert_eq!(at_least.map(|fit| fit.max_tokens), Ok(6));
        length.fills_context = true;
        let all = fit_default(&length, DefaultLength::Remaining { at_most: 4 });
        assert_eq!(all.map(|fit| fit.max_tokens), Ok(C - 10));
    }

    #[test]
    fn whose_limit_a_message_has() {
        let tokens = DefaultMaxTokens::Tokens(7);
        let context = DefaultMaxTokens::Context(ContextWord::Context);
        let limit = |at_most| DefaultLength::Remaining { at_most };
        assert_eq!(DefaultLength::of_message(tokens, None), limit(7));
        assert_eq!(DefaultLength::of_message(tokens, Some(9)), limit(9));
        assert_eq!(DefaultLength::of_message(context, Some(9)), limit(9));
        assert_eq!(DefaultLength::of_message(context, None), DefaultLength::ALL);
        assert_eq!(DefaultLength::of_text(tokens), DefaultLength::Tokens(7));
        assert_eq!(DefaultLength::of_text(context), DefaultLength::ALL);
    }

    #[test]
    fn no_message_names_a_field_that_nobody_sent() {
        let mut length = length(0, Refuse, false);
        length.max_tokens = None;
        let message = |prompt_tokens| {
            let fitted = fit(prompt_tokens, C, &length, DefaultLength::Tokens(16));
            fitted.unwrap_err().to_string()
        };
        let context = "This model's maximum context length is 32 tokens.";
        let expected = format!("{context} The prompt has 40 tokens.");
        assert_eq!(message(40), expected);
        let expected = format!("{context} The prompt has 32 tokens, which leave none to generate.");
        assert_eq!(message(32), expected);
        let by_default = "and a completion has up to 16 by default.";
        let expected = format!("{context} The prompt has 20 tokens, {by_default}");
        assert_eq!(message(20), expected);
    }
}
