//! A real handler, engine and tokenizer around a model without weights that says what a test
//! wants. The vocabulary is SentencePiece with byte fallback, made here.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use inpage::api::{
    Body, Handler, Host, ModelState, ReadyModel, Request, Response, SamplingDefaults, Switches,
    SystemHost, system_fingerprint,
};
use inpage::engine::{Engine, EngineHandle, EngineLimits};
use inpage::model::causal::{CausalModel, SequenceKv};
use inpage::text::Tokenizer;
use inpage::weights::Metadata;
use inpage::{Error, Result};
use serde_json::{Value, json};

pub const MODEL_ID: &str = "org/fake-model";
pub const PROMPT: &str = "The capital of France is";
/// The model's context in tokens.
pub const CONTEXT: usize = 64;

pub const BOS: u32 = 1;
pub const EOS: u32 = 2;
/// The control token `<|sep|>`.
pub const SEP: u32 = 3;
/// The token of the byte 0.
const BYTE_0: u32 = 4;
/// Tokens of several characters; "▁" is a space.
const PIECES: [&str; 6] = ["▁", "▁qu", "own▁f", "aaa", "c▁e", "▁the"];
pub const VOCAB: u32 = BYTE_0 + 256 + PIECES.len() as u32;

fn metadata() -> Metadata {
    const NORMAL: i32 = 1;
    const UNKNOWN: i32 = 2;
    const CONTROL: i32 = 3;
    const BYTE: i32 = 6;
    let mut tokens = vec![
        ("<unk>".to_owned(), UNKNOWN),
        ("<s>".to_owned(), CONTROL),
        ("</s>".to_owned(), CONTROL),
        ("<|sep|>".to_owned(), CONTROL),
    ];
    tokens.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
    tokens.extend(PIECES.map(|piece| (piece.to_owned(), NORMAL)));
    let (texts, types): (Vec<String>, Vec<i32>) = tokens.into_iter().unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; texts.len()]);
    metadata.insert("tokenizer.ggml.tokens", texts);
    metadata.insert("tokenizer.ggml.token_type", types);
    metadata.insert("tokenizer.ggml.bos_token_id", BOS);
    metadata.insert("tokenizer.ggml.eos_token_id", EOS);
    metadata.insert("tokenizer.ggml.add_bos_token", true);
    metadata.insert("tokenizer.ggml.add_space_prefix", false);
    metadata
}

/// One token per byte of `text`, so that characters beyond ASCII are cut.
pub fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(|byte| BYTE_0 + u32::from(byte)).collect()
}

/// As few tokens as the vocabulary allows, so that stops begin and end inside of them.
pub fn pieces(text: &str) -> Vec<u32> {
    let mut text = &*text.replace(' ', "▁");
    let mut ids = Vec::new();
    while let Some(first) = text.chars().next() {
        let longest = PIECES
            .iter()
            .zip(BYTE_0 + 256..)
            .filter(|(piece, _)| text.starts_with(**piece))
            .max_by_key(|(piece, _)| piece.len());
        match longest {
            Some((piece, id)) => {
                ids.push(id);
                text = &text[piece.len()..];
            }
            None => {
                ids.extend(bytes(&text[..first.len_utf8()]));
                text = &text[first.len_utf8()..];
            }
        }
    }
    ids
}

/// What the model does; tests change it between requests.
#[derive(Default)]
pub struct Plan {
    /// The tokens it wants to say, wherever the prompt ends; `None`: pseudo-random ASCII letters.
    script: RefCell<Option<Vec<u32>>>,
    /// While true, no step begins.
    pub held: Cell<bool>,
    /// The error of the step that would choose the token with this index.
    pub failure: RefCell<Option<(usize, Error)>>,
}

impl Plan {
    /// From now on the model says `ids` and then the end-of-text token for ever.
    pub fn say(&self, ids: Vec<u32>) {
        *self.script.borrow_mut() = Some(ids);
    }
}

struct FakeModel {
    plan: Rc<Plan>,
    /// Tokens of the prompt of the running sequence: one sequence runs at a time here.
    prompt_tokens: usize,
}

impl FakeModel {
    /// Feeds without choosing.
    async fn take(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        yield_now().await;
        while self.plan.held.get() {
            SystemHost.sleep_ms(1).await;
        }
        if kv.len_tokens == 0 {
            self.prompt_tokens = tokens.len();
        }
        kv.len_tokens += tokens.len();
        Ok(())
    }

    /// The logits after `last`, the token at `position`.
    fn logits(&self, last: u32, position: usize) -> Result<Vec<f32>> {
        let index = position + 1 - self.prompt_tokens;
        if let Some((at, error)) = &*self.plan.failure.borrow()
            && index >= *at
        {
            return Err(error.clone());
        }
        let mut logits = vec![-30.0; VOCAB as usize];
        match &*self.plan.script.borrow() {
            Some(script) => logits[*script.get(index).unwrap_or(&EOS) as usize] = 30.0,
            None => {
                for letter in 'a'..='z' {
                    let id = bytes(&letter.to_string())[0];
                    let hash = (u64::from(last) * 31 + position as u64) * 131 + u64::from(id);
                    let hash = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
                    logits[id as usize] = hash as f32 / 256.0;
                }
            }
        }
        Ok(logits)
    }
}

impl CausalModel for FakeModel {
    fn vocab_size(&self) -> usize {
        VOCAB as usize
    }
    fn context_tokens(&self) -> usize {
        CONTEXT
    }
    fn page_tokens(&self) -> usize {
        16
    }
    fn page_count(&self) -> usize {
        4 * CONTEXT / 16
    }

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.take(kv, tokens).await
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        self.take(kv, tokens).await?;
        self.logits(tokens[tokens.len() - 1], kv.len_tokens - 1)
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        self.take(kv, tokens).await?;
        let mut last = tokens[tokens.len() - 1];
        let mut ids = Vec::new();
        for step in 0..steps {
            kv.len_tokens += usize::from(step > 0);
            let logits = self.logits(last, kv.len_tokens - 1)?;
            let best = (0..logits.len())
                .rev()
                .max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            last = best.unwrap() as u32;
            ids.push(last);
        }
        Ok(ids)
    }
}

/// Gives way once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The system's clock, and a log that tests read.
#[derive(Default)]
pub struct TestHost {
    pub warnings: RefCell<Vec<String>>,
}

impl Host for TestHost {
    fn now_ms(&self) -> u64 {
        SystemHost.now_ms()
    }
    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        SystemHost.sleep_ms(duration_ms)
    }
    fn warn(&self, message: &str) {
        self.warnings.borrow_mut().push(message.to_owned());
    }
}

pub struct Server {
    pub handler: Handler,
    pub plan: Rc<Plan>,
    pub engine: EngineHandle,
    pub tokenizer: Rc<Tokenizer>,
    pub host: Rc<TestHost>,
}

/// Runs `test` beside the engine of a server with these switches (JSON).
pub fn serve(switches: Value, test: impl AsyncFnOnce(&Server)) {
    let switches = Switches::from_json(&switches.to_string()).unwrap();
    let plan = Rc::new(Plan::default());
    let model = FakeModel {
        plan: plan.clone(),
        prompt_tokens: 0,
    };
    let limits = EngineLimits {
        max_queue: switches.max_queue,
        ..EngineLimits::default()
    };
    let (engine, handle) = Engine::new(model, limits);
    let host = Rc::new(TestHost::default());
    let server = Server {
        handler: Handler::new(switches, host.clone()),
        plan,
        engine: handle,
        tokenizer: Rc::new(Tokenizer::from_gguf(&metadata()).unwrap()),
        host,
    };
    server.handler.set_model(MODEL_ID, server.ready());
    let test = pin!(test(&server));
    match pollster::block_on(select(pin!(engine.run()), test)) {
        Either::Left((ended, _)) => panic!("the engine ended: {ended:?}"),
        Either::Right(((), _)) => {}
    }
}

/// `serve` with the default switches.
pub fn serve_default(test: impl AsyncFnOnce(&Server)) {
    serve(json!({}), test);
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Server {
    pub fn ready(&self) -> ModelState {
        ModelState::Ready(ReadyModel {
            engine: self.engine.clone(),
            tokenizer: self.tokenizer.clone(),
            fingerprint: system_fingerprint(&["test"]),
            sampling_defaults: SamplingDefaults {
                temperature: Some(0.0),
                ..SamplingDefaults::default()
            },
        })
    }

    /// A prompt's ids with the automatic start token.
    pub fn ids(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text, true).unwrap()
    }

    /// Sends a request and reads the response to its end.
    pub async fn send(&self, request: Request) -> Reply {
        read(self.handler.handle(request).await).await
    }

    pub async fn get(&self, url: &str) -> Reply {
        self.send(request("GET", url, &[], "")).await
    }

    /// Posts a body to the completions route.
    pub async fn post(&self, body: &str) -> Reply {
        self.send(completion(body)).await
    }

    /// Posts the base request with `members` added or replaced.
    pub async fn complete(&self, members: Value) -> Reply {
        self.post(&body(members)).await
    }

    /// The same, answered with 200 and an object.
    #[track_caller]
    pub fn ok(&self, members: Value) -> impl Future<Output = Value> {
        let shown = members.to_string();
        async move {
            let reply = self.complete(members).await;
            assert_eq!(reply.status, 200, "{shown}: {}", reply.text());
            reply.json()
        }
    }

    /// The text of the only choice.
    pub async fn text(&self, members: Value) -> String {
        let object = self.ok(members).await;
        text_of(&object).to_owned()
    }

    /// The parsed chunks of a streamed answer, checked for their form.
    pub async fn stream(&self, mut members: Value) -> Vec<Value> {
        members["stream"] = json!(true);
        let shown = members.to_string();
        let reply = self.complete(members).await;
        assert_eq!(reply.status, 200, "{shown}: {}", reply.text());
        assert_eq!(
            reply.header("content-type"),
            Some("text/event-stream; charset=utf-8")
        );
        reply.chunks()
    }
}

pub async fn read(response: Response) -> Reply {
    let Response {
        status,
        headers,
        body,
    } = response;
    let body = match body {
        Body::Full(body) => body,
        Body::Stream(stream) => stream.collect::<Vec<_>>().await.concat(),
    };
    Reply {
        status,
        headers,
        body,
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status, code and param of an error, whose form is checked (E in CONFORMANCE.md).
    #[track_caller]
    pub fn error(&self) -> (u16, String, Option<String>) {
        assert!(self.status >= 400, "{}", self.text());
        assert!(self.header("x-request-id").unwrap().starts_with("req_"));
        let (code, param) = error_of(&self.json());
        (self.status, code, param)
    }

    /// The events of a stream: `data: ` and one line each, the last `[DONE]`; comments left out.
    #[track_caller]
    pub fn chunks(&self) -> Vec<Value> {
        let text = self.text().strip_suffix("\n\n").unwrap();
        let mut events: Vec<&str> = text
            .split("\n\n")
            .filter(|event| *event != ": keep-alive")
            .map(|event| {
                assert!(!event.contains('\n'), "{event:?}");
                event.strip_prefix("data: ").unwrap()
            })
            .collect();
        assert_eq!(events.pop(), Some("[DONE]"));
        events
            .iter()
            .map(|event| serde_json::from_str(event).unwrap())
            .collect()
    }
}

/// Code and param of `{"error":{…}}` with exactly its four members.
#[track_caller]
pub fn error_of(object: &Value) -> (String, Option<String>) {
    assert_eq!(object.as_object().unwrap().len(), 1);
    let error = object["error"].as_object().unwrap();
    let keys: Vec<&str> = error.keys().map(String::as_str).collect();
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(sorted, ["code", "message", "param", "type"]);
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert!(error["type"].is_string());
    (
        error["code"].as_str().unwrap().to_owned(),
        error["param"].as_str().map(str::to_owned),
    )
}

pub fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let headers = headers
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    Request {
        method: method.into(),
        url: url.into(),
        headers: headers.collect(),
        body: body.into(),
    }
}

/// A well-formed POST with this body.
pub fn completion(body: &str) -> Request {
    let headers = [("Content-Type", "application/json")];
    request("POST", "/v1/completions", &headers, body)
}

/// The base request R with `members` added or replaced.
pub fn body(members: Value) -> String {
    let mut body = json!({"model": "default", "prompt": PROMPT, "max_tokens": 8});
    let Value::Object(members) = members else {
        panic!("members must be an object");
    };
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

pub fn text_of(object: &Value) -> &str {
    object["choices"][0]["text"].as_str().unwrap()
}

pub fn finish_of(object: &Value) -> &str {
    object["choices"][0]["finish_reason"].as_str().unwrap()
}

/// The joined text of a stream's chunks.
pub fn joined(chunks: &[Value]) -> String {
    let choices = chunks.iter().filter(|chunk| chunk["choices"] != json!([]));
    choices.map(text_of).collect()
}
