//! `POST /tokenize`: the ids of a prompt or of messages.

use serde::Serialize;

use super::{conversation, ready, report_unknown};
use crate::api::endpoint::Endpoint;
use crate::api::error::{fault, rename_param};
use crate::api::fields::{
    Body, Fields, Prompt, PromptReader, conversation as messages, fields, missing, model, tools,
    wire_types,
};
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::routes::route::{Route, Upstream};
use crate::api::run::ids_of;
use crate::text::Tokenizer;
use crate::{Error, RequestFault, Result};

pub(in crate::api) static ROUTE: Route = Route {
    path: "tokenize",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Never,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "the ids of a text or of messages: [Tokens and templates](#tokens-and-templates)",
};

fields! {
    #[ts(rename = "TokenizeOwnFields")]
    OwnFields {
        /// A text, or token ids. Either this or `messages`.
        #[ts(optional, type = "string | ArrayLike<number> | null")]
        prompt: Option<()>,
        /// Another name of `prompt`, for a text.
        content: Option<String>,
        /// A conversation, which the chat template renders.
        #[ts(optional, type = "ChatMessage[] | null")]
        messages: Option<()>,
        /// Further variables of the chat template.
        #[ts(optional, type = "Record<string, unknown> | null")]
        chat_template_kwargs: Option<()>,
        /// How much the model should think, if its chat template knows the word.
        #[ts(optional, type = "\"none\" | \"minimal\" | \"low\" | \"medium\" | \"high\" | \"xhigh\" | \"max\" | null")]
        reasoning_effort: Option<()>,
        /// End the prompt of `messages` with the beginning of the assistant's message.
        add_generation_prompt: Option<bool>,
        /// Continue the last message instead of beginning one.
        continue_final_message: Option<bool>,
        /// Whether the tokenizer adds its start-of-text token to a prompt that is text; default true.
        add_special_tokens: Option<bool>,
        /// Another name of `add_special_tokens`.
        add_special: Option<bool>,
        /// Only true: texts of special tokens in a prompt become these tokens.
        #[ts(optional, type = "true | null")]
        parse_special: Option<bool>,
        /// Return the text of each token, too.
        return_token_strs: Option<bool>,
        /// Return tokens as objects with `id` and `piece`.
        with_pieces: Option<bool>,
    }
}

wire_types! {
    /// A request for token ids; `docs/api.md` says what each field means.
    pub(in crate::api) struct TokenizeFields {
        #[ts(flatten)]
        model: model::ModelFields,
        #[ts(flatten)]
        own: OwnFields,
        #[ts(flatten)]
        tools: tools::ToolFields,
    }
}

/// The ids of a prompt.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct TokenList {
    /// The number of tokens.
    count: usize,
    /// The context of the model in tokens.
    max_model_len: usize,
    tokens: Vec<u32>,
    /// The text of each token, as `logprobs` lists it; only if it was asked for.
    token_strs: Option<Vec<String>>,
}

/// The ids of a prompt with their texts, for `with_pieces`.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct TokenPieceList {
    /// The number of tokens.
    count: usize,
    /// The context of the model in tokens.
    max_model_len: usize,
    tokens: Vec<TokenPiece>,
    /// The text of each token, as `logprobs` lists it; only if it was asked for.
    token_strs: Option<Vec<String>>,
}

/// A token and its text.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct TokenPiece {
    id: u32,
    /// The bytes, where they are not whole characters.
    #[cfg_attr(test, ts(type = "string | number[]"))]
    piece: Piece,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

/// Answers the request.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let prompt = PromptReader {
        field: "prompt",
        max_prompts: 1,
        null_is_text: false,
        is_mixed: endpoint.switches.mixed_prompts,
        may_be_empty: false,
    };
    let Body { fields, prompts } = Body::parse_with(&request.body, prompt)?;
    let known = [FIELDS, messages::FIELDS, model::FIELDS, tools::FIELDS];
    report_unknown(endpoint, fields.names(), &known)?;
    let name = model::read(&fields, &endpoint.switches)?;
    let (field, prompt) = prompt_of(endpoint, &fields, prompts)?;
    model::check_user(&fields)?;
    let add_special = add_special(&fields, &prompt)?;
    if fields.boolean("parse_special")? == Some(false) {
        let message = "parse_special: special tokens of a prompt are always recognized; in messages they are text";
        let kind = RequestFault::UnsupportedParameter;
        return Err(fault(kind, "parse_special", message));
    }
    let wants_texts = fields.boolean("return_token_strs")?.unwrap_or(false);
    let wants_pieces = fields.boolean("with_pieces")?.unwrap_or(false);

    let model = ready(endpoint, &name).await?;
    let pause = || endpoint.host.sleep_ms(0);
    let ids = ids_of(prompt, add_special, &model, &pause).await;
    let tokens = ids.map_err(|error| rename_param(error, &[("prompt", field)]))?;
    let (count, max_model_len) = (tokens.len(), model.context_tokens);
    let label = |id: &u32| model.tokenizer.token_label(*id);
    let token_strs = wants_texts.then(|| tokens.iter().map(label).collect());
    let body = match wants_pieces {
        false => to_json(&TokenList {
            count,
            max_model_len,
            tokens,
            token_strs,
        }),
        true => to_json(&TokenPieceList {
            count,
            max_model_len,
            tokens: tokens
                .into_iter()
                .map(|id| piece(id, &model.tokenizer))
                .collect(),
            token_strs,
        }),
    };
    Ok(Response::json(200, body))
}

/// What is tokenized, and the field that holds it.
fn prompt_of(
    endpoint: &Endpoint,
    fields: &Fields,
    prompts: Option<Result<Vec<Prompt>>>,
) -> Result<(&'static str, Prompt)> {
    let is_null = |error: &Error| match error {
        Error::Request { fault, .. } => *fault == RequestFault::MissingRequiredParameter,
        _ => false,
    };
    let prompt = match prompts.transpose() {
        Err(error) if is_null(&error) => None,
        Err(error) => return Err(error),
        Ok(prompts) => prompts.and_then(|mut prompts| prompts.pop()),
    };
    let content = fields.string("content")?.map(str::to_owned);
    let found = [
        prompt.map(|prompt| ("prompt", prompt)),
        content.map(|text| ("content", Prompt::Text(text))),
    ];
    let mut found = found.into_iter().flatten();
    let first = found.next();
    let is_chat = fields.get("messages").is_some();
    match (first, found.next(), is_chat) {
        (None, _, true) => {
            let chat = conversation(endpoint, fields)?;
            Ok(("messages", Prompt::Conversation(Box::new(chat))))
        }
        (Some(found), None, false) => Ok(found),
        (None, _, false) => Err(missing("prompt")),
        (Some((field, _)), other, _) => {
            let other = other.map_or("messages", |(other, _)| other);
            let message = format!("{field} and {other} cannot be combined");
            Err(fault(RequestFault::ConflictingParameters, other, message))
        }
    }
}

fn add_special(fields: &Fields, prompt: &Prompt) -> Result<bool> {
    let mut given = None;
    for name in ["add_special_tokens", "add_special"] {
        let Some(value) = fields.boolean(name)? else {
            continue;
        };
        if given.replace(value).is_some_and(|other| other != value) {
            let message = format!("{name} contradicts add_special_tokens");
            return Err(fault(RequestFault::ConflictingParameters, name, message));
        }
        if value && matches!(prompt, Prompt::Conversation(_)) {
            let message =
                format!("{name}: the chat template writes the special tokens of messages");
            return Err(fault(RequestFault::UnsupportedParameter, name, message));
        }
    }
    Ok(given.unwrap_or(true))
}

fn piece(id: u32, tokenizer: &Tokenizer) -> TokenPiece {
    let bytes = tokenizer.token_bytes(id);
    let piece = match std::str::from_utf8(bytes) {
        Ok(text) => Piece::Text(text.to_owned()),
        Err(_) => Piece::Bytes(bytes.to_vec()),
    };
    TokenPiece { id, piece }
}
