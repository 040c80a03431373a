//! Thinking in chat (specification 18.12): whether the model thinks, how long, and whether the answer says what.

use serde_json::{Value, json};

use crate::chat::{HERMES, choices_of, choices_of_whole, reply, streamed, whole};
use crate::fixture::*;

async fn is_refused(server: &Server, members: Value, code: &str, param: &str) {
    let error = reply(server, &members).await.error();
    assert_eq!(error, (400, code.into(), Some(param.into())), "{members}");
}

#[test]
fn templates_are_told_whether_to_think() {
    serve_default(async |server| {
        let template =
            "{% if enable_thinking is defined %}{{ enable_thinking }}{% else %}-{% endif %}";
        server.set_template(Some(template));
        let adaptive = json!({"type": "adaptive"});
        let disabled = json!({"type": "disabled"});
        for (members, expected) in [
            (json!({}), "-"),
            (json!({"thinking": null, "enable_thinking": null}), "-"),
            (json!({"thinking": disabled}), "False"),
            (
                json!({"thinking": {"type": "enabled", "budget_tokens": 9}}),
                "True",
            ),
            (json!({"thinking": adaptive}), "-"),
            (json!({"enable_thinking": true}), "True"),
            (
                json!({"enable_thinking": false, "thinking": disabled}),
                "False",
            ),
            (
                json!({"enable_thinking": true, "reasoning_effort": "none"}),
                "True",
            ),
            (
                json!({"enable_thinking": true, "chat_template_kwargs": {"enable_thinking": "x"}}),
                "x",
            ),
            (json!({"reasoning": {}}), "-"),
            (json!({"reasoning": {"enabled": true}}), "True"),
            (
                json!({"reasoning": {"enabled": false, "effort": "high"}}),
                "False",
            ),
            // Thinking is on where an effort or a number of tokens says how much.
            (json!({"reasoning": {"effort": "low"}}), "True"),
            (json!({"reasoning": {"effort": "none"}}), "False"),
            (json!({"reasoning": {"max_tokens": 9}}), "True"),
            (json!({"reasoning": {"max_tokens": 0}}), "-"),
            (
                json!({"reasoning": {"exclude": true, "summary": "auto"}}),
                "-",
            ),
            (
                json!({"reasoning": {"max_tokens": 9}, "thinking": adaptive}),
                "-",
            ),
            (
                json!({"reasoning": {"effort": "low"}, "enable_thinking": false}),
                "False",
            ),
            (
                json!({"reasoning": {"enabled": true}, "chat_template_kwargs": {"enable_thinking": "x"}}),
                "x",
            ),
        ] {
            let mut body =
                json!({"model": "default", "messages": [{"role": "user", "content": "q"}]});
            body.as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            let headers = [("content-type", "application/json")];
            let url = "/v1/apply-template";
            let rendered = server
                .send(request("POST", url, &headers, &body.to_string()))
                .await;
            assert_eq!(rendered.json()["prompt"], expected, "{members}");
            let usage = whole(server, &members).await["usage"].clone();
            assert_eq!(usage["prompt_tokens"], 1 + expected.len(), "{members}");
        }
        let differ = json!({"enable_thinking": true, "thinking": disabled});
        is_refused(server, differ, "conflicting_parameters", "enable_thinking").await;
        let differ = json!({"enable_thinking": true, "thinking": adaptive});
        is_refused(server, differ, "conflicting_parameters", "enable_thinking").await;
        is_refused(
            server,
            json!({"enable_thinking": 1}),
            "invalid_type",
            "enable_thinking",
        )
        .await;
        is_refused(
            server,
            json!({"thinking": {"type": "x"}}),
            "invalid_value",
            "thinking",
        )
        .await;
        let untyped = json!({"thinking": {"budget_tokens": 9}});
        is_refused(server, untyped, "missing_required_parameter", "thinking").await;
    });
}

#[test]
fn fields_that_say_the_same_agree() {
    serve_default(async |server| {
        server.set_template(Some("{{ reasoning_effort }}"));
        let prompt_tokens = async |members: Value| {
            let usage = whole(server, &members).await["usage"].clone();
            usage["prompt_tokens"].as_u64().unwrap() - 1
        };
        let high = json!({"reasoning": {"effort": "high"}, "reasoning_effort": "high"});
        assert_eq!(prompt_tokens(high).await, 4);
        let minimal = json!({"reasoning": {"effort": "minimal"}});
        assert_eq!(prompt_tokens(minimal).await, 7);
        for (members, param) in [
            (
                json!({"reasoning_effort": "low", "reasoning": {"effort": "high"}}),
                "reasoning_effort",
            ),
            (
                json!({"enable_thinking": true, "reasoning": {"enabled": false}}),
                "enable_thinking",
            ),
            (
                json!({"thinking": {"type": "disabled"}, "reasoning": {"enabled": true}}),
                "thinking",
            ),
            (
                json!({"thinking": {"type": "enabled", "budget_tokens": 4}, "reasoning": {"max_tokens": 5}}),
                "thinking",
            ),
            (
                json!({"thinking_token_budget": 4, "reasoning": {"max_tokens": 5}}),
                "thinking_token_budget",
            ),
            (
                json!({"include_reasoning": true, "reasoning": {"exclude": true}}),
                "include_reasoning",
            ),
            (
                json!({"reasoning_format": "hidden", "reasoning": {"exclude": false}}),
                "reasoning_format",
            ),
            (
                json!({"include_reasoning": false, "reasoning_format": "parsed"}),
                "include_reasoning",
            ),
            (
                json!({"reasoning": {"effort": "low", "max_tokens": 5}}),
                "reasoning",
            ),
        ] {
            is_refused(server, members, "conflicting_parameters", param).await;
        }
        for (reasoning, code) in [
            (json!("low"), "invalid_type"),
            (json!({"effort": "huge"}), "invalid_value"),
            (json!({"effort": 1}), "invalid_type"),
            (json!({"max_tokens": -1}), "out_of_range"),
            (json!({"enabled": 1}), "invalid_type"),
            (json!({"exclude": "yes"}), "invalid_type"),
            (json!({"summary": "long"}), "invalid_value"),
        ] {
            is_refused(server, json!({"reasoning": reasoning}), code, "reasoning").await;
        }
        for format in ["raw", "none", "deepseek-legacy"] {
            let members = json!({"reasoning_format": format});
            is_refused(server, members, "unsupported_parameter", "reasoning_format").await;
        }
        let members = json!({"reasoning_format": "x"});
        is_refused(server, members, "invalid_value", "reasoning_format").await;
        whole(server, &json!({"reasoning": {"depth": 3}})).await;
        assert_eq!(
            *server.host.warnings.borrow(),
            ["inpage: the request field \"reasoning.depth\" is unknown and ignored"]
        );
    });
    serve(json!({"unknownFields": "error"}), async |server| {
        let members = json!({"reasoning": {"depth": 3}});
        is_refused(server, members, "unknown_parameter", "reasoning.depth").await;
    });
}

#[test]
fn thinking_ends_when_its_budget_is_spent_and_may_be_left_out() {
    serve_default(async |server| {
        let control = ["<think>", "</think>", "<MID>"];
        server.set_template_with(Some(&(HERMES.to_owned() + "<think>")), control);
        let close = PRE + 1;
        let thought = [&bytes("abcdefgh")[..], &[close], &bytes("xy")].concat();
        server.plan.say(thought);
        let message = async |members: Value| {
            let mut members = members;
            members["max_tokens"] = json!(40);
            let object = whole(server, &members).await;
            let choices = choices_of_whole(&object);
            assert_eq!(
                choices_of(&streamed(server, &members).await),
                choices,
                "{members}"
            );
            let reasoning = &object["usage"]["completion_tokens_details"]["reasoning_tokens"];
            assert!(reasoning.as_u64().unwrap() > 0, "{object}");
            let message = &choices[0]["message"];
            let text = |name: &str| message[name].as_str().map(str::to_owned);
            (text("reasoning_content"), text("content").unwrap())
        };
        let both = |reasoning: &str, text: &str| (Some(reasoning.to_owned()), text.to_owned());
        assert_eq!(message(json!({})).await, both("abcdefgh", "xy"));
        assert_eq!(
            message(json!({"include_reasoning": true}))
                .await
                .0
                .as_deref(),
            Some("abcdefgh")
        );
        assert_eq!(
            message(json!({"include_reasoning": false})).await,
            (None, "xy".to_owned())
        );
        for shown in [
            json!({"reasoning": {"exclude": false}}),
            json!({"reasoning_format": "parsed"}),
            json!({"reasoning_format": "auto"}),
            json!({"reasoning_format": "deepseek"}),
        ] {
            assert_eq!(message(shown).await, both("abcdefgh", "xy"));
        }
        for hidden in [
            json!({"reasoning": {"exclude": true}}),
            json!({"reasoning_format": "hidden"}),
        ] {
            assert_eq!(message(hidden).await, (None, "xy".to_owned()));
        }
        let listed = json!({"include_reasoning": false, "logprobs": true});
        assert_eq!(message(listed).await, (None, "xy".to_owned()));
        // The ids of what is left out are in the stream, too.
        let members =
            json!({"max_tokens": 40, "include_reasoning": false, "return_token_ids": true});
        let ids = whole(server, &members).await["choices"][0]["token_ids"].clone();
        let chunks = streamed(server, &members).await;
        let parts = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["token_ids"].as_array());
        assert_eq!(parts.flatten().cloned().collect::<Value>(), ids);
        let (bounded, _) = message(json!({"thinking_token_budget": 3})).await;
        assert_eq!(bounded.as_deref(), Some("abc"));
        let own = json!({"type": "enabled", "budget_tokens": 3});
        let (bounded, _) = message(json!({"thinking": own, "thinking_token_budget": 3})).await;
        assert_eq!(bounded.as_deref(), Some("abc"));
        let (bounded, _) = message(json!({"reasoning": {"max_tokens": 3}})).await;
        assert_eq!(bounded.as_deref(), Some("abc"));
        let differ = json!({"thinking": own, "thinking_token_budget": 4});
        is_refused(
            server,
            differ,
            "conflicting_parameters",
            "thinking_token_budget",
        )
        .await;
        // A tag that is several tokens.
        server.set_template(Some(&(HERMES.to_owned() + "<think>")));
        let bounded = json!({"thinking_token_budget": 1});
        is_refused(
            server,
            bounded,
            "unsupported_parameter",
            "thinking_token_budget",
        )
        .await;
        let bounded = json!({"reasoning": {"max_tokens": 1}});
        is_refused(server, bounded, "unsupported_parameter", "reasoning").await;
    });
}
