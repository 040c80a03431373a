//! Tokenizers described by small `tokenizer.json` files written here.

use serde_json::{Value, json};

use super::*;
use crate::text::Tokenizer;

fn read(tokenizer: &Value, config: &Value) -> Result<Tokenizer> {
    Tokenizer::from_hugging_face(&HuggingFaceFiles {
        tokenizer: tokenizer.to_string().as_bytes(),
        tokenizer_config: Some(config.to_string().as_bytes()),
        ..HuggingFaceFiles::default()
    })
}

fn build(tokenizer: &Value) -> Tokenizer {
    read(tokenizer, &json!({})).unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, true).unwrap()
}

fn added(id: u32, content: &str, special: bool) -> Value {
    json!({"id": id, "content": content, "special": special})
}

/// "h", "e", "he", "Ġ", "Ġhe", then an end-of-turn token and a tag.
fn byte_level() -> Value {
    json!({
        "added_tokens": [added(5, "<|im_end|>", true), added(6, "<tag>", false)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "post_processor": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {"h": 0, "e": 1, "he": 2, "Ġ": 3, "Ġhe": 4},
            "merges": [["h", "e"], "Ġ he"],
        },
    })
}

/// "▁", "a", "▁a", "b" after the three usual special tokens; no byte tokens.
fn sentencepiece() -> Value {
    json!({
        "added_tokens": [added(0, "<unk>", true), added(1, "<s>", true), added(2, "</s>", true)],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
            "special_tokens": {"<s>": {"ids": [1]}},
        },
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
            "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "▁a": 5, "b": 6},
            "merges": ["▁ a"],
        },
    })
}

#[test]
fn byte_level_bpe_with_added_tokens() {
    let tokenizer = build(&byte_level());
    let found = ids(&tokenizer, "he he<tag>h<|im_end|>");
    assert_eq!(found, [2, 4, 6, 0, 5]);
    assert_eq!(tokenizer.decode(&found, false), "he he<tag>h<|im_end|>");
    assert_eq!(tokenizer.decode(&found, true), "he he<tag>h");
    assert_eq!(tokenizer.eos_ids(), [5]);
    assert!(!tokenizer.adds_bos());
    assert_eq!(tokenizer.vocab_size(), 7);
}

#[test]
fn a_prefix_space_may_apply_to_the_first_text_only() {
    let tokenizer = build(&sentencepiece());
    assert!(tokenizer.adds_bos());
    assert_eq!(ids(&tokenizer, "a a</s>a"), [1, 5, 5, 2, 4]);
    assert_eq!(ids(&tokenizer, " a"), [1, 5], "not another one");
    assert_eq!(ids(&tokenizer, "aéüb"), [1, 5, 0, 6], "one unknown");
    assert_eq!(tokenizer.decode(&[5, 5], true), "a a");
    let (found, places) = tokenizer.encode_placed("aéüb", true).unwrap();
    let starts: Vec<usize> = places.iter().map(|place| place.start).collect();
    assert_eq!((found.len(), starts), (4, vec![0, 0, 1, 3]));
    assert_eq!(tokenizer.fewest_tokens(1 << 20), 0, "unknown text fuses");

    let mut always = sentencepiece();
    always["pre_tokenizer"]["prepend_scheme"] = json!("always");
    assert_eq!(ids(&build(&always), "a</s>a"), [1, 5, 2, 5]);
    let mut by_normalizer = sentencepiece();
    by_normalizer["pre_tokenizer"] = Value::Null;
    by_normalizer["normalizer"] = json!({"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ]});
    assert_eq!(ids(&build(&by_normalizer), " a</s>a"), [1, 3, 5, 2, 5]);
}

#[test]
fn unigram_words_with_collapsed_spaces() {
    let tokenizer = build(&json!({
        "added_tokens": [added(0, "</s>", true)],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": null},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
        ]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
        },
        "model": {
            "type": "Unigram", "unk_id": 1,
            "vocab": [["</s>", 0.0], ["<unk>", 0.0], ["▁", -3.0], ["a", -2.0], ["▁a", -2.5]],
        },
    }));
    let text = "  a \n aa ";
    assert_eq!(ids(&tokenizer, text), [4, 4, 3, 0]);
    let (_, places) = tokenizer.encode_placed(text, true).unwrap();
    let starts: Vec<usize> = places.iter().map(|place| place.start).collect();
    assert_eq!(starts, [2, 3, 7, 9]);
    assert_eq!(tokenizer.decode(&[4, 4, 3], true), "a aa");
}

#[test]
fn normalized_text_keeps_its_token_positions() {
    let mut file = byte_level();
    file["model"]["vocab"]["Ã"] = json!(7);
    file["model"]["vocab"]["©"] = json!(8);
    let tokenizer = build(&file);
    let (found, places) = tokenizer.encode_placed("he\u{301}h", true).unwrap();
    assert_eq!(found, [0, 7, 8, 0]);
    let starts: Vec<usize> = places.iter().map(|place| place.start).collect();
    assert_eq!(starts, [0, 1, 1, 3]);
}

#[test]
fn the_small_files_name_tokens_and_ends() {
    let config = json!({
        "bos_token": {"content": "<tag>"}, "eos_token": "<|im_end|>",
        "add_bos_token": true, "add_eos_token": true,
        "chat_template": [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}],
        "added_tokens_decoder": {"7": {"content": "<new>", "special": true}, "5": {"content": "<|im_end|>"}},
    });
    let file = byte_level().to_string();
    let config = config.to_string();
    let mut files = HuggingFaceFiles {
        tokenizer: file.as_bytes(),
        tokenizer_config: Some(config.as_bytes()),
        generation_config: Some(br#"{"eos_token_id": [5, 2, 99]}"#),
        ..HuggingFaceFiles::default()
    };
    let tokenizer = Tokenizer::from_hugging_face(&files).unwrap();
    assert_eq!(ids(&tokenizer, "he<new>"), [6, 2, 7, 5]);
    assert_eq!(tokenizer.eos_ids(), [5, 2]);
    assert_eq!(tokenizer.chat_template(), Some("d"));
    assert_eq!(tokenizer.chat_templates().get("tools"), Some("t"));
    files.chat_template_json = Some(br#"{"chat_template": "of a processor"}"#);
    let tokenizer = Tokenizer::from_hugging_face(&files).unwrap();
    assert_eq!(tokenizer.chat_template(), Some("of a processor"));
    files.chat_template = Some(b"own file");
    files.tokenizer_config = None;
    files.special_tokens_map = Some(br#"{"bos_token": "<tag>"}"#);
    let tokenizer = Tokenizer::from_hugging_face(&files).unwrap();
    assert_eq!(tokenizer.chat_template(), Some("own file"));
    assert_eq!((tokenizer.bos_id(), tokenizer.adds_bos()), (Some(6), false));
}

#[test]
fn unsupported_parts_are_refused_by_name() {
    let cases = [
        ("/model/type", json!("WordPiece"), "WordPiece"),
        ("/normalizer", json!({"type": "Nmt"}), "Nmt"),
        (
            "/pre_tokenizer",
            json!({"type": "UnicodeScripts"}),
            "UnicodeScripts",
        ),
        ("/pre_tokenizer", Value::Null, "pre_tokenizer"),
        ("/post_processor", json!({"type": "Strange"}), "Strange"),
        (
            "/model/end_of_word_suffix",
            json!("</w>"),
            "end_of_word_suffix",
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}),
            "prefix",
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "(?<"}, "behavior": "Isolated"}),
            "(?<",
        ),
    ];
    for (field, value, name) in cases {
        let mut file = byte_level();
        file["model"]["end_of_word_suffix"] = Value::Null;
        *file.pointer_mut(field).unwrap() = value;
        match read(&file, &json!({})) {
            Err(Error::UnsupportedModel(message)) => assert!(message.contains(name), "{message}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let cases = [
        ("/model/vocab/h", json!(4_000_000_000_u32), "4000000000"),
        ("/model/vocab/h", json!(-1), "tokenizer.json"),
        ("/model/vocab/h", json!(1), "two tokens"),
        ("/model/vocab", json!({}), "merges"),
        ("/model/merges", json!([["h", "h"]]), "merges"),
        ("/model/merges", json!(["he"]), "merges"),
        ("/added_tokens", json!(7), "tokenizer.json"),
        ("/model", json!({}), "vocab"),
        (
            "/post_processor",
            json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}],
                   "special_tokens": {"<x>": {"ids": [99]}}}),
            "99",
        ),
    ];
    for (field, value, fault) in cases {
        let mut file = byte_level();
        *file.pointer_mut(field).unwrap() = value;
        match read(&file, &json!({})) {
            Err(Error::InvalidModelFile(message)) => assert!(message.contains(fault), "{message}"),
            other => panic!("{field}: {other:?}"),
        }
    }
    let config = json!({"add_bos_token": true});
    let Err(Error::InvalidModelFile(message)) = read(&byte_level(), &config) else {
        panic!("accepted");
    };
    assert!(message.contains("add_bos_token"), "{message}");
    let mut empty = byte_level();
    empty["model"] = json!({"vocab": {}});
    empty["added_tokens"] = json!([]);
    assert!(read(&empty, &json!({})).is_err());
}

/// A WordPiece tokenizer whose text is lowercased and stripped of accents.
fn word_piece(normalizer: &Value) -> Value {
    let specials = ["[UNK]", "[CLS]", "[SEP]"];
    let added: Vec<Value> = specials
        .iter()
        .zip(0..)
        .map(|(text, id)| added(id, text, true))
        .collect();
    json!({
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 5,
            "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "cafe": 3, "##s": 4, ",": 5, "東": 6, "京": 7,
                      "A": 8, "café": 9},
        },
    })
}

#[test]
fn words_become_pieces() {
    let tokenizer = build(&word_piece(&json!({"type": "BertNormalizer"})));
    assert_eq!(tokenizer.kind(), "bert");
    assert_eq!(ids(&tokenizer, "Cafés,CAFÉ 東京"), [1, 3, 4, 5, 3, 6, 7, 2]);
    // Too long, not covered, a special token.
    assert_eq!(ids(&tokenizer, "cafess cafex [SEP]"), [1, 0, 0, 2, 2]);
    assert_eq!(ids(&tokenizer, " \t"), [1, 2]);
    assert_eq!(tokenizer.encode("cafe", false).unwrap(), [3]);
    assert_eq!(tokenizer.decode(&[3, 4, 5], false), "cafes ,");
    assert_eq!(tokenizer.fewest_tokens(1 << 20), 0);
}

#[test]
fn cased_models_keep_case_and_accents() {
    let cased = json!({"type": "BertNormalizer", "lowercase": false});
    assert_eq!(
        ids(&build(&word_piece(&cased)), "A café Cafe"),
        [1, 8, 9, 0, 2]
    );
}

#[test]
fn word_piece_needs_the_words_of_bert() {
    let mut tokenizer = word_piece(&json!({"type": "BertNormalizer"}));
    tokenizer["model"]["continuing_subword_prefix"] = "@@".into();
    assert!(matches!(
        read(&tokenizer, &json!({})),
        Err(Error::UnsupportedModel(_))
    ));
    let mut tokenizer = word_piece(&json!({"type": "BertNormalizer"}));
    tokenizer["pre_tokenizer"] = json!({"type": "Metaspace", "replacement": "▁"});
    assert!(matches!(
        read(&tokenizer, &json!({})),
        Err(Error::UnsupportedModel(_))
    ));
}

/// The template may end encoded text with another token than the one that ends a turn.
#[test]
fn the_templates_last_token_is_added() {
    let mut tokenizer = byte_level();
    tokenizer["added_tokens"] = json!([added(5, "<|im_end|>", true), added(6, "<end>", true)]);
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<end>"}}],
        "special_tokens": {"<end>": {"ids": [6]}},
    });
    let tokenizer = read(&tokenizer, &json!({"eos_token": "<|im_end|>"})).unwrap();
    assert_eq!(ids(&tokenizer, "he"), [2, 6]);
    assert!(tokenizer.eos_ids().contains(&5) && tokenizer.eos_ids().contains(&6));
}
