//! A real handler, engine and tokenizer around a model without weights, whose output the test
//! decides. The vocabulary, SentencePiece with byte fallback, is built here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use inpage::api::{
    Body, DecodedImage, FetchedImage, Fingerprint, Handler, Host, ImageError, ImageReader,
    ModelState, OutputForm, ReadyModel, Request, Response, SamplingDefaults, Switches, SystemHost,
    ToolPrompts, VocabularyTables,
};
use inpage::engine::generation::TokenScore;
use inpage::engine::{
    CausalModel, Chooser, Clock, Engine, EngineHandle, EngineLimits, Input, MemoryCopy,
    ModelLimits, Permit, Row, SequenceMemory, StepOutput,
};
use inpage::images::{FileHeader, Filter, ImageFormat, ImageGeometry, ImageMarkup};
use inpage::sample::Sampled;
use inpage::text::Tokenizer;
use inpage::weights::Metadata;
use inpage::{Error, Result};
use serde_json::{Value, json};

/// The text around pixels in prompts of a model that cuts images into tiles.
pub const TILE_MARKUP: ImageMarkup = ImageMarkup {
    before_tile: "<fake_token_around_image><row_{row}_col_{column}>",
    before_whole: "<fake_token_around_image><global-img>",
    after_whole: "<fake_token_around_image>",
    ..ImageMarkup::plain("<image>")
};

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
/// The control tokens around prefix, suffix and middle.
const AROUND: [&str; 3] = ["<PRE>", "<SUF>", "<MID>"];
pub const PRE: u32 = BYTE_0 + 256 + PIECES.len() as u32;
pub const VOCAB: u32 = PRE + AROUND.len() as u32;

/// The first letter of each role between `<|sep|>` and the content. It names neither reasoning nor the tags
/// of calls. Tools take one token in front, so that prompts stay short.
pub const TEMPLATE: &str = "{% if tools %}<|sep|>{% endif %}{% for message in messages %}<|sep|>{{ message.role[0] }}{{ message.content }}\
    {% endfor %}{% if add_generation_prompt %}<|sep|>a{% endif %}";

/// `around` are the control tokens around prefix, suffix and middle.
fn metadata(around: [&str; 3], template: Option<&str>) -> Metadata {
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
    tokens.extend(around.map(|text| (text.to_owned(), CONTROL)));
    let (strings, types): (Vec<String>, Vec<i32>) = tokens.into_iter().unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", types);
    metadata.insert("tokenizer.ggml.bos_token_id", BOS);
    metadata.insert("tokenizer.ggml.eos_token_id", EOS);
    metadata.insert("tokenizer.ggml.add_bos_token", true);
    metadata.insert("tokenizer.ggml.add_space_prefix", false);
    if let Some(template) = template {
        metadata.insert("tokenizer.chat_template", template);
    }
    metadata
}

/// The tokenizer of all tests.
pub fn metadata_of_tests() -> Metadata {
    metadata(AROUND, Some(TEMPLATE))
}

/// One token per byte of `text`, so that characters beyond ASCII are split.
pub fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(|byte| BYTE_0 + u32::from(byte)).collect()
}

/// As few tokens as the vocabulary allows, so that stop strings begin and end inside tokens.
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

/// The behavior of the model. Tests change it between requests.
#[derive(Default)]
pub struct Plan {
    voice: RefCell<Voice>,
    /// While true, no step begins.
    pub held: Cell<bool>,
    /// The error of every step after this many tokens of a sequence, including the prompt.
    pub failure: RefCell<Option<(usize, Error)>>,
    /// After this token, the logits are NaN.
    pub poison: Cell<Option<u32>>,
}

/// The tokens that the model generates.
#[derive(Default)]
enum Voice {
    /// Pseudo-random ASCII letters.
    #[default]
    Letters,
    /// Pseudo-random tokens of all kinds: bytes of characters, several characters, special ones.
    Babble,
    /// These tokens, and then the end-of-text token forever.
    Script(Vec<u32>),
}

impl Plan {
    /// After this, the model generates `ids` and then the end-of-text token forever.
    pub fn say(&self, ids: Vec<u32>) {
        *self.voice.borrow_mut() = Voice::Script(ids);
    }

    /// After this, the model generates tokens that are hard to show.
    pub fn babble(&self) {
        *self.voice.borrow_mut() = Voice::Babble;
    }
}

/// More tokens than most prompts of the tests, so that repeated prompts do not show cached tokens in
/// `usage`.
const PAGE_TOKENS: usize = 32;
const PAGES: usize = 8 * CONTEXT / PAGE_TOKENS;

/// Its pages hold the tokens themselves, so its output depends on the pages of the block table.
struct FakeModel {
    plan: Rc<Plan>,
    pages: Vec<[u32; PAGE_TOKENS]>,
}

impl FakeModel {
    /// Feeds tokens without choosing one.
    async fn take(&mut self, kv: &mut SequenceMemory, tokens: &[u32]) {
        yield_now().await;
        while self.plan.held.get() {
            SystemHost.sleep_ms(1).await;
        }
        for token in tokens {
            self.write(kv, *token);
        }
    }

    fn write(&mut self, kv: &mut SequenceMemory, token: u32) {
        let page = kv.pages[kv.len_tokens / PAGE_TOKENS] as usize;
        self.pages[page][kv.len_tokens % PAGE_TOKENS] = token;
        kv.len_tokens += 1;
    }

    /// The first `len_tokens` tokens of a sequence.
    fn history(&self, kv: &SequenceMemory, len_tokens: usize) -> Vec<u32> {
        let token = |at: usize| self.pages[kv.pages[at / PAGE_TOKENS] as usize][at % PAGE_TOKENS];
        (0..len_tokens).map(token).collect()
    }

    /// The logits after the first `len_tokens` tokens of a sequence.
    fn logits(&self, kv: &SequenceMemory, len_tokens: usize) -> Result<Vec<f32>> {
        let history = self.history(kv, len_tokens);
        if let Some((at, error)) = &*self.plan.failure.borrow()
            && history.len() >= *at
        {
            return Err(error.clone());
        }
        if self.plan.poison.get() == history.last().copied() {
            return Ok(vec![f32::NAN; VOCAB as usize]);
        }
        let mut logits = vec![-30.0; VOCAB as usize];
        let mut hashed = |ids: &[u32]| {
            let last = u64::from(history[history.len() - 1]);
            for id in ids {
                let hash = (last * 31 + history.len() as u64 - 1) * 131 + u64::from(*id);
                let hash = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
                logits[*id as usize] = hash as f32 / 256.0;
            }
        };
        match &*self.plan.voice.borrow() {
            Voice::Letters => hashed(&bytes("abcdefghijklmnopqrstuvwxyz")),
            Voice::Babble => {
                let awkward = [
                    bytes("🎉é a\n\""),
                    pieces(" quown faaa the"),
                    vec![SEP, EOS],
                ];
                hashed(&awkward.concat());
            }
            Voice::Script(script) => logits[next_of(script, &history) as usize] = 30.0,
        }
        Ok(logits)
    }
}

/// The next token of the script. The longest prefix of the script that ends `history` was generated already.
fn next_of(script: &[u32], history: &[u32]) -> u32 {
    let without_end = history
        .iter()
        .rposition(|id| *id != EOS)
        .map_or(0, |last| last + 1);
    let said = &history[..without_end];
    if without_end < history.len() && said.ends_with(script) {
        return EOS;
    }
    let said = (0..=script.len())
        .rev()
        .find(|count| history.ends_with(&script[..*count]));
    *script.get(said.unwrap_or(0)).unwrap_or(&EOS)
}

/// The raw score of `id` after which the logits are `logits`.
fn score(logits: &[f32], id: u32, top: usize) -> TokenScore {
    let total: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
    let logprob = |id: u32| (f64::from(logits[id as usize]) - total.ln()) as f32;
    let mut best: Vec<u32> = (0..logits.len() as u32).collect();
    best.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]));
    TokenScore {
        id,
        logprob: logprob(id),
        raw_logprob: logprob(id),
        top: best
            .into_iter()
            .take(top)
            .map(|id| (id, logprob(id)))
            .collect(),
    }
}

impl CausalModel for FakeModel {
    fn limits(&self) -> ModelLimits {
        ModelLimits {
            vocab_size: VOCAB as usize,
            context_tokens: CONTEXT,
            page_tokens: PAGE_TOKENS,
            page_count: PAGES,
            max_batch: 4,
            few_tokens: 0,
            state_slots: 0,
            embedding_width: Some(1),
            whole_images: false,
        }
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        self.take(memory, input.ids()).await;
        Ok(())
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        let mut logits = Vec::new();
        for Row { memory, input } in rows.iter_mut() {
            self.take(memory, input.ids()).await;
            logits.push(self.logits(memory, memory.len_tokens)?);
        }
        let Chooser::Greedy { steps } = chooser else {
            return Ok(StepOutput::Logits(logits));
        };
        let memory = &mut *rows[0].memory;
        let mut chosen = Vec::new();
        for step in 1..=steps {
            let logits = self.logits(memory, memory.len_tokens)?;
            let best = (0..logits.len())
                .rev()
                .max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            let id = best.unwrap() as u32;
            chosen.push(Ok(Sampled { id, score: None }));
            if step < steps {
                self.write(memory, id);
            }
        }
        Ok(StepOutput::Chosen(vec![chosen]))
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        let begin = memory.len_tokens;
        self.take(memory, tokens).await;
        let next = next.iter().zip(begin + 1..);
        next.map(|(id, len_tokens)| Ok(score(&self.logits(memory, len_tokens)?, *id, top)))
            .collect()
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        match copy {
            MemoryCopy::Page { from, to } => {
                self.pages[to as usize] = self.pages[from as usize];
                Ok(())
            }
            MemoryCopy::State { .. } => unreachable!("the model has no states"),
        }
    }
}

/// Yields once.
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

/// The system's clock, a log that tests read, and images that tests put on the network.
#[derive(Default)]
pub struct TestHost {
    pub warnings: RefCell<Vec<String>>,
    /// Files by their URLs; `None` never arrives. The others fail.
    pub remote: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    /// The bytes that each request for an image allowed.
    pub allowed_bytes: RefCell<Vec<usize>>,
    /// Requests for images that were dropped before they ended.
    pub dropped: Rc<Cell<usize>>,
    /// Timers end at once.
    pub is_hasty: Cell<bool>,
    /// Files that the decoder was given.
    pub decoded: Cell<usize>,
    /// The decoder never ends, not even when its request is dropped.
    pub decodes_for_ever: Cell<bool>,
    /// The turns of such decoders; emptying the list ends them.
    pub turns: RefCell<Vec<Rc<Permit>>>,
}

/// Counts itself when it is dropped before its end.
struct Fetching {
    dropped: Rc<Cell<usize>>,
    has_ended: bool,
}

impl Drop for Fetching {
    fn drop(&mut self) {
        if !self.has_ended {
            self.dropped.set(self.dropped.get() + 1);
        }
    }
}

impl Clock for TestHost {
    fn now_ms(&self) -> u64 {
        SystemHost.now_ms()
    }
    fn monotonic_ms(&self) -> f64 {
        SystemHost.monotonic_ms()
    }
    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        match self.is_hasty.get() {
            true => Box::pin(std::future::ready(())),
            false => SystemHost.sleep_ms(duration_ms),
        }
    }
}

impl Host for TestHost {
    fn fetch_image(&self, url: &str, max_bytes: usize) -> FetchedImage {
        self.allowed_bytes.borrow_mut().push(max_bytes);
        let file = self.remote.borrow().get(url).cloned();
        let fetching = Fetching {
            dropped: self.dropped.clone(),
            has_ended: false,
        };
        Box::pin(async move {
            let mut fetching = fetching;
            let file = match file {
                None => Err(ImageError::Invalid("it could not be fetched".into())),
                Some(None) => std::future::pending().await,
                Some(Some(file)) => Ok(file),
            };
            fetching.has_ended = true;
            file
        })
    }
    fn decode_image(&self, file: Rc<[u8]>, header: FileHeader, turn: Rc<Permit>) -> DecodedImage {
        self.decoded.set(self.decoded.get() + 1);
        match self.decodes_for_ever.get() {
            true => {
                self.turns.borrow_mut().push(turn);
                Box::pin(std::future::pending())
            }
            false => SystemHost.decode_image(file, header, turn),
        }
    }
    fn warn(&self, message: &str) {
        self.warnings.borrow_mut().push(message.to_owned());
    }
}

/// The bytes of an event, and the position after it.
pub type Positioned = (Vec<u8>, Option<String>);

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
        pages: vec![[0; PAGE_TOKENS]; PAGES],
    };
    let limits = EngineLimits {
        max_queue: switches.max_queue,
        ..EngineLimits::default()
    };
    let (engine, handle) = Engine::new(model, limits, Rc::new(SystemHost));
    let host = Rc::new(TestHost::default());
    let server = Server {
        handler: Handler::new(switches, host.clone()),
        plan,
        engine: handle,
        tokenizer: Rc::new(Tokenizer::from_gguf(&metadata(AROUND, Some(TEMPLATE))).unwrap()),
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
        self.ready_with(self.tokenizer.clone())
    }

    /// A model that cannot fill in the middle.
    pub fn ready_without_middle(&self) -> ModelState {
        let metadata = metadata(["<A>", "<B>", "<C>"], None);
        self.ready_with(Rc::new(Tokenizer::from_gguf(&metadata).unwrap()))
    }

    /// Has the model's files recommend these values.
    pub fn recommend(&self, defaults: SamplingDefaults) {
        let ModelState::Ready(mut ready) = self.ready() else {
            panic!("it is ready");
        };
        ready.sampling_defaults = defaults;
        self.handler.set_model(MODEL_ID, ModelState::Ready(ready));
    }

    /// Gives the model this chat template, or none.
    pub fn set_template(&self, template: Option<&str>) {
        self.set_template_with(template, AROUND);
    }

    /// Gives the model this chat template, and other texts to the control tokens of [`AROUND`].
    pub fn set_template_with(&self, template: Option<&str>, control: [&str; 3]) {
        let metadata = metadata(control, template);
        let tokenizer = Rc::new(Tokenizer::from_gguf(&metadata).unwrap());
        self.handler.set_model(MODEL_ID, self.ready_with(tokenizer));
    }

    /// Makes it a model that takes images, of `rows` tokens each, with this chat template.
    pub fn see(&self, rows: usize, template: &str) {
        let control = ["<image>", "<fake_token_around_image>", "<global-img>"];
        let format = ImageFormat {
            markup: &TILE_MARKUP,
            filter: Filter::Lanczos,
            geometry: ImageGeometry::Tiles {
                size: 8,
                longest_edge: 8,
                rows,
            },
        };
        self.see_as(format, control, template);
    }

    /// Makes it a model that takes images in this format, which has some of the control tokens.
    pub fn see_as(&self, format: ImageFormat, control: [&str; 3], template: &str) {
        let metadata = metadata(control, Some(template));
        let tokenizer = Rc::new(Tokenizer::from_gguf(&metadata).unwrap());
        let images = ImageReader::new(format, &tokenizer).unwrap();
        let ModelState::Ready(mut ready) = self.ready_with(tokenizer) else {
            panic!("it is ready");
        };
        ready.images = Some(images);
        self.handler.set_model(MODEL_ID, ModelState::Ready(ready));
    }

    fn ready_with(&self, tokenizer: Rc<Tokenizer>) -> ModelState {
        ModelState::Ready(ReadyModel {
            images: None,
            engine: self.engine.clone(),
            fingerprint: Fingerprint::of(&["test"]),
            sampling_defaults: SamplingDefaults {
                temperature: Some(0.0),
                ..SamplingDefaults::default()
            },
            output_form: OutputForm::of(&tokenizer),
            tools: ToolPrompts::of(&tokenizer, None),
            tokenizer,
            vocabulary: VocabularyTables::default(),
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

    /// The first events of a streamed answer, at most `most`, each with the position after it.
    pub async fn events(&self, request: Request, most: usize) -> Vec<Positioned> {
        let response = self.handler.handle(request).await;
        assert_eq!(response.status, 200);
        let Body::Stream(mut stream) = response.body else {
            panic!("not a stream");
        };
        let mut events = Vec::new();
        while events.len() < most
            && let Some(event) = stream.next().await
        {
            events.push((event, response.progress.position()));
        }
        events
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

    /// Like `complete`, but the status must be 200. Returns the object.
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

    /// The parsed chunks of a streamed response, whose form is checked.
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
        ..
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

    /// Status, code and param of an error, whose form is checked (rule E of docs/conformance.md).
    #[track_caller]
    pub fn error(&self) -> (u16, String, Option<String>) {
        assert!(self.status >= 400, "{}", self.text());
        assert!(self.header("x-request-id").unwrap().starts_with("req_"));
        let (code, param) = error_of(&self.json());
        (self.status, code, param)
    }

    /// The events of a stream: `data: ` and one line each, the last one `[DONE]`. Comments are skipped.
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
        ..Request::default()
    }
}

/// A well-formed POST with this body.
pub fn completion(body: &str) -> Request {
    let headers = [("Content-Type", "application/json")];
    request("POST", "/v1/completions", &headers, body)
}

/// A well-formed POST of this body to the chat route.
pub fn chat(body: &str) -> Request {
    Request {
        url: "/v1/chat/completions".into(),
        ..completion(body)
    }
}

/// A well-formed POST of this body to the responses route.
pub fn responses(body: &str) -> Request {
    Request {
        url: "/v1/responses".into(),
        ..completion(body)
    }
}

/// A well-formed POST of this body to the route of Anthropic's messages.
pub fn messages(body: &str) -> Request {
    Request {
        url: "/v1/messages".into(),
        ..completion(body)
    }
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

/// The choices of a stream's chunks, merged by index, in the form of a whole response. Checks that each
/// chunk has one choice, that no chunk is empty, and that nothing follows the end of a choice.
#[track_caller]
pub fn joined_choices(chunks: &[Value]) -> Vec<Value> {
    let mut choices: BTreeMap<u64, Value> = BTreeMap::new();
    for chunk in chunks {
        let [choice] = &chunk["choices"].as_array().unwrap()[..] else {
            assert_eq!(chunk["choices"], json!([]));
            continue;
        };
        let listed = ["tokens", "content"].map(|list| choice["logprobs"][list].as_array());
        let entries = listed.into_iter().flatten().map(Vec::len).sum::<usize>();
        let ends = !choice["finish_reason"].is_null();
        assert!(choice["text"] != "" || entries > 0 || ends, "{chunk}");
        assert_eq!(ends, choice.get("stop_reason").is_some());
        let index = choice["index"].as_u64().unwrap();
        let Some(whole) = choices.get_mut(&index) else {
            choices.insert(index, choice.clone());
            continue;
        };
        assert!(whole["finish_reason"].is_null(), "{chunk} after the end");
        let text = [&whole["text"], &choice["text"]].map(|text| text.as_str().unwrap());
        whole["text"] = json!(text.concat());
        if let Some(arrays) = choice["logprobs"].as_object() {
            for (name, array) in arrays {
                extend(&mut whole["logprobs"][name], array);
            }
        }
        for key in ["prompt_token_ids", "prompt_logprobs"] {
            assert!(
                choice.get(key).is_none(),
                "{key} is in the first chunk: {chunk}"
            );
        }
        if let Some(ids) = choice.get("token_ids") {
            extend(&mut whole["token_ids"], ids);
        }
        for key in ["finish_reason", "stop_reason", "tool_calls", "raw_output"] {
            if let Some(value) = choice.get(key) {
                whole[key] = value.clone();
            }
        }
    }
    choices.into_values().collect()
}

fn extend(array: &mut Value, more: &Value) {
    let more = more.as_array().unwrap().iter().cloned();
    array.as_array_mut().unwrap().extend(more);
}

/// The choices of a whole response.
pub fn choices(object: &Value) -> &[Value] {
    object["choices"].as_array().unwrap()
}

/// The texts of all choices.
pub fn texts(object: &Value) -> Vec<&str> {
    choices(object)
        .iter()
        .map(|choice| choice["text"].as_str().unwrap())
        .collect()
}

/// The numbers under `token_logprobs` of a choice; null is NaN.
pub fn logprobs_of(choice: &Value) -> Vec<f64> {
    let logprobs = choice["logprobs"]["token_logprobs"].as_array().unwrap();
    logprobs
        .iter()
        .map(|logprob| logprob.as_f64().unwrap_or(f64::NAN))
        .collect()
}

/// The joined text of a stream's chunks.
pub fn joined(chunks: &[Value]) -> String {
    let choices = chunks.iter().filter(|chunk| chunk["choices"] != json!([]));
    choices.map(text_of).collect()
}
