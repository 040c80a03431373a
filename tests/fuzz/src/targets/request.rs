//! A request to the endpoint: the first byte chooses the route, the rest is the body. It is answered by
//! the model of the endpoint's own tests, with every switch as it is by default.

use serde_json::{Value, json};

use crate::fixture;

/// The routes that read a body.
const URLS: [&str; 7] = [
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/tokenize",
    "/v1/detokenize",
    "/v1/apply-template",
];

pub fn run(input: &[u8]) {
    let Some((route, body)) = input.split_first() else {
        return;
    };
    let url = URLS[usize::from(*route) % URLS.len()];
    fixture::serve(json!({}), async |server| {
        let mut request =
            fixture::request("POST", url, &[("content-type", "application/json")], "");
        request.body = body.to_vec();
        let reply = server.send(request).await;
        assert_ne!(reply.status, 500, "{}", reply.text());
        if reply.status != 200 {
            let object: Value = serde_json::from_slice(&reply.body).expect("an error is JSON");
            assert!(object["error"]["code"].is_string() || object["error"]["message"].is_string());
        }
    });
}
