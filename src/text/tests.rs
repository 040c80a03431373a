//! The tokenizer and detokenizer on small vocabularies built here.

use std::rc::Rc;

use proptest::prelude::*;

use super::byte_level::CHAR_OF_BYTE;
use super::*;
use crate::Error;
use crate::weights::Metadata;

const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

pub(super) fn with_tokens(model: &str, tokens: &[(String, i32)]) -> Metadata {
    let mut metadata = Metadata::new();
    let strings: Vec<String> = tokens.iter().map(|token| token.0.clone()).collect();
    let types: Vec<i32> = tokens.iter().map(|token| token.1).collect();
    metadata.insert("tokenizer.ggml.model", model);
    metadata.insert("tokenizer.ggml.scores", vec![-1.0f32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", types);
    metadata
}

/// Ids 0..=255 are the bytes, then "he", "hé" cut after its first byte, and special tokens.
pub(super) fn byte_level_metadata() -> Metadata {
    let mut tokens: Vec<(String, i32)> = CHAR_OF_BYTE
        .iter()
        .map(|&character| (character.to_string(), NORMAL))
        .collect();
    tokens.push(("he".to_owned(), NORMAL));
    tokens.push((format!("h{}", CHAR_OF_BYTE[0xC3]), NORMAL));
    tokens.push(("<|endoftext|>".to_owned(), CONTROL));
    tokens.push(("<think>".to_owned(), USER_DEFINED));
    tokens.push(("[PAD7]".to_owned(), UNUSED));
    let mut metadata = with_tokens("gpt2", &tokens);
    metadata.insert("tokenizer.ggml.pre", "gpt-2");
    let merges = vec!["h e".to_owned(), format!("h {}", CHAR_OF_BYTE[0xC3])];
    metadata.insert("tokenizer.ggml.merges", merges);
    metadata
}

const END: u32 = 258;
const THINK: u32 = 259;
const PAD: u32 = 260;

pub(super) fn sentencepiece_metadata() -> Metadata {
    let mut tokens = vec![
        ("<unk>".to_owned(), 2),
        ("<s>".to_owned(), CONTROL),
        ("</s>".to_owned(), CONTROL),
    ];
    tokens.extend((0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
    tokens.extend(["▁", "a", "▁a"].map(|text| (text.to_owned(), NORMAL)));
    with_tokens("llama", &tokens)
}

pub(super) fn build(metadata: &Metadata) -> Rc<Tokenizer> {
    Rc::new(Tokenizer::from_gguf(metadata).unwrap())
}

fn invalid(metadata: &Metadata) -> String {
    match Tokenizer::from_gguf(metadata) {
        Err(Error::InvalidModelFile(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn byte_level_encodes_merges_and_special_tokens() {
    let tokenizer = build(&byte_level_metadata());
    let ids = tokenizer.encode("heh<think>é<|endoftext|>", true).unwrap();
    assert_eq!(ids, [256, u32::from(b'h'), THINK, 0xC3, 0xA9, END]);
    assert_eq!(tokenizer.decode(&ids, false), "heh<think>é<|endoftext|>");
    assert_eq!(tokenizer.decode(&ids, true), "heh<think>é");
    assert_eq!(tokenizer.eos_ids(), [END]);
    assert_eq!(tokenizer.bos_id(), None);
    assert_eq!(tokenizer.document_start_id(), Some(END));
    assert_eq!(tokenizer.special_id("<|endoftext|>"), Some(END));
    assert_eq!(tokenizer.special_id("<think>"), None, "visible text");
    assert_eq!(tokenizer.token_bytes(PAD), b"");
    assert_eq!(tokenizer.token_bytes(u32::MAX), b"");
    assert!(!tokenizer.is_special(u32::MAX));
}

#[test]
fn labels_show_bytes_that_are_not_text() {
    let tokenizer = build(&byte_level_metadata());
    assert_eq!(tokenizer.token_label(256), "he");
    assert_eq!(tokenizer.token_label(257), r"bytes:\x68\xc3");
    assert_eq!(tokenizer.token_label(END), "<|endoftext|>");
}

#[test]
fn start_and_end_of_text_follow_the_file() {
    let mut metadata = byte_level_metadata();
    metadata.insert("tokenizer.ggml.bos_token_id", END);
    metadata.insert("tokenizer.ggml.eos_token_id", END);
    metadata.insert("tokenizer.ggml.add_bos_token", true);
    metadata.insert("tokenizer.ggml.add_eos_token", true);
    let tokenizer = build(&metadata);
    assert!(tokenizer.adds_bos());
    assert_eq!(tokenizer.encode("he", true).unwrap(), [END, 256, END]);
    assert_eq!(tokenizer.encode("he", false).unwrap(), [256]);

    metadata.insert("tokenizer.ggml.bos_token_id", 1_000_000u32);
    assert!(invalid(&metadata).contains("add_bos_token"));
    metadata.insert("tokenizer.ggml.bos_token_id", -1i32);
    assert!(invalid(&metadata).contains("add_bos_token"));
    metadata.insert("tokenizer.ggml.bos_token_id", "one");
    assert!(invalid(&metadata).contains("bos_token_id"));
}

#[test]
fn sentencepiece_falls_back_to_bytes_and_handles_the_prefix_space() {
    let tokenizer = build(&sentencepiece_metadata());
    let (space, a, space_a) = (259, 260, 261);
    let byte = |byte: u8| 3 + u32::from(byte);
    let ids = tokenizer.encode("aé a", true).unwrap();
    assert_eq!(ids, [1, space_a, byte(0xC3), byte(0xA9), space_a]);
    assert_eq!(tokenizer.decode(&ids, true), "aé a");
    assert_eq!(tokenizer.encode(" a", false).unwrap(), [space, space_a]);
    assert_eq!(tokenizer.encode("<s>a", false).unwrap(), [1, space_a]);

    let mut after_prompt = Detokenizer::new(tokenizer.clone(), &ids, true);
    assert_eq!(after_prompt.push(space_a), " a");
    let mut from_start = Detokenizer::new(tokenizer, &[], true);
    assert_eq!(from_start.push(1), "");
    assert_eq!(from_start.push(space_a), "a");
    assert_eq!(from_start.push(space_a), " a");

    let mut metadata = sentencepiece_metadata();
    metadata.insert("tokenizer.ggml.add_space_prefix", false);
    assert_eq!(build(&metadata).encode("a", false).unwrap(), [a]);
}

#[test]
fn detokenizer_releases_whole_characters_only() {
    let tokenizer = build(&byte_level_metadata());
    let mut detokenizer = Detokenizer::new(tokenizer, &[1], true);
    assert_eq!(detokenizer.push(257), "h");
    assert_eq!(detokenizer.pending_bytes(), 1);
    assert_eq!(
        detokenizer.push(END),
        "",
        "a hidden token does not break a character"
    );
    assert_eq!(detokenizer.push(0xA9), "é");
    assert_eq!(detokenizer.push(0xF0), "");
    assert_eq!(detokenizer.finish(), "\u{FFFD}");
}

#[test]
fn missing_and_contradictory_metadata_is_named() {
    assert!(invalid(&Metadata::new()).contains("tokenizer.ggml.model"));

    let mut metadata = byte_level_metadata();
    metadata.insert("tokenizer.ggml.pre", "martian");
    let Err(Error::UnsupportedModel(message)) = Tokenizer::from_gguf(&metadata) else {
        panic!("accepted");
    };
    assert!(message.contains("martian"), "{message}");
    metadata.insert("tokenizer.ggml.model", "rwkv");
    let Err(Error::UnsupportedModel(message)) = Tokenizer::from_gguf(&metadata) else {
        panic!("accepted");
    };
    assert!(message.contains("rwkv"), "{message}");

    let long = "x".repeat(100);
    for merge in [
        "he",
        " h",
        "h ",
        "h h",
        "absent e",
        &format!("{long} {long}"),
        "",
    ] {
        let mut metadata = byte_level_metadata();
        metadata.insert("tokenizer.ggml.merges", vec![merge.to_owned()]);
        assert!(invalid(&metadata).contains("merges"), "{merge}");
    }

    let mut metadata = byte_level_metadata();
    metadata.insert("tokenizer.ggml.token_type", vec![1i32]);
    assert!(invalid(&metadata).contains("token_type"));
    metadata.insert("tokenizer.ggml.tokens", Vec::<String>::new());
    assert!(invalid(&metadata).contains("tokens"));

    let mut metadata = sentencepiece_metadata();
    metadata.insert("tokenizer.ggml.scores", vec![0f32; 3]);
    assert!(invalid(&metadata).contains("scores"));

    let tokens = [("<unk>".to_owned(), 2), ("<0xZZ>".to_owned(), BYTE)];
    assert!(invalid(&with_tokens("llama", &tokens)).contains("<0xZZ>"));
}

#[test]
fn repeated_and_empty_tokens_are_tolerated() {
    let mut metadata = byte_level_metadata();
    let mut strings = metadata
        .strings("tokenizer.ggml.tokens")
        .unwrap()
        .unwrap()
        .to_vec();
    strings.extend(["he", "", "<|endoftext|>"].map(str::to_owned));
    let mut types = vec![NORMAL; strings.len()];
    types[END as usize] = CONTROL;
    types[strings.len() - 2] = CONTROL;
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", types);
    let tokenizer = build(&metadata);
    assert_eq!(
        tokenizer.encode("he<|endoftext|>", false).unwrap(),
        [256, END]
    );
}

proptest! {
    #[test]
    fn pushes_and_finish_are_the_lossy_decoding_of_the_joined_bytes(
        ids in prop::collection::vec(
            prop_oneof![0u32..264, 0x80u32..0xC0, 0xC0u32..0x100, Just(u32::MAX)], 0..40),
        skip_special in any::<bool>(),
    ) {
        let tokenizer = build(&byte_level_metadata());
        let mut joined = Vec::new();
        for &id in &ids {
            if !(skip_special && tokenizer.is_special(id)) {
                joined.extend_from_slice(tokenizer.token_bytes(id));
            }
        }
        let mut detokenizer = Detokenizer::new(tokenizer.clone(), &[END], skip_special);
        let mut text: String = ids.iter().map(|&id| detokenizer.push(id)).collect();
        text += &detokenizer.finish();
        prop_assert_eq!(&text, &String::from_utf8_lossy(&joined));
        prop_assert_eq!(tokenizer.decode(&ids, skip_special), text);
    }

    #[test]
    fn no_text_has_fewer_tokens_than_the_bound(text in "(?s)[sa é🦙]{1,9}|.{1,9}", times in 1usize..200) {
        let text = text.repeat(times);
        for tokenizer in [build(&byte_level_metadata()), build(&sentencepiece_metadata())] {
            let ids = tokenizer.encode(&text, false).unwrap();
            prop_assert!(tokenizer.fewest_tokens(text.len()) <= ids.len());
        }
    }

    #[test]
    fn any_text_survives_a_round_trip(text in "(?s)[<>|sa é▁🦙\\n]{0,30}|.{0,30}") {
        let byte_level = build(&byte_level_metadata());
        let ids = byte_level.encode(&text, true).unwrap();
        prop_assert_eq!(byte_level.decode(&ids, false), &text[..]);

        // SentencePiece writes a space as ▁, so both decode to a space.
        let sentencepiece = build(&sentencepiece_metadata());
        let ids = sentencepiece.encode(&text, false).unwrap();
        prop_assume!(!ids.iter().any(|&id| sentencepiece.is_special(id)));
        prop_assert_eq!(sentencepiece.decode(&ids, true), text.replace('▁', " "));
    }
}
