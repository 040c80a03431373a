//! From the body of `POST /chat/completions` to a plan (specification 18.1), and how its result is delivered.

use crate::api::fields::kinds::{Count, Flag, Word, count, flag};
use crate::api::fields::{
    Body, Field, Form, KeptTokens, Logprobs, Or, Prompt, PromptTokens, Streaming,
    UnknownFieldPolicy, candidates, constraints, conversation, fields, length, logprobs, model,
    out_of_range, request, restrictions, sampling, streaming, structured_outputs, tools, vendors,
};
use crate::api::plan::{MessagePlan, Plan, Suffix};
use crate::api::switches::{ContextWord, DefaultMaxTokens, LogprobsShape, Switches};
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
    }
}

request! {
    /// A request for a message; `docs/api.md` says what each field means. Unknown fields are passed on.
    ChatCompletionFields:
        model::ModelFields,
        conversation::ConversationFields,
        ChatOwnFields,
        vendors::VendorFields,
        length::LengthFields,
        restrictions::RestrictionFields,
        streaming::StreamingFields,
        candidates::CandidateFields,
        sampling::SamplingFields,
        constraints::FormatFields,
        constraints::GrammarFields,
        structured_outputs::StructuredFields,
        tools::ToolFields,
}

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    ChatCompletionFields::names().chain(vendors::refused_names())
}

/// Parses and validates a body. `now` is what the chat template's clock shows; `warn_unknown` is called with the name of
/// each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    now: LocalTime,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Streaming)> {
    let mut unknown = UnknownFieldPolicy {
        behavior: switches.unknown_fields,
        warn: &mut warn_unknown,
    };
    let Body { fields, prompts } = Body::parse(body, switches.max_prompts, false)?;
    if prompts.is_some() {
        unknown.report("prompt")?;
    }
    for name in fields.names() {
        if known_fields().all(|known| known != name) {
            unknown.report(name)?;
        }
    }
    vendors::check(&fields)?;
    let model = model::read(&fields, switches)?;
    // Tools come before the messages: the conversation holds those that may be called.
    let constraint = constraints::read(&fields, switches, Form::Nested)?;
    let declared = tools::read(&fields, switches.tool_names, Form::Nested)?;
    let usable = declared.iter().flat_map(|calls| &calls.tools);
    let usable: Vec<&str> = usable.map(|tool| &*tool.name).collect();
    let mut conversation = conversation::read(&fields, &usable, switches, now)?;
    model::check_user(&fields)?;
    let fill_context = DefaultMaxTokens::Context(ContextWord::Context);
    let mut length = length::read(&fields, switches, fill_context, None)?;
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
        logprobs: Logprobs {
            top: has_logprobs.then(|| top_logprobs.unwrap_or(0)),
            mode: ChatOwnFields::logprobs_mode.read(&fields, switches)?,
            shape: LogprobsShape::Content,
            tokens_as_ids: false,
            token_ids: false,
            prompt: None,
        },
        // The chat template writes the special tokens.
        prompt_tokens: PromptTokens {
            add_special: false,
            kept: KeptTokens::All,
        },
        restrictions: restrictions::read(&fields, switches)?,
        sampling,
        constraint,
        message: Some(MessagePlan { parallel_calls }),
        repeats_delivered: false,
    };
    Ok((plan, streaming))
}
