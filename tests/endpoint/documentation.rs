//! Sends the examples of docs/api.md. Each gets the response that the page promises.

use crate::fixture::*;

/// A tagged block.
struct Example {
    line: usize,
    /// For the chat route.
    is_chat: bool,
    /// The promised error.
    code: Option<String>,
    body: String,
}

fn examples() -> Vec<Example> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut examples = Vec::new();
    let mut open: Option<Example> = None;
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => examples.extend(open.take()),
            (Some(example), None) => {
                example.body.push_str(line);
                example.body.push('\n');
            }
            (None, Some(tag)) => {
                let example = |is_chat, code: Option<&str>| Example {
                    line: index + 1,
                    is_chat,
                    code: code.map(str::to_owned),
                    body: String::new(),
                };
                let refused = |prefix| tag.strip_prefix(prefix);
                open = match (tag, refused("json error "), refused("json chat error ")) {
                    ("json request", ..) => Some(example(false, None)),
                    ("json chat", ..) => Some(example(true, None)),
                    (_, Some(code), _) => Some(example(false, Some(code))),
                    (_, _, Some(code)) => Some(example(true, Some(code))),
                    _ => None,
                };
            }
            (None, None) => {}
        }
    }
    examples
}

#[test]
fn every_example_of_the_page_gets_the_promised_response() {
    let examples = examples();
    assert!(examples.len() > 30, "{} examples found", examples.len());
    serve_default(async |server| {
        for Example {
            line,
            is_chat,
            code,
            body,
        } in &examples
        {
            let reply = match is_chat {
                true => server.send(chat(body)).await,
                false => server.post(body).await,
            };
            match code {
                None => {
                    assert_eq!(reply.status, 200, "line {line}: {}", reply.text());
                    // A stream reports a failure in an event.
                    assert!(!reply.text().contains("\"error\""), "line {line}");
                }
                Some(code) => {
                    let (status, found, _) = reply.error();
                    assert!(status >= 400, "line {line}: {status}");
                    assert_eq!(&found, code, "line {line}");
                }
            }
        }
    });
}
