//! From the body of `POST /chat/completions` to a plan (specification 18.1), and how its result is delivered.

use serde_json::Value;

use crate::api::fields::conversation::ConversationFields;
use crate::api::fields::kinds::{Count, Flag, Word, count, flag, word};
use crate::api::fields::reasoning::{ReasoningFields, agreed};
use crate::api::fields::{
    Body, Constraint, Conversation, Field, Fields, Form, Or, Streaming, ThinkingBudget,
    TruncationSide, UnknownFieldPolicy, candidates, constraints, conversation, drafting, fields,
    functions, length, logprobs, model, out_of_range, prompt_tokens, reasoning, refused, request,
    restrictions, sampling, streaming, structured_outputs, thinking, tools, vendors,
};
use crate::api::plan::{MessageRequest, Plan};
use crate::api::switches::Switches;
use crate::engine::generation::LogprobsMode;
use crate::text::LocalTime;
use crate::{RequestFault, Result, api::error::fault};

fields! {
    ChatOwnFields {
        /// Whether the log-probabilities of the message's tokens are returned.
        logprobs: Or<Flag> = flag().or(false),
        /// The number of most likely tokens that are listed per position.
        top_logprobs: Field<Count> = count(0).at_most(20).range("only with `logprobs`"),
        /// The distribution that `logprobs` describes.
        logprobs_mode: Or<Word<LogprobsMode>> = logprobs::MODE,
        /// Put the last message's content before that of the answer, if it is of the assistant or `add_generation_prompt` is
        /// false.
        echo: Or<Flag> = flag().or(false).of("vLLM"),
        /// Whether the reasoning is part of the answer.
        include_reasoning: Field<Flag> = flag().default_is("true").of("vLLM"),
        /// Where the reasoning is: as a member of its own with `parsed`, `auto` and `deepseek`, nowhere with `hidden`.
        reasoning_format: Field<Word<bool>> = word(REASONING_FORMATS).of("Groq, llama.cpp"),
        /// The maximum number of tokens of thinking, as `budget_tokens` of `thinking`.
        thinking_token_budget: Field<Count> = count(0).of("vLLM"),
    }
}

/// Values of `reasoning_format`, and whether the answer has the reasoning.
const REASONING_FORMATS: &[(&str, bool)] = &[
    ("parsed", true),
    ("auto", true),
    ("deepseek", true),
    ("hidden", false),
];
/// Values of `reasoning_format` that put the reasoning into the content.
const UNPARSED: [&str; 3] = ["raw", "none", "deepseek-legacy"];

request! {
    /// A request for a message; `docs/api.md` says what each field means. Unknown fields are passed on.
    ChatCompletionFields:
        model::ModelFields,
        ConversationFields,
        ReasoningFields,
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
    ChatCompletionFields::names().chain(refused::names())
}

/// The delivery of the answer.
#[derive(Debug)]
pub(super) struct Delivery {
    pub streaming: Streaming,
    /// The beginning of the content of each message.
    pub echo: String,
    pub includes_reasoning: bool,
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
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let mut fields = checked_fields(body, &mut unknown)?;
    let model = model::read(&fields, switches)?;
    let Turn {
        conversation,
        constraint,
        has_functions,
    } = turn(&mut fields, switches, now)?;
    let echo = echo(&fields, switches, &conversation)?;
    model::check_user(&fields)?;
    let length = length::read_of_message(&fields, switches, None)?;
    let streaming = streaming::read(&fields, switches, &mut unknown)?;
    let (n, best_of) = candidates::read(&fields, switches, streaming.stream)?;
    let top = top_logprobs(&fields, switches)?;
    let sampling = sampling::read(&fields, switches)?;
    if best_of > switches.max_sequences {
        let bounds = format!("at most {}", switches.max_sequences);
        return Err(out_of_range("n", &bounds, best_of));
    }
    let mode = ChatOwnFields::logprobs_mode.read(&fields, switches)?;
    let logprobs = logprobs::read_of_message(&fields, switches, top, mode)?;
    let kept = prompt_tokens::read_kept(&fields, switches, TruncationSide::Left)?;
    let mut plan = Plan::of_message(MessageRequest {
        model,
        conversation,
        length,
        restrictions: restrictions::read(&fields, switches)?,
        drafting: drafting::read(&fields, switches)?,
        sampling,
        constraint,
    });
    (plan.n, plan.best_of) = (n, best_of);
    if let Some(message) = &mut plan.message {
        message.thinking_budget = thinking_budget(&fields, switches)?;
    }
    plan.logprobs = logprobs;
    plan.prompt_tokens.kept = kept;
    let delivery = Delivery {
        streaming,
        echo,
        includes_reasoning: includes_reasoning(&fields, switches)?,
        has_functions,
    };
    Ok((plan, delivery))
}

/// The fields of a body, without those that are refused by name and unknown ones that the switches refuse.
fn checked_fields(body: &[u8], unknown: &mut UnknownFieldPolicy<'_>) -> Result<Fields> {
    let fields = Body::parse_fields(body)?;
    unknown.check(fields.names(), known_fields)?;
    reasoning::check_unknown(&fields, unknown)?;
    refused::check(&fields, ChatCompletionFields::names)?;
    Ok(fields)
}

/// The conversation, and what its answer may be.
struct Turn {
    conversation: Conversation,
    constraint: Constraint,
    /// Calls have the older form.
    has_functions: bool,
}

/// Reads messages, tools and formats. Tools come before the messages: the conversation holds those that may be called.
fn turn(fields: &mut Fields, switches: &Switches, now: LocalTime) -> Result<Turn> {
    let has_functions = functions::to_tools(fields)?;
    let rename = |error| match has_functions {
        true => functions::rename(error),
        false => error,
    };
    let constraint = constraints::read(fields, switches, Form::Nested).map_err(rename)?;
    let declared = tools::read(fields, switches.tool_names, Form::Nested).map_err(rename)?;
    let usable = declared.iter().flat_map(|calls| &calls.tools);
    let usable: Vec<&str> = usable.map(|tool| &*tool.name).collect();
    let mut conversation = conversation::read(fields, &usable, switches, now)?;
    // A message has one call in the older form.
    if has_functions {
        conversation.parallel_tool_calls = Some(false);
    }
    Ok(Turn {
        conversation,
        constraint,
        has_functions,
    })
}

/// The most tokens of thinking, by one of its names.
fn thinking_budget(fields: &Fields, switches: &Switches) -> Result<Option<ThinkingBudget>> {
    let field = ChatOwnFields::thinking_token_budget;
    let thinking = thinking::read(fields, ConversationFields::thinking.name)?;
    let thinking = thinking.and_then(|thinking| thinking.budget);
    let budget = agreed(&[
        (field.name, field.read(fields, switches)?),
        (
            "thinking.budget_tokens",
            thinking.map(|budget| budget.tokens),
        ),
        ("reasoning.max_tokens", reasoning::read(fields)?.max_tokens),
    ])?;
    Ok(budget.map(|(field, tokens)| ThinkingBudget { tokens, field }))
}

/// Whether the answer has the reasoning.
fn includes_reasoning(fields: &Fields, switches: &Switches) -> Result<bool> {
    let field = ChatOwnFields::include_reasoning;
    let format = ChatOwnFields::reasoning_format;
    if let Some(Value::String(name)) = fields.get(format.name)
        && UNPARSED.contains(&&**name)
    {
        let message = format!(
            "reasoning_format \"{name}\" is not supported: reasoning is not part of the content; accepted: parsed, auto, deepseek, hidden"
        );
        let kind = RequestFault::UnsupportedParameter;
        return Err(fault(kind, format.name, message));
    }
    let excluded = reasoning::read(fields)?.exclude;
    let included = agreed(&[
        (field.name, field.read(fields, switches)?),
        (format.name, format.read(fields, switches)?),
        ("reasoning.exclude", excluded.map(|excluded| !excluded)),
    ])?;
    Ok(included.is_none_or(|(_, included)| included))
}

/// The number of most likely tokens that are listed, if log-probabilities are returned.
fn top_logprobs(fields: &Fields, switches: &Switches) -> Result<Option<usize>> {
    let has_logprobs = ChatOwnFields::logprobs.read(fields, switches)?;
    let top = ChatOwnFields::top_logprobs.read(fields, switches)?;
    if top.is_some() && !has_logprobs {
        let message = "top_logprobs is only allowed with logprobs: true";
        return Err(fault(RequestFault::InvalidValue, "top_logprobs", message));
    }
    Ok(has_logprobs.then(|| top.unwrap_or(0)))
}

/// The beginning of the content of each message: the last message's content, if the answer is of its role or continues it.
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
