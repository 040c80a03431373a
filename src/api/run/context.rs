//! How much of a prompt and of its completion fits the model's context (specification 11).

use crate::api::error::fault;
use crate::api::fields::Length;
use crate::api::switches::{ContextLengthExceededBehavior, ContextWord, DefaultMaxTokens};
use crate::{RequestFault, Result};

/// How much of a request fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// Tokens used of the prompt, counted from its end.
    pub kept_tokens: usize,
    /// Upper bound on generated tokens; with `kept_tokens` at most the context.
    pub max_tokens: usize,
}

/// Fits a prompt of `prompt_tokens` and the requested length into a context of `context_tokens`.
pub(super) fn fit(
    prompt_tokens: usize,
    context_tokens: usize,
    length: &Length,
    default_max_tokens: DefaultMaxTokens,
) -> Result<Fit> {
    let default_max_tokens = match length.fills_context {
        true => DefaultMaxTokens::Context(ContextWord::Context),
        false => default_max_tokens,
    };
    let requested = length.max_tokens.unwrap_or(match default_max_tokens {
        DefaultMaxTokens::Tokens(tokens) => tokens,
        // All that remains, but at least one, so that a prompt that fills the context is an error.
        DefaultMaxTokens::Context(_) => context_tokens.saturating_sub(prompt_tokens).max(1),
    });
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
    let exceeded = |param: &str| {
        let message = format!(
            "{param}: the prompt has {kept_tokens} tokens and max_tokens is {requested}, \
             but the context holds {context_tokens} tokens"
        );
        Err(fault(RequestFault::ContextLengthExceeded, param, message))
    };
    if is_too_long(kept_tokens) {
        return exceeded("prompt");
    }
    let left_tokens = context_tokens - kept_tokens;
    if requested > left_tokens && length.exceeded_behavior == ContextLengthExceededBehavior::Error {
        return exceeded("max_tokens");
    }
    Ok(Fit {
        kept_tokens,
        max_tokens: requested.min(left_tokens),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use ContextLengthExceededBehavior::{Error as Refuse, Truncate};

    const C: usize = 32;

    fn length(
        max_tokens: usize,
        behavior: ContextLengthExceededBehavior,
        truncate: bool,
    ) -> Length {
        Length {
            max_tokens: Some(max_tokens),
            fills_context: false,
            stop: Vec::new(),
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
        match fit(prompt_tokens, C, &length, DefaultMaxTokens::Tokens(16)) {
            Ok(fit) => Ok((fit.kept_tokens, fit.max_tokens)),
            Err(Error::Request { param, message, .. }) => {
                for number in [C, max_tokens] {
                    assert!(message.contains(&number.to_string()), "{message}");
                }
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
                    DefaultMaxTokens::Tokens(16),
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
        let context = DefaultMaxTokens::Context(ContextWord::Context);
        let fit_default = |default| fit(10, C, &length, default).map(|fit| fit.max_tokens);
        assert_eq!(fit_default(DefaultMaxTokens::Tokens(16)), Ok(16));
        assert_eq!(fit_default(context), Ok(C - 10));
    }
}
