//! Several prompts, choices and candidates (specification 8, 10.6 and 11; cases D, 045, 090, 093).

use futures_util::StreamExt;
use inpage::Error;
use inpage::api::Body;
use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_036_choices_are_numbered_by_prompt_and_counted_once() {
    serve_default(async |server| {
        let prompts = ["alpha one", "beta two", "gamma three"];
        let members = |prompt: Value| json!({"prompt": prompt, "n": 2, "echo": true, "ignore_eos": true, "max_tokens": 5, "seed": 3});
        let object = server.ok(members(json!(prompts))).await;
        assert_eq!(choices(&object).len(), 6);
        let mut prompt_tokens = 0;
        for (index, choice) in choices(&object).iter().enumerate() {
            assert_eq!(choice["index"], index);
            assert!(
                choice["text"]
                    .as_str()
                    .unwrap()
                    .starts_with(prompts[index / 2])
            );
        }
        for (index, prompt) in prompts.iter().enumerate() {
            let alone = server.ok(members(json!(prompt))).await;
            prompt_tokens += alone["usage"]["prompt_tokens"].as_u64().unwrap();
            // The output of a prompt depends neither on the other prompts nor on its index.
            assert_eq!(texts(&alone), texts(&object)[2 * index..2 * index + 2]);
        }
        let usage = json!({
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 30,
            "total_tokens": prompt_tokens + 30,
        });
        assert_eq!(object["usage"], usage);
    });
}

#[test]
fn equal_prompts_are_drawn_independently_without_a_seed() {
    serve_default(async |server| {
        let members = json!({"prompt": ["x", "x", "x", "x"], "temperature": 1.5, "max_tokens": 12});
        let object = server.ok(members.clone()).await;
        let mut distinct = texts(&object);
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "{distinct:?}");
        let mut seeded = members;
        seeded["seed"] = json!(3);
        let object = server.ok(seeded).await;
        let found = texts(&object);
        assert!(found.iter().all(|text| *text == found[0]), "{found:?}");
    });
}

#[test]
fn candidates_differ_and_the_first_stays() {
    serve_default(async |server| {
        let members = |n: u32| json!({"n": n, "seed": 7, "temperature": 1.5, "max_tokens": 12});
        let four = server.ok(members(4)).await;
        let texts_of_four = texts(&four);
        let mut distinct = texts_of_four.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 1);
        assert_eq!(texts(&server.ok(members(1)).await), texts_of_four[..1]);
        assert_eq!(texts(&server.ok(members(2)).await), texts_of_four[..2]);
    });
}

#[test]
fn case_045_greedy_candidates_are_equal() {
    serve_default(async |server| {
        let alone = server.text(json!({"temperature": 0})).await;
        for members in [
            json!({"temperature": 0, "n": 3}),
            json!({"temperature": 0, "best_of": 3}),
        ] {
            let object = server.ok(members).await;
            assert!(texts(&object).iter().all(|text| *text == alone));
        }
    });
}

#[test]
fn case_042_discarded_candidates_count() {
    serve_default(async |server| {
        let members =
            |best_of: u32| json!({"best_of": best_of, "ignore_eos": true, "max_tokens": 6});
        let object = server.ok(members(4)).await;
        assert_eq!(choices(&object).len(), 1);
        assert_eq!(object["choices"][0]["logprobs"], Value::Null);
        assert_eq!(object["usage"]["completion_tokens"], 24);
        let single = server.ok(members(1)).await;
        assert_eq!(
            object["usage"]["prompt_tokens"],
            single["usage"]["prompt_tokens"]
        );
    });
}

#[test]
fn case_043_the_best_come_first() {
    serve_default(async |server| {
        let members = |seed: u32, n: u32, best_of: u32| {
            json!({
                "prompt": [PROMPT, "x"], "n": n, "best_of": best_of, "logprobs": 0, "stop": "k",
                "temperature": 1.2, "seed": seed, "max_tokens": 10, "ignore_eos": true,
            })
        };
        let (mut reordered, mut sum_differs) = (false, false);
        for seed in 0..8 {
            let all = server.ok(members(seed, 4, 4)).await;
            let best = server.ok(members(seed, 2, 4)).await;
            assert_eq!(choices(&best).len(), 4);
            for prompt in 0..2 {
                let candidates = &choices(&all)[4 * prompt..4 * prompt + 4];
                let ranked = |score: fn(&[f64]) -> f64| {
                    let mut ranked: Vec<&Value> = candidates.iter().collect();
                    let of = |choice: &Value| score(&logprobs_of(choice));
                    ranked.sort_by(|a, b| of(b).total_cmp(&of(a)));
                    ranked.truncate(2);
                    ranked
                        .into_iter()
                        .map(|choice| choice["text"].as_str().unwrap())
                        .collect()
                };
                let by_mean: Vec<&str> = ranked(|all| all.iter().sum::<f64>() / all.len() as f64);
                assert_eq!(texts(&best)[2 * prompt..2 * prompt + 2], by_mean);
                reordered |= by_mean != texts(&all)[4 * prompt..4 * prompt + 2];
                sum_differs |= by_mean != ranked(|all| all.iter().sum());
            }
            assert_eq!(best["usage"], all["usage"]);
            // The ranking does not need logprobs in the response.
            let mut unlisted = members(seed, 2, 4);
            unlisted["logprobs"] = Value::Null;
            assert_eq!(texts(&server.ok(unlisted).await), texts(&best));
        }
        assert!(reordered && sum_differs, "the seeds test nothing");
    });
}

#[test]
fn case_044_best_of_and_streams() {
    serve_default(async |server| {
        let error = server.complete(json!({"best_of": 1, "n": 2})).await.error();
        assert_eq!((error.0, error.2.as_deref()), (400, Some("best_of")));
        server.ok(json!({"best_of": 2, "n": 2})).await;
        let streamed = json!({"best_of": 3, "n": 2, "stream": true});
        let error = server.complete(streamed).await.error();
        let param = Some("best_of".to_owned());
        assert_eq!(error, (400, "conflicting_parameters".into(), param));
        server.stream(json!({"best_of": 1})).await;
    });
}

#[test]
fn case_093_streams_of_several_choices() {
    serve_default(async |server| {
        let members = json!({"prompt": ["one", "three"], "n": 3, "seed": 4, "max_tokens": 9});
        let whole = server.ok(members.clone()).await;
        let mut streamed = members;
        streamed["stream_options"] = json!({"include_usage": true, "continuous_usage_stats": true});
        let mut chunks = server.stream(streamed).await;
        assert_eq!(chunks.pop().unwrap()["usage"], whole["usage"]);
        let joined = joined_choices(&chunks);
        let joined: Vec<&str> = joined
            .iter()
            .map(|choice| choice["text"].as_str().unwrap())
            .collect();
        assert_eq!(joined, texts(&whole));
        // No choice waits for another.
        let indices: Vec<u64> = chunks
            .iter()
            .map(|chunk| chunk["choices"][0]["index"].as_u64().unwrap())
            .collect();
        assert!(!indices.is_sorted());
        // Running totals are those of the chunk's own choice.
        for index in 0..6 {
            let of_choice = |chunk: &&Value| chunk["choices"][0]["index"] == index;
            let last = chunks.iter().rfind(of_choice).unwrap();
            let prompt_tokens = server.ids(["one", "three"][index / 3]).len();
            let usage = json!({
                "prompt_tokens": prompt_tokens,
                "completion_tokens": 9,
                "total_tokens": prompt_tokens + 9,
            });
            assert_eq!(last["usage"], usage);
        }
    });
}

#[test]
fn one_prompt_that_does_not_fit_fails_them_all_before_any_runs() {
    serve_default(async |server| {
        server.plan.held.set(true);
        for (prompt, code) in [
            (
                json!(["a", "x".repeat(2 * CONTEXT)]),
                "context_length_exceeded",
            ),
            (json!([[5], [VOCAB]]), "out_of_range"),
        ] {
            let error = server
                .complete(json!({"prompt": prompt, "stream": true}))
                .await
                .error();
            assert_eq!(error, (400, code.into(), Some("prompt".into())));
            assert_eq!(server.engine.active_generations(), 0);
        }
    });
}

#[test]
fn every_prompt_is_truncated_separately() {
    serve_default(async |server| {
        let long = "x".repeat(CONTEXT + 5);
        let members = json!({
            "prompt": [long, "short", long],
            "truncate_sequence": true,
            "max_tokens": 4,
            "echo": true,
        });
        let reply = server.complete(members).await;
        let object = reply.json();
        let kept = CONTEXT - 4;
        let dropped = 2 * (long.len() + 1 - kept);
        assert_eq!(
            reply.header("x-prompt-truncated"),
            Some(&*dropped.to_string())
        );
        let prompt_tokens = 2 * kept + server.ids("short").len();
        assert_eq!(object["usage"]["prompt_tokens"], prompt_tokens);
        let lengths: Vec<usize> = texts(&object).iter().map(|text| text.len()).collect();
        assert_eq!(lengths, [CONTEXT, "short".len() + 4, CONTEXT]);
    });
}

/// A letter that exactly one candidate generates, before its last token.
fn betraying_letter(texts: &[&str]) -> u32 {
    let early = |text: &str| text[..text.len() - 1].to_owned();
    let letter = ('a'..='z').find(|letter| {
        let told = texts.iter().filter(|text| text.contains(*letter)).count();
        told == 1 && texts.iter().any(|text| early(text).contains(*letter))
    });
    bytes(&letter.expect("another seed").to_string())[0]
}

#[test]
fn a_failing_candidate_fails_the_request() {
    serve_default(async |server| {
        let members = json!({"n": 3, "seed": 2, "temperature": 1.5, "max_tokens": 12});
        let object = server.ok(members.clone()).await;
        server
            .plan
            .poison
            .set(Some(betraying_letter(&texts(&object))));
        let reply = server.complete(members.clone()).await;
        assert_eq!(reply.error(), (500, "invalid_logits".into(), None));
        assert_eq!(server.engine.active_generations(), 0);

        let mut streamed = members.clone();
        streamed["stream_options"] = json!({"include_usage": true});
        let mut chunks = server.stream(streamed).await;
        let last = chunks.pop().unwrap();
        assert_eq!(error_of(&last), ("invalid_logits".into(), None));
        assert!(chunks.iter().all(|chunk| chunk["usage"].is_null()));
        assert_eq!(server.engine.active_generations(), 0);

        server.plan.poison.set(None);
        assert_eq!(texts(&server.ok(members).await), texts(&object));
    });
}

#[test]
fn a_step_that_fails_fails_the_request() {
    serve_default(async |server| {
        let error = Error::OutOfMemory("test".into());
        *server.plan.failure.borrow_mut() = Some((1, error));
        let members = json!({"prompt": ["a", "b"], "n": 2});
        let error = server.complete(members.clone()).await.error();
        assert_eq!(error, (500, "out_of_memory".into(), None));
        *server.plan.failure.borrow_mut() = None;
        server.ok(members).await;
    });
}

#[test]
fn a_dropped_body_ends_all_candidates() {
    serve_default(async |server| {
        let members = json!({
            "prompt": ["a", "b"], "n": 3, "stream": true, "max_tokens": 2000, "ignore_eos": true,
        });
        let response = server.handler.handle(completion(&body(members))).await;
        let Body::Stream(mut stream) = response.body else {
            panic!("not a stream");
        };
        assert!(stream.next().await.is_some());
        assert_eq!(server.engine.active_generations(), 6);
        drop(stream);
        assert_eq!(server.engine.active_generations(), 0);
        server.ok(json!({})).await;
    });
}
