//! `POST /rerank` (specification 23) through `Handler::handle`, with a real engine and tokenizer and a model whose outputs tell
//! which tokens it got.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use inpage::Result;
use inpage::api::{Handler, ModelState, ReadyEmbedder, Switches};
use inpage::engine::embed::{EmbeddingEngine, EmbeddingInput, EmbeddingLimits, EmbeddingModel};
use inpage::text::Tokenizer;
use serde_json::{Value, json};

use crate::documentation::examples;
use crate::fixture::{CONTEXT, Reply, TestHost, VOCAB, error_of, metadata_of_tests, read, request};

const RERANKER: &str = "org/reranker";

/// The output of a pair is half the number of its tokens after the first text, minus one.
struct Counter;

impl EmbeddingModel for Counter {
    fn embedding_limits(&self) -> EmbeddingLimits {
        EmbeddingLimits {
            vocab_size: VOCAB as usize,
            context_tokens: CONTEXT,
            width: 1,
            batch_tokens: 16,
            batch_inputs: 8,
        }
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        let output = |input: &&EmbeddingInput| {
            let second = input.ids.len() - input.first_tokens;
            vec![second as f32 / 2.0 - 1.0]
        };
        Ok(inputs.iter().map(output).collect())
    }
}

struct Server {
    handler: Handler,
    tokenizer: Rc<Tokenizer>,
}

/// Status, code and param of an error of this route, which has its message at three places.
#[track_caller]
fn refusal(reply: &Reply) -> (u16, String, Option<String>) {
    let body = reply.json();
    let error = &body["error"];
    let message = &error["message"];
    let expected = json!({ "error": error, "message": message, "detail": message });
    assert_eq!(body, expected);
    let (code, param) = error_of(&json!({ "error": error }));
    (reply.status, code, param)
}

fn serve(test: impl AsyncFnOnce(&Server)) {
    let switches = Switches::default();
    let (engine, handle) = EmbeddingEngine::new(Counter, switches.max_queue);
    let server = Server {
        handler: Handler::new(switches, Rc::new(TestHost::default())),
        tokenizer: Rc::new(Tokenizer::from_gguf(&metadata_of_tests()).unwrap()),
    };
    let ready = ReadyEmbedder {
        engine: handle,
        tokenizer: server.tokenizer.clone(),
        ranks: true,
    };
    let state = ModelState::ReadyToEmbed(ready);
    server.handler.set_model(RERANKER, state);
    let test = pin!(test(&server));
    match pollster::block_on(select(pin!(engine.run()), test)) {
        Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
        Either::Right(((), _)) => {}
    }
}

impl Server {
    async fn send(&self, path: &str, body: Value) -> Reply {
        let headers = [("content-type", "application/json")];
        let request = request("POST", path, &headers, &body.to_string());
        read(self.handler.handle(request).await).await
    }

    /// Posts `members` beside the model's name and the query "q".
    async fn rerank(&self, mut members: Value) -> Reply {
        let object = members.as_object_mut().unwrap();
        object.entry("model").or_insert(json!(RERANKER));
        object.entry("query").or_insert(json!("q"));
        self.send("/v1/rerank", members).await
    }

    async fn ok(&self, members: Value) -> Value {
        let reply = self.rerank(members).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    fn tokens(&self, text: &str) -> usize {
        self.tokenizer.encode(text, false).unwrap().len()
    }
}

fn indices(answer: &Value) -> Vec<u64> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| result["index"].as_u64().unwrap())
        .collect()
}

#[test]
fn documents_are_in_the_order_of_their_scores() {
    serve(async |server| {
        let documents = json!(["xyz", "x", { "text": "xyzxyz" }, "uvw", ""]);
        let mut answer = server.ok(json!({ "documents": documents })).await;
        assert_eq!(indices(&answer), [2, 0, 3, 1, 4]);
        // The start of the text and the query count for each document.
        let around = 5 * (1 + server.tokens("q"));
        let of_documents = ["xyz", "x", "xyzxyz", "uvw"].map(|text| server.tokens(text));
        let tokens = around + of_documents.iter().sum::<usize>();
        let id = answer["id"].as_str().unwrap();
        assert!(id.starts_with("rerank-") && id.len() == 31, "{id}");
        let results = answer["results"].take();
        answer.as_object_mut().unwrap().remove("id");
        let expected = json!({
            "object": "list", "model": RERANKER, "results": null,
            "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
            "meta": { "tokens": { "input_tokens": tokens } },
        });
        assert_eq!(answer, expected);
        let score = |tokens: usize| 1.0 / (1.0 + (1.0 - tokens as f64 / 2.0).exp());
        let expected = json!({
            "index": 2, "relevance_score": score(server.tokens("xyzxyz")),
            "document": { "text": "xyzxyz" },
        });
        assert_eq!(results[0], expected);
        assert_eq!(results[4]["relevance_score"], json!(score(0)));
    });
}

#[test]
fn results_are_shortened_as_requested() {
    serve(async |server| {
        let documents = json!(["x", "xyz", "xyzxyz"]);
        let request = json!({
            "documents": documents, "top_n": 2, "return_documents": false, "use_activation": false,
        });
        let answer = server.ok(request).await;
        let raw = |text: &str| server.tokens(text) as f64 / 2.0 - 1.0;
        let expected = json!([
            { "index": 2, "relevance_score": raw("xyzxyz") },
            { "index": 1, "relevance_score": raw("xyz") },
        ]);
        assert_eq!(answer["results"], expected);
        let all = server
            .ok(json!({ "documents": documents, "top_n": 9 }))
            .await;
        assert_eq!(indices(&all), [2, 1, 0]);
    });
}

#[test]
fn documents_are_cut_at_their_end_if_the_request_says_so() {
    serve(async |server| {
        let long = "x".repeat(2 * CONTEXT);
        let documents = json!(["x", long]);
        let refused = server.rerank(json!({ "documents": documents })).await;
        let expected = (
            400,
            "context_length_exceeded".to_owned(),
            Some("documents".to_owned()),
        );
        assert_eq!(refusal(&refused), expected);
        let around = 1 + server.tokens("q");
        for (limit, kept) in [
            (json!({ "max_tokens_per_doc": 3 }), 3),
            (json!({ "truncate_prompt_tokens": around + 4 }), 4),
            (json!({ "truncate_prompt_tokens": -1 }), CONTEXT - around),
        ] {
            let mut request = limit.clone();
            request["documents"] = documents.clone();
            request["use_activation"] = json!(false);
            let reply = server.rerank(request).await;
            assert_eq!(reply.status, 200, "{limit}: {}", reply.text());
            let best = &reply.json()["results"][0];
            assert_eq!(best["index"], 1);
            let score = json!(kept as f64 / 2.0 - 1.0);
            assert_eq!(best["relevance_score"], score, "{limit}");
            let dropped = (server.tokens(&long) - kept).to_string();
            assert_eq!(
                reply.header("x-prompt-truncated"),
                Some(&*dropped),
                "{limit}"
            );
        }
        let none = json!({ "documents": documents, "truncate_prompt_tokens": around });
        let (status, code, param) = refusal(&server.rerank(none).await);
        assert_eq!((status, &*code), (400, "out_of_range"));
        assert_eq!(param.as_deref(), Some("truncate_prompt_tokens"));
    });
}

#[test]
fn a_query_that_fills_the_context_is_refused() {
    serve(async |server| {
        for query in ["x".repeat(CONTEXT), "x".repeat(1 << 17)] {
            let request = json!({ "query": query, "documents": ["x"] });
            let (status, code, _) = refusal(&server.rerank(request).await);
            assert_eq!((status, &*code), (400, "context_length_exceeded"));
        }
    });
}

#[test]
fn a_reranker_answers_no_other_route_and_says_what_it_can() {
    serve(async |server| {
        for (path, body) in [
            ("/v1/embeddings", json!({ "model": RERANKER, "input": "a" })),
            (
                "/v1/completions",
                json!({ "model": RERANKER, "prompt": "a" }),
            ),
        ] {
            let (status, code, param) = server.send(path, body).await.error();
            assert_eq!((status, &*code), (400, "unsupported_parameter"), "{path}");
            assert_eq!(param.as_deref(), Some("model"));
        }
        let list = request("GET", "/v1/models", &[], "");
        let list = read(server.handler.handle(list).await).await.json();
        assert_eq!(list["data"][0]["capabilities"], json!(["rerank"]));
        // Other servers also accept the path without a base path. The alias `default` means the reranker.
        let body = json!({ "model": "default", "query": "q", "documents": ["x"] });
        assert_eq!(server.send("/rerank", body).await.status, 200);
    });
}

#[test]
fn every_example_of_the_page_gets_the_promised_response() {
    let examples = examples("rerank ");
    assert!(examples.len() >= 4, "{} examples found", examples.len());
    serve(async |server| {
        for (line, code, body) in &examples {
            let body = serde_json::from_str(body).unwrap();
            let reply = server.send("/v1/rerank", body).await;
            match code {
                None => assert_eq!(reply.status, 200, "line {line}: {}", reply.text()),
                Some(code) => assert_eq!(&refusal(&reply).1, code, "line {line}"),
            }
        }
    });
}
