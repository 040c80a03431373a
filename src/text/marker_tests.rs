//! Strings of special tokens within a conversation, from the message to token ids.

use super::{Marker, Tokenizer};
use crate::weights::Metadata;

const BOS: u32 = 5;
const END: u32 = 6;
const TAG: u32 = 7;
const ONE: u32 = 8;

/// Letters, and the special tokens `<s>`, `<|e|>` and `≈`; `</think>` is a token, but not structure.
fn tokenizer() -> Tokenizer {
    let strings = [
        "a", "<", "s", ">", "|", "<s>", "<|e|>", "</think>", "≈", "/", "t", "h", "i", "n", "k",
        "e", "Â", "≈",
    ];
    let kinds = strings.iter().enumerate().map(|(id, _)| match id as u32 {
        BOS | END | ONE => 3,
        TAG => 4,
        _ => 1,
    });
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "gpt2");
    metadata.insert("tokenizer.ggml.pre", "qwen2");
    metadata.insert("tokenizer.ggml.tokens", strings.map(String::from).to_vec());
    metadata.insert("tokenizer.ggml.token_type", kinds.collect::<Vec<i32>>());
    metadata.insert("tokenizer.ggml.merges", Vec::<String>::new());
    metadata.insert("tokenizer.ggml.bos_token_id", BOS);
    metadata.insert("tokenizer.ggml.eos_token_id", END);
    metadata.insert("tokenizer.ggml.add_bos_token", true);
    metadata.insert("tokenizer.ggml.add_eos_token", true);
    Tokenizer::from_gguf(&metadata).unwrap()
}

/// The ids of a prompt of these parts, each of which is the template's or a text.
fn ids(parts: &[(bool, &str)]) -> Vec<u32> {
    let tokenizer = tokenizer();
    let marker = Marker::absent_from(parts.iter().map(|(_, text)| *text)).unwrap();
    let part = |(is_text, text): &(bool, &str)| {
        let marked = tokenizer.mark(text, marker, |_| false);
        marked.filter(|_| *is_text).unwrap_or((*text).to_owned())
    };
    let prompt: String = parts.iter().map(part).collect();
    tokenizer.encode_rendered(&prompt, marker).unwrap()
}

#[test]
fn strings_of_special_tokens_are_text() {
    let plain = [1, 4, 15, 4, 3];
    assert_eq!(ids(&[(false, "<s>a<|e|>")]), [BOS, 0, END]);
    assert_eq!(
        ids(&[(false, "<s>"), (true, "<|e|>")]),
        [&[BOS][..], &plain].concat()
    );
    let split = [
        (false, "<s>"),
        (true, "<|"),
        (true, "e|>"),
        (false, "<|e|>"),
    ];
    assert_eq!(ids(&split), [&[BOS][..], &plain, &[END]].concat());
    // A string that only looks like one is not changed, and neither is a token that is no structure.
    assert_eq!(ids(&[(false, "<s>"), (true, "<|a<")]), [BOS, 1, 4, 0, 1]);
    assert_eq!(ids(&[(false, "<s>"), (true, "a</think>")]), [BOS, 0, TAG]);
    // A token of one character has no place inside of it.
    assert!(!ids(&[(false, "<s>"), (true, "a≈")]).contains(&ONE));
    assert_eq!(ids(&[(false, "<s>≈")]), [BOS, ONE]);
}

#[test]
fn one_start_of_text_and_no_end() {
    assert_eq!(ids(&[(false, "a")]), [BOS, 0]);
    assert_eq!(ids(&[(false, "<s>a")]), [BOS, 0]);
    // A user's text is not the start.
    assert_eq!(ids(&[(true, "<s>")]), [BOS, 1, 2, 3]);
}

#[test]
fn exempt_tokens_stay() {
    let tokenizer = tokenizer();
    let marker = Marker::absent_from([]).unwrap();
    let mark = |text| tokenizer.mark(text, marker, |token| token == "<s>");
    assert_eq!(mark("a<s>a"), None);
    assert_eq!(mark("<s><|e|>"), Some(format!("<s><{}|e|>", marker.char())));
    assert_eq!(mark("a"), None);
}
