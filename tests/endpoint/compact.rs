//! Compacted conversations (specification 20.6) and their items in later requests (specification 20.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inpage::Error;
use inpage::api::Request;
use serde_json::{Value, json};

use crate::fixture::*;
use crate::open_responses;

/// Prints the roles and the beginnings of contents, so that the request for a summary fits the context.
const SHORT: &str =
    "{% for m in messages %}<|sep|>{{ m.role[0] }}{{ m.content[:6] }}{% endfor %}<|sep|>a";
/// The same with the tags of reasoning.
const REASONING: &str =
    "{# <think> </think> #}{% for m in messages %}<|sep|>{{ m.content[:6] }}{% endfor %}<|sep|>a";

async fn compact(server: &Server, members: &Value) -> Reply {
    let mut body = json!({"model": "default", "input": "q"});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    let request = Request {
        url: "/v1/responses/compact".into(),
        ..responses(&body.to_string())
    };
    server.send(request).await
}

async fn whole(server: &Server, members: &Value) -> Value {
    let reply = compact(server, members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    let object = reply.json();
    open_responses::check("Compaction", &object);
    object
}

/// The members of the JSON in an item.
#[track_caller]
fn content_of(item: &Value) -> Value {
    let text = item["encrypted_content"].as_str().unwrap();
    serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap()
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn said(content: &str) -> Value {
    json!({"role": "assistant", "content": content})
}

async fn response(server: &Server, input: &Value) -> Reply {
    let body = json!({"model": "default", "input": input, "max_output_tokens": 4});
    server.send(responses(&body.to_string())).await
}

#[test]
fn messages_of_the_user_stay_and_the_model_summarizes_the_rest() {
    serve_default(async |server| {
        server.set_template(Some(SHORT));
        server.plan.say(bytes(" all of it\n"));
        let parts = json!([{"type": "input_text", "text": "b"}]);
        let input = json!([
            {"role": "developer", "content": "x"}, user("a"), said("c"),
            {"type": "message", "id": "msg_7", "role": "user", "content": parts}, said("d")]);
        let object = whole(server, &json!({"instructions": "i", "input": input})).await;
        let id = object["id"].as_str().unwrap();
        let random = id.strip_prefix("resp_").unwrap();
        assert_eq!(random.len(), 24);
        let message = |index: usize, text: &str| {
            json!({"type": "message", "id": format!("msg_{random}{index}"), "status": "completed",
                "role": "user", "content": [{"type": "input_text", "text": text}]})
        };
        let [first, second, compaction] = &object["output"].as_array().unwrap()[..] else {
            panic!("{object}");
        };
        assert_eq!([first, second], [&message(0, "a"), &message(1, "b")]);
        assert_eq!(compaction["id"], format!("cmp_{random}2"));
        assert_eq!(content_of(compaction)["summary"], "all of it");
        assert!(object["created_at"].is_u64());
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["id", "object", "created_at", "output", "usage"]);
        // BOS, seven messages with their marks, and the turn of the model.
        let usage = &object["usage"];
        let prompt = 1 + 7 * 2 + ["i", "x", "a", "c", "b", "d", "Write "].concat().len() + 2;
        assert_eq!(usage["input_tokens"], prompt);
        let written = usage["output_tokens"].as_u64().unwrap();
        assert!(written >= " all of it\n".len() as u64, "{usage}");
        assert_eq!(usage["total_tokens"], prompt as u64 + written);
    });
}

#[test]
fn the_output_begins_the_next_request() {
    serve_default(async |server| {
        server.set_template(Some(SHORT));
        server.plan.say(bytes("sum"));
        let input = json!([user("a"), said("b"), user("c"), said("d")]);
        let mut next = whole(server, &json!({"input": input})).await["output"].clone();
        next.as_array_mut().unwrap().push(user("e"));
        server.set_template(Some(
            "{% for m in messages %}<|sep|>{{ m.role[0] }}{{ m.content|replace('Summary of our conversation so far', 'S') }}\
             {% endfor %}<|sep|>a",
        ));
        // What the model says depends on the whole prompt.
        server.plan.babble();
        let same = "a\n\nc\n\n[Summary of our conversation so far]\nsum\n[End of the summary]\n\ne";
        let compacted = response(server, &next).await;
        let written = response(server, &json!([user(same)])).await;
        assert_eq!(compacted.status, 200, "{}", compacted.text());
        let seen = |reply: &Reply| {
            let object = reply.json();
            let text = object["output"][0]["content"].clone();
            (object["usage"]["input_tokens"].clone(), text)
        };
        assert_eq!(seen(&compacted), seen(&written));
        // It can be compacted again.
        server.set_template(Some(SHORT));
        server.plan.say(bytes("more"));
        let again = whole(server, &json!({"input": next})).await;
        let items = again["output"].as_array().unwrap();
        let kept = items.iter().filter(|item| item["role"] == "user");
        let texts: Vec<&str> = kept
            .map(|item| item["content"][0]["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["a", "c", "e"]);
        assert_eq!(items.len(), 4);
        assert_eq!(content_of(&items[3])["summary"], "more");
    });
}

#[test]
fn reasoning_is_not_part_of_the_summary() {
    serve_default(async |server| {
        server.set_template(Some(REASONING));
        server.plan.say(bytes("<think>ab</think>cd"));
        let object = whole(server, &json!({})).await;
        assert_eq!(content_of(&object["output"][1])["summary"], "cd");
        let usage = &object["usage"]["output_tokens_details"];
        assert!(usage["reasoning_tokens"].as_u64() > Some(1), "{usage}");
        server.plan.say(bytes("<think>ab</think>"));
        let error = compact(server, &json!({})).await.error();
        let unsupported = (400, "unsupported_parameter".into(), Some("model".into()));
        assert_eq!(error, unsupported);
    });
}

#[test]
fn compactions_are_refused_as_responses_are() {
    serve_default(async |server| {
        server.set_template(Some(SHORT));
        let is = |status: u16, code: &str, param: &str| {
            (status, code.to_owned(), Some(param.to_owned()))
        };
        let invalid = |code: &str, param: &str| is(400, code, param);
        let foreign = json!({"type": "compaction", "encrypted_content": "gAAAAABpM0Yj"});
        for (members, expected) in [
            (
                json!({"model": null}),
                invalid("missing_required_parameter", "model"),
            ),
            (
                json!({"input": null}),
                invalid("missing_required_parameter", "input"),
            ),
            (
                json!({"model": "other"}),
                is(404, "model_not_found", "model"),
            ),
            (
                json!({"previous_response_id": "resp_1"}),
                invalid("unsupported_parameter", "previous_response_id"),
            ),
            (
                json!({"stream": true}),
                invalid("unsupported_parameter", "stream"),
            ),
            (
                json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
                invalid("unsupported_parameter", "input"),
            ),
            (
                json!({"input": [{"type": "compaction_trigger"}]}),
                invalid("unsupported_parameter", "input"),
            ),
            (
                json!({"input": [foreign]}),
                invalid("invalid_value", "input"),
            ),
            (
                json!({"input": [{"type": "compaction"}]}),
                invalid("missing_required_parameter", "input"),
            ),
        ] {
            assert_eq!(
                compact(server, &members).await.error(),
                expected,
                "{members}"
            );
        }
        let used = json!({"previous_response_id": null, "stream": false, "prompt_cache_key": "k",
            "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}, "service_tier": "auto"});
        whole(server, &used).await;
        // In a response, too.
        let error = response(server, &json!([foreign])).await.error();
        assert_eq!(error, invalid("invalid_value", "input"));
        // A conversation that fills the context.
        server.set_template(None);
        assert_eq!(
            compact(server, &json!({})).await.error(),
            invalid("unsupported_parameter", "input")
        );
        server.set_template(Some(TEMPLATE));
        assert_eq!(
            compact(server, &json!({})).await.error(),
            invalid("context_length_exceeded", "input")
        );
    });
}

#[test]
fn a_failure_of_the_model_is_an_error_answer() {
    serve_default(async |server| {
        server.set_template(Some(SHORT));
        *server.plan.failure.borrow_mut() = Some((14, Error::InvalidLogits { position: 3 }));
        let reply = compact(server, &json!({})).await;
        *server.plan.failure.borrow_mut() = None;
        assert_eq!(reply.error(), (500, "invalid_logits".into(), None));
        whole(server, &json!({})).await;
    });
}

#[test]
fn no_next_turn_is_prepared() {
    // The prompt has 25 tokens, less than a page of 32; with the answer it has more.
    const TEMPLATE: &str =
        "{% for m in messages %}<|sep|>{{ m.role[0] }}{{ m.content[:20] }}{% endfor %}<|sep|>a";
    // The model goes on after the last letter of the prompt.
    let (question, answer) = ("1".repeat(20), "bcdefghijkl");
    for (is_compaction, expected) in [(true, 0), (false, 32)] {
        serve_default(async |server| {
            server.set_template(Some(TEMPLATE));
            server.plan.say(bytes("abcdefghijkl"));
            match is_compaction {
                true => drop(whole(server, &json!({"input": question})).await),
                false => {
                    let body = json!({"model": "default", "input": question});
                    let reply = server.send(responses(&body.to_string())).await;
                    assert_eq!(reply.status, 200, "{}", reply.text());
                }
            }
            // The engine is idle now.
            for _ in 0..20 {
                yield_now().await;
            }
            let next = json!([user(&question), said(answer), user("b")]);
            let usage = response(server, &next).await.json()["usage"].clone();
            assert_eq!(usage["input_tokens_details"]["cached_tokens"], expected);
        });
    }
}
