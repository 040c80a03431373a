//! Requests that are dropped or fail at any point: they leave nothing behind, and the next request
//! gets the same response as without them (specification 10.7 and 12).

use futures_util::FutureExt;
use inpage::Error;
use serde_json::{Value, json};

use crate::fixture::*;

/// Requests with one sequence, with several, and with a constraint, each whole and streamed.
fn requests() -> Vec<Value> {
    let lone = json!({"seed": 1, "max_tokens": 6, "ignore_eos": true});
    let several = json!({
        "prompt": ["one prompt that is longer than a page", "two"], "n": 2, "best_of": 2,
        "seed": 1, "max_tokens": 4, "ignore_eos": true, "echo": true, "logprobs": 2,
        "stop": ["zzz"],
    });
    let constrained = json!({
        "grammar": {"type": "regex", "value": "[a-z]{3} [0-9]+"}, "max_tokens": 8, "seed": 2,
    });
    [lone, several, constrained]
        .into_iter()
        .flat_map(|members| {
            let mut streamed = members.clone();
            streamed["stream"] = json!(true);
            [members, streamed]
        })
        .collect()
}

/// Checks that nothing runs or waits, that all pages are free, and that an ordinary request gets its
/// usual response.
async fn expect_untouched(server: &Server, free_pages: usize, usual: &str, what: &str) {
    for _ in 0..20 {
        yield_now().await;
    }
    assert_eq!(server.engine.active_generations(), 0, "{what}");
    assert_eq!(server.engine.free_pages(), free_pages, "{what}");
    let text = server.text(json!({"temperature": 0})).await;
    assert_eq!(text, usual, "{what}");
}

#[test]
fn a_request_may_be_dropped_at_any_point() {
    serve_default(async |server| {
        let usual = server.text(json!({"temperature": 0})).await;
        let free_pages = server.engine.free_pages();
        for members in requests() {
            let mut ended = 0;
            for polls in 0..60 {
                let request = completion(&body(members.clone()));
                let mut answer =
                    Box::pin(async { read(server.handler.handle(request).await).await });
                for _ in 0..polls {
                    if (&mut answer).now_or_never().is_some() {
                        ended += 1;
                        break;
                    }
                    yield_now().await;
                }
                drop(answer);
                let what = format!("{members} after {polls} polls");
                expect_untouched(server, free_pages, &usual, &what).await;
            }
            assert!((1..60).contains(&ended), "{members}: {ended} ended");
        }
    });
}

#[test]
fn a_request_may_fail_at_any_token() {
    serve_default(async |server| {
        let usual = server.text(json!({"temperature": 0})).await;
        let free_pages = server.engine.free_pages();
        for members in requests() {
            for at in 0..4 {
                let error = Error::OutOfMemory("a test asked for it".to_owned());
                *server.plan.failure.borrow_mut() = Some((at, error));
                let reply = server.complete(members.clone()).await;
                *server.plan.failure.borrow_mut() = None;
                let what = format!("{members} failing at {at}");
                if members["stream"] == json!(true) {
                    assert_eq!(reply.status, 200, "{what}");
                    let events: Vec<&str> = reply.text().split_terminator("\n\n").collect();
                    let [.., error, done] = events[..] else {
                        panic!("{what}: {events:?}");
                    };
                    assert!(
                        error.contains(r#""code":"out_of_memory""#),
                        "{what}: {error}"
                    );
                    assert_eq!(done, "data: [DONE]", "{what}");
                    assert!(!reply.text().contains(r#""usage":{"#), "{what}");
                } else {
                    assert_eq!(reply.error().1, "out_of_memory", "{what}");
                }
                expect_untouched(server, free_pages, &usual, &what).await;
            }
        }
    });
}
