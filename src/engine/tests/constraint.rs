//! Candidates under a constraint: masks, the end where nothing may follow, and dead ends.

use super::*;
use crate::Error;
use crate::grammar::{Compiler, Grammar, GrammarSource, Objects};
use crate::text::Tokenizer;
use crate::weights::Metadata;
use fake_model::VOCAB;

const EOS: u32 = 2;
/// The token of `a`; those of the other letters and of digits follow.
const A: u32 = 3;

/// A tokenizer for the fake model's ids: three special tokens, letters, digits, punctuation.
fn tokenizer() -> Tokenizer {
    const NORMAL: i32 = 1;
    const UNKNOWN: i32 = 2;
    const CONTROL: i32 = 3;
    let special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)];
    let mut tokens = special.map(|(text, kind)| (text.to_owned(), kind)).to_vec();
    let characters = ('a'..='z').chain('0'..='9').chain(" ,.:!?+-*/=".chars());
    tokens.extend(characters.map(|character| (character.to_string(), NORMAL)));
    assert_eq!(tokens.len(), VOCAB);
    let (strings, types): (Vec<String>, Vec<i32>) = tokens.into_iter().unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", types);
    metadata.insert("tokenizer.ggml.bos_token_id", 1_u32);
    metadata.insert("tokenizer.ggml.eos_token_id", EOS);
    Tokenizer::from_gguf(&metadata).unwrap()
}

pub(super) fn regex(pattern: &str) -> Grammar {
    compiled(&GrammarSource::Regex(pattern.to_owned()))
}

fn compiled(source: &GrammarSource) -> Grammar {
    let compiler = Compiler::new(&tokenizer(), VOCAB);
    compiler.compile(source, Objects::Closed).unwrap()
}

/// Runs candidates under a regular expression; each equals a single request.
#[track_caller]
fn run(pattern: &str, max_tokens: usize, candidates: u32) -> Vec<Vec<Event>> {
    let mut all = vec![];
    for sampling in [greedy(), sampled(6)] {
        let request = Generation {
            sampling,
            candidates,
            constraint: Some(regex(pattern)),
            stop_ids: vec![EOS],
            ..generation(5, 9, max_tokens)
        };
        let mut bench = Bench::new(FakeModel::new(64, 32, 4), EngineLimits::default());
        bench.controls.suspensions.set(1);
        let mut events = bench.submit_all(std::slice::from_ref(&request));
        let found = bench.read_to_end(&mut events);
        assert_eq!(found, expected_all(&[request], 64));
        assert!(bench.all_memory_is_free());
        assert!(bench.calls().iter().all(|call| call.steps().is_none()));
        all.extend(found.into_iter().flatten());
    }
    all
}

fn finished(reason: FinishReason) -> Event {
    Event::Finished { reason }
}

#[test]
fn every_candidate_follows_the_constraint_independently() {
    for candidates in [1, 6] {
        let found = run("[a-f]+[0-4]{3}", 30, candidates);
        for events in &found {
            let ids = ids_of(events);
            let (digits, letters) = match events.last() {
                Some(Event::Finished {
                    reason: FinishReason::Stop,
                }) => ids.split_last_chunk::<3>().map(|(a, b)| (b.to_vec(), a)),
                _ => Some((vec![], &ids[..])),
            }
            .unwrap();
            let is_digit = |id: &u32| (A + 26..A + 31).contains(id);
            assert!(digits.iter().all(is_digit), "{ids:?}");
            let letters = letters.iter().skip_while(|id| (A..A + 6).contains(id));
            assert!(letters.clone().count() < 3 && letters.clone().all(is_digit));
        }
        if candidates > 1 {
            assert!(found.iter().any(|events| events != &found[found.len() - 1]));
        }
    }
}

#[test]
fn a_finished_constraint_stops_without_another_token() {
    for candidates in [1, 3] {
        for events in run("[a-f]{4}", 30, candidates) {
            assert_eq!(ids_of(&events).len(), 4);
            assert_eq!(events[4..], [finished(FinishReason::Stop)]);
        }
        // Before the first token too.
        for events in run("", 30, candidates) {
            assert_eq!(events, [finished(FinishReason::Stop)]);
        }
    }
}

#[test]
fn a_constraint_finished_by_the_last_allowed_token_is_a_stop() {
    for candidates in [1, 3] {
        for (max_tokens, reason) in [(4, FinishReason::Stop), (3, FinishReason::Length)] {
            for events in run("[a-f]{4}", max_tokens, candidates) {
                assert_eq!(ids_of(&events).len(), max_tokens);
                assert_eq!(events.last(), Some(&finished(reason)));
            }
        }
    }
}

#[test]
fn the_end_of_text_ends_a_completion_where_allowed() {
    // After four letters the end-of-text token or another letter.
    let found = run("[a-f]{4,}", 40, 6);
    let ended = found.iter().filter(|events| ids_of(events).contains(&EOS));
    let ended: Vec<_> = ended.collect();
    assert!(!ended.is_empty());
    for events in ended {
        let ids = ids_of(events);
        assert!(ids.len() > 4);
        assert_eq!(ids.last(), Some(&EOS));
        assert_eq!(events.last(), Some(&finished(FinishReason::Stop)));
    }
}

#[test]
fn a_dead_end_reports_its_position() {
    // No token has a capital letter, so only the digit leads to an end.
    for candidates in [1, 8] {
        let found = run("[a-f]{2}Z|[a-f]9", 30, candidates);
        let failure = Event::Failed(Error::GrammarDeadEnd { position: 2 });
        let (failed, ended): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|events| events.last() == Some(&failure));
        assert!(failed.iter().all(|events| ids_of(events).len() == 2));
        let end = finished(FinishReason::Stop);
        assert!(ended.iter().all(|events| events[2..] == [end.clone()]));
        assert!(candidates == 1 || !failed.is_empty() && !ended.is_empty());
    }
}

#[test]
fn a_grammar_sets_the_temperature_of_its_parts() {
    let text = "start: cold \"and\" warm rest\ncold[temperature=0]: /[a-z]{6}/\n\
        warm[temperature=1.9]: /[0-9]{12}/\nrest: /[a-z]{6}/";
    let grammar = compiled(&GrammarSource::Lark(text.to_owned()));
    let mut cold = vec![];
    for (samples, sampling) in [false, true]
        .into_iter()
        .flat_map(|samples| [(samples, greedy()), (samples, sampled(6))])
    {
        let request = Generation {
            sampling,
            candidates: 5,
            constraint: Some(grammar.clone()),
            stop_ids: vec![EOS],
            ..generation(5, 9, 40)
        };
        let mut model = FakeModel::new(64, 32, 4);
        model.samples = samples;
        let mut bench = Bench::new(model, EngineLimits::default());
        let mut events = bench.submit_all(std::slice::from_ref(&request));
        let found = bench.read_to_end(&mut events);
        assert_eq!(found, expected_all(std::slice::from_ref(&request), 64));
        let ids: Vec<Vec<u32>> = found[0].iter().map(|events| ids_of(events)).collect();
        let differ = |part: std::ops::Range<usize>| {
            let mut others = ids.iter().skip(1);
            others.any(|it| it[part.clone()] != ids[0][part.clone()])
        };
        assert!(ids.iter().all(|ids| ids.len() == 27));
        assert!(!differ(0..9) && differ(9..21));
        cold.push(ids[0][..6].to_vec());
    }
    assert!(cold.iter().all(|ids| *ids == cold[0]));
}
