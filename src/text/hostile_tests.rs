//! Hostile vocabularies and long strings: clear errors, no panics, no quadratic time.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::tests::{byte_level_metadata, sentencepiece_metadata, with_tokens};
use super::*;
use crate::weights::Metadata;

/// Builds and uses a tokenizer; an error is as acceptable as a result.
fn try_out(built: crate::Result<Tokenizer>, text: &str) {
    let Ok(tokenizer) = built else { return };
    let (ids, places) = tokenizer.encode_placed(text, true).unwrap();
    assert_eq!(ids.len(), places.len());
    assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
    assert!(
        places
            .iter()
            .all(|place| place.start <= text.chars().count())
    );
    assert!(tokenizer.fewest_tokens(text.len()) <= ids.len());
    tokenizer.decode(&ids, true);
}

fn metadata(model: &str, pre: &str, tokens: &[(String, i32)], merges: &[String]) -> Metadata {
    let mut metadata = with_tokens(model, tokens);
    metadata.insert("tokenizer.ggml.pre", pre);
    metadata.insert("tokenizer.ggml.merges", merges.to_vec());
    metadata
}

proptest! {
    #[test]
    fn any_vocabulary_is_refused_or_works(
        model in prop::sample::select(vec!["gpt2", "llama", "t5", "gemma4"]),
        pre in prop::sample::select(vec!["gpt-2", "llama3", "superbpe", "qwen2", "gemma4"]),
        tokens in prop::collection::vec(("[ab▁Ġ<>x0-9]{0,6}|<0x[0-9A-F]{2}>|<s>|</s>", -1..8i32), 0..24),
        merges in prop::collection::vec("[ab▁Ġ ]{0,5}", 0..8),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        text in "(?s)[ab▁ <s>é🦙\u{301}]{0,20}|.{0,12}",
        phi in any::<bool>(),
    ) {
        let mut metadata = metadata(model, pre, &tokens, &merges);
        if phi {
            metadata.insert("general.name", "phi-3");
            metadata.insert("tokenizer.ggml.remove_extra_whitespaces", true);
            metadata.insert("tokenizer.ggml.precompiled_charsmap", bytes);
        }
        try_out(Tokenizer::from_gguf(&metadata), &text);
    }

    #[test]
    fn any_damage_to_a_file_is_refused_or_works(
        at in any::<prop::sample::Index>(),
        by in prop::sample::select(vec!["", "\"", "{}", "null", "-1", "7", "[", "Regex", "x"]),
        cut in 0usize..6,
        text in "(?s)[ab▁ <s>é🦙\u{301}]{0,20}",
    ) {
        let whole = r#"{"added_tokens":[{"id":9,"content":"<s>","special":true}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"Removed","invert":false},{"type":"Metaspace","replacement":"▁","prepend_scheme":"never"}]},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[9]}}},"model":{"type":"BPE","unk_token":"a","byte_fallback":true,"vocab":{"a":0,"b":1,"ab":2,"▁":3},"merges":[["a","b"]]}}"#;
        let boundary = |mut index: usize| {
            while !whole.is_char_boundary(index) {
                index += 1;
            }
            index
        };
        let start = boundary(at.index(whole.len()));
        let end = boundary((start + cut).min(whole.len()));
        let damaged = format!("{}{by}{}", &whole[..start], &whole[end..]);
        let files = HuggingFaceFiles { tokenizer: damaged.as_bytes(), ..Default::default() };
        try_out(Tokenizer::from_hugging_face(&files), &text);
    }
}

#[test]
fn merges_that_repeat_or_form_no_token_are_harmless() {
    let letters = ["a", "b", "ab", "ba", "aba"].map(|text| (text.to_owned(), 1));
    // The same merge twice, and two that undo each other's order.
    let merges = ["a b", "a b", "b a", "ab a", "a ba"].map(str::to_owned);
    let metadata = metadata("gpt2", "superbpe", &letters, &merges);
    let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
    let ids = tokenizer.encode("abaab", false).unwrap();
    assert_eq!(tokenizer.decode(&ids, false), "abaab");
    // Bytes without a token, and no unknown token.
    assert_eq!(tokenizer.encode("xaé", false).unwrap(), [0]);
}

/// A quadratic algorithm takes minutes for these strings. The bound leaves room for a busy machine.
#[test]
fn long_strings_without_a_break_take_linear_time() {
    const BYTES: usize = 100_000;
    let mut tokenizers = Vec::new();
    for pre in [
        "llama3",
        "deepseek-v3",
        "exaone-moe",
        "tiny_aya",
        "superbpe",
    ] {
        let mut metadata = byte_level_metadata();
        metadata.insert("tokenizer.ggml.pre", pre);
        tokenizers.push((pre, Tokenizer::from_gguf(&metadata).unwrap()));
    }
    let scored = sentencepiece_metadata();
    tokenizers.push(("llama", Tokenizer::from_gguf(&scored).unwrap()));
    for (model, key) in [
        ("t5", "tokenizer.ggml.model"),
        ("gemma4", "tokenizer.ggml.model"),
    ] {
        let mut metadata = sentencepiece_metadata();
        metadata.insert(key, model);
        metadata.insert("tokenizer.ggml.merges", vec!["▁ a".to_owned()]);
        tokenizers.push((model, Tokenizer::from_gguf(&metadata).unwrap()));
    }
    let units = ["a", " ", "🦙", "7", "\n", "a7 \u{301}"];
    for (name, tokenizer) in &tokenizers {
        let started = Instant::now();
        for unit in units {
            let text = unit.repeat(BYTES / unit.len()) + "x";
            let ids = tokenizer.encode(&text, false).unwrap();
            assert!(!ids.is_empty());
        }
        let elapsed = started.elapsed();
        println!("{name}: {} ms", elapsed.as_millis());
        assert!(elapsed < Duration::from_secs(20), "{name}: {elapsed:?}");
    }
}
