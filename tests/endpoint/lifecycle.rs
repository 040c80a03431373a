//! Model states, aborts, the queue, time limits (specification 12 and 13; cases 116 to 119).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use inpage::api::{ModelState, SystemHost};
use inpage::engine::Clock;
use serde_json::json;

use crate::fixture::*;

#[test]
fn case_116_models_that_are_not_ready() {
    serve_default(async |server| {
        for (state, code, retry) in [
            (ModelState::Loading, "model_loading", None),
            (ModelState::Unloaded, "model_not_loaded", Some("false")),
            (
                ModelState::Failed("no memory".into()),
                "model_not_loaded",
                Some("false"),
            ),
        ] {
            server.handler.set_model(MODEL_ID, state);
            for model in ["default", MODEL_ID] {
                let reply = server
                    .complete(json!({"model": model, "stream": true}))
                    .await;
                let param = Some("model".to_owned());
                assert_eq!(reply.error(), (503, code.into(), param));
                let seconds: u32 = reply.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=60).contains(&seconds));
                assert_eq!(reply.header("x-should-retry"), retry);
            }
            assert_eq!(server.get("/v1/models").await.status, 200);
        }
        let message = server.complete(json!({})).await.text().to_owned();
        assert!(message.contains("no memory"));
        server.handler.set_model(MODEL_ID, server.ready());
        server.ok(json!({})).await;
        server.handler.remove_model(MODEL_ID);
        assert_eq!(server.complete(json!({})).await.error().0, 404);
    });
}

#[test]
fn case_116_waiting_for_the_model() {
    serve(json!({"whenModelNotReady": "wait"}), async |server| {
        server.handler.set_model(MODEL_ID, ModelState::Loading);
        let mut waiting = pin!(server.complete(json!({})));
        assert!(waiting.as_mut().now_or_never().is_none());
        let mut aborted = Box::pin(server.complete(json!({})));
        assert!(aborted.as_mut().now_or_never().is_none());
        drop(aborted);
        assert_eq!(server.get("/v1/models").await.status, 200);
        server.handler.set_model(MODEL_ID, server.ready());
        assert_eq!(waiting.await.status, 200);

        server.handler.set_model(MODEL_ID, ModelState::Loading);
        let mut waiting = pin!(server.complete(json!({})));
        assert!(waiting.as_mut().now_or_never().is_none());
        server
            .handler
            .set_model(MODEL_ID, ModelState::Failed("cut".into()));
        assert_eq!(waiting.await.error().1, "model_not_loaded");
    });
}

#[test]
fn case_117_a_dropped_request_ends_its_generation() {
    serve_default(async |server| {
        let alone = server.text(json!({"seed": 5, "max_tokens": 20})).await;
        let endless = json!({"max_tokens": 2000, "ignore_eos": true, "seed": 1});
        let mut request = Box::pin(server.complete(endless));
        assert!(request.as_mut().now_or_never().is_none());
        assert_eq!(server.engine.active_generations(), 1);
        let other = server.text(json!({"seed": 5, "max_tokens": 20}));
        let mut other = Box::pin(other);
        assert!(other.as_mut().now_or_never().is_none());
        assert_eq!(server.engine.active_generations(), 2);
        drop(request);
        assert_eq!(server.engine.active_generations(), 1);
        assert_eq!(other.await, alone, "an abort does not change other outputs");
        assert_eq!(server.engine.active_generations(), 0);
    });
}

#[test]
fn case_119_a_full_queue() {
    serve(json!({"maxQueue": 1}), async |server| {
        let alone = server.text(json!({"temperature": 0})).await;
        let slow = || server.complete(json!({"temperature": 0}));
        let replies = join_all((0..8).map(|_| slow())).await;
        let (accepted, refused): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|reply| reply.status == 200);
        // Four run at once, and one waits.
        assert_eq!((accepted.len(), refused.len()), (5, 3));
        for reply in accepted {
            assert_eq!(text_of(&reply.json()), alone);
        }
        for reply in refused {
            assert_eq!(reply.error(), (429, "queue_full".into(), None));
            assert!(reply.text().contains("rate_limit_error"));
            assert_eq!(reply.header("retry-after"), Some("1"));
        }
    });
}

#[test]
fn a_time_limit_ends_both_kinds_of_responses() {
    serve(json!({"requestTimeoutMs": 30}), async |server| {
        server.plan.held.set(true);
        let slow = || json!({"seed": 1, "max_tokens": 30});
        let (reply, chunks) = join(server.complete(slow()), server.stream(slow())).await;
        assert_eq!(reply.error(), (500, "internal_error".into(), None));
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        let last = chunks.last().unwrap();
        assert_eq!(error_of(last), ("internal_error".into(), None));
        assert_eq!(server.engine.active_generations(), 0);
    });
}

#[test]
fn a_time_limit_ends_a_stream_that_nobody_reads() {
    serve(json!({"requestTimeoutMs": 200}), async |server| {
        // More tokens than may be unread.
        let members = json!({"stream": true, "n": 8, "max_tokens": 50, "seed": 1});
        let all_pages = server.engine.free_pages();
        let response = server.handler.handle(completion(&body(members))).await;
        assert_eq!(response.status, 200);
        // Nothing but the engine's clock ends it.
        let begun = Instant::now();
        while server.engine.active_generations() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never ends");
            SystemHost.sleep_ms(5).await;
        }
        assert_eq!(server.engine.free_pages(), all_pages);
        let chunks = read(response).await.chunks();
        assert!(!joined(&chunks[..chunks.len() - 1]).is_empty());
        let last = chunks.last().unwrap();
        assert_eq!(error_of(last), ("internal_error".into(), None));
    });
}

#[test]
fn concurrent_requests_do_not_mix() {
    serve_default(async |server| {
        let members = |seed: i32| json!({"seed": seed, "max_tokens": 20});
        let mut alone = Vec::new();
        for seed in 0..4 {
            alone.push(server.text(members(seed)).await);
        }
        let streams = (0..4).map(|seed| server.stream(members(seed)));
        let together = join_all(streams).await;
        for (chunks, alone) in together.iter().zip(&alone) {
            assert_eq!(joined(chunks), *alone);
        }
    });
}

#[test]
fn a_stream_that_is_read_late_is_complete() {
    serve_default(async |server| {
        let members = json!({"stream": true, "max_tokens": 30, "seed": 2});
        let expected = server.text(json!({"max_tokens": 30, "seed": 2})).await;
        let response = server.handler.handle(completion(&body(members))).await;
        // Let the engine run without a reader.
        let mut turns = 0;
        poll_fn(|context| {
            turns += 1;
            context.waker().wake_by_ref();
            if turns < 200 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
        let reply = read(response).await;
        assert_eq!(joined(&reply.chunks()), expected);
    });
}
