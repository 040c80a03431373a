//! Sends the examples of docs/api.md. Each gets the response that the page promises.

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
    let [texts, chats] = ["", "chat "].map(examples);
    assert!(texts.len() > 30 && chats.len() > 3, "few examples found");
    let texts = texts.iter().map(|it| (it, false));
    let examples = texts.chain(chats.iter().map(|it| (it, true)));
    serve_default(async |server| {
        for ((line, code, body), is_chat) in examples {
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
