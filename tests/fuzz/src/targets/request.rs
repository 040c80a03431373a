//! A request to the endpoint: the first line is the path of a route, the rest is the body. It is answered by
//! the model of the endpoint's own tests, with every switch as it is by default.

use serde_json::{Value, json};

use crate::fixture;

/// The path that `line` names. Any other line chooses one by the sum of its bytes, so that every input reaches a route.
fn path(line: &[u8]) -> &'static str {
    let paths: Vec<&str> = inpage::api::paths_with_bodies().collect();
    let named = paths.iter().find(|path| path.as_bytes() == line);
    let sum: usize = line.iter().map(|byte| usize::from(*byte)).sum();
    named.unwrap_or(&paths[sum % paths.len()])
}

pub fn run(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (line, body) = (&input[..end], &input[end + 1..]);
    let url = format!("/v1/{}", path(line));
    fixture::serve(json!({}), async |server| {
        let mut request =
            fixture::request("POST", &url, &[("content-type", "application/json")], "");
        request.body = body.to_vec();
        let reply = server.send(request).await;
        assert_ne!(reply.status, 500, "{}", reply.text());
        if reply.status != 200 {
            let object: Value = serde_json::from_slice(&reply.body).expect("an error is JSON");
            assert!(object["error"]["code"].is_string() || object["error"]["message"].is_string());
        }
    });
}
