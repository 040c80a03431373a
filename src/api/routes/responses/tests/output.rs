//! However an output is divided into pieces, the items are the same, and the events add up to them.

use proptest::prelude::*;
use serde_json::Value;

use super::super::output::Output;
use crate::api::run::{Entry, Finish, Piece};
use crate::engine::event::FinishReason;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;
use crate::weights::Metadata;

/// A part of an output, or a listed token.
#[derive(Debug, Clone)]
enum Step {
    Part(OutputPart),
    Token(u32),
}

const TOKENS: [&str; 3] = ["a", "b", "c"];

fn tokenizer() -> Tokenizer {
    let strings = TOKENS.map(str::to_owned).to_vec();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; strings.len()]);
    metadata.insert("tokenizer.ggml.token_type", vec![1_i32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    Tokenizer::from_gguf(&metadata).unwrap()
}

/// Steps in which calls are numbered, and their arguments follow their beginning.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        "[a-c]{1,3}".prop_map(|text| Step::Part(OutputPart::Content(text))),
        "[a-c]{1,3}".prop_map(|text| Step::Part(OutputPart::Reasoning(text))),
        "[{}1]{1,3}".prop_map(|json| Step::Part(OutputPart::CallArguments { index: 0, json })),
        (0..TOKENS.len() as u32).prop_map(Step::Token),
    ];
    prop::collection::vec(step, 0..20).prop_map(|given| {
        let mut steps = Vec::new();
        let mut calls = 0;
        let mut in_call = false;
        for mut step in given {
            match &mut step {
                Step::Part(OutputPart::CallArguments { index, .. }) => {
                    if !in_call {
                        let name = "f".to_owned();
                        steps.push(Step::Part(OutputPart::CallStart { index: calls, name }));
                        calls += 1;
                    }
                    *index = calls - 1;
                    in_call = true;
                }
                Step::Part(_) => in_call = false,
                Step::Token(_) => {}
            }
            steps.push(step);
        }
        steps
    })
}

/// The steps as pieces, which end after those with a mark. The last one ends the output.
fn pieces(steps: &[Step], marks: &[bool], reason: FinishReason) -> Vec<Piece> {
    let mut pieces = vec![Piece::default()];
    for (step, ends) in steps.iter().zip(marks.iter().cycle()) {
        let piece = pieces.last_mut().unwrap();
        match step {
            Step::Part(part) => {
                piece.parts.push(part.clone());
                piece.part_places.push(piece.entries.len());
            }
            Step::Token(id) => piece.entries.push(Entry {
                id: *id,
                ..Entry::default()
            }),
        }
        if *ends {
            pieces.push(Piece::default());
        }
    }
    pieces.last_mut().unwrap().finish = Some(Finish {
        reason,
        stop_reason: None,
        tool_call: None,
        has_calls: false,
        mean_logprob: None,
        raw: None,
    });
    pieces
}

/// The items of the pieces as JSON, and the events.
fn output(pieces: &[Piece]) -> (Vec<Value>, Vec<Value>) {
    let mut output = Output::new("resp_x", true);
    let tokenizer = tokenizer();
    let mut events = Vec::new();
    for piece in pieces {
        output.add(piece, &tokenizer, &mut |event| {
            events.push(serde_json::to_value(&event).unwrap());
        });
    }
    let items = output.items.iter();
    let items = items.map(|item| serde_json::to_value(item).unwrap());
    (items.collect(), events)
}

proptest! {
    #[test]
    fn items_do_not_depend_on_the_division(
        steps in steps(),
        marks in prop::collection::vec(any::<bool>(), 1..20),
        is_cut_off in any::<bool>(),
    ) {
        let reason = if is_cut_off { FinishReason::Length } else { FinishReason::Stop };
        let whole = pieces(&steps, &[false], reason);
        let (expected, _) = output(&whole);
        let divided = pieces(&steps, &marks, reason);
        let (items, events) = output(&divided);
        prop_assert_eq!(&items, &expected);
        // Appended to each other, the pieces are the whole.
        let mut joined = Piece::default();
        for piece in divided {
            joined.append(piece);
        }
        prop_assert_eq!(&joined, &whole[0]);
        for (index, item) in items.iter().enumerate() {
            let of_item = |kind: &str| {
                let of_item = events.iter().filter(|event| event["output_index"] == index);
                let kind = kind.to_owned();
                of_item.filter(move |event| event["type"].as_str().unwrap().ends_with(&kind))
            };
            let text: String = of_item(".delta").map(|event| event["delta"].as_str().unwrap()).collect();
            let logprobs: Vec<Value> = of_item(".delta")
                .flat_map(|event| event["logprobs"].as_array().cloned().unwrap_or_default())
                .collect();
            if item["type"] == "function_call" {
                prop_assert_eq!(&item["arguments"], &text);
            } else {
                prop_assert_eq!(&item["content"][0]["text"], &text);
            }
            if item["type"] == "message" {
                prop_assert_eq!(&item["content"][0]["logprobs"], &Value::from(logprobs));
            }
            let done: Vec<_> = of_item("output_item.done").map(|event| &event["item"]).collect();
            prop_assert_eq!(done, [item]);
        }
        let is_complete = items.iter().all(|item| item["status"] == "completed");
        prop_assert_eq!(is_complete, !is_cut_off || items.is_empty());
    }
}
