//! From the body of `POST /rerank` to what is wanted.

use serde_json::Value;

use crate::Result;
use crate::api::fields::kinds::{Count, Flag, Shape, Text, count, flag, shape, text};
use crate::api::fields::{
    Body, Field, Fields, KeptTokens, Or, TruncationSide, UnknownFieldPolicy, fields, invalid_type,
    invalid_value, missing, model, prompt_tokens, request,
};
use crate::api::switches::Switches;

/// The maximum number of documents of a request.
const MAX_DOCUMENTS: usize = 2048;

fields! {
    RerankOwnFields {
        /// The text that documents are compared with.
        query: Field<Text> = text().required(),
        /// The texts to put in order, at least one and at most 2048: strings, or objects with a member `text`.
        documents: Field<Shape> = shape("string[], object[]", "(string | { text: string })[]").required(),
        /// The number of results: the best documents.
        top_n: Field<Count> = count(1).default_is("all"),
        /// Whether results contain their documents.
        return_documents: Or<Flag> = flag().or(true).of("Jina"),
        /// The maximum number of tokens of a document: those after it are cut.
        max_tokens_per_doc: Field<Count> = count(1).of("Cohere"),
        /// Scores from 0 to 1. False: the output of the model as it is.
        use_activation: Or<Flag> = flag().or(true).of("vLLM"),
    }
}

request! {
    /// A request for an order of documents; `docs/api.md` says what each field means.
    RerankFields:
        model::ModelFields,
        RerankOwnFields,
        prompt_tokens::TruncationFields,
}

/// A valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// A model's id or the alias `default`.
    pub model: String,
    pub query: String,
    /// The documents, at least one.
    pub documents: Vec<String>,
    /// Number of results.
    pub top_n: usize,
    pub returns_documents: bool,
    pub max_document_tokens: Option<usize>,
    pub uses_activation: bool,
    pub kept: KeptTokens,
}

/// Parses and validates a body. `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    mut warn_unknown: impl FnMut(&str),
) -> Result<Plan> {
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let fields = Body::parse_fields(body)?;
    unknown.check(fields.names(), RerankFields::names)?;
    let model = model::read(&fields, switches)?;
    let query = RerankOwnFields::query.read(&fields, switches)?;
    let query = query.ok_or_else(|| missing(RerankOwnFields::query.name))?;
    if query.is_empty() {
        return Err(invalid_value("query", "must not be an empty string"));
    }
    let documents = documents(&fields)?;
    let top_n = RerankOwnFields::top_n.read(&fields, switches)?;
    model::check_user(&fields)?;
    let kept = prompt_tokens::read_kept(&fields, switches, TruncationSide::Right)?;
    if kept != KeptTokens::All && kept.side() == TruncationSide::Left {
        let message = "must be \"right\": documents are cut at their end";
        return Err(invalid_value("truncation_side", message));
    }
    Ok(Plan {
        model,
        query,
        top_n: top_n.unwrap_or(documents.len()),
        documents,
        returns_documents: RerankOwnFields::return_documents.read(&fields, switches)?,
        max_document_tokens: RerankOwnFields::max_tokens_per_doc.read(&fields, switches)?,
        uses_activation: RerankOwnFields::use_activation.read(&fields, switches)?,
        kept,
    })
}

fn documents(fields: &Fields) -> Result<Vec<String>> {
    let name = RerankOwnFields::documents.name;
    let documents = fields.array(name)?.ok_or_else(|| missing(name))?;
    if documents.is_empty() || documents.len() > MAX_DOCUMENTS {
        let message = format!("must have 1 to {MAX_DOCUMENTS} documents");
        return Err(invalid_value(name, &message));
    }
    let text = |document: &Value| match document.get("text").unwrap_or(document) {
        Value::String(text) => Ok(text.clone()),
        _ => {
            let wanted = "made of strings, or of objects whose member text is one";
            Err(invalid_type(name, wanted, document))
        }
    };
    documents.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Error;

    fn parsed(body: Value) -> Result<Plan> {
        parse(body.to_string().as_bytes(), &Switches::default(), |_| ())
    }

    #[test]
    fn documents_are_texts_or_objects_with_one() {
        let documents = json!(["a", { "text": "b", "id": 3 }, ""]);
        let plan = parsed(json!({ "model": "m", "query": "q", "documents": documents })).unwrap();
        assert_eq!(plan.documents, ["a", "b", ""]);
        assert_eq!((plan.top_n, plan.kept), (3, KeptTokens::All));
        assert!(plan.returns_documents && plan.uses_activation);
    }

    #[test]
    fn invalid_members_are_named() {
        for (members, param) in [
            (json!({ "documents": ["a"] }), "query"),
            (json!({ "query": "", "documents": ["a"] }), "query"),
            (json!({ "query": ["q"], "documents": ["a"] }), "query"),
            (json!({ "query": "q" }), "documents"),
            (json!({ "query": "q", "documents": [] }), "documents"),
            (json!({ "query": "q", "documents": "a" }), "documents"),
            (json!({ "query": "q", "documents": ["a", 1] }), "documents"),
            (
                json!({ "query": "q", "documents": [{ "text": 1 }] }),
                "documents",
            ),
            (
                json!({ "query": "q", "documents": vec!["a"; 2049] }),
                "documents",
            ),
            (
                json!({ "query": "q", "documents": ["a"], "top_n": 0 }),
                "top_n",
            ),
            (
                json!({ "query": "q", "documents": ["a"], "truncate_prompt_tokens": 9, "truncation_side": "left" }),
                "truncation_side",
            ),
        ] {
            let mut body = members;
            body["model"] = "m".into();
            match parsed(body.clone()) {
                Err(Error::Request { param: found, .. }) => {
                    assert_eq!(found.as_deref(), Some(param), "{body}");
                }
                other => panic!("{body}: {other:?}"),
            }
        }
    }
}
