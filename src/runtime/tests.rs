//! A model through all stages on the reference device.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use serde_json::{Value, json};

use super::*;
use crate::{
    Error, Result,
    api::{Body, Request, Switches, SystemHost},
    device::{ComputeDevice, CpuOptions},
    model::LoadOptions,
    weights::LocalFiles,
};

fn small_file(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    tests.join(name)
}

fn adapter() -> [AdapterFiles<LocalFiles>; 1] {
    [AdapterFiles {
        name: "patterns".into(),
        files: LocalFiles::at(small_file("adapters/llama-patterns.gguf")).unwrap(),
        scale: 1.0,
    }]
}

async fn load_small(
    file: &Path,
    device: impl Future<Output = Result<ComputeDevice>>,
) -> Result<Loaded> {
    load_with_draft(file, None, device).await
}

async fn load_with_draft(
    file: &Path,
    draft: Option<&str>,
    device: impl Future<Output = Result<ComputeDevice>>,
) -> Result<Loaded> {
    let draft = draft.map(|it| LocalFiles::at(small_file(it)).unwrap());
    let request = LoadRequest {
        projector: None,
        draft_model: draft.as_ref(),
        files: &LocalFiles::at(file).unwrap(),
        adapters: &[] as &[AdapterFiles<LocalFiles>],
        options: LoadOptions::default(),
        now_ms: || 0.0,
    };
    load(request, device, |_, _| ()).await
}

/// Loads the small model with what is known of its kernels; gives what it answers and what is known then.
async fn answer_with(known: KnownKernels<'_>) -> (Value, String) {
    let request = LoadRequest {
        projector: None,
        draft_model: None,
        files: &LocalFiles::at(small_file("models/llama.gguf")).unwrap(),
        adapters: &adapter(),
        options: LoadOptions::default(),
        now_ms: || 0.0,
    };
    let device = async { Ok(ComputeDevice::reference()) };
    let loaded = reload(request, known, device, |_, _| ()).await.unwrap();
    let handler = ServedHandler::new(Switches::default(), Rc::new(SystemHost));
    let served = serve(loaded, &handler, "small");
    let kernels = served.running.kernels();
    match select(pin!(served.engine.run()), pin!(complete(&handler))).await {
        Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
        Either::Right((answer, _)) => (answer["choices"].clone(), kernels),
    }
}

async fn complete(handler: &ServedHandler) -> Value {
    let body =
        json!({ "model": "default", "prompt": [1, 2, 3], "max_tokens": 4, "temperature": 0 });
    let request = Request {
        method: "POST".into(),
        url: "/v1/completions".into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string().into_bytes(),
        ..Request::default()
    };
    let response = handler.handle(request).await;
    let Body::Full(bytes) = response.body else {
        panic!("a stream");
    };
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(response.status, 200, "{answer}");
    answer
}

#[test]
fn a_served_model_answers_with_the_adapters_in_use() {
    pollster::block_on(async {
        let device = async { Ok(ComputeDevice::reference()) };
        let loaded = load_small(&small_file("models/llama.gguf"), device).await;
        let handler = ServedHandler::new(Switches::default(), Rc::new(SystemHost));
        let served = serve(loaded.unwrap(), &handler, "small");
        let running = served.running;
        let answers = async {
            let plain = complete(&handler).await;
            assert!(running.report().lora.is_empty());

            let adapters = Adapters::open(&adapter()).await.unwrap();
            running.set_lora(adapters).await.unwrap();
            assert_eq!(running.report().lora[0].name, "patterns");
            let adapted = complete(&handler).await;
            assert_ne!(adapted["system_fingerprint"], plain["system_fingerprint"]);

            let none = Adapters::open(&[] as &[AdapterFiles<LocalFiles>]).await;
            running.set_lora(none.unwrap()).await.unwrap();
            let again = complete(&handler).await;
            assert_eq!(again["system_fingerprint"], plain["system_fingerprint"]);
            assert_eq!(again["choices"], plain["choices"]);
            assert_eq!(running.active_generations(), 0);
        };
        match select(pin!(served.engine.run()), pin!(answers)).await {
            Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
            Either::Right(((), _)) => {}
        }
    });
}

#[test]
fn a_draft_model_changes_no_answer() {
    pollster::block_on(async {
        let file = small_file("models/llama.gguf");
        let mut answers = Vec::new();
        for draft in [None, Some("models/llama.gguf")] {
            let device = async { Ok(ComputeDevice::cpu(CpuOptions::default())) };
            let loaded = Box::pin(load_with_draft(&file, draft, device)).await;
            let loaded = loaded.unwrap();
            let report = loaded.report.draft_model.as_ref();
            assert_eq!(
                report.map(|it| it.layers),
                draft.map(|_| loaded.report.layers)
            );
            let handler = ServedHandler::new(Switches::default(), Rc::new(SystemHost));
            let served = serve(loaded, &handler, "small");
            let body =
                json!({ "model": "default", "prompt": [1, 2, 3], "max_tokens": 40, "seed": 5 });
            let answer = post(&handler, "/v1/completions", body);
            match select(Box::pin(served.engine.run()), Box::pin(answer)).await {
                Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
                Either::Right(((status, answer), _)) => {
                    assert_eq!(status, 200, "{answer}");
                    answers.push(answer["choices"].clone());
                }
            }
        }
        assert_eq!(answers[0], answers[1]);
    });
}

#[test]
fn a_draft_model_with_other_tokens_is_refused_before_a_device_is_requested() {
    for (draft, reason) in [
        ("models/qwen3.gguf", "draft model: "),
        ("embeddings/bert.gguf", "draft model: "),
        ("main.rs", "draft model: "),
    ] {
        let device = async { panic!("a device was requested") };
        let file = small_file("models/llama.gguf");
        let loaded = pollster::block_on(load_with_draft(&file, Some(draft), device));
        let error = loaded.err().expect("an error").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_one_load_finds_out_serves_the_next() {
    pollster::block_on(async {
        let (answer, kernels) = answer_with(KnownKernels::None).await;
        for known in [
            KnownKernels::Kept(&kernels),
            KnownKernels::OfLostEngine(&kernels),
            KnownKernels::Kept("of another version"),
        ] {
            assert_eq!(answer_with(known).await, (answer.clone(), kernels.clone()));
        }
    });
}

#[test]
fn a_file_that_is_no_model_requests_no_device() {
    let device = async { panic!("a device was requested") };
    let file = small_file("main.rs");
    let error = pollster::block_on(load_small(&file, device))
        .err()
        .expect("an error");
    assert!(matches!(error, Error::InvalidModelFile(_)), "{error}");
}

/// The status and the body of a POST.
async fn post(handler: &ServedHandler, url: &str, body: Value) -> (u16, Value) {
    let request = Request {
        method: "POST".into(),
        url: url.into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string().into_bytes(),
        ..Request::default()
    };
    let response = handler.handle(request).await;
    let Body::Full(bytes) = response.body else {
        panic!("a stream");
    };
    (response.status, serde_json::from_slice(&bytes).unwrap())
}

/// A causal model and an encoder: the files decide that they embed.
#[test]
fn a_model_with_a_pooling_answers_embeddings() {
    for (file, width) in [
        ("embeddings/qwen3-Q8_0.gguf", 64),
        ("embeddings/bert.gguf", 48),
    ] {
        pollster::block_on(async {
            let device = async { Ok(ComputeDevice::cpu(CpuOptions::default())) };
            let loaded = load_small(&small_file(file), device).await.unwrap();
            let handler = ServedHandler::new(Switches::default(), Rc::new(SystemHost));
            let served = serve(loaded, &handler, "small");
            let running = served.running;
            let answers = async {
                let body = json!({ "model": "default", "input": ["a cat", "the end"] });
                let (status, answer) = post(&handler, "/v1/embeddings", body).await;
                assert_eq!(status, 200, "{answer}");
                let vectors: Vec<Vec<f32>> = (0..2)
                    .map(|i| {
                        serde_json::from_value(answer["data"][i]["embedding"].clone()).unwrap()
                    })
                    .collect();
                for vector in &vectors {
                    assert_eq!(vector.len(), width);
                    let length: f32 = vector.iter().map(|x| x * x).sum();
                    assert!((length - 1.0).abs() < 1e-4, "{length}");
                }
                assert_ne!(vectors[0], vectors[1]);

                let body = json!({ "model": "default", "prompt": "a" });
                let (status, answer) = post(&handler, "/v1/completions", body).await;
                assert_eq!((status, &answer["error"]["param"]), (400, &json!("model")));
                let none = Adapters::open(&[] as &[AdapterFiles<LocalFiles>]).await;
                let refused = running.set_lora(none.unwrap()).await.unwrap_err();
                assert!(refused.to_string().contains("embedding"), "{refused}");
                assert_eq!(running.active_generations(), 0);
                assert!(!running.kernels().is_empty());
            };
            match select(pin!(served.engine.run()), pin!(answers)).await {
                Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
                Either::Right(((), _)) => {}
            }
        });
    }
}
