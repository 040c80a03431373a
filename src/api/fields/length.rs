//! The length and the end of a completion (specification 4.3, 6 and 11): limits, stop strings and expressions,
//! context rules. They are applied in `run`.

use super::declare::{Field, Or, fields};
use super::kinds::{
    Count, Flag, Integer, Strings, TokenIds, Word, count, flag, integer, strings, token_ids, word,
};
use super::reader::{Fields, invalid_value, out_of_range};
use crate::api::error::fault;
use crate::api::switches::{
    ContextLengthExceededBehavior, ContextWord, DefaultMaxTokens, Switches,
};
use crate::grammar::stop_pattern;
use crate::text::StopPattern;
use crate::{Error, RequestFault, Result};

fields! {
    LengthFields {
        /// The maximum number of tokens of a completion; 0 generates nothing.
        max_tokens: Field<Count> = count(0).default_is("switch `defaultMaxTokens`; of messages: what the model's files say, else `defaultMaxMessageTokens`, as far as it fits"),
        /// The same as `max_tokens`; if several of its names are given, they must be equal.
        max_completion_tokens: Field<Count> = count(0),
        /// The same as `max_tokens`; -1: until the context is full.
        n_predict: Field<Integer> = integer(-1).of("llama.cpp"),
        /// Strings that end the completion.
        stop: Field<Strings> = strings().up_to("maxStopSequences", |it| it.max_stop_sequences).or_one(),
        /// Regular expressions that end the completion where they match.
        stop_regex: Field<Strings> =
            strings().up_to("maxStopSequences", |it| it.max_stop_sequences).or_one().of("SGLang"),
        /// Token ids that end the completion.
        stop_token_ids: Field<TokenIds> = token_ids(1024).of("vLLM"),
        /// Before the completion has this many tokens, end of text and stop ids are forbidden and stop strings do not count.
        min_tokens: Or<Count> = count(0).or(0).range("at most `max_tokens`").of("vLLM"),
        /// Whether the completion includes the stop string that ended it.
        include_stop_str_in_output: Or<Flag> =
            flag().or_switch("stopTextIncluded", |it| it.stop_text_included).of("vLLM"),
        /// Whether special tokens are left out of the text.
        skip_special_tokens: Or<Flag> = flag().or(true).of("vLLM"),
        /// Continue after an end-of-text token.
        ignore_eos: Or<Flag> = flag().or(false).of("vLLM, llama.cpp, Fireworks"),
        /// The behavior when the prompt and `max_tokens` exceed the context.
        context_length_exceeded_behavior: Or<Word<ContextLengthExceededBehavior>> = word(&[
            ("truncate", ContextLengthExceededBehavior::Truncate),
            ("error", ContextLengthExceededBehavior::Error),
        ])
        .or_switch("contextLengthExceededBehavior", |it| it.context_length_exceeded_behavior)
        .of("Fireworks"),
        /// Drop the start of a prompt that is too long.
        truncate_sequence: Or<Flag> = flag().or(false).of("mistral.rs"),
    }
}

/// The fields of this group.
#[derive(Debug, Clone)]
pub(in crate::api) struct Length {
    /// `None`: the switch `defaultMaxTokens` decides.
    pub max_tokens: Option<MaxTokens>,
    /// Without `max_tokens`: generate until the context is full, whatever the switch says.
    pub fills_context: bool,
    /// Strings that end the completion; none is empty.
    pub stop: Vec<String>,
    pub stop_regex: Vec<StopPattern>,
    /// They end a choice like stop strings.
    pub stop_token_ids: Vec<u32>,
    /// Tokens before which no end-of-text token, stop id or stop string ends a choice.
    pub min_tokens: usize,
    pub include_stop: bool,
    pub skip_special_tokens: bool,
    pub ignore_eos: bool,
    pub exceeded_behavior: ContextLengthExceededBehavior,
    /// Shorten a prompt that is too long from its start.
    pub truncate_sequence: bool,
}

/// The given limit of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct MaxTokens {
    /// The field that gives it.
    pub name: &'static str,
    pub tokens: usize,
}

/// `default_max_tokens` holds without `max_tokens`. `own_name` is what the route calls `max_tokens` besides its names in
/// [`LengthFields`].
pub(in crate::api) fn read(
    fields: &Fields,
    switches: &Switches,
    default_max_tokens: DefaultMaxTokens,
    own_name: Option<&'static str>,
) -> Result<Length> {
    let (max_tokens, fills_context) = max_tokens(fields, switches, own_name)?;
    Ok(Length {
        stop: LengthFields::stop
            .read(fields, switches)?
            .unwrap_or_default(),
        stop_regex: stop_regex(fields, switches)?,
        stop_token_ids: LengthFields::stop_token_ids
            .read(fields, switches)?
            .unwrap_or_default(),
        min_tokens: {
            let given = LengthFields::min_tokens.read(fields, switches)?;
            min_tokens(given, max_tokens, fills_context, default_max_tokens)?
        },
        include_stop: LengthFields::include_stop_str_in_output.read(fields, switches)?,
        skip_special_tokens: LengthFields::skip_special_tokens.read(fields, switches)?,
        ignore_eos: LengthFields::ignore_eos.read(fields, switches)?,
        exceeded_behavior: LengthFields::context_length_exceeded_behavior.read(fields, switches)?,
        truncate_sequence: LengthFields::truncate_sequence.read(fields, switches)?,
        max_tokens,
        fills_context,
    })
}

/// Same as [`read`], for a message. Its reader decides which special tokens are text.
pub(in crate::api) fn read_of_message(
    fields: &Fields,
    switches: &Switches,
    own_name: Option<&'static str>,
) -> Result<Length> {
    // A limit that the request does not set does not contradict `min_tokens`.
    let no_default = DefaultMaxTokens::Context(ContextWord::Context);
    let length = read(fields, switches, no_default, own_name)?;
    Ok(Length {
        skip_special_tokens: false,
        ..length
    })
}

fn stop_regex(fields: &Fields, switches: &Switches) -> Result<Vec<StopPattern>> {
    let field = LengthFields::stop_regex;
    let given = field.read(fields, switches)?.unwrap_or_default();
    let patterns = given.iter().map(|it| stop_pattern(it));
    patterns
        .collect::<std::result::Result<_, String>>()
        .map_err(|reason| invalid_value(field.name, reason))
}

/// The number of tokens if one is given, and whether `n_predict` asks for all that fit.
fn max_tokens(
    fields: &Fields,
    switches: &Switches,
    own_name: Option<&'static str>,
) -> Result<(Option<MaxTokens>, bool)> {
    let own = own_name.map_or(Ok(None), |name| fields.count(name))?;
    let mut given = either(None, own_name.unwrap_or_default(), own)?;
    for field in [
        LengthFields::max_tokens,
        LengthFields::max_completion_tokens,
    ] {
        given = either(given, field.name, field.read(fields, switches)?)?;
    }
    match LengthFields::n_predict.read(fields, switches)? {
        Some(-1) if given.is_some() => Err(differs("n_predict", -1)),
        Some(-1) => Ok((None, true)),
        predicted => {
            let tokens = |tokens| usize::try_from(tokens).unwrap_or(usize::MAX);
            Ok((either(given, "n_predict", predicted.map(tokens))?, false))
        }
    }
}

/// The limit that was `given` so far, or else the `tokens` of the field `name`. Both must be equal.
fn either(
    given: Option<MaxTokens>,
    name: &'static str,
    tokens: Option<usize>,
) -> Result<Option<MaxTokens>> {
    match (given, tokens) {
        (Some(given), Some(tokens)) if given.tokens != tokens => Err(differs(name, tokens)),
        (given, tokens) => Ok(given.or(tokens.map(|tokens| MaxTokens { name, tokens }))),
    }
}

fn differs(alias: &str, given: impl std::fmt::Display) -> Error {
    let message = format!("{alias} is {given}, but another name of it has another value");
    fault(RequestFault::ConflictingParameters, alias, message)
}

fn min_tokens(
    min_tokens: usize,
    max_tokens: Option<MaxTokens>,
    fills_context: bool,
    default_max_tokens: DefaultMaxTokens,
) -> Result<usize> {
    let given = max_tokens.map(|given| given.tokens);
    let most = given.or(match default_max_tokens {
        DefaultMaxTokens::Tokens(tokens) if !fills_context => Some(tokens),
        _ => None,
    });
    match most {
        Some(most) if min_tokens > most => {
            let bounds = format!("at most max_tokens = {most}");
            Err(out_of_range("min_tokens", &bounds, min_tokens))
        }
        _ => Ok(min_tokens),
    }
}
