//! From the body of `POST /chat/completions` to a plan (specification 18.1), and how its result is delivered.

use serde_json::Value;

use crate::api::fields::kinds::{Count, Flag, Word, Words, count, flag, words};
use crate::api::fields::{
    Body, Conversation, Field, Fields, Form, Or, Prompt, PromptTokens, Streaming, TruncationSide,
    UnknownFieldPolicy, candidates, constraints, conversation, drafting, fields, functions, length,
    logprobs, model, out_of_range, prompt_tokens, request, restrictions, sampling, streaming,
    structured_outputs, tools, vendors,
};
use crate::api::plan::{MessagePlan, Plan, Suffix};
use crate::api::switches::{ContextWord, DefaultMaxTokens, Switches};
use crate::engine::generation::LogprobsMode;
use crate::text::LocalTime;
use crate::{RequestFault, Result, api::error::fault};

fields! {
    ChatOwnFields {
        /// Whether the log-probabilities of the message's tokens are returned.
        logprobs: Or<Flag> = flag().or(false),
        /// How many of the most likely tokens are listed per position.
        top_logprobs: Field<Count> = count(0).at_most(20).range("only with `logprobs`"),
        /// Which distribution `logprobs` describes.
        logprobs_mode: Or<Word<LogprobsMode>> = logprobs::MODE,
        /// Put the last message's content before that of the answer, if it is of the assistant or `add_generation_prompt` is
        /// false.
        echo: Or<Flag> = flag().or(false).of("vLLM"),
        /// How long the text should be, if the chat template knows the word.
        verbosity: Field<Words> = words(&["low", "medium", "high"]),
    }
}

request! {
    /// A request for a message; `docs/api.md` says what each field means. Unknown fields are passed on.
    ChatCompletionFields:
        model::ModelFields,
        conversation::ConversationFields,
        ChatOwnFields,
        logprobs::TokenListFields,
        prompt_tokens::TruncationFields,
        vendors::VendorFields,
        drafting::DraftFields,
        length::LengthFields,
        restrictions::RestrictionFields,
        streaming::StreamingFields,
        candidates::CandidateFields,
        sampling::SamplingFields,
        constraints::FormatFields,
        constraints::GrammarFields,
        structured_outputs::StructuredFields,
        tools::ToolFields,
        functions::FunctionFields,
}

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    let refused = vendors::REFUSED_IN_CHAT.iter().map(|field| field.name);
    ChatCompletionFields::names()
        .chain(vendors::refused_names())
        .chain(refused)
}

/// The delivery of the answer.
#[derive(Debug)]
pub(super) struct Delivery {
    pub streaming: Streaming,
    /// The beginning of the content of each message.
    pub echo: String,
    /// Calls have the older form.
    pub has_functions: bool,
}

/// Parses and validates a body. `now` is what the chat template's clock shows; `warn_unknown` is called with the name of
/// each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    now: LocalTime,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Delivery)> {
    let mut unknown = UnknownFieldPolicy {
        behavior: switches.unknown_fields,
        warn: &mut warn_unknown,
    };
    let Body {
        mut fields,
        prompts,
    } = Body::parse(body, switches.max_prompts, false)?;
    if prompts.is_some() {
        unknown.report("prompt")?;
    }
    for name in fields.names() {
        if known_fields().all(|known| known != name) {
            unknown.report(name)?;
        }
    }
    vendors::check(&fields)?;
    vendors::check_in_chat(&fields)?;
    let model = model::read(&fields, switches)?;
    let has_functions = functions::to_tools(&mut fields)?;
    let rename = |error| match has_functions {
        true => functions::rename(error),
        false => error,
    };
    // Tools come before the messages: the conversation holds those that may be called.
    let constraint = constraints::read(&fields, switches, Form::Nested).map_err(rename)?;
    let declared = tools::read(&fields, switches.tool_names, Form::Nested).map_err(rename)?;
    let usable = declared.iter().flat_map(|calls| &calls.tools);
    let usable: Vec<&str> = usable.map(|tool| &*tool.name).collect();
    let mut conversation = conversation::read(&fields, &usable, switches, now)?;
    // A message has one call in the older form.
    if has_functions {
        conversation.parallel_tool_calls = Some(false);
    }
    if let Some(verbosity) = ChatOwnFields::verbosity.read(&fields, switches)? {
        let variables = &mut conversation.variables;
        variables.entry("verbosity").or_insert(verbosity.into());
    }
    let echo = echo(&fields, switches, &conversation)?;
    model::check_user(&fields)?;
    // A limit that nobody asked for does not contradict `min_tokens`.
    let no_default = DefaultMaxTokens::Context(ContextWord::Context);
    let mut length = length::read(&fields, switches, no_default, None)?;
    // The reader of the message decides which special tokens are text.
    length.skip_special_tokens = false;
    let streaming = streaming::read(&fields, switches, &mut unknown)?;
    let (n, best_of) = candidates::read(&fields, switches, streaming.stream)?;
    let has_logprobs = ChatOwnFields::logprobs.read(&fields, switches)?;
    let top_logprobs = ChatOwnFields::top_logprobs.read(&fields, switches)?;
    if top_logprobs.is_some() && !has_logprobs {
        let message = "top_logprobs is only allowed with logprobs: true";
        return Err(fault(RequestFault::InvalidValue, "top_logprobs", message));
    }
    let sampling = sampling::read(&fields, switches)?;
    if best_of > switches.max_sequences {
        let bounds = format!("at most {}", switches.max_sequences);
        return Err(out_of_range("n", &bounds, best_of));
    }
    let images = conversation.images.take();
    let parallel_calls = conversation.parallel_tool_calls;
    let plan = Plan {
        model,
        prompts: vec![Prompt::Conversation(Box::new(conversation))],
        images,
        suffix: Suffix::None,
        length,
        echo: false,
        echo_last: None,
        raw_output: false,
        perf_metrics: false,
        n,
        best_of,
        logprobs: {
            let top = has_logprobs.then(|| top_logprobs.unwrap_or(0));
            let mode = ChatOwnFields::logprobs_mode.read(&fields, switches)?;
            logprobs::read_of_message(&fields, switches, top, mode)?
        },
        prompt_tokens: PromptTokens {
            // The chat template writes the special tokens.
            add_special: false,
            kept: prompt_tokens::read_kept(&fields, switches, TruncationSide::Left)?,
        },
        restrictions: restrictions::read(&fields, switches)?,
        drafting: drafting::read(&fields, switches)?,
        sampling,
        constraint,
        message: Some(MessagePlan {
            parallel_calls,
            reasoning_tokens: None,
        }),
        repeats_delivered: false,
    };
    let delivery = Delivery {
        streaming,
        echo,
        has_functions,
    };
    Ok((plan, delivery))
}

/// What the content of each message begins with: the last message's content, if the answer is of its role or continues it.
fn echo(fields: &Fields, switches: &Switches, conversation: &Conversation) -> Result<String> {
    let is_wanted = ChatOwnFields::echo.read(fields, switches)?;
    let last = conversation.messages.last().filter(|last| {
        is_wanted && (last["role"] == "assistant" || !conversation.add_generation_prompt)
    });
    Ok(match last.map(|message| &message["content"]) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    })
}
