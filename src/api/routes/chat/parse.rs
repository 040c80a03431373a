//! From the body of `POST /chat/completions` to a plan (specification 18.1), and how its result is delivered.

use crate::api::fields::{
    Body, Prompt, Streaming, UnknownFieldPolicy, candidates, constraints, conversation, fields,
    length, model, out_of_range, sampling, streaming, tools, wire_types,
};
use crate::api::plan::{MessagePlan, Plan, Suffix};
use crate::api::switches::Switches;
use crate::engine::generation::LogprobsMode;
use crate::text::LocalTime;
use crate::{RequestFault, Result, api::error::fault};

fields! {
    #[ts(rename = "ChatOwnFields")]
    OwnFields {
        /// Whether the log-probabilities of the message's tokens are returned.
        logprobs: Option<bool>,
        /// How many of the most likely tokens are listed per position: 0 to 20, with `logprobs`.
        top_logprobs: Option<u32>,
        /// Which distribution `logprobs` describes.
        #[ts(optional, type = "\"raw\" | \"processed\" | null")]
        logprobs_mode: Option<LogprobsMode>,
    }
}

wire_types! {
    /// A request for a message; `docs/api.md` says what each field means. Unknown fields are passed on.
    pub(in crate::api) struct ChatCompletionFields {
        #[ts(flatten)]
        model: model::ModelFields,
        #[ts(flatten)]
        conversation: conversation::ConversationFields,
        #[ts(flatten)]
        own: OwnFields,
        #[ts(flatten)]
        length: length::LengthFields,
        #[ts(flatten)]
        streaming: streaming::StreamingFields,
        #[ts(flatten)]
        candidates: candidates::CandidateFields,
        #[ts(flatten)]
        sampling: sampling::SamplingFields,
        #[ts(flatten)]
        constraints: constraints::ConstraintFields,
        #[ts(flatten)]
        tools: tools::ToolFields,
    }
}

const MAX_TOP_LOGPROBS: i128 = 20;

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    let groups = [
        FIELDS,
        model::FIELDS,
        conversation::FIELDS,
        length::FIELDS,
        streaming::FIELDS,
        candidates::FIELDS,
        sampling::FIELDS,
        constraints::FIELDS,
        tools::FIELDS,
    ];
    groups.into_iter().flatten().copied()
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
    let Body { fields, prompts } = Body::parse(body, switches.max_prompts)?;
    if prompts.is_some() {
        unknown.report("prompt")?;
    }
    for name in fields.names() {
        if known_fields().all(|known| known != name) {
            unknown.report(name)?;
        }
    }
    let model = model::read(&fields, switches)?;
    // Tools come before the messages: the conversation holds those that may be called.
    let constraint = constraints::read(&fields)?;
    let declared = tools::read(&fields)?;
    let usable = declared.iter().flat_map(|calls| &calls.tools);
    let usable: Vec<&str> = usable.map(|tool| &*tool.name).collect();
    let conversation = conversation::read(&fields, &usable, switches, now)?;
    model::check_user(&fields)?;
    let mut length = length::read(&fields, switches)?;
    // The reader of the message decides which special tokens are text.
    length.skip_special_tokens = false;
    let streaming = streaming::read(&fields, switches, &mut unknown)?;
    let (n, best_of) = candidates::read(&fields, switches, streaming.stream)?;
    let has_logprobs = fields.boolean("logprobs")?.unwrap_or(false);
    let top_logprobs = fields.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    if top_logprobs.is_some() && !has_logprobs {
        let message = "top_logprobs is only allowed with logprobs: true";
        return Err(fault(RequestFault::InvalidValue, "top_logprobs", message));
    }
    let logprobs_mode = match fields.word("logprobs_mode", &["raw", "processed"])? {
        None => switches.logprobs_mode,
        Some("raw") => LogprobsMode::Raw,
        Some(_) => LogprobsMode::Processed,
    };
    let sampling = sampling::read(&fields, switches)?;
    if best_of > switches.max_sequences {
        let bounds = format!("at most {}", switches.max_sequences);
        return Err(out_of_range("n", &bounds, best_of));
    }
    let parallel_calls = conversation.parallel_tool_calls;
    let plan = Plan {
        model,
        prompts: vec![Prompt::Conversation(Box::new(conversation))],
        suffix: Suffix::None,
        length,
        echo: false,
        n,
        best_of,
        logprobs: has_logprobs.then(|| top_logprobs.unwrap_or(0) as usize),
        logprobs_mode,
        tokens_as_ids: false,
        sampling,
        constraint,
        message: Some(MessagePlan { parallel_calls }),
    };
    Ok((plan, streaming))
}
