//! The ids that `tokenizers` gives for random strings, written by `scripts/vectors/tokenizer_oracle.py`.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::*;
use crate::weights::Metadata;

/// A text and its ids.
type Texts = Vec<(String, Vec<u32>)>;

fn check(name: &str, tokenizer: &Tokenizer, texts: &Texts) {
    assert!(texts.len() >= 20, "{name}");
    for (text, expected) in texts {
        let (ids, places) = tokenizer.encode_placed(text, false).unwrap();
        assert_eq!(&ids, expected, "{name}: {text:?}");
        let pause: Pause = &|| Box::pin(std::future::ready(()));
        for slice_bytes in [1, 7] {
            let sliced = tokenizer.encode_slices_of(slice_bytes, text, Special::None, pause);
            let sliced = pollster::block_on(sliced).unwrap();
            assert_eq!(&sliced, expected, "{name}, in slices: {text:?}");
        }
        assert!(
            places.is_sorted_by_key(|place| place.start),
            "{name}: {text:?}"
        );
    }
}

#[test]
fn every_pre_tokenizer_splits_as_the_reference_does() {
    #[derive(Deserialize)]
    struct Vectors {
        tokens: Vec<String>,
        merges: Vec<String>,
        texts: BTreeMap<String, Texts>,
    }
    let vectors = include_str!("vectors/pre_tokenizers.jsonl");
    let vectors: Vectors = serde_json::from_str(vectors).unwrap();
    let mut types = vec![1i32; vectors.tokens.len()];
    types[vectors.tokens.len() - 1] = 3;
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "gpt2");
    metadata.insert("tokenizer.ggml.tokens", vectors.tokens);
    metadata.insert("tokenizer.ggml.merges", vectors.merges);
    metadata.insert("tokenizer.ggml.token_type", types);
    assert!(vectors.texts.len() > 25);
    for (pre, texts) in &vectors.texts {
        metadata.insert("tokenizer.ggml.pre", pre.as_str());
        check(pre, &Tokenizer::from_gguf(&metadata).unwrap(), texts);
    }
}

#[test]
fn every_kind_of_tokenizer_json_encodes_as_the_reference_does() {
    #[derive(Deserialize)]
    struct Vectors {
        tokenizer: Value,
        texts: Texts,
    }
    let vectors = include_str!("vectors/files.jsonl");
    let vectors: BTreeMap<String, Vectors> = serde_json::from_str(vectors).unwrap();
    assert_eq!(vectors.len(), 7);
    for (name, Vectors { tokenizer, texts }) in &vectors {
        let file = tokenizer.to_string();
        let files = HuggingFaceFiles {
            tokenizer: file.as_bytes(),
            ..HuggingFaceFiles::default()
        };
        check(name, &Tokenizer::from_hugging_face(&files).unwrap(), texts);
    }
}
