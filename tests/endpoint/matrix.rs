//! Streamed and whole responses agree in every combination of the fields that shape a choice
//! (specification 7.3 and 10.3; cases 046, 092, 093 and 096).

use serde_json::{Value, json};

use crate::fixture::*;

/// The stop string of a combination, and whether it is included in the output.
const STOPS: [Option<(&str, bool)>; 5] = [
    None,
    Some(("a ", false)),
    Some(("a ", true)),
    Some(("é", false)),
    Some(("zz", false)),
];

#[test]
fn streams_and_whole_responses_agree_in_every_combination() {
    serve_default(async |server| {
        let mut seen = Seen::default();
        for logprobs in [None, Some(0), Some(2)] {
            for (echo, n, has_suffix) in all() {
                for (two_prompts, tokens_as_ids, greedy) in all() {
                    for stop in STOPS {
                        let mut members = json!({
                            "logprobs": logprobs,
                            "echo": echo,
                            "n": if n { 2 } else { 1 },
                            "prompt": if two_prompts { json!([bytes("é a"), [5, 200, 3]]) } else { json!("é a") },
                            "return_tokens_as_token_ids": tokens_as_ids,
                            "temperature": if greedy { 0.0 } else { 1.3 },
                            "seed": 5,
                            "max_tokens": 12,
                        });
                        if has_suffix {
                            members["suffix"] = json!("é.");
                        }
                        if let Some((stop, include)) = stop {
                            members["stop"] = json!([stop]);
                            members["include_stop_str_in_output"] = json!(include);
                        }
                        server.plan.babble();
                        compare(server, members, &mut seen).await;
                    }
                }
            }
        }
        seen.check();
    });
}

/// Fields that forbid tokens or add lists, with those above.
#[test]
fn vendors_fields_agree_in_streams_and_whole_responses() {
    let some = [bytes("é a\n🎉"), vec![SEP, EOS]].concat();
    let fields = [
        json!({}),
        json!({"min_tokens": 6}),
        json!({"stop_token_ids": [SEP], "min_tokens": 2}),
        json!({"bad_words": ["a", "\n"]}),
        json!({"allowed_token_ids": some}),
        json!({"prompt_logprobs": 1, "return_token_ids": true}),
        json!({"truncate_prompt_tokens": 2, "add_special_tokens": false}),
        json!({"guided_regex": "[a-zé \n]{2,9}"}),
        json!({"logprobs": true, "top_logprobs": 1}),
        json!({"echo": null, "echo_last": 2, "typical_p": 0.7}),
        json!({"raw_output": true, "logit_bias": [["a", false], ["é", 1.5]]}),
    ];
    serve_default(async |server| {
        let mut seen = Seen::default();
        for (first, second) in (0..fields.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
            for (echo, n, greedy) in all() {
                let mut members = json!({
                    "prompt": [bytes("é a"), [5, 200, 3]], "logprobs": 1, "echo": echo, "n": if n { 2 } else { 1 },
                    "temperature": if greedy { 0.0 } else { 1.3 }, "seed": 5, "max_tokens": 12, "stop": ["a "],
                });
                for more in [&fields[first], &fields[second]] {
                    let more = more.as_object().unwrap().clone();
                    members.as_object_mut().unwrap().extend(more);
                }
                server.plan.babble();
                compare(server, members, &mut seen).await;
            }
        }
    });
}

/// All triples of booleans.
fn all() -> impl Iterator<Item = (bool, bool, bool)> {
    (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0))
}

/// Counts of the situations that the combinations must cover.
#[derive(Default)]
struct Seen {
    stopped: usize,
    ended_by_token: usize,
    cut: usize,
    interleaved: usize,
    parts_of_characters: usize,
}

impl Seen {
    fn check(&self) {
        for count in [
            self.stopped,
            self.ended_by_token,
            self.cut,
            self.interleaved,
            self.parts_of_characters,
        ] {
            assert!(count > 20, "{count}");
        }
    }
}

async fn compare(server: &Server, members: Value, seen: &mut Seen) {
    let whole = server.ok(members.clone()).await;
    let mut streamed = members.clone();
    streamed["stream_options"] = json!({"include_usage": true});
    let chunks = server.stream(streamed).await;
    let usage = &chunks.last().unwrap()["usage"];
    assert_eq!(usage.to_string(), whole["usage"].to_string(), "{members}");
    let joined = joined_choices(&chunks);
    assert_eq!(joined.len(), choices(&whole).len(), "{members}");
    for (index, (joined, choice)) in joined.iter().zip(choices(&whole)).enumerate() {
        assert_eq!(choice["index"], index);
        // Compared as text, so that the order of members and the digits of numbers are included.
        assert_eq!(joined.to_string(), choice.to_string(), "{members}");
        if choice["stop_reason"].is_string() {
            seen.stopped += 1;
        } else if choice["finish_reason"] == "stop" {
            seen.ended_by_token += 1;
        } else {
            seen.cut += 1;
        }
        let shown = choice.to_string();
        seen.parts_of_characters += usize::from(shown.contains("bytes:"));
        let rest = choice["text"].as_str().unwrap();
        assert!(
            members["suffix"].is_null() || rest.ends_with("é."),
            "{members}"
        );
    }
    let indices = chunks.iter().map(|chunk| &chunk["choices"][0]["index"]);
    seen.interleaved += usize::from(
        !indices
            .take(chunks.len() - 1)
            .is_sorted_by_key(|index| index.as_u64()),
    );
}
