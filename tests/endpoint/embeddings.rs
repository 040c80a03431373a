//! `POST /embeddings` (specification 19) through `Handler::handle`, with a real engine and tokenizer and a model
//! whose vectors tell which tokens it got.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use inpage::api::{Handler, ModelState, ReadyEmbedder, Switches};
use inpage::engine::embed::{
    EmbeddingEngine, EmbeddingHandle, EmbeddingInput, EmbeddingLimits, EmbeddingModel,
};
use inpage::text::Tokenizer;
use inpage::{Error, Result};
use serde_json::{Value, json};

use crate::documentation::examples;
use crate::fixture::{
    BOS, CONTEXT, MODEL_ID, Reply, TestHost, VOCAB, metadata_of_tests, read, request,
    serve_default, yield_now,
};

pub const EMBEDDER: &str = "org/embedder";
pub const WIDTH: usize = 3;

#[derive(Default)]
struct Plan {
    failure: RefCell<Option<Error>>,
    held: Cell<bool>,
}

/// The vector of an input is its number of tokens, its first and its last token.
struct Counter(Rc<Plan>);

impl EmbeddingModel for Counter {
    fn embedding_limits(&self) -> EmbeddingLimits {
        EmbeddingLimits {
            vocab_size: VOCAB as usize,
            context_tokens: CONTEXT,
            width: WIDTH,
            batch_tokens: 16,
            batch_inputs: 8,
        }
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        yield_now().await;
        while self.0.held.get() {
            yield_now().await;
        }
        if let Some(error) = self.0.failure.take() {
            return Err(error);
        }
        let vector = |input: &&EmbeddingInput| {
            let ids = &input.ids;
            let values = [ids.len() as u32, ids[0], ids[ids.len() - 1]];
            values.map(|value| value as f32).to_vec()
        };
        Ok(inputs.iter().map(vector).collect())
    }
}

pub struct Server {
    pub handler: Handler,
    plan: Rc<Plan>,
    engine: EmbeddingHandle,
    tokenizer: Rc<Tokenizer>,
}

pub fn serve(switches: Value, test: impl AsyncFnOnce(&Server)) {
    let switches = Switches::from_json(&switches.to_string()).unwrap();
    let plan = Rc::new(Plan::default());
    let (engine, handle) = EmbeddingEngine::new(Counter(plan.clone()), switches.max_queue);
    let server = Server {
        handler: Handler::new(switches, Rc::new(TestHost::default())),
        plan,
        engine: handle,
        tokenizer: Rc::new(Tokenizer::from_gguf(&metadata_of_tests()).unwrap()),
    };
    server.handler.set_model(EMBEDDER, server.ready());
    let test = pin!(test(&server));
    match pollster::block_on(select(pin!(engine.run()), test)) {
        Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
        Either::Right(((), _)) => {}
    }
}

impl Server {
    fn ready(&self) -> ModelState {
        ModelState::ReadyToEmbed(ReadyEmbedder {
            engine: self.engine.clone(),
            tokenizer: self.tokenizer.clone(),
            ranks: false,
        })
    }

    pub async fn send(&self, path: &str, body: Value) -> Reply {
        let headers = [("content-type", "application/json")];
        let request = request("POST", path, &headers, &body.to_string());
        read(self.handler.handle(request).await).await
    }

    /// Posts `members` beside the model's name.
    async fn embed(&self, mut members: Value) -> Reply {
        let object = members.as_object_mut().unwrap();
        object.entry("model").or_insert(json!(EMBEDDER));
        self.send("/v1/embeddings", members).await
    }

    pub async fn ok(&self, members: Value) -> Value {
        let shown = members.to_string();
        let reply = self.embed(members).await;
        assert_eq!(reply.status, 200, "{shown}: {}", reply.text());
        reply.json()
    }

    async fn fails(&self, members: Value, status: u16, code: &str, param: Option<&str>) {
        let shown = members.to_string();
        let error = self.embed(members).await.error();
        assert_eq!(
            error,
            (status, code.to_owned(), param.map(str::to_owned)),
            "{shown}"
        );
    }
}

#[test]
fn the_answer_has_openais_form() {
    serve(json!({}), async |server| {
        let ids = server.tokenizer.encode("a quick", true).unwrap();
        let answer = server.ok(json!({"input": ["a quick", "b"]})).await;
        let b = server.tokenizer.encode("b", true).unwrap();
        let vector =
            |ids: &[u32]| json!([ids.len() as f32, BOS as f32, *ids.last().unwrap() as f32]);
        let tokens = ids.len() + b.len();
        assert_eq!(
            answer,
            json!({
                "object": "list",
                "data": [
                    {"object": "embedding", "index": 0, "embedding": vector(&ids)},
                    {"object": "embedding", "index": 1, "embedding": vector(&b)},
                ],
                "model": EMBEDDER,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            })
        );
        let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 4);
    });
}

#[test]
fn ids_are_embedded_as_they_are() {
    serve(json!({}), async |server| {
        let one = server.ok(json!({"input": [7, 8, 9]})).await;
        assert_eq!(one["data"][0]["embedding"], json!([3.0, 7.0, 9.0]));
        assert_eq!(one["usage"]["prompt_tokens"], 3);
        let lists = server.ok(json!({"input": [[7], [8, 9]]})).await;
        assert_eq!(lists["data"][0]["embedding"], json!([1.0, 7.0, 7.0]));
        assert_eq!(lists["data"][1]["embedding"], json!([2.0, 8.0, 9.0]));
        assert_eq!(lists["data"][1]["index"], 1);
    });
}

#[test]
fn base64_is_little_endian_floats() {
    serve(json!({}), async |server| {
        let request = json!({"input": [7, 8, 9], "encoding_format": "base64"});
        let answer = server.ok(request).await;
        // Python: base64.b64encode(struct.pack("<3f", 3, 7, 9))
        assert_eq!(answer["data"][0]["embedding"], "AABAQAAA4EAAABBB");
    });
}

#[test]
fn dimensions_shorten_and_normalize() {
    serve(json!({}), async |server| {
        let request = json!({"input": [4, 4, 4], "dimensions": 2});
        let answer = server.ok(request).await;
        let vector = answer["data"][0]["embedding"].clone();
        let values: Vec<f64> = serde_json::from_value(vector).unwrap();
        assert_eq!(values.len(), 2);
        assert!((values[0] - 0.6).abs() < 1e-6 && (values[1] - 0.8).abs() < 1e-6);
        let out = |dimensions: Value| json!({"input": "a", "dimensions": dimensions});
        server.ok(out(json!(WIDTH))).await;
        for wrong in [
            json!(WIDTH + 1),
            json!(0),
            json!(-1),
            json!(1_000_000_000_000_u64),
        ] {
            server
                .fails(out(wrong), 400, "out_of_range", Some("dimensions"))
                .await;
        }
    });
}

#[test]
fn wrong_inputs_are_refused_before_anything_is_computed() {
    serve(json!({}), async |server| {
        for (input, code) in [
            (json!(""), "invalid_value"),
            (json!(["a", ""]), "invalid_value"),
            (json!([]), "invalid_value"),
            (json!([[]]), "invalid_value"),
            (json!(null), "missing_required_parameter"),
            (json!(3), "invalid_type"),
            (json!([VOCAB]), "out_of_range"),
            (json!([[1], [VOCAB]]), "out_of_range"),
            (json!(vec!["a"; 2049]), "out_of_range"),
            (json!("x".repeat(CONTEXT)), "context_length_exceeded"),
            (json!("x".repeat(1 << 17)), "context_length_exceeded"),
            (json!(vec![5; CONTEXT + 1]), "context_length_exceeded"),
        ] {
            server
                .fails(json!({ "input": input }), 400, code, Some("input"))
                .await;
        }
        server.ok(json!({"input": vec![5; CONTEXT]})).await;
        server.ok(json!({"input": vec!["a"; 2048]})).await;
    });
}

#[test]
fn each_kind_of_model_answers_its_own_route() {
    serve(json!({}), async |server| {
        let prompt = json!({"model": EMBEDDER, "prompt": "a"});
        let error = server.send("/v1/completions", prompt).await.error();
        let expected = (
            400,
            "unsupported_parameter".to_owned(),
            Some("model".to_owned()),
        );
        assert_eq!(error, expected);
        let list = read(
            server
                .handler
                .handle(request("GET", "/v1/models", &[], ""))
                .await,
        )
        .await;
        let card = &list.json()["data"][0];
        assert_eq!(card["capabilities"], json!(["embeddings"]));
        assert_eq!(
            (&card["status"], &card["context_length"]),
            (&json!("ready"), &json!(CONTEXT))
        );
        server.ok(json!({"model": "default", "input": "a"})).await;
        server
            .fails(
                json!({"model": "other", "input": "a"}),
                404,
                "model_not_found",
                Some("model"),
            )
            .await;
    });
    serve_default(async |server| {
        let headers = [("content-type", "application/json")];
        let body = json!({"model": MODEL_ID, "input": "a"}).to_string();
        let reply = server
            .send(request("POST", "/v1/embeddings", &headers, &body))
            .await;
        let expected = (
            400,
            "unsupported_parameter".to_owned(),
            Some("model".to_owned()),
        );
        assert_eq!(reply.error(), expected);
        assert!(
            reply.text().contains("no loaded model does"),
            "{}",
            reply.text()
        );
    });
}

#[test]
fn the_alias_means_the_model_that_embeds() {
    serve_default(async |generating| {
        serve(json!({}), async |server| {
            server.handler.set_model(EMBEDDER, ModelState::Unloaded);
            server.handler.set_model(MODEL_ID, generating.ready());
            server.handler.set_model(EMBEDDER, server.ready());
            let answer = server.ok(json!({"model": "default", "input": "a"})).await;
            assert_eq!(answer["model"], EMBEDDER);
            let reply = server.embed(json!({"model": MODEL_ID, "input": "a"})).await;
            assert!(reply.text().contains(EMBEDDER), "{}", reply.text());
        });
    });
}

#[test]
fn a_dropped_request_and_a_deadline_cancel() {
    serve(json!({"requestTimeoutMs": 30}), async |server| {
        server.plan.held.set(true);
        let late = server.embed(json!({"input": "a"})).await;
        assert_eq!(late.status, 500);
        assert_eq!(
            server.engine.active_requests(),
            1,
            "the loop has not run since"
        );
        yield_now().await;
        yield_now().await;
        assert_eq!(server.engine.active_requests(), 0);
        server.plan.held.set(false);
        server.ok(json!({"input": "a"})).await;
    });
}

#[test]
fn failures_of_the_model_have_their_codes() {
    serve(json!({}), async |server| {
        let fail = |error| *server.plan.failure.borrow_mut() = Some(error);
        fail(Error::OutOfMemory("full".into()));
        server
            .fails(json!({"input": "a"}), 500, "out_of_memory", None)
            .await;
        server.ok(json!({"input": "a"})).await;
    });
}

#[test]
fn a_full_queue_is_429() {
    serve(json!({"maxQueue": 0}), async |server| {
        server.plan.held.set(true);
        let first = server.embed(json!({"input": "a"}));
        let second = async {
            yield_now().await;
            yield_now().await;
            let reply = server.embed(json!({"input": "b"})).await;
            server.plan.held.set(false);
            reply
        };
        let (first, second) = futures_util::future::join(first, second).await;
        assert_eq!((first.status, second.status), (200, 429));
        assert_eq!(second.header("retry-after"), Some("1"));
    });
}

#[test]
fn every_example_of_the_page_gets_the_promised_response() {
    let examples = examples("embeddings ");
    assert!(examples.len() >= 6, "{} examples found", examples.len());
    serve(json!({}), async |server| {
        for (line, code, body) in &examples {
            let body = serde_json::from_str(body).unwrap();
            let reply = server.send("/v1/embeddings", body).await;
            match code {
                None => assert_eq!(reply.status, 200, "line {line}: {}", reply.text()),
                Some(code) => assert_eq!(&reply.error().1, code, "line {line}"),
            }
        }
    });
}

#[test]
fn inputs_are_cut_if_the_request_says_so() {
    serve(json!({}), async |server| {
        // A vector is the number of tokens, the first and the last one.
        let vector = async |members: Value| {
            let reply = server.embed(members).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let cut = reply.header("x-prompt-truncated").map(str::to_owned);
            (reply.json()["data"][0]["embedding"].clone(), cut)
        };
        let ids = server.tokenizer.encode("xyz", true).unwrap();
        let as_floats = |ids: [u32; 3]| json!(ids.map(|id| id as f32));
        for (members, expected, cut) in [
            (
                json!({"truncate_prompt_tokens": 3}),
                [3, BOS, ids[2]],
                Some("1"),
            ),
            (
                json!({"truncate_prompt_tokens": 3, "truncation_side": "left"}),
                [3, BOS, ids[3]],
                Some("1"),
            ),
            (json!({"truncate_prompt_tokens": 4}), [4, BOS, ids[3]], None),
            (
                json!({"truncate_prompt_tokens": -1}),
                [4, BOS, ids[3]],
                None,
            ),
            (
                json!({"add_special_tokens": false}),
                [3, ids[1], ids[3]],
                None,
            ),
            (
                json!({"truncate_prompt_tokens": 1, "add_special_tokens": false}),
                [1, ids[1], ids[1]],
                Some("2"),
            ),
        ] {
            let mut members = members;
            members["input"] = json!("xyz");
            let expected = (as_floats(expected), cut.map(str::to_owned));
            assert_eq!(vector(members.clone()).await, expected, "{members}");
        }
        let members = json!({"input": [7, 8, 9], "truncate_prompt_tokens": 2});
        assert_eq!(vector(members).await.0, json!([2.0, 7.0, 8.0]));
        // -1 is the model's limit.
        let long = "x".repeat(2 * CONTEXT);
        server
            .fails(
                json!({"input": long}),
                400,
                "context_length_exceeded",
                Some("input"),
            )
            .await;
        let (embedding, _) = vector(json!({"input": long, "truncate_prompt_tokens": -1})).await;
        assert_eq!(embedding[0], CONTEXT as f32);
        for (value, code) in [
            (json!(0), "out_of_range"),
            (json!(1), "out_of_range"),
            (json!("x"), "invalid_type"),
        ] {
            let members = json!({"input": "xyz", "truncate_prompt_tokens": value});
            server
                .fails(members, 400, code, Some("truncate_prompt_tokens"))
                .await;
        }
    });
}

#[test]
fn texts_and_ids_are_mixed_with_the_switch() {
    let input = json!(["x", 7, "y"]);
    serve(json!({}), async |server| {
        server
            .fails(json!({"input": input}), 400, "invalid_value", Some("input"))
            .await;
    });
    serve(json!({"mixedPrompts": true}), async |server| {
        let x = server.tokenizer.encode("x", true).unwrap();
        let y = server.tokenizer.encode("y", false).unwrap();
        let expected = [x, vec![7], y].concat();
        let answer = server.ok(json!({"input": input})).await;
        assert_eq!(answer["data"].as_array().unwrap().len(), 1);
        let vector = [expected.len() as u32, BOS, *expected.last().unwrap()];
        assert_eq!(
            answer["data"][0]["embedding"],
            json!(vector.map(|it| it as f32))
        );
        let answer = server.ok(json!({"input": [["x", 7], "y"]})).await;
        assert_eq!(answer["data"].as_array().unwrap().len(), 2);
        let unknown = json!({"input": ["x", VOCAB]});
        server
            .fails(unknown, 400, "out_of_range", Some("input"))
            .await;
    });
}
