//! The effect of SGLang's fields (specification 6.6 and 9.6).

use serde_json::{Value, json};

use crate::chat;
use crate::fixture::*;

/// Whole and streamed answers, which must agree.
async fn both(server: &Server, mut members: Value) -> Value {
    members["seed"] = json!(1);
    let whole = server.ok(members.clone()).await;
    let chunks = server.stream(members.clone()).await;
    assert_eq!(joined_choices(&chunks), choices(&whole), "{members}");
    whole
}

#[test]
fn a_regular_expression_ends_a_choice_where_it_matches() {
    serve_default(async |server| {
        for (said, members, text, reason) in [
            (
                "ab12cd",
                json!({"stop_regex": "[0-9]+"}),
                "ab",
                json!("[0-9]+"),
            ),
            (
                "ab12cd",
                json!({"stop_regex": ["x", "[0-9]{2}"]}),
                "ab",
                json!("[0-9]{2}"),
            ),
            (
                "ab12cd",
                json!({"stop_regex": "[0-9]c", "include_stop_str_in_output": true}),
                "ab12c",
                json!("[0-9]c"),
            ),
            // Text that may begin a match is held back, and released at the end.
            ("ab12", json!({"stop_regex": "b.*x"}), "ab12", Value::Null),
            ("aéb", json!({"stop_regex": "é"}), "a", json!("é")),
            // The first stop that ends counts, and the longer one of two.
            (
                "ab12cd",
                json!({"stop_regex": "b.+", "stop": "1"}),
                "a",
                json!("b.+"),
            ),
            (
                "ab12cd",
                json!({"stop_regex": "b.c", "stop": "12"}),
                "ab",
                json!("12"),
            ),
            (
                "xxxx",
                json!({"stop_regex": "x", "min_tokens": 2}),
                "xx",
                json!("x"),
            ),
        ] {
            server.plan.say(bytes(said));
            let object = both(server, members.clone()).await;
            assert_eq!(
                (text_of(&object), finish_of(&object)),
                (text, "stop"),
                "{members}"
            );
            assert_eq!(object["choices"][0]["stop_reason"], reason, "{members}");
        }
        server.plan.say(bytes("xy12"));
        let object = chat::whole(server, &json!({"stop_regex": "[0-9]"})).await;
        assert_eq!(object["choices"][0]["message"]["content"], "xy");
        assert_eq!(object["choices"][0]["stop_reason"], "[0-9]");
        for (value, code) in [
            (json!("a*"), "invalid_value"),
            (json!("("), "invalid_value"),
            (json!("^a"), "invalid_value"),
            (json!(r"\w{500}x"), "invalid_value"),
            (json!(1), "invalid_type"),
            (json!(["a", "b", "c", "d", "e"]), "out_of_range"),
        ] {
            let error = server.complete(json!({"stop_regex": value})).await.error();
            assert_eq!(
                error,
                (400, code.into(), Some("stop_regex".into())),
                "{value}"
            );
        }
    });
}

#[test]
fn regex_and_ebnf_constrain_on_every_route() {
    serve_default(async |server| {
        let ebnf = "root ::= \"a\" b\n  \"c\"\nb ::= \"b\"";
        for (members, text) in [
            (json!({"regex": "(ab){2}"}), "abab"),
            (json!({"ebnf": ebnf}), "abc"),
        ] {
            let object = both(server, members.clone()).await;
            assert_eq!(text_of(&object), text);
            let object = chat::whole(server, &members).await;
            assert_eq!(object["choices"][0]["message"]["content"], text);
            let mut body = members;
            body["model"] = json!("default");
            let mut message = body.clone();
            message["max_tokens"] = json!(8);
            message["messages"] = json!([{"role": "user", "content": "q"}]);
            let headers = [("content-type", "application/json")];
            let url = "/v1/messages";
            let message = request("POST", url, &headers, &message.to_string());
            let object = server.send(message).await.json();
            assert_eq!(object["content"][0]["text"], text, "{object}");
            body["input"] = json!("q");
            let object = server.send(responses(&body.to_string())).await.json();
            assert_eq!(object["output"][0]["content"][0]["text"], text);
        }
        for (members, code, param) in [
            (json!({"regex": "("}), "invalid_grammar", "regex"),
            (json!({"ebnf": "root = a"}), "invalid_grammar", "ebnf"),
            (json!({"ebnf": 1}), "invalid_type", "ebnf"),
            (
                json!({"regex": "a", "ebnf": ebnf}),
                "conflicting_parameters",
                "ebnf",
            ),
        ] {
            let error = server.complete(members.clone()).await.error();
            assert_eq!(error, (400, code.into(), Some(param.into())), "{members}");
        }
    });
}
