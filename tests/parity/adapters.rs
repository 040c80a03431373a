//! Low-rank adapters of the tiny models, against the logits that transformers and peft compute with them
//! (`scripts/references/adapters.py`). Also sets, replaces and removes adapters.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    rc::Rc,
};

use inpage::{
    Error, Result,
    model::{Adapter, Checkpoint, LoadOptions, Quantize, Transformer},
    ops::{kv_memory::KvFormat, launches},
    tensor_types::TensorType,
    weights::{ByteSource, FileSource, GgufWriter, LocalFiles, Metadata, ModelFiles},
};
use pollster::block_on;

use crate::{
    arithmetic::{MAX_DIVERGENCE, divergence},
    fixture::{Compute, Feed, computes, floats, ids, json, load, sequence},
    references::{assert_greedy, assert_parity},
};

fn folder(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    tests.join(name)
}

/// A model with the values of its files and with keys and values in f32.
fn model(compute: &Compute, name: &str) -> Transformer {
    let file = folder("models").join(format!("{name}.gguf"));
    let path = match file.exists() {
        true => file,
        false => folder("models").join(name),
    };
    let options = LoadOptions {
        context_tokens: Some(128),
        kv_format: KvFormat::F32,
        quantize: Quantize::None,
        ..LoadOptions::default()
    };
    let files = LocalFiles::at(path).unwrap();
    let Checkpoint { gguf, source } = block_on(Checkpoint::open(&files, &options)).unwrap();
    let model = load(compute.clone(), &gguf, &source, options, |_, _| ());
    block_on(model).expect("a model that runs")
}

fn adapter(name: &str) -> Adapter<FileSource> {
    let files = LocalFiles::at(folder("adapters").join(name)).unwrap();
    block_on(Adapter::open(&files)).expect("an adapter")
}

fn set(model: &mut Transformer, adapters: &[(&Adapter<FileSource>, f32)]) {
    block_on(model.set_adapters(adapters)).expect("adapters that fit");
}

/// Logits after the last of `tokens`, fed `at_a_time` tokens at a time.
pub fn last_logits(model: &mut Transformer, tokens: &[u32], at_a_time: usize) -> Vec<f32> {
    let mut kv = sequence(model);
    let mut row = Vec::new();
    for chunk in tokens.chunks(at_a_time) {
        row = block_on(model.feed(&mut kv, chunk)).unwrap();
    }
    row
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// Names of adapters, and the tolerances of their models (`architectures.rs`).
const ADAPTERS: [(&str, f32); 8] = [
    ("llama", 0.02),
    ("llama-patterns", 0.02),
    ("phi3", 0.02),
    ("gemma2", 0.05),
    ("olmo2", 0.02),
    ("gpt2", 0.05),
    ("olmoe", 0.02),
    ("mistral-hf", 0.02),
];

/// The reference of an adapter.
struct Reference {
    model: String,
    prompt: Vec<u32>,
    last: Vec<f32>,
    greedy: Vec<u32>,
}

fn reference(name: &str) -> Reference {
    let json = json(&folder("adapters").join(format!("{name}.json")));
    Reference {
        model: json["model"].as_str().unwrap().into(),
        prompt: ids(&json["ids"]),
        last: floats(&json["last_logits"]),
        greedy: ids(&json["greedy_next"]),
    }
}

/// Both file formats, with whole prompts, chunks and single tokens.
#[test]
fn adapters_meet_their_references() {
    for (name, tolerance) in ADAPTERS {
        let wanted = reference(name);
        let (prompt, last) = (&wanted.prompt, &wanted.last);
        let mut model = model(&Compute::reference(), &wanted.model);
        let base = last_logits(&mut model, prompt, prompt.len());
        let moved = base.iter().zip(last).map(|(a, b)| (a - b).abs());
        assert!(moved.fold(0.0, f32::max) > 2.0, "{name} does nothing");
        for form in [format!("{name}.gguf"), name.to_owned()] {
            set(&mut model, &[(&adapter(&form), 1.0)]);
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, prompt)).unwrap();
            assert_parity(&form, &all[all.len() - last.len()..], last, tolerance);
            assert_greedy(&form, &all, &wanted.greedy, tolerance);
            for tokens in [7, 1] {
                let row = last_logits(&mut model, prompt, tokens);
                let what = format!("{form}, {tokens} at a time");
                assert_parity(&what, &row, last, tolerance);
            }
        }
    }
}

/// On the CPU, whose products are of bytes: near the reference distribution.
#[test]
fn adapters_stay_near_their_references_on_the_cpu() {
    for (name, _) in ADAPTERS {
        let wanted = reference(name);
        let mut model = model(&Compute::cpu(), &wanted.model);
        set(&mut model, &[(&adapter(&format!("{name}.gguf")), 1.0)]);
        for tokens in [wanted.prompt.len(), 1] {
            let row = last_logits(&mut model, &wanted.prompt, tokens);
            let divergence = divergence(&wanted.last, &row);
            assert!(divergence <= MAX_DIVERGENCE, "{name}: {divergence}");
        }
    }
}

/// One of each way that products are put together; a prompt and a token. Pipelines take time.
#[test]
fn adapters_meet_their_references_on_the_gpu() {
    let computes = computes();
    for (name, tolerance) in ADAPTERS {
        if ["llama", "olmoe", "mistral-hf"].contains(&name) {
            continue;
        }
        let wanted = reference(name);
        let mut model = model(&computes[1].1, &wanted.model);
        set(&mut model, &[(&adapter(&format!("{name}.gguf")), 1.0)]);
        let row = last_logits(&mut model, &wanted.prompt, wanted.prompt.len() - 1);
        assert_parity(name, &row, &wanted.last, tolerance);
    }
}

/// The outputs of a model: the bits of logits after all kinds of steps, and greedy ids.
fn seen(model: &mut Transformer, prompt: &[u32]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let logits = [40, 5, 1].map(|tokens| bits(&last_logits(model, &prompt[..40], tokens)));
    let mut kv = sequence(model);
    let greedy = block_on(model.feed_greedy(&mut kv, &prompt[..40], 6)).unwrap();
    (logits.to_vec(), greedy)
}

#[test]
fn adapters_are_set_replaced_and_removed() {
    let Reference { prompt, last, .. } = reference("llama-two");
    let [scale_a, scale_b] = [0.75, -0.5];
    let (a, b) = (adapter("llama"), adapter("llama-patterns"));
    for (device, compute) in computes() {
        let mut model = model(&compute, "llama");
        block_on(model.warm_up()).unwrap();
        let dispatches = model.decode_dispatches();
        let base = seen(&mut model, &prompt);
        let before = launches();
        set(&mut model, &[]);
        assert_eq!(launches(), before, "{device}: recorded again without need");

        set(&mut model, &[(&a, 1.0)]);
        let layers = model.config().layers.len();
        // Two dispatches for each of a layer's four products.
        let more = if dispatches == 0 { 0 } else { 8 * layers };
        assert_eq!(model.decode_dispatches(), dispatches + more, "{device}");
        let with_a = seen(&mut model, &prompt);
        assert!(with_a.0.iter().zip(&base.0).all(|(a, b)| a != b));
        assert_ne!(with_a.1, base.1);

        set(&mut model, &[(&a, scale_a), (&b, scale_b)]);
        for tokens in [prompt.len(), 7, 1] {
            let row = last_logits(&mut model, &prompt, tokens);
            let what = format!("two adapters on the {device}, {tokens} at a time");
            assert_parity(&what, &row, &last, 0.02);
        }

        set(&mut model, &[(&a, 1.0)]);
        assert_eq!(seen(&mut model, &prompt), with_a, "{device}");
        for none in [&[(&a, 0.0)][..], &[]] {
            set(&mut model, &[(&a, 1.0)]);
            set(&mut model, none);
            assert_eq!(model.decode_dispatches(), dispatches, "{device}");
            assert_eq!(seen(&mut model, &prompt), base, "{device}");
        }
    }
}

/// A GGUF file in memory that can be broken, after which it cannot be read.
#[derive(Clone)]
pub struct Breaking {
    bytes: Vec<u8>,
    is_broken: Rc<Cell<bool>>,
}

impl ByteSource for Breaking {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        if self.is_broken.get() {
            return Err(Error::Read("the connection broke".into()));
        }
        buf.copy_from_slice(&self.bytes[offset_bytes as usize..][..buf.len()]);
        Ok(())
    }
}

impl ModelFiles for Breaking {
    type Source = Breaking;

    fn gguf_name(&self) -> Option<String> {
        Some("made.gguf".into())
    }

    async fn open(&self, _name: &str) -> Result<Option<Breaking>> {
        Ok(Some(self.clone()))
    }
}

/// An adapter of one tensor, from `cols` to `rows`, whose values cannot be read.
pub fn made(architecture: &str, tensor: &str, cols: u64, rows: u64) -> Adapter<Breaking> {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", architecture);
    metadata.insert("general.type", "adapter");
    metadata.insert("adapter.type", "lora");
    let mut writer = GgufWriter::new(metadata).unwrap();
    let (a, b) = (format!("{tensor}.lora_a"), format!("{tensor}.lora_b"));
    writer.tensor(a, &[cols, 2], TensorType::F32).unwrap();
    writer.tensor(b, &[2, rows], TensorType::F32).unwrap();
    let mut data = writer.start(Vec::new()).unwrap();
    data.write(&vec![0; 8 * cols as usize]).unwrap();
    data.write(&vec![0; 8 * rows as usize]).unwrap();
    let file = Breaking {
        bytes: data.finish().unwrap(),
        is_broken: Rc::default(),
    };
    let adapter = block_on(Adapter::open(&file)).expect("an adapter");
    file.is_broken.set(true);
    adapter
}

#[test]
fn adapters_that_do_not_fit_leave_the_model_unchanged() {
    let prompt: Vec<u32> = (20..60).collect();
    let good = adapter("olmoe.gguf");
    let mut model = model(&Compute::reference(), "olmoe-Q8_0");
    set(&mut model, &[(&good, 1.0)]);
    let before = seen(&mut model, &prompt);
    for (architecture, tensor, cols, rows, part) in [
        ("llama", "blk.0.attn_q", 64, 64, "of llama"),
        ("olmoe", "blk.0.ffn_gate_exps", 64, 32, "ffn_gate_exps"),
        ("olmoe", "blk.0.ffn_gate_inp", 64, 8, "ffn_gate_inp"),
        ("olmoe", "blk.0.attn_norm", 64, 64, "attn_norm"),
        ("olmoe", "token_embd", 64, 320, "token_embd"),
        ("olmoe", "blk.2.attn_q", 64, 64, "blk.2"),
        ("olmoe", "blk.0.attn_qkv", 64, 128, "attn_qkv"),
        ("olmoe", "blk.0.attn_q", 64, 32, "64 to 32"),
        ("olmoe", "blk.0.attn_k", 32, 32, "32 to 32"),
        // It fits, but cannot be read.
        ("olmoe", "blk.0.attn_q", 64, 64, "broke"),
    ] {
        let bad = made(architecture, &format!("{tensor}.weight"), cols, rows);
        let error = block_on(model.set_adapters(&[(&bad, 1.0)])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(part), "{text}");
        assert!(text.contains("made.gguf") || part == "broke", "{text}");
    }
    let phi3 = adapter("phi3");
    let error = block_on(model.set_adapters(&[(&good, 1.0), (&phi3, 1.0)])).unwrap_err();
    assert!(error.to_string().contains("mlp.down_proj"), "{error}");
    assert_eq!(seen(&mut model, &prompt), before);
}
