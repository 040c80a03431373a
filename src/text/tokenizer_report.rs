//! A description of a tokenizer for people, as `inspect` reports it.

use serde::Serialize;

use super::tokenizer::Tokenizer;
use crate::weights::Metadata;

/// The properties of a file's tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "InspectedTokenizer"))]
#[serde(rename_all = "camelCase")]
pub struct TokenizerReport {
    /// The kind, as `tokenizer.ggml.model` names it in GGUF files: `gpt2` (BPE), `llama` (SentencePiece
    /// BPE), `t5` (SentencePiece unigram).
    pub kind: String,
    /// The pre-tokenizer, which splits text before BPE: `tokenizer.ggml.pre`.
    pub pre_tokenizer: Option<String>,
    /// Number of tokens.
    pub tokens: usize,
    /// Start of text.
    pub bos: Option<TokenReport>,
    /// End of text.
    pub eos: Option<TokenReport>,
    /// Whether prompts get the start-of-text token.
    pub adds_bos: bool,
    /// Whether prompts get the end-of-text token.
    pub adds_eos: bool,
    /// All tokens that end a text or a turn, the end-of-text token first.
    pub ends: Vec<TokenReport>,
    /// The tokens before the prefix, the suffix and the middle of a fill-in-the-middle prompt, if the model
    /// has them.
    pub fill_in_middle: Option<[TokenReport; 3]>,
    /// Whether the file has a chat template.
    pub has_chat_template: bool,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "InspectedToken"))]
#[serde(rename_all = "camelCase")]
pub struct TokenReport {
    /// Its id.
    pub id: u32,
    /// Its text, as `logprobs` lists it.
    pub text: String,
}

impl TokenizerReport {
    /// The report of a tokenizer that was built from `metadata`.
    pub fn of(tokenizer: &Tokenizer, metadata: &Metadata) -> TokenizerReport {
        // Both are strings: the tokenizer was built from them.
        let text = |key: &str| metadata.str(key).ok().flatten().map(str::to_owned);
        let token = |id: u32| TokenReport {
            id,
            text: tokenizer.token_label(id),
        };
        TokenizerReport {
            kind: text("tokenizer.ggml.model").unwrap_or_else(|| tokenizer.kind().to_owned()),
            pre_tokenizer: text("tokenizer.ggml.pre"),
            tokens: tokenizer.vocab_size(),
            bos: tokenizer.bos_id().map(token),
            eos: tokenizer.eos_id().map(token),
            adds_bos: tokenizer.adds_bos(),
            adds_eos: tokenizer.adds_eos(),
            ends: tokenizer.eos_ids().iter().map(|&id| token(id)).collect(),
            fill_in_middle: tokenizer.middle_ids().map(|ids| ids.map(token)),
            has_chat_template: tokenizer.chat_template().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte-level vocabulary of three letters and these special tokens.
    fn metadata(special: &[&str]) -> Metadata {
        let letters = ["a", "b", "ab"].map(String::from);
        let special = special.iter().map(|text| (*text).to_owned());
        let strings: Vec<String> = letters.into_iter().chain(special).collect();
        let kinds = strings
            .iter()
            .map(|text| if text.len() > 2 { 3 } else { 1 });
        let kinds: Vec<i32> = kinds.collect();
        let mut metadata = Metadata::new();
        metadata.insert("tokenizer.ggml.model", "gpt2");
        metadata.insert("tokenizer.ggml.pre", "qwen2");
        metadata.insert("tokenizer.ggml.tokens", strings);
        metadata.insert("tokenizer.ggml.token_type", kinds);
        metadata.insert("tokenizer.ggml.merges", vec!["a b".to_owned()]);
        metadata
    }

    #[test]
    fn reports_the_kind_and_the_special_tokens() {
        let mut metadata = metadata(&[
            "<|endoftext|>",
            "<|im_end|>",
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
        ]);
        metadata.insert("tokenizer.ggml.bos_token_id", 3u32);
        metadata.insert("tokenizer.ggml.eos_token_id", 4u32);
        metadata.insert("tokenizer.ggml.add_bos_token", true);
        metadata.insert("tokenizer.chat_template", "{{ messages }}");
        let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
        let token = |id, text: &str| TokenReport {
            id,
            text: text.to_owned(),
        };
        let [bos, eos] = [token(3, "<|endoftext|>"), token(4, "<|im_end|>")];
        let expected = TokenizerReport {
            kind: "gpt2".to_owned(),
            pre_tokenizer: Some("qwen2".to_owned()),
            tokens: 8,
            bos: Some(bos.clone()),
            eos: Some(eos.clone()),
            adds_bos: true,
            adds_eos: false,
            ends: vec![eos, bos],
            fill_in_middle: Some([
                token(5, "<|fim_prefix|>"),
                token(6, "<|fim_suffix|>"),
                token(7, "<|fim_middle|>"),
            ]),
            has_chat_template: true,
        };
        assert_eq!(TokenizerReport::of(&tokenizer, &metadata), expected);
    }

    #[test]
    fn chat_templates_may_have_names() {
        let mut metadata = metadata(&[]);
        metadata.insert("tokenizer.chat_template", "a");
        metadata.insert("tokenizer.chat_template.tool_use", "b");
        metadata.insert("tokenizer.chat_template.unlisted", "c");
        let names = ["tool_use", "missing"].map(String::from).to_vec();
        metadata.insert("tokenizer.chat_templates", names);
        let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
        let templates = tokenizer.chat_templates();
        assert_eq!(templates.choose(false), Some("a"));
        assert_eq!(templates.choose(true), Some("b"));
        assert_eq!(templates.get("unlisted"), None);
    }

    #[test]
    fn missing_tokens_are_not_reported() {
        let metadata = metadata(&[]);
        let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
        let report = TokenizerReport::of(&tokenizer, &metadata);
        assert_eq!((report.tokens, report.ends.len()), (3, 0));
        assert!(report.bos.is_none() && report.eos.is_none());
        assert!(report.fill_in_middle.is_none() && !report.has_chat_template);
    }
}
