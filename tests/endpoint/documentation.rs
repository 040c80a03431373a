//! Sends the examples of docs/api.md. Each gets the response that the page promises.

use inpage::api::Request;

use crate::fixture::*;

/// The blocks whose tag is `json`, then `kind`: line, promised error code (if any), and body.
pub fn examples(kind: &str) -> Vec<(usize, Option<String>, String)> {
    let (request, error) = (format!("json {kind}request"), format!("json {kind}error "));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut examples = Vec::new();
    let mut open: Option<(usize, Option<String>, String)> = None;
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => examples.extend(open.take()),
            (Some((_, _, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, Some(tag)) if tag == request => open = Some((index + 1, None, String::new())),
            (None, Some(tag)) => {
                let code = tag.strip_prefix(&*error).map(str::to_owned);
                open = code.map(|code| (index + 1, Some(code), String::new()));
            }
            (None, None) => {}
        }
    }
    examples
}

#[test]
fn every_example_of_the_page_gets_the_promised_response() {
    type Send = fn(&str) -> Request;
    let routes: [(&str, Send, usize); 4] = [
        ("", completion, 30),
        ("chat ", chat, 3),
        ("responses ", responses, 5),
        ("messages ", messages, 5),
    ];
    serve_default(async |server| {
        let found = routes.into_iter().flat_map(|(kind, send, least)| {
            let examples = examples(kind);
            assert!(examples.len() > least, "few examples found");
            examples.into_iter().map(move |it| (it, send))
        });
        for ((line, code, body), send) in found {
            let reply = server.send(send(&body)).await;
            match code {
                None => {
                    assert_eq!(reply.status, 200, "line {line}: {}", reply.text());
                    // A stream reports a failure in an event.
                    let failures = ["{\"error\"", "\"type\":\"error\""];
                    let is_failure = failures.iter().any(|it| reply.text().contains(it));
                    assert!(!is_failure, "line {line}");
                }
                Some(code) => {
                    assert!(reply.status >= 400, "line {line}: {}", reply.status);
                    assert_eq!(reply.json()["error"]["code"], *code, "line {line}");
                }
            }
        }
    });
}
