//! `POST /tokenize`: the ids of a prompt or of messages.

use serde::Serialize;

use super::{check_fields, conversation, ready};
use crate::api::endpoint::Endpoint;
use crate::api::error::{fault, rename_param};
use crate::api::fields::images::RequestImages;
use crate::api::fields::kinds::{Flag, Shape, Text, flag, shape, text};
use crate::api::fields::{
    Body, Field, Fields, Or, Prompt, PromptReader, conversation as messages, fields, functions,
    missing, model, reasoning, request, tools,
};
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::routes::route::{Route, Upstream};
use crate::api::run::ids_of;
use crate::api::switches::Switches;
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
    #[cfg(test)]
    fields: TokenizeFields::listed,
};

fields! {
    TokenizeOwnFields {
        /// A string as completions read it, or token ids. Either this or `messages`.
        prompt: Field<Shape> = shape("string, int[]", "string | ArrayLike<number>"),
        /// Another name of `prompt`, for a string.
        content: Field<Text> = text().of("llama.cpp"),
        /// A conversation, which the chat template renders.
        messages: Field<Shape> = shape("object[]", "ChatMessage[]"),
        /// Whether the tokenizer adds its start-of-text token to a prompt that is text. Not with `messages`.
        add_special_tokens: Or<Flag> = flag().or(true).of("vLLM"),
        /// Another name of `add_special_tokens`.
        add_special: Field<Flag> = flag().of("llama.cpp"),
        /// Must be true: the strings of special tokens in a prompt become these tokens.
        parse_special: Or<Flag> = flag().or(true).of("llama.cpp"),
        /// Return the text of each token, too.
        return_token_strs: Or<Flag> = flag().or(false).of("vLLM"),
        /// Return tokens as objects, such as `{"id": 1, "piece": "<s>"}`; a piece is an array of bytes where these are not
        /// whole characters.
        with_pieces: Or<Flag> = flag().or(false).of("llama.cpp"),
    }
}

request! {
    /// A request for token ids; `docs/api.md` says what each field means.
    TokenizeFields:
        model::ModelFields,
        messages::ConversationFields,
        reasoning::ReasoningFields,
        TokenizeOwnFields,
        tools::ToolFields,
        functions::FunctionFields,
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

/// The ids of a prompt with their strings, for `with_pieces`.
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
        field: TokenizeOwnFields::prompt.name,
        max_prompts: 1,
        null_is_text: false,
        is_mixed: endpoint.switches.mixed_prompts,
        may_be_empty: false,
    };
    let Body {
        mut fields,
        prompts,
    } = Body::parse_with(&request.body, prompt)?;
    check_fields(endpoint, &fields, TokenizeFields::names)?;
    let switches = &endpoint.switches;
    let name = model::read(&fields, switches)?;
    let (field, mut prompt) = prompt_of(endpoint, &mut fields, prompts)?;
    model::check_user(&fields)?;
    let add_special = add_special(&fields, switches, &prompt)?;
    if !TokenizeOwnFields::parse_special.read(&fields, switches)? {
        let message = "parse_special: special tokens of a prompt are always recognized; in messages they are text";
        let kind = RequestFault::UnsupportedParameter;
        return Err(fault(kind, TokenizeOwnFields::parse_special.name, message));
    }
    let wants_texts = TokenizeOwnFields::return_token_strs.read(&fields, switches)?;
    let wants_pieces = TokenizeOwnFields::with_pieces.read(&fields, switches)?;

    let mut images = match &mut prompt {
        Prompt::Conversation(chat) => chat.images.take(),
        _ => RequestImages::none(field),
    };
    images.attach(&request.attachments)?;
    let model = ready(endpoint, &name).await?;
    let ids = ids_of(prompt, &images, add_special, &model, endpoint).await;
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

/// The input, and the field that holds it.
fn prompt_of(
    endpoint: &Endpoint,
    fields: &mut Fields,
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
    let content = TokenizeOwnFields::content.read(fields, &endpoint.switches)?;
    let found = [
        prompt.map(|prompt| (TokenizeOwnFields::prompt.name, prompt)),
        content.map(|text| (TokenizeOwnFields::content.name, Prompt::Text(text))),
    ];
    let mut found = found.into_iter().flatten();
    let first = found.next();
    let messages = TokenizeOwnFields::messages.name;
    let is_chat = fields.get(messages).is_some();
    match (first, found.next(), is_chat) {
        (None, _, true) => {
            let chat = conversation(endpoint, fields)?;
            Ok((messages, Prompt::Conversation(Box::new(chat))))
        }
        (Some(found), None, false) => Ok(found),
        (None, _, false) => Err(missing(TokenizeOwnFields::prompt.name)),
        (Some((field, _)), other, _) => {
            let other = other.map_or(messages, |(other, _)| other);
            let message = format!("{field} and {other} cannot be combined");
            Err(fault(RequestFault::ConflictingParameters, other, message))
        }
    }
}

fn add_special(fields: &Fields, switches: &Switches, prompt: &Prompt) -> Result<bool> {
    let (one, other) = (
        TokenizeOwnFields::add_special_tokens,
        TokenizeOwnFields::add_special,
    );
    let mut given = None;
    for (name, value) in [
        (one.name, one.given(fields, switches)?),
        (other.name, other.read(fields, switches)?),
    ] {
        let Some(value) = value else { continue };
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
    Ok(given.unwrap_or(const { TokenizeOwnFields::add_special_tokens.fixed_default() }))
}

fn piece(id: u32, tokenizer: &Tokenizer) -> TokenPiece {
    let bytes = tokenizer.token_bytes(id);
    let piece = match std::str::from_utf8(bytes) {
        Ok(text) => Piece::Text(text.to_owned()),
        Err(_) => Piece::Bytes(bytes.to_vec()),
    };
    TokenPiece { id, piece }
}
