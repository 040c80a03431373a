//! The small files next to `tokenizer.json`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::files::HuggingFaceFiles;
use super::json::{AddedToken, parse};
use crate::Result;
use crate::text::chat_template::ChatTemplates;

/// The content of the small files, joined.
#[derive(Default)]
pub struct Config {
    /// Strings of tokens.
    pub bos_token: Option<String>,
    pub eos_token: Option<String>,
    /// These override the post-processor.
    pub add_bos_token: Option<bool>,
    pub add_eos_token: Option<bool>,
    /// Tokens that `tokenizer.json` may lack.
    pub added_tokens: Vec<AddedToken>,
    /// All ids that end a generation, if the folder lists them.
    pub end_ids: Vec<u32>,
    pub chat_templates: ChatTemplates,
}

impl Config {
    /// Reads the files that exist.
    pub fn read(files: &HuggingFaceFiles<'_>) -> Result<Config> {
        let object = |name: &str, bytes: Option<&[u8]>| match bytes {
            None => Ok(Map::new()),
            Some(bytes) => parse::<Map<String, Value>>(name, bytes),
        };
        let mut main = object("tokenizer_config.json", files.tokenizer_config)?;
        let map = object("special_tokens_map.json", files.special_tokens_map)?;
        let generation = object("generation_config.json", files.generation_config)?;
        let token = |key: &str| {
            let text = |value: &Value| {
                value
                    .get("content")
                    .unwrap_or(value)
                    .as_str()
                    .map(str::to_owned)
            };
            [&main, &map]
                .iter()
                .find_map(|file| file.get(key).and_then(text))
        };
        let flag = |key: &str| main.get(key).and_then(Value::as_bool);
        let end_ids = match generation.get("eos_token_id") {
            Some(Value::Array(ids)) => ids.iter().filter_map(id).collect(),
            Some(value) => id(value).into_iter().collect(),
            None => Vec::new(),
        };
        let processor = object("chat_template.json", files.chat_template_json)?;
        let chat_templates = match files.chat_template {
            Some(bytes) => ChatTemplates::one(&String::from_utf8_lossy(bytes)),
            None => [&processor, &main]
                .iter()
                .find_map(|file| file.get("chat_template"))
                .map(templates)
                .unwrap_or_default(),
        };
        Ok(Config {
            bos_token: token("bos_token"),
            eos_token: token("eos_token"),
            add_bos_token: flag("add_bos_token"),
            add_eos_token: flag("add_eos_token"),
            end_ids,
            chat_templates,
            added_tokens: added_tokens(main.remove("added_tokens_decoder"))?,
        })
    }
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// A template, or a list of them with their names.
fn templates(value: &Value) -> ChatTemplates {
    if let Some(text) = value.as_str() {
        return ChatTemplates::one(text);
    }
    let mut templates = ChatTemplates::default();
    for entry in value.as_array().into_iter().flatten() {
        if let (Some(name), Some(text)) = (entry["name"].as_str(), entry["template"].as_str()) {
            templates.add(name, text);
        }
    }
    templates
}

fn added_tokens(decoder: Option<Value>) -> Result<Vec<AddedToken>> {
    let Some(Value::Object(tokens)) = decoder else {
        return Ok(Vec::new());
    };
    let numbered = tokens.into_iter().filter_map(|(id, token)| {
        let mut token = AddedToken::deserialize(token).ok()?;
        token.id = id.parse().ok()?;
        Some(token)
    });
    Ok(numbered.collect())
}
