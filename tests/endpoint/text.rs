//! Stop strings, special tokens and UTF-8 (specification 6; cases F and 064). Each is tested whole and
//! streamed, with tokens of single bytes and of several characters.

use serde_json::{Value, json};

use crate::fixture::*;

/// Makes the model generate `says` with each of two tokenizations. Compares text and finish reason, whole
/// and streamed. After every chunk, the text so far must be a prefix of the whole text.
async fn check(server: &Server, says: &str, members: Value, expected: (&str, &str)) {
    for ids in [bytes(says), pieces(says)] {
        check_ids(server, ids, &members, expected).await;
    }
}

async fn check_ids(server: &Server, ids: Vec<u32>, members: &Value, expected: (&str, &str)) {
    server.plan.say(ids);
    let mut members = members.clone();
    members["temperature"] = json!(0);
    if members.get("max_tokens").is_none() {
        members["max_tokens"] = json!(CONTEXT - 26);
    }
    let whole = server.ok(members.clone()).await;
    assert_eq!((text_of(&whole), finish_of(&whole)), expected, "{members}");
    let chunks = server.stream(members.clone()).await;
    assert_eq!(joined(&chunks), expected.0, "{members}");
    let last = chunks.last().unwrap();
    assert_eq!(finish_of(last), expected.1, "{members}");
    let mut so_far = String::new();
    for chunk in &chunks {
        so_far += text_of(chunk);
        assert!(expected.0.starts_with(&so_far), "{so_far:?}");
        assert!(!text_of(chunk).is_empty() || chunk == last);
    }
}

#[test]
fn case_066_a_stop_inside_the_text() {
    serve_default(async |server| {
        let says = "The quick brown fox jumps";
        let stop = json!({"stop": "own f"});
        check(server, says, stop, ("The quick br", "stop")).await;
        let stop = json!({"stop": "own f", "include_stop_str_in_output": true});
        check(server, says, stop, ("The quick brown f", "stop")).await;
        let stop = json!({"stop": ["jumps", "ow", "own", "x j"]});
        check(server, says, stop, ("The quick br", "stop")).await;
    });
    serve(json!({"stopTextIncluded": true}), async |server| {
        let stop = json!({"stop": "b"});
        check(server, "abc", stop, ("ab", "stop")).await;
        let stop = json!({"stop": "b", "include_stop_str_in_output": false});
        check(server, "abc", stop, ("a", "stop")).await;
    });
}

#[test]
fn case_069_held_back_text_is_not_lost() {
    serve_default(async |server| {
        let says = "aaab aaac end";
        check(server, says, json!({"stop": "aaac"}), ("aaab ", "stop")).await;
        check(server, says, json!({"stop": "aaad"}), (says, "stop")).await;
        check(server, says, json!({"stop": "end!"}), (says, "stop")).await;
        let cut = json!({"stop": "end!", "max_tokens": says.len()});
        check_ids(server, bytes(says), &cut, (says, "length")).await;
    });
}

#[test]
fn case_070_a_stop_on_the_last_token_is_a_stop() {
    serve_default(async |server| {
        server.plan.say(bytes("The quick brown fox jumps"));
        let ask = |max_tokens: Value| json!({"stop": "own f", "temperature": 0, "max_tokens": max_tokens});
        let object = server.ok(ask(json!(CONTEXT - 26))).await;
        let k = object["usage"]["completion_tokens"].as_u64().unwrap();
        assert_eq!(k as usize, "The quick brown f".len());
        let object = server.ok(ask(json!(k))).await;
        assert_eq!(
            (text_of(&object), finish_of(&object)),
            ("The quick br", "stop")
        );
        let object = server.ok(ask(json!(k - 1))).await;
        assert_eq!(finish_of(&object), "length");
        assert_eq!(text_of(&object), "The quick brown ");
    });
}

#[test]
fn case_071_stops_do_not_match_the_echo() {
    serve_default(async |server| {
        let members = json!({"prompt": "fox fox", "echo": true, "stop": "fox"});
        check(server, "red dog", members, ("fox foxred dog", "stop")).await;
        // They do not match across the border between echo and completion either.
        let members = json!({"prompt": "fo", "echo": true, "stop": "fox"});
        check(server, "x!", members, ("fox!", "stop")).await;
    });
}

#[test]
fn case_072_whole_characters_and_white_space() {
    serve_default(async |server| {
        let says = "  naïve 🎉👩\u{200d}👧 Ω終\n\n";
        check(server, says, json!({}), (says, "stop")).await;
        check(server, says, json!({"stop": "🎉"}), ("  naïve ", "stop")).await;
    });
}

#[test]
fn an_unfinished_character_is_one_replacement() {
    serve_default(async |server| {
        let half = |members: Value| {
            let ids = [bytes("ab"), bytes("🎉")[..3].to_vec()].concat();
            async move { check_ids(server, ids, &members, ("ab\u{fffd}", "length")).await }
        };
        half(json!({"max_tokens": 5})).await;
        half(json!({"max_tokens": 5, "stop": "b\u{fffd}!"})).await;
        // The replacement may complete a stop.
        let ids = [bytes("ab"), bytes("🎉")[..3].to_vec()].concat();
        let members = json!({"max_tokens": 5, "stop": "\u{fffd}"});
        check_ids(server, ids, &members, ("ab", "stop")).await;
        // A character that the end of text cuts off is also replaced.
        let ids = bytes("é")[..1].to_vec();
        check_ids(server, ids, &json!({}), ("\u{fffd}", "stop")).await;
    });
}

#[test]
fn case_064_end_of_text() {
    serve_default(async |server| {
        server.plan.say(Vec::new());
        let object = server.ok(json!({"max_tokens": 4})).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("", "stop"));
        assert_eq!(object["usage"]["completion_tokens"], 1);
        let chunks = server.stream(json!({"max_tokens": 4})).await;
        assert_eq!(chunks.len(), 1);
        assert_eq!((text_of(&chunks[0]), finish_of(&chunks[0])), ("", "stop"));
        let object = server
            .ok(json!({"max_tokens": 4, "ignore_eos": true}))
            .await;
        assert_eq!((text_of(&object), finish_of(&object)), ("", "length"));
        assert_eq!(object["usage"]["completion_tokens"], 4);
    });
}

#[test]
fn case_074_special_tokens_are_hidden_or_shown() {
    serve_default(async |server| {
        for (skip, text) in [(true, ""), (false, "</s></s></s>")] {
            let members = json!({"max_tokens": 3, "ignore_eos": true, "skip_special_tokens": skip});
            check_ids(server, Vec::new(), &members, (text, "length")).await;
        }
        // The literal end of text is returned only if both fields ask for it.
        for (include, skip, text) in [
            (true, false, "a</s>"),
            (true, true, "a"),
            (false, false, "a"),
        ] {
            let members =
                json!({"include_stop_str_in_output": include, "skip_special_tokens": skip});
            check_ids(server, bytes("a"), &members, (text, "stop")).await;
        }
    });
}

#[test]
fn case_076_a_stop_that_is_a_special_token() {
    serve_default(async |server| {
        server.plan.say(Vec::new());
        let members = json!({"stop": "</s>", "ignore_eos": true});
        let object = server.ok(members).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("", "stop"));
        assert_eq!(object["usage"]["completion_tokens"], 1);
        let says = [bytes("ab"), vec![SEP], bytes("c")].concat();
        for skip in [true, false] {
            let members = json!({"stop": "<|sep|>", "skip_special_tokens": skip});
            check_ids(server, says.clone(), &members, ("ab", "stop")).await;
        }
        let members = json!({"stop": "<|sep|>", "include_stop_str_in_output": true});
        check_ids(server, says.clone(), &members, ("ab<|sep|>", "stop")).await;
        // Hidden text is not matched by a stop that is only part of it.
        check_ids(server, says, &json!({"stop": "sep"}), ("abc", "stop")).await;
    });
}
