//! Tests of the places of tokens in prompts and in generated text, on small vocabularies built here.

use std::rc::Rc;

use super::tests::{build, byte_level_metadata, sentencepiece_metadata, with_tokens};
use super::*;

const CONTROL: i32 = 3;

/// The fill-in-the-middle prompt between `text` and `text`.
fn around(tokenizer: &Tokenizer, text: &str) -> Option<(Vec<u32>, Vec<Place>)> {
    let pause: Pause = &|| Box::pin(std::future::ready(()));
    pollster::block_on(tokenizer.encode_around(text, text, pause)).unwrap()
}

/// For each token its start and whether a space is dropped.
fn placed(tokenizer: &Tokenizer, text: &str) -> Vec<(usize, bool)> {
    let (ids, places) = tokenizer.encode_placed(text, true).unwrap();
    assert_eq!(ids, tokenizer.encode(text, true).unwrap());
    assert_eq!(ids.len(), places.len());
    let pair = |place: &Place| (place.start, place.drops_space);
    places.iter().map(pair).collect()
}

#[test]
fn tokens_lie_where_their_bytes_are() {
    let tokenizer = build(&byte_level_metadata());
    // "he", "h", <think>, the two bytes of é, <|endoftext|>, "!"
    let starts: Vec<usize> = placed(&tokenizer, "heh<think>é<|endoftext|>!")
        .iter()
        .map(|place| place.0)
        .collect();
    assert_eq!(starts, [0, 2, 3, 10, 10, 11, 24]);
}

#[test]
fn automatic_tokens_and_prefix_spaces_have_no_width() {
    let mut metadata = sentencepiece_metadata();
    let tokenizer = build(&metadata);
    // <s>, "▁a", "▁", "a", </s>, "▁a"
    assert_eq!(
        placed(&tokenizer, "a a</s>a"),
        [(0, false), (0, true), (1, false), (3, false), (7, true)]
    );
    // The first <s> is added automatically although the text has one too; the space is added as well.
    assert_eq!(
        placed(&tokenizer, "<s> a"),
        [(0, false), (0, false), (3, true), (3, false)]
    );
    assert_eq!(placed(&tokenizer, ""), [(0, false)]);
    metadata.insert("tokenizer.ggml.add_eos_token", true);
    let tokenizer = build(&metadata);
    assert_eq!(
        placed(&tokenizer, "é"),
        [(0, false), (0, true), (0, false), (0, false), (1, false)]
    );
}

#[test]
fn dropped_white_space_is_skipped() {
    let mut metadata = sentencepiece_metadata();
    metadata.insert("general.name", "Phi-3");
    let tokenizer = build(&metadata);
    // </s> drops the white space after it.
    assert_eq!(
        placed(&tokenizer, "</s> \n a"),
        [(0, false), (0, false), (7, true)]
    );
}

#[test]
fn unknown_bytes_and_the_space_sign_do_not_shift_later_tokens() {
    let tokens = ["<unk>", "<s>", "</s>", "▁", "a"];
    let kinds = [2, CONTROL, CONTROL, 1, 1];
    let tokens = tokens.map(str::to_owned).into_iter().zip(kinds);
    let mut metadata = with_tokens("llama", &tokens.collect::<Vec<_>>());
    metadata.insert("tokenizer.ggml.add_space_prefix", false);
    let tokenizer = build(&metadata);
    // <s>, a byte of é each, "a", "▁", "a"
    assert_eq!(
        placed(&tokenizer, "éa▁a"),
        [0, 0, 0, 1, 2, 3].map(|start| (start, false))
    );
}

#[test]
fn generated_tokens_begin_at_their_character() {
    let tokenizer = build(&byte_level_metadata());
    let mut detokenizer = Detokenizer::new(tokenizer.clone(), &[0], true);
    let mut starts = Vec::new();
    // 🎉 in four bytes with a hidden token inside, "he", part of a character that "h" cuts off, part of
    // a character that a hidden token does not cut off.
    let end = tokenizer.eos_ids()[0];
    for id in [0xF0, 0x9F, end, 0x8E, 0x89, 256, 0xC3, 104, 0xC3, end] {
        starts.push(detokenizer.start_of(id));
        detokenizer.push(id);
    }
    assert_eq!(starts, [0, 0, 0, 0, 0, 1, 3, 4, 5, 5]);
    assert_eq!(detokenizer.end(), 6);
    assert_eq!(detokenizer.finish(), "\u{fffd}");
    assert_eq!(detokenizer.end(), 6);
    assert_eq!(detokenizer.start_of(end), 6);
}

#[test]
fn a_dropped_space_shows_until_a_visible_token() {
    let tokenizer = build(&sentencepiece_metadata());
    let spaced = tokenizer.encode("a", false).unwrap()[0];
    let mut detokenizer = Detokenizer::new(tokenizer.clone(), &[], true);
    assert!(detokenizer.drops_space());
    assert_eq!(detokenizer.push(1), "");
    assert!(detokenizer.drops_space());
    assert_eq!(detokenizer.push(spaced), "a");
    assert!(!detokenizer.drops_space());
    assert_eq!(detokenizer.push(spaced), " a");
    assert!(!Detokenizer::new(tokenizer, &[1], true).drops_space());
}

/// A vocabulary with three more control tokens with these strings, and the id of the first.
fn with_middle_tokens(strings: [&str; 3]) -> (Rc<Tokenizer>, u32) {
    let mut metadata = sentencepiece_metadata();
    let mut tokens: Vec<String> = metadata
        .strings("tokenizer.ggml.tokens")
        .unwrap()
        .unwrap()
        .to_vec();
    let mut kinds: Vec<i32> = metadata
        .i32s("tokenizer.ggml.token_type")
        .unwrap()
        .unwrap()
        .to_vec();
    let first = tokens.len() as u32;
    tokens.extend(strings.map(str::to_owned));
    kinds.extend([CONTROL; 3]);
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; tokens.len()]);
    metadata.insert("tokenizer.ggml.tokens", tokens);
    metadata.insert("tokenizer.ggml.token_type", kinds);
    (build(&metadata), first)
}

#[test]
fn fill_in_the_middle_frames_prefix_and_suffix() {
    for strings in [
        ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
        ["▁<PRE>", "▁<SUF>", "▁<MID>"],
    ] {
        let (tokenizer, first) = with_middle_tokens(strings);
        let a = tokenizer.encode("a", false).unwrap()[0];
        let (ids, places) = around(&tokenizer, "a").unwrap();
        assert_eq!(ids, [1, first, a, first + 1, a, first + 2]);
        let starts: Vec<usize> = places.iter().map(|place| place.start).collect();
        assert_eq!(starts, [0, 0, 0, 1, 1, 1]);
        assert!(places[2].drops_space && !places[4].drops_space);
    }
    let (tokenizer, _) = with_middle_tokens(["<PRE>", "<SUF>", "<fim_middle>"]);
    assert_eq!(around(&tokenizer, "a"), None);
}

#[test]
fn the_file_can_name_the_fill_in_the_middle_tokens() {
    for family in ["fim_pre fim_suf fim_mid", "prefix suffix middle"] {
        let mut metadata = sentencepiece_metadata();
        for (name, id) in family.split(' ').zip([10_u32, 12, 11]) {
            assert_eq!(around(&build(&metadata), ""), None);
            metadata.insert(format!("tokenizer.ggml.{name}_token_id"), id);
        }
        let tokenizer = build(&metadata);
        let (ids, _) = around(&tokenizer, "").unwrap();
        assert_eq!(ids, [1, 10, 12, 11]);
    }
}
