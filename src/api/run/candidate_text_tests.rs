//! One candidate's events as pieces of text and listed tokens, on a small synthetic vocabulary.

use std::rc::Rc;

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;

use super::candidate_text::CandidateText;
use super::logprobs::{Entry, Listing};
use super::piece::{Finish, Piece, StopReason};
use super::prompt::FittedPrompt;
use super::stop_ids::StopIds;
use super::text_options::TextOptions;
use crate::api::fields::Length;
use crate::api::switches::ContextLengthExceededBehavior;
use crate::engine::event::{Event, FinishReason};
use crate::engine::generation::TokenScore;
use crate::text::{Place, Tokenizer};
use crate::weights::Metadata;
use crate::{Error, Result};

const EOS: u32 = 2;
const SEP: u32 = 3;
/// The token of the byte 0.
const BYTE_0: u32 = 4;
const PIECES: [&str; 5] = ["▁qu", "own▁f", "a", "▁a", "▁"];
const QU: u32 = BYTE_0 + 256;
const OWN_F: u32 = QU + 1;
/// Another token of the text "a".
const OTHER_A: u32 = QU + 2;
const VOCAB: u32 = QU + 5;

fn tokenizer() -> Rc<Tokenizer> {
    let named = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<|sep|>", 3)];
    let mut tokens = named.map(|(text, kind)| (text.to_owned(), kind)).to_vec();
    tokens.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    tokens.extend(PIECES.map(|piece| (piece.to_owned(), 1)));
    let (strings, kinds): (Vec<String>, Vec<i32>) = tokens.into_iter().unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", kinds);
    Rc::new(Tokenizer::from_gguf(&metadata).unwrap())
}

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(|byte| BYTE_0 + u32::from(byte)).collect()
}

fn score(id: u32) -> TokenScore {
    TokenScore {
        id,
        logprob: -0.5,
        raw_logprob: -0.5,
        top: vec![(id, -0.5)],
    }
}

fn token(id: u32) -> Event {
    let score = Some(Box::new(score(id)));
    Event::Token { id, score }
}

fn finished(reason: FinishReason) -> Event {
    Event::Finished { reason }
}

/// Events for the tokens, then the end by `max_tokens`.
fn until_length(ids: &[u32]) -> Vec<Event> {
    let tokens = ids.iter().map(|id| token(*id));
    tokens.chain([finished(FinishReason::Length)]).collect()
}

/// A request for one choice.
struct Case {
    stop: &'static [&'static str],
    include_stop: bool,
    skip_special_tokens: bool,
    ignore_eos: bool,
    has_logprobs: bool,
    tokens_as_ids: bool,
    echo: bool,
    offsets_count_prompt: bool,
    suffix: &'static str,
    max_tokens: usize,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            stop: &[],
            include_stop: false,
            skip_special_tokens: true,
            ignore_eos: false,
            has_logprobs: true,
            tokens_as_ids: false,
            echo: false,
            offsets_count_prompt: false,
            suffix: "",
            max_tokens: 1000,
        }
    }
}

impl Case {
    fn candidate(&self, events: impl Stream<Item = Event> + 'static) -> CandidateText {
        let tokenizer = tokenizer();
        let length = Length {
            max_tokens: None,
            fills_context: false,
            stop: self.stop.iter().map(|stop| (*stop).to_owned()).collect(),
            stop_regex: Vec::new(),
            stop_token_ids: Vec::new(),
            min_tokens: 0,
            include_stop: self.include_stop,
            skip_special_tokens: self.skip_special_tokens,
            ignore_eos: self.ignore_eos,
            exceeded_behavior: ContextLengthExceededBehavior::Truncate,
            truncate_sequence: false,
        };
        let (ids, places) = tokenizer.encode_placed("é!", true).unwrap();
        let prompt = FittedPrompt {
            ids,
            images: Default::default(),
            dropped_tokens: 0,
            max_tokens: self.max_tokens,
            text: "é!".to_owned(),
            places,
            tail: String::new(),
            echoed_from: 0,
        };
        let options = TextOptions {
            stop_ids: StopIds::new(&tokenizer, &length, false, false),
            prediction: None,
            listing: self
                .has_logprobs
                .then(|| Listing::new(&tokenizer, self.tokens_as_ids, 5)),
            tokenizer,
            length,
            echo: self.echo,
            suffix: self.suffix.to_owned(),
            wants_ids: self.tokens_as_ids,
            wants_raw: false,
            repeats_delivered: false,
            prompt_listing: None,
            offsets_count_prompt: self.offsets_count_prompt,
            calls: None,
            message: None,
        };
        CandidateText::new(events, Rc::new(prompt), Rc::new(options))
    }

    /// The pieces when all events are available at once, and when each has to be awaited.
    fn pieces(&self, events: &[Event]) -> [Result<Vec<Piece>>; 2] {
        let waited = stream::iter(events.to_vec()).then(|event| async {
            let mut waited = false;
            std::future::poll_fn(|context| match std::mem::replace(&mut waited, true) {
                true => std::task::Poll::Ready(()),
                false => {
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                }
            })
            .await;
            event
        });
        let collect = |candidate: CandidateText| {
            let pieces = candidate.pieces().collect::<Vec<Result<Piece>>>();
            pollster::block_on(pieces).into_iter().collect()
        };
        let at_once = self.candidate(stream::iter(events.to_vec()));
        [collect(at_once), collect(self.candidate(waited))]
    }

    /// All pieces joined, which must not depend on when the events come.
    fn whole(&self, events: &[Event]) -> Piece {
        let [at_once, waited] = self.pieces(events).map(|pieces| joined(&pieces.unwrap()));
        assert_eq!(at_once, waited);
        at_once
    }

    /// Text, names and offsets of `ids`.
    fn listed(&self, ids: &[u32]) -> (String, Vec<String>, Vec<usize>) {
        let whole = self.whole(&until_length(ids));
        let names = whole.entries.iter().map(|entry| entry.token.clone());
        (whole.text.clone(), names.collect(), offsets(&whole))
    }
}

fn joined(pieces: &[Piece]) -> Piece {
    let mut whole = Piece::default();
    for piece in pieces {
        assert_eq!(whole.finish, None, "nothing follows the last piece");
        whole.append(piece.clone());
    }
    whole
}

fn offsets(piece: &Piece) -> Vec<usize> {
    piece
        .entries
        .iter()
        .map(|entry| entry.text_offset)
        .collect()
}

fn finish(piece: &Piece) -> (FinishReason, Option<StopReason>) {
    let finish: &Finish = piece.finish.as_ref().unwrap();
    (finish.reason, finish.stop_reason.clone())
}

#[test]
fn a_character_in_parts_belongs_to_all_its_tokens() {
    let ids = bytes("a🎉b");
    let (text, names, offsets) = Case::default().listed(&ids);
    assert_eq!(text, "a🎉b");
    let expected = [
        "a",
        r"bytes:\xf0",
        r"bytes:\x9f",
        r"bytes:\x8e",
        r"bytes:\x89",
        "b",
    ];
    assert_eq!(names, expected);
    assert_eq!(offsets, [0, 1, 1, 1, 1, 2]);
    // Its tokens come with it, not earlier.
    let [_, waited] = Case::default().pieces(&until_length(&ids));
    let counts: Vec<usize> = waited
        .unwrap()
        .iter()
        .map(|piece| piece.entries.len())
        .collect();
    assert_eq!(counts, [1, 4, 1, 0]);
}

#[test]
fn a_broken_character_is_one_character() {
    // Cut off by a letter, by the end, and by an end-of-text token.
    let half = bytes("🎉")[..2].to_vec();
    let cut_off = [half.clone(), bytes("x")].concat();
    let (text, _, offsets_of) = Case::default().listed(&cut_off);
    assert_eq!((&*text, offsets_of), ("\u{fffd}x", vec![0, 0, 1]));
    let (text, _, offsets_of) = Case::default().listed(&half);
    assert_eq!((&*text, offsets_of), ("\u{fffd}", vec![0, 0]));
    let ended = [half, vec![EOS]].concat();
    let events: Vec<Event> = ended.iter().map(|id| token(*id)).collect();
    let whole = Case::default().whole(&events);
    assert_eq!((&*whole.text, offsets(&whole)), ("\u{fffd}", vec![0, 0, 1]));
}

#[test]
fn special_tokens_are_listed_by_their_text() {
    let ids = [bytes("a"), vec![SEP], bytes("b")].concat();
    let hidden = Case::default().listed(&ids);
    let names: Vec<String> = ["a", "<|sep|>", "b"].map(str::to_owned).into();
    assert_eq!(hidden, ("ab".to_owned(), names.clone(), vec![0, 1, 1]));
    let shown = Case {
        skip_special_tokens: false,
        ..Case::default()
    };
    assert_eq!(
        shown.listed(&ids),
        ("a<|sep|>b".to_owned(), names, vec![0, 1, 8])
    );
    // One inside a character begins where the character does.
    let ids = [
        bytes("é")[..1].to_vec(),
        vec![SEP],
        bytes("é")[1..].to_vec(),
    ]
    .concat();
    let (text, _, offsets) = Case::default().listed(&ids);
    assert_eq!((&*text, offsets), ("é", vec![0, 0, 0]));
}

#[test]
fn the_end_of_text_is_listed_at_the_end() {
    for (include_stop, skip_special_tokens, text) in [
        (false, true, "a"),
        (true, true, "a"),
        (true, false, "a</s>"),
    ] {
        let case = Case {
            include_stop,
            skip_special_tokens,
            ..Case::default()
        };
        let whole = case.whole(&[token(bytes("a")[0]), token(EOS)]);
        assert_eq!((&*whole.text, offsets(&whole)), (text, vec![0, 1]));
        assert_eq!(whole.entries[1].token, "</s>");
        assert_eq!(finish(&whole), (FinishReason::Stop, None));
        assert_eq!(whole.completion_tokens, 2);
    }
    // If it is ignored, it is a token like others.
    let case = Case {
        ignore_eos: true,
        ..Case::default()
    };
    let (text, _, offsets) = case.listed(&[EOS, bytes("a")[0], EOS]);
    assert_eq!((&*text, offsets), ("a", vec![0, 0, 1]));
}

#[test]
fn a_stop_inside_a_token_swallows_what_follows() {
    for (stop, include_stop, text, expected) in [
        // Inside the second token.
        (&["wn"], false, " quo", vec![0, 3]),
        (&["wn"], true, " quown", vec![0, 3]),
        // In both: the second token would begin beyond the text.
        (&["uown"], false, " q", vec![0, 2]),
        (&["uown"], true, " quown", vec![0, 3]),
        // Inside the first.
        (&["q"], false, " ", vec![0]),
    ] {
        let case = Case {
            stop,
            include_stop,
            ..Case::default()
        };
        let whole = case.whole(&until_length(&[QU, OWN_F, OTHER_A]));
        assert_eq!(
            (&*whole.text, offsets(&whole)),
            (text, expected),
            "{stop:?}"
        );
        let reason = StopReason::Text(stop[0].to_owned());
        assert_eq!(finish(&whole), (FinishReason::Stop, Some(reason)));
        assert_eq!(whole.completion_tokens, whole.entries.len());
    }
}

#[test]
fn a_stop_that_is_one_token_has_its_id_as_reason() {
    for (include_stop, text) in [(false, "a"), (true, "a<|sep|>")] {
        let case = Case {
            stop: &["x", "<|sep|>"],
            include_stop,
            ..Case::default()
        };
        let whole = case.whole(&[token(bytes("a")[0]), token(SEP)]);
        assert_eq!((&*whole.text, offsets(&whole)), (text, vec![0, 1]));
        let reason = Some(StopReason::Id(SEP));
        assert_eq!(finish(&whole), (FinishReason::Stop, reason));
    }
}

#[test]
fn tokens_wait_with_the_text_that_is_held_back() {
    let case = Case {
        stop: &["bcd"],
        ..Case::default()
    };
    let [_, waited] = case.pieces(&until_length(&bytes("abcx")));
    let waited = waited.unwrap();
    let pieces: Vec<_> = waited
        .iter()
        .map(|piece| (&*piece.text, offsets(piece)))
        .collect();
    let expected = [("a", vec![0]), ("bcx", vec![1, 2, 3]), ("", vec![])];
    assert_eq!(pieces, expected);
    // Running totals count what was generated, shown or not.
    let totals: Vec<usize> = waited.iter().map(|piece| piece.completion_tokens).collect();
    assert_eq!(totals, [1, 4, 4]);
}

#[test]
fn hidden_tokens_alone_make_a_piece_only_for_logprobs() {
    let case = Case {
        ignore_eos: true,
        tokens_as_ids: true,
        ..Case::default()
    };
    let counts = |case: &Case| -> Vec<usize> {
        let [_, waited] = case.pieces(&until_length(&[EOS, EOS]));
        let ids = |piece: &Piece| piece.token_ids.len();
        waited.unwrap().iter().map(ids).collect()
    };
    assert_eq!(counts(&case), [1, 1, 0]);
    let case = Case {
        has_logprobs: false,
        ..case
    };
    assert_eq!(counts(&case), [2]);
}

#[test]
fn the_last_token_waits_for_its_end() {
    // The engine knows whether a constraint was finished by the last token that was allowed.
    for reason in [FinishReason::Stop, FinishReason::Length] {
        let case = Case {
            max_tokens: 2,
            ..Case::default()
        };
        let ids = bytes("ab");
        let events = [token(ids[0]), token(ids[1]), finished(reason)];
        let [at_once, waited] = case.pieces(&events).map(Result::unwrap);
        for (pieces, texts) in [(at_once, vec!["a", "b"]), (waited, vec!["a", "b"])] {
            let found: Vec<&str> = pieces.iter().map(|piece| &*piece.text).collect();
            assert_eq!(found, texts);
            assert_eq!(finish(pieces.last().unwrap()), (reason, None));
        }
    }
}

#[test]
fn an_end_that_is_already_there_comes_with_the_last_text() {
    let events = [token(bytes("a")[0]), token(EOS)];
    let [at_once, waited] = Case::default().pieces(&events);
    let texts = |pieces: Result<Vec<Piece>>| -> Vec<String> {
        pieces
            .unwrap()
            .into_iter()
            .map(|piece| piece.text)
            .collect()
    };
    assert_eq!(texts(at_once), ["a"]);
    assert_eq!(texts(waited), ["a", ""]);
}

#[test]
fn a_choice_without_text_is_one_piece() {
    let case = Case {
        has_logprobs: false,
        ..Case::default()
    };
    for events in [vec![token(EOS)], vec![finished(FinishReason::Length)]] {
        for pieces in case.pieces(&events) {
            let pieces = pieces.unwrap();
            assert_eq!(pieces.len(), 1);
            assert_eq!((&*pieces[0].text, &*pieces[0].entries), ("", &[][..]));
        }
    }
}

#[test]
fn the_suffix_ends_the_text_for_every_reason() {
    let a = bytes("a")[0];
    let stopped = [token(a), token(EOS)];
    let matched = [token(a), token(bytes("!")[0])];
    let cut = [token(a), finished(FinishReason::Length)];
    for events in [&stopped, &matched, &cut] {
        let case = Case {
            stop: &["!"],
            suffix: "<é>",
            tokens_as_ids: true,
            ..Case::default()
        };
        let whole = case.whole(events);
        assert_eq!(whole.text, "a<é>");
        // It is neither listed nor counted, and offsets end before it.
        assert_eq!(whole.entries.len(), whole.completion_tokens);
        assert_eq!(whole.token_ids.len(), whole.completion_tokens);
        assert!(offsets(&whole).iter().all(|offset| *offset <= 1));
    }
}

fn prompt_event() -> Event {
    // <s>, the two bytes of é, "!"
    let ids = tokenizer().encode("é!", true).unwrap();
    assert_eq!(ids.len(), 5, "with the prefix space");
    Event::Prompt {
        scores: ids[1..].iter().map(|id| score(*id)).collect(),
    }
}

#[test]
fn echo_puts_the_prompt_and_its_tokens_first() {
    let case = Case {
        echo: true,
        tokens_as_ids: false,
        ..Case::default()
    };
    let mut events = vec![prompt_event()];
    events.extend(until_length(&bytes("ab")));
    let whole = case.whole(&events);
    assert_eq!(whole.text, "é!ab");
    let names: Vec<&str> = whole.entries.iter().map(|entry| &*entry.token).collect();
    // The added space has no text.
    let expected = ["<s>", "", r"bytes:\xc3", r"bytes:\xa9", "!", "a", "b"];
    assert_eq!(names, expected);
    assert_eq!(offsets(&whole), [0, 0, 0, 0, 1, 2, 3]);
    let first = &whole.entries[0];
    assert_eq!((first.logprob, &first.top), (None, &None));
    assert!(
        whole.entries[1..]
            .iter()
            .all(|entry| entry.logprob == Some(-0.5))
    );
    assert_eq!(whole.completion_tokens, 2);
    // All of the prompt is in the first piece, with the first text.
    for pieces in case.pieces(&events) {
        let pieces = pieces.unwrap();
        assert_eq!((&*pieces[0].text, pieces[0].entries.len()), ("é!a", 6));
    }
    // A request that only scores the prompt.
    let events = [prompt_event(), finished(FinishReason::Length)];
    let whole = case.whole(&events);
    assert_eq!((&*whole.text, whole.entries.len()), ("é!", 5));
    assert_eq!(whole.completion_tokens, 0);
}

#[test]
fn offsets_may_count_a_prompt_that_is_not_echoed() {
    for (echo, offsets_count_prompt, first) in [
        (false, false, 0),
        (false, true, 2),
        (true, true, 2),
        (true, false, 2),
    ] {
        let case = Case {
            echo,
            offsets_count_prompt,
            ..Case::default()
        };
        let mut events = vec![prompt_event()];
        events.extend(until_length(&bytes("a")));
        let whole = case.whole(&events);
        assert_eq!(offsets(&whole).pop(), Some(first));
    }
}

#[test]
fn scores_that_are_missing_are_a_fault() {
    let unscored = Event::Token {
        id: EOS,
        score: None,
    };
    let echo = Case {
        echo: true,
        ..Case::default()
    };
    for (case, events) in [
        (Case::default(), vec![unscored]),
        (echo, until_length(&bytes("a"))),
    ] {
        for pieces in case.pieces(&events) {
            assert!(matches!(pieces, Err(Error::Internal(_))), "{pieces:?}");
        }
    }
}

#[test]
fn a_failure_ends_the_choice() {
    let error = Error::InvalidLogits { position: 1 };
    let events = [token(bytes("a")[0]), Event::Failed(error.clone())];
    for pieces in Case::default().pieces(&events) {
        assert_eq!(pieces, Err(error.clone()));
    }
    // So does an engine that is dropped.
    for pieces in Case::default().pieces(&events[..1]) {
        assert!(matches!(pieces, Err(Error::Internal(_))));
    }
}

#[test]
fn the_mean_is_of_the_raw_scores_of_all_tokens() {
    let scored = |id, raw_logprob| Event::Token {
        id,
        score: Some(Box::new(TokenScore {
            raw_logprob,
            ..score(id)
        })),
    };
    let case = Case {
        has_logprobs: false,
        ..Case::default()
    };
    let whole = case.whole(&[scored(QU, -1.0), scored(EOS, -4.0)]);
    assert_eq!(whole.finish.unwrap().mean_logprob, Some(-2.5));
    let whole = case.whole(&[finished(FinishReason::Length)]);
    assert_eq!(whole.finish.unwrap().mean_logprob, None);
}

fn entry(id: u32, place: Place, tokens_as_ids: bool, logprob: f32, top: &[(u32, f32)]) -> Entry {
    let score = TokenScore {
        id,
        logprob,
        raw_logprob: logprob,
        top: top.to_vec(),
    };
    let listing = Listing::new(&tokenizer(), tokens_as_ids, 5);
    listing.entry(id, place, Some(&score))
}

fn tops(entry: &Entry) -> Option<Vec<(String, f32)>> {
    let top = entry.top.as_ref()?.iter();
    Some(top.map(|top| (top.token.clone(), top.logprob)).collect())
}

fn named(top: &[(&str, f32)]) -> Option<Vec<(String, f32)>> {
    let owned = |(name, logprob): &(&str, f32)| ((*name).to_owned(), *logprob);
    Some(top.iter().map(owned).collect())
}

#[test]
fn the_best_tokens_and_the_token_itself() {
    let anywhere = Place::default();
    let (a, b) = (bytes("a")[0], bytes("b")[0]);
    // The token is among the best ones, is not, and none are requested.
    let listed = entry(b, anywhere, false, -2.0, &[(QU, -1.0), (b, -2.0)]);
    assert_eq!(tops(&listed), named(&[(" qu", -1.0), ("b", -2.0)]));
    assert_eq!(listed.logprob, Some(-2.0));
    let unlisted = entry(b, anywhere, false, -3.0, &[(QU, -1.0), (EOS, -2.0)]);
    let expected = named(&[(" qu", -1.0), ("</s>", -2.0), ("b", -3.0)]);
    assert_eq!(tops(&unlisted), expected);
    let alone = entry(b, anywhere, false, -3.0, &[]);
    assert_eq!(tops(&alone), named(&[("b", -3.0)]));
    // Two ids with the same text are listed once, with the larger value.
    let same = entry(b, anywhere, false, -3.0, &[(OTHER_A, -1.0), (a, -2.0)]);
    assert_eq!(tops(&same), named(&[("a", -1.0), ("b", -3.0)]));
    let ids = entry(b, anywhere, true, -3.0, &[(OTHER_A, -1.0), (a, -2.0)]);
    let names = [OTHER_A, a, b].map(|id| format!("token_id:{id}"));
    let expected = named(&[(&names[0], -1.0), (&names[1], -2.0), (&names[2], -3.0)]);
    assert_eq!(
        (ids.token.clone(), tops(&ids)),
        (names[2].clone(), expected)
    );
    // JSON has no infinity.
    let never = entry(b, anywhere, false, f32::NEG_INFINITY, &[]);
    assert_eq!(never.logprob, Some(-9999.0));
    assert_eq!(tops(&never), named(&[("b", -9999.0)]));
}

#[test]
fn names_do_not_show_an_added_space() {
    let place = Place {
        start: 7,
        drops_space: true,
    };
    let spaced = entry(QU + 3, place, false, -2.0, &[(QU, -1.0)]);
    assert_eq!((&*spaced.token, spaced.text_offset), ("a", 7));
    assert_eq!(tops(&spaced), named(&[("qu", -1.0), ("a", -2.0)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn joined_pieces_are_consistent(
        ids in prop::collection::vec(
            prop_oneof![
                prop::sample::select([bytes("🎉é a"), vec![SEP, QU, OWN_F, OTHER_A]].concat()),
                0..VOCAB,
            ],
            0..20,
        ),
        stop in prop::sample::select(vec![
            &[][..], &["a"], &["uow", "f"], &["\u{fffd}"], &["🎉é"], &["<|sep|>", "qu"],
        ]),
        include_stop: bool,
        skip_special_tokens: bool,
        ignore_eos: bool,
    ) {
        let case = Case {
            stop, include_stop, skip_special_tokens, ignore_eos, tokens_as_ids: true,
            suffix: "…", ..Case::default()
        };
        let by_text = Case { tokens_as_ids: false, ..case };
        let events = until_length(&ids);
        let whole = case.whole(&events);
        prop_assert_eq!(&whole.token_ids[..], &ids[..whole.completion_tokens]);
        let whole = by_text.whole(&events);
        let text = whole.text.strip_suffix('…').unwrap();
        let count = text.chars().count();
        let offsets = offsets(&whole);
        let ends = |id| id == EOS && !ignore_eos || id == SEP && stop.contains(&"<|sep|>");
        prop_assert!(offsets.is_sorted() && offsets.iter().all(|offset| *offset <= count));
        for (entry, id) in whole.entries.iter().zip(&ids) {
            let is_shown = *id > SEP || !skip_special_tokens && !ends(*id);
            if is_shown && !entry.token.starts_with("bytes:") {
                // Each token is found at its offset, unless a stop cut the text there.
                let rest: String = text.chars().skip(entry.text_offset).collect();
                let found = rest.starts_with(&entry.token) || entry.token.starts_with(&rest);
                prop_assert!(found, "{:?} in {:?}", entry, text);
            }
        }
        for pieces in by_text.pieces(&events) {
            let mut so_far = String::new();
            for piece in pieces.unwrap() {
                so_far += &piece.text;
                let end = so_far.chars().count();
                prop_assert!(piece.entries.iter().all(|entry| entry.text_offset <= end));
                prop_assert!(
                    piece.finish.is_some() || !piece.text.is_empty() || !piece.entries.is_empty()
                );
                prop_assert!(whole.text.starts_with(&so_far));
            }
        }
    }
}
