//! Fields of chat that are vLLM's or of other routes (specification 18.1 and 18.11): echo, tokens of the prompt, and
//! truncation.

use serde_json::{Value, json};

use crate::chat::{append, reply, streamed, whole};
use crate::fixture::*;

fn ids(listed: &Value) -> Vec<u32> {
    serde_json::from_value(listed.clone()).unwrap()
}

/// The contents and the token ids of the choices of a stream.
fn joined(chunks: &[Value], choices: usize) -> Vec<(Value, Value)> {
    let mut all = vec![(Value::Null, json!([])); choices];
    for choice in chunks.iter().filter_map(|chunk| chunk["choices"].get(0)) {
        let (content, token_ids) = &mut all[choice["index"].as_u64().unwrap() as usize];
        append(content, &choice["delta"]["content"]);
        append(token_ids, &choice["token_ids"]);
    }
    all
}

fn conversation(last: Value) -> Value {
    json!([{"role": "user", "content": "q"}, last])
}

#[test]
fn echo_puts_the_last_message_first_that_the_answer_continues() {
    serve_default(async |server| {
        let begun = json!({"role": "assistant", "content": "ab"});
        for (messages, members, expected) in [
            // It is continued, or another one follows.
            (conversation(begun.clone()), json!({"echo": true}), "abxy"),
            (
                conversation(begun.clone()),
                json!({"echo": true, "add_generation_prompt": true}),
                "abxy",
            ),
            (conversation(begun), json!({"echo": false}), "xy"),
            (
                conversation(json!({"role": "user", "content": "ab"})),
                json!({"echo": true}),
                "xy",
            ),
            // If the prompt does not begin an answer, the last message is echoed whatever its role is.
            (
                conversation(json!({"role": "user", "content": "ab"})),
                json!({"echo": true, "add_generation_prompt": false}),
                "abxy",
            ),
            (
                conversation(json!({"role": "system", "content": [
                    {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
                json!({"echo": true, "continue_final_message": true}),
                "a\nbxy",
            ),
        ] {
            server.plan.say(bytes("xy"));
            let mut members = members;
            members["messages"] = messages;
            members["n"] = json!(2);
            let object = whole(server, &members).await;
            let chunks = streamed(server, &members).await;
            for (choice, (content, _)) in choices(&object).iter().zip(joined(&chunks, 2)) {
                assert_eq!(choice["message"]["content"], expected, "{members}");
                assert_eq!(content, expected, "{members}");
            }
        }
        let error = reply(server, &json!({"echo": 1})).await.error();
        assert_eq!(error, (400, "invalid_type".into(), Some("echo".into())));
    });
}

#[test]
fn ids_of_prompt_and_message_are_listed() {
    serve_default(async |server| {
        let said = bytes("xy");
        server.plan.say(said.clone());
        // <s> <|sep|> u q <|sep|> a
        let prompt = [vec![BOS, SEP], bytes("uq"), vec![SEP], bytes("a")].concat();
        let generated = [said, vec![EOS]].concat();
        let members = json!({"return_token_ids": true, "n": 2});
        let object = whole(server, &members).await;
        assert_eq!(ids(&object["prompt_token_ids"]), prompt);
        let chunks = streamed(server, &members).await;
        for (choice, (_, token_ids)) in choices(&object).iter().zip(joined(&chunks, 2)) {
            assert_eq!(ids(&choice["token_ids"]), generated);
            assert_eq!(ids(&token_ids), generated);
        }
        for chunk in &chunks {
            let is_first = chunk["choices"][0]["delta"].get("role").is_some();
            assert_eq!(chunk.get("prompt_token_ids").is_some(), is_first, "{chunk}");
        }
        let object = whole(server, &json!({})).await;
        assert!(object.get("prompt_token_ids").is_none());
        assert!(object["choices"][0].get("token_ids").is_none());
        // Names of tokens.
        let members =
            json!({"return_tokens_as_token_ids": true, "logprobs": true, "top_logprobs": 1});
        let object = whole(server, &members).await;
        let choice = &object["choices"][0];
        let listed = &choice["logprobs"]["content"][0];
        let name = format!("token_id:{}", bytes("x")[0]);
        assert_eq!(listed["token"], name);
        assert_eq!(listed["top_logprobs"][0]["token"], name);
        assert_eq!(ids(&choice["token_ids"]), generated);
        assert!(object.get("prompt_token_ids").is_none());
    });
}

#[test]
fn tokens_of_the_prompt_have_log_probabilities() {
    serve_default(async |server| {
        let members = json!({"prompt_logprobs": 1, "return_token_ids": true, "seed": 1});
        let object = whole(server, &members).await;
        let prompt = ids(&object["prompt_token_ids"]);
        let completion = json!({"prompt": prompt, "prompt_logprobs": 1, "max_tokens": 1});
        let completion = server.ok(completion).await;
        let expected = &completion["choices"][0]["prompt_logprobs"];
        assert_eq!(object["prompt_logprobs"], *expected);
        assert_eq!(expected.as_array().unwrap().len(), prompt.len());
        let chunks = streamed(server, &members).await;
        assert_eq!(chunks[0]["prompt_logprobs"], *expected);
        assert!(
            chunks[1..]
                .iter()
                .all(|chunk| chunk.get("prompt_logprobs").is_none())
        );
        let error = reply(server, &json!({"prompt_logprobs": 6})).await.error();
        assert_eq!(
            error,
            (400, "out_of_range".into(), Some("prompt_logprobs".into()))
        );
    });
}

#[test]
fn prompts_are_cut_at_either_side() {
    serve_default(async |server| {
        let all = [vec![BOS, SEP], bytes("uq"), vec![SEP], bytes("a")].concat();
        for (members, expected) in [
            (json!({"truncate_prompt_tokens": 4}), &all[2..]),
            (
                json!({"truncate_prompt_tokens": 4, "truncation_side": "left"}),
                &all[2..],
            ),
            (
                json!({"truncate_prompt_tokens": 4, "truncation_side": "right"}),
                &all[..4],
            ),
            (json!({"truncate_prompt_tokens": 99}), &all[..]),
            (json!({"truncate_prompt_tokens": -1}), &all[..]),
            (json!({"truncation_side": "right"}), &all[..]),
        ] {
            let mut members = members;
            members["return_token_ids"] = json!(true);
            let answer = reply(server, &members).await;
            let object = answer.json();
            assert_eq!(ids(&object["prompt_token_ids"]), expected, "{members}");
            assert_eq!(object["usage"]["prompt_tokens"], expected.len());
            let cut = (all.len() - expected.len()).to_string();
            let header = answer.header("x-prompt-truncated");
            assert_eq!(header, (cut != "0").then_some(&*cut));
        }
        // A conversation that exceeds the context is cut so that a message fits.
        let long = json!([{"role": "user", "content": "q".repeat(CONTEXT)}]);
        let members =
            json!({"messages": long, "truncate_prompt_tokens": -1, "return_token_ids": true});
        let object = whole(server, &members).await;
        let kept = ids(&object["prompt_token_ids"]);
        assert!(kept.len() < CONTEXT && kept.ends_with(&bytes("a")));
        for (members, code, param) in [
            (
                json!({"truncate_prompt_tokens": 0}),
                "out_of_range",
                "truncate_prompt_tokens",
            ),
            (
                json!({"truncation_side": "middle"}),
                "invalid_value",
                "truncation_side",
            ),
        ] {
            let error = reply(server, &members).await.error();
            assert_eq!(error, (400, code.into(), Some(param.into())));
        }
        // The same for completions, with what they echo.
        for (side, text) in [("left", "cd"), ("right", "a")] {
            let members = json!({"prompt": "abcd", "truncate_prompt_tokens": 2, "echo": true,
                "truncation_side": side, "max_tokens": 0, "logprobs": 0});
            let object = server.ok(members).await;
            assert_eq!(text_of(&object), text);
            let offsets = json!(if side == "left" { [0, 1] } else { [0, 0] });
            assert_eq!(object["choices"][0]["logprobs"]["text_offset"], offsets);
        }
    });
}

#[test]
fn the_template_knows_the_verbosity() {
    serve_default(async |server| {
        server.set_template(Some("{{ verbosity }}"));
        let prompt = async |members: Value| {
            let mut members = members;
            members["return_token_ids"] = json!(true);
            ids(&whole(server, &members).await["prompt_token_ids"])
        };
        let low = [vec![BOS], server.ids("low")[1..].to_vec()].concat();
        assert_eq!(prompt(json!({"verbosity": "low"})).await, low);
        let own = json!({"verbosity": "high", "chat_template_kwargs": {"verbosity": "low"}});
        assert_eq!(prompt(own).await, low);
        let error = reply(server, &json!({"verbosity": "loud"})).await.error();
        assert_eq!(
            error,
            (400, "invalid_value".into(), Some("verbosity".into()))
        );
    });
}
