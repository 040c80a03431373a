//! Routes, headers, CORS, authorization and bodies (specification 1; cases A and 011 to 013).

use inpage::api::{ModelState, Request};
use serde_json::json;

use crate::fixture::*;

#[test]
fn case_001_base_paths_trailing_slash_and_query() {
    serve_default(async |server| {
        let mut texts = Vec::new();
        let mut ids = Vec::new();
        for url in [
            "/v1/completions",
            "/openai/v1/completions",
            "/v1/completions/?trace=1",
            "https://page.example/v1/completions",
        ] {
            let mut request = completion(&body(json!({"temperature": 0})));
            request.url = url.into();
            let reply = server.send(request).await;
            assert_eq!(reply.status, 200, "{url}");
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            ids.push(reply.header("x-request-id").unwrap().to_owned());
            texts.push(text_of(&reply.json()).to_owned());
        }
        assert!(
            texts
                .iter()
                .all(|text| *text == texts[0] && text.len() == 8)
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
        assert!(
            ids.iter()
                .all(|id| id.len() == 28 && id.starts_with("req_"))
        );
    });
}

#[test]
fn case_002_preflight() {
    for switches in [json!({}), json!({"apiKey": "k1"})] {
        serve(switches, async |server| {
            let wanted = "authorization, content-type, x-stainless-lang, x-stainless-retry-count";
            for url in ["/v1/completions", "/v1/models", "/v1/models/a"] {
                let headers = [("Access-Control-Request-Headers", wanted)];
                let reply = server.send(request("OPTIONS", url, &headers, "")).await;
                assert_eq!(reply.status, 204);
                assert!(reply.body.is_empty());
                assert_eq!(reply.header("access-control-allow-headers"), Some(wanted));
                let methods = reply.header("access-control-allow-methods").unwrap();
                assert!(methods.contains("POST"));
                assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
                assert_eq!(reply.header("access-control-max-age"), Some("86400"));
                assert!(reply.header("x-request-id").is_some());
            }
            let reply = server.send(request("OPTIONS", "/v1/nope", &[], "")).await;
            assert_eq!(reply.error().0, 404);
        });
    }
}

#[test]
fn case_003_wrong_methods() {
    serve_default(async |server| {
        for (method, url, allowed) in [
            ("GET", "/v1/completions", "POST"),
            ("PUT", "/v1/completions", "POST"),
            ("POST", "/v1/models", "GET"),
            ("DELETE", "/v1/models/x", "GET"),
        ] {
            let reply = server.send(request(method, url, &[], "")).await;
            assert_eq!(reply.error(), (405, "method_not_allowed".into(), None));
            assert!(reply.header("allow").unwrap().contains(allowed));
            assert_eq!(
                reply.header("access-control-expose-headers"),
                Some("x-request-id, retry-after, x-should-retry")
            );
        }
    });
}

#[test]
fn case_005_unknown_urls() {
    serve_default(async |server| {
        for (method, url) in [
            ("POST", "/v1/nonsense"),
            ("GET", "/v1"),
            ("POST", "/v1/chat/unknown"),
            ("GET", "/elsewhere"),
        ] {
            let reply = server.send(request(method, url, &[], "")).await;
            assert_eq!(reply.error(), (404, "unknown_url".into(), None));
        }
    });
    serve(json!({"basePaths": ["/api"]}), async |server| {
        assert_eq!(server.get("/v1/models").await.status, 404);
        assert_eq!(server.get("/api/models").await.status, 200);
    });
}

#[test]
fn case_007_content_types() {
    serve_default(async |server| {
        for (content_type, status) in [
            (Some("text/plain;charset=UTF-8"), 415),
            (None, 415),
            (Some("application/x-www-form-urlencoded"), 415),
            (Some("Application/JSON; charset=utf-8"), 200),
            (Some("application/vnd.test+json"), 200),
        ] {
            let headers: Vec<_> = content_type
                .iter()
                .map(|value| ("CONTENT-TYPE", *value))
                .collect();
            let request = request("POST", "/v1/completions", &headers, &body(json!({})));
            let reply = server.send(request).await;
            assert_eq!(reply.status, status, "{content_type:?}");
            if status == 415 {
                assert_eq!(reply.error().1, "unsupported_media_type");
            }
        }
    });
}

#[test]
fn case_008_without_a_key_authorization_is_ignored() {
    serve_default(async |server| {
        for value in ["Bearer x", "Basic zzz", ""] {
            let mut request = completion(&body(json!({})));
            request.headers.push(("Authorization".into(), value.into()));
            assert_eq!(server.send(request).await.status, 200);
        }
    });
}

#[test]
fn case_009_with_a_key_every_route_requires_it() {
    serve(json!({"apiKey": "k1"}), async |server| {
        for (value, allowed) in [
            (None, false),
            (Some("Bearer k2"), false),
            (Some("k1"), false),
            (Some("Bearer k1"), true),
        ] {
            let models = request("GET", "/v1/models", &[], "");
            let model = request("GET", "/v1/models/default", &[], "");
            for mut request in [completion(&body(json!({}))), models, model] {
                let value = value.map(|value| ("Authorization".to_owned(), value.to_owned()));
                request.headers.extend(value);
                let reply = server.send(request).await;
                if allowed {
                    assert_eq!(reply.status, 200);
                } else {
                    assert_eq!(reply.error(), (401, "invalid_api_key".into(), None));
                }
            }
        }
        // Routes and methods are checked before keys.
        assert_eq!(server.get("/v1/nope").await.error().0, 404);
        assert_eq!(server.get("/v1/completions").await.error().0, 405);
    });
}

#[test]
fn case_010_accept_does_not_matter() {
    serve_default(async |server| {
        let mut request = completion(&body(json!({"stream": true})));
        let accept = ("Accept".to_owned(), "application/json".to_owned());
        request.headers.push(accept);
        let reply = server.send(request).await;
        let content_type = reply.header("content-type").unwrap();
        assert!(content_type.starts_with("text/event-stream"));
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert!(reply.header("x-request-id").is_some());
    });
}

#[test]
fn case_011_bodies_that_are_not_requests() {
    serve_default(async |server| {
        for body in ["{", "", r#"{"model":"default",}"#] {
            let error = server.post(body).await.error();
            assert_eq!(error, (400, "invalid_json".into(), None), "{body}");
        }
        for body in ["[]", "\"x\"", "null", "3"] {
            let error = server.post(body).await.error();
            assert_eq!(error, (400, "invalid_body".into(), None), "{body}");
        }
        let mut invalid_utf8 = completion("");
        invalid_utf8.body = b"{\"model\":\"\xff\"}".to_vec();
        assert_eq!(server.send(invalid_utf8).await.error().1, "invalid_json");
    });
}

#[test]
fn case_013_bodies_that_are_too_large() {
    serve(json!({"maxBodyBytes": 4096}), async |server| {
        let long = "x".repeat(5000);
        let error = server.complete(json!({"prompt": long})).await.error();
        assert_eq!(error, (413, "request_too_large".into(), None));
        assert_eq!(server.complete(json!({})).await.status, 200);
    });
}

#[test]
fn health_is_open_and_tells_whether_a_model_is_ready() {
    serve(json!({"apiKey": "k1"}), async |server| {
        for url in ["/health", "/v1/health", "/health/?x=1"] {
            let reply = server.get(url).await;
            assert_eq!((reply.status, reply.text()), (200, r#"{"status":"ok"}"#));
        }
        assert_eq!(server.get("/v1/models").await.error().0, 401);
        let reply = server.send(request("POST", "/health", &[], "{}")).await;
        assert_eq!(reply.error(), (405, "method_not_allowed".into(), None));
        let failed = ModelState::Failed("no memory".into());
        for (state, code) in [
            (ModelState::Loading, "model_loading"),
            (ModelState::Unloaded, "model_not_loaded"),
            (failed, "model_not_loaded"),
        ] {
            server.handler.set_model(MODEL_ID, state);
            let reply = server.get("/health").await;
            assert_eq!(reply.error(), (503, code.into(), Some("model".into())));
            assert!(reply.header("retry-after").is_some());
        }
        // One of several is enough.
        server.handler.set_model("other", server.ready());
        assert_eq!(server.get("/health").await.status, 200);
        server.handler.remove_model("other");
        server.handler.remove_model(MODEL_ID);
        assert_eq!(server.get("/health").await.error().0, 503);
    });
}

#[test]
fn the_key_may_be_in_either_header() {
    serve(json!({"apiKey": "k1"}), async |server| {
        let status = async |headers: &[(&str, &str)]| {
            let request = request("GET", "/v1/models", headers, "");
            server.send(request).await.status
        };
        assert_eq!(status(&[("X-Api-Key", "k1")]).await, 200);
        assert_eq!(status(&[("Authorization", "Bearer k1")]).await, 200);
        assert_eq!(status(&[("X-Api-Key", "k2")]).await, 401);
        assert_eq!(status(&[]).await, 401);
    });
}

#[test]
fn some_routes_need_no_base_path() {
    serve_default(async |server| {
        for (route, body) in [
            ("tokenize", json!({"model": "default", "content": "ab"})),
            (
                "detokenize",
                json!({"model": "default", "tokens": bytes("ab")}),
            ),
            (
                "apply-template",
                json!({"model": "default", "messages": [{"role": "user", "content": "q"}]}),
            ),
        ] {
            let post = async |url: String| {
                let request = completion(&body.to_string());
                let reply = server.send(Request { url, ..request }).await;
                assert_eq!(reply.status, 200, "{}", reply.text());
                reply.json()
            };
            let with = post(format!("/v1/{route}")).await;
            assert_eq!(post(format!("/{route}")).await, with);
        }
        let mut request = completion(&body(json!({})));
        request.url = "/completions".into();
        assert_eq!(server.send(request).await.error().0, 404);
    });
}
