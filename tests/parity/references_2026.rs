//! The tiny random files of `2026` in the shared models (architectures of that year) against their references:
//! logits in every way of feeding, greedy tokens, the CPU device, and the tokenizer.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use inpage::{
    engine::{CausalModel, SequenceMemory},
    model::{LoadOptions, Transformer, check_budget, inspect},
    ops::kv_memory::KvFormat,
    text::Tokenizer,
    weights::{FileSource, Gguf},
};
use pollster::block_on;
use serde_json::Value;

use crate::{
    arithmetic::{MAX_DIVERGENCE, divergence},
    cpu_device::assert_near,
    fixture::{Compute, Feed, computes, ids, json, model_with, npy, sequence},
    recurrent::{GRANITE, LFM2, QWEN35},
    references::{assert_greedy, assert_last_logits, assert_parity},
    shared_models,
};

/// A file and its reference.
struct Reference {
    file: PathBuf,
    prompt: Vec<u32>,
    /// The facts about the file that the reference states.
    quant: Value,
    last_logits: Vec<f32>,
    tolerance: f32,
}

impl Reference {
    /// `part` is the part of the references that has other results for the same file; usually empty.
    fn read(folder: &Path, name: &str, ty: &str, part: &str) -> Reference {
        let all = json(&folder.join(format!("refs/{name}.json")));
        let of_file = &all["quants"][ty];
        let (quant, infix) = match part {
            "" => (of_file, String::new()),
            part => (&of_file[part], format!(".{part}")),
        };
        let logits = folder.join(format!("refs/{name}-{ty}{infix}.last_logits.npy"));
        Reference {
            file: folder.join(format!("{name}-{ty}.gguf")),
            prompt: ids(&all["ids"]),
            quant: quant.clone(),
            last_logits: npy(&logits),
            tolerance: match ty {
                "F32" | "F16" | "Q8_0" => 0.02,
                _ => 0.05,
            },
        }
    }

    /// The greedy tokens up to the first one that an error within the tolerance could change.
    fn certain(&self) -> Vec<u32> {
        let margins = self.quant["greedy_margins"].as_array().unwrap().iter();
        let tolerance = f64::from(self.tolerance);
        let certain = margins.take_while(|margin| margin.as_f64().unwrap() > tolerance);
        let mut tokens = ids(&self.quant["greedy"]);
        tokens.truncate(certain.count());
        tokens
    }

    fn check(&self, what: &str, model: &mut Transformer) {
        let (prompt, tolerance) = (&self.prompt[..], self.tolerance);
        assert_last_logits(what, model, prompt, &self.last_logits, tolerance);
        let mut kv = sequence(model);
        let all = block_on(model.feed_all(&mut kv, prompt)).unwrap();
        assert_greedy(what, &all, &ids(&self.quant["greedy_next"]), tolerance);
        let certain = self.certain();
        let mut kv = sequence(model);
        let greedy = block_on(model.feed_greedy(&mut kv, prompt, certain.len().max(1))).unwrap();
        assert_eq!(greedy[..certain.len()], certain, "{what}: greedy tokens");
        // A roll-back to within the prompt.
        let (begin, end) = prompt.split_at(prompt.len() - 9);
        kv.len_tokens = begin.len();
        self.ends_alike(&format!("{what}, rolled back"), model, kv, end);
        // The first pages of the other sequence are shared: a prefix hit.
        let page_tokens = model.limits().page_tokens;
        let hit = (prompt.len() - 1) / page_tokens;
        let mut kv = sequence(model);
        let fresh = kv.pages.split_off(kv.pages.len() / 2);
        block_on(model.feed(&mut kv, &prompt[..hit * page_tokens])).unwrap();
        let pages = [&kv.pages[..hit], &fresh].concat();
        let mut kv = SequenceMemory::new(pages);
        kv.len_tokens = hit * page_tokens;
        let rest = &prompt[kv.len_tokens..];
        self.ends_alike(&format!("{what}, after a prefix hit"), model, kv, rest);
        self.check_batch(what, model);
    }

    /// Feeds the end of the prompt: its logits, and the greedy tokens after it.
    fn ends_alike(&self, what: &str, model: &mut Transformer, mut kv: SequenceMemory, end: &[u32]) {
        let begin = kv.len_tokens;
        let row = block_on(model.feed(&mut kv, end)).unwrap();
        assert_parity(what, &row, &self.last_logits, self.tolerance);
        kv.len_tokens = begin;
        let certain = self.certain();
        let greedy = block_on(model.feed_greedy(&mut kv, end, certain.len().max(1))).unwrap();
        assert_eq!(greedy[..certain.len()], certain, "{what}: greedy tokens");
    }

    /// The end of the prompt in a batch of four sequences, which began in different ways.
    fn check_batch(&self, what: &str, model: &mut Transformer) {
        let pages = model.limits().page_count as u32;
        let tables = (0..4).map(|i| (i..pages).step_by(4).collect());
        let mut kvs: Vec<SequenceMemory> = tables.map(SequenceMemory::new).collect();
        let (begin, end) = self.prompt.split_at(self.prompt.len() - 3);
        for (kv, tokens) in kvs.iter_mut().zip([begin.len(), 64, 7, 50]) {
            for chunk in begin.chunks(tokens) {
                block_on(model.feed(kv, chunk)).unwrap();
            }
        }
        let mut logits = Vec::new();
        for token in end {
            let mut rows: Vec<_> = kvs.iter_mut().map(|kv| (kv, *token)).collect();
            logits = block_on(model.feed_batch(&mut rows)).unwrap();
        }
        for (i, row) in logits.iter().enumerate() {
            let what = format!("{what}, row {i} of a batch");
            assert_parity(&what, row, &self.last_logits, self.tolerance);
        }
    }
}

impl Reference {
    /// Products of bytes on the CPU device decide between experts of about the same score. Where the random router of a file
    /// has many of them, single positions are far off and others are not: half of them are near the reference device.
    fn assert_usually_near(&self, what: &str) {
        let [exact, found] = [Compute::reference(), Compute::cpu()].map(|compute| {
            let mut model = model_with(&compute, &self.file, KvFormat::F32);
            let mut kv = sequence(&model);
            block_on(model.feed_all(&mut kv, &self.prompt)).unwrap()
        });
        let vocab = self.last_logits.len();
        let rows = exact.chunks_exact(vocab).zip(found.chunks_exact(vocab));
        let mut divergences: Vec<f64> = rows.map(|(a, b)| divergence(a, b)).collect();
        divergences.sort_by(f64::total_cmp);
        let median = divergences[divergences.len() / 2];
        assert!(median <= MAX_DIVERGENCE, "{what}: divergence {median}");
    }
}

/// The files that the tests here check, by name and type.
const FILES: [(&str, &str); 15] = [
    ("bonsai1", "Q1_0"),
    ("bonsai2", "Q2_0"),
    ("ternary", "TQ1_0"),
    ("ternary", "TQ2_0"),
    ("ernie4_5", "Q8_0"),
    ("exaone4", "Q8_0"),
    ("glm4", "Q8_0"),
    ("hunyuan", "Q8_0"),
    ("gpt-oss-f16", "F16"),
    ("gpt-oss", "MXFP4"),
    ("gemma4-dense", "Q8_0"),
    ("gemma4", "F16"),
    ("gemma4", "Q4_0"),
    ("gemma4-k", "Q4_K_M"),
    ("gemma4-moe", "Q8_0"),
];

/// Every file of the folder has a test: those of `recurrent`, or of `FILES`, which the tests here take one by one.
#[test]
fn every_file_is_checked() {
    let Some(folder) = shared_models::folder().map(|folder| folder.join("2026")) else {
        return;
    };
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
        return;
    }
    let recurrent = [LFM2, QWEN35, GRANITE].concat().into_iter();
    let known = recurrent.map(|(name, ty, _)| (name, ty)).chain(FILES);
    let known: BTreeSet<String> = known
        .map(|(name, ty)| format!("{name}-{ty}.gguf"))
        .collect();
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> = names.filter(|name| name.ends_with(".gguf")).collect();
    assert_eq!(found, known);
}

/// Checks a file on every device.
fn meets_its_reference(name: &str, ty: &str, part: &str) {
    assert!(FILES.contains(&(name, ty)), "{name} {ty} is not listed");
    let Some(folder) = shared_models::folder().map(|folder| folder.join("2026")) else {
        return;
    };
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
        return;
    }
    let reference = Reference::read(&folder, name, ty, part);
    for (device, compute) in computes() {
        let mut model = model_with(&compute, &reference.file, KvFormat::F32);
        reference.check(&format!("{name} {ty} on the {device}"), &mut model);
    }
    let what = format!("{name} {ty}");
    let (prompt, logits) = (&reference.prompt, &reference.last_logits);
    match name {
        "gemma4-moe" => reference.assert_usually_near(&what),
        _ => assert_near(&what, &reference.file, prompt, logits),
    }
    // The other file's tokens were made with another splitter than the one that it names.
    if name != "exaone4" {
        let gguf = block_on(Gguf::read(&FileSource::open(&reference.file).unwrap())).unwrap();
        let tokenizer = Tokenizer::from_gguf(&gguf.metadata).unwrap();
        let all = json(&folder.join(format!("refs/{name}.json")));
        let text = all["prompt"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text, true).unwrap(), *prompt, "{what}");
    }
}

#[test]
fn bonsai_in_one_bit_meets_its_reference() {
    meets_its_reference("bonsai1", "Q1_0", "");
}

#[test]
fn bonsai_in_two_bits_meets_its_reference() {
    meets_its_reference("bonsai2", "Q2_0", "");
}

#[test]
fn a_ternary_model_meets_its_reference_in_both_types() {
    meets_its_reference("ternary", "TQ1_0", "");
    meets_its_reference("ternary", "TQ2_0", "");
}

#[test]
fn ernie_4_5_meets_its_reference() {
    meets_its_reference("ernie4_5", "Q8_0", "");
}

#[test]
fn exaone_4_meets_its_reference() {
    meets_its_reference("exaone4", "Q8_0", "");
}

#[test]
fn glm_4_meets_its_reference() {
    meets_its_reference("glm4", "Q8_0", "");
}

#[test]
fn hunyuan_meets_its_reference() {
    meets_its_reference("hunyuan", "Q8_0", "");
}

// llama.cpp rounds the ends of YaRN's ramp, and files of this architecture are made for it.
#[test]
fn gpt_oss_meets_its_reference() {
    meets_its_reference("gpt-oss-f16", "F16", "truncate");
}

#[test]
fn gpt_oss_in_mxfp4_meets_its_reference() {
    meets_its_reference("gpt-oss", "MXFP4", "truncate");
}

#[test]
fn dense_gemma_4_meets_its_reference() {
    meets_its_reference("gemma4-dense", "Q8_0", "");
}

#[test]
fn gemma_4_with_shared_keys_meets_its_reference() {
    meets_its_reference("gemma4", "F16", "");
}

#[test]
fn gemma_4_with_shared_keys_in_four_bits_meets_its_reference() {
    meets_its_reference("gemma4", "Q4_0", "");
}

#[test]
fn gemma_4_with_unused_keys_meets_its_reference() {
    meets_its_reference("gemma4-k", "Q4_K_M", "");
}

#[test]
fn gemma_4_with_experts_meets_its_reference() {
    meets_its_reference("gemma4-moe", "Q8_0", "");
}

/// If the CPU device is short of addresses, the table of per-layer embeddings takes some of them, as many as in the file.
#[test]
fn the_table_on_the_host_counts_where_memory_is_shared() {
    let Some(folder) = shared_models::folder().map(|folder| folder.join("2026")) else {
        return;
    };
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
        return;
    }
    let source = FileSource::open(folder.join("gemma4-Q4_0.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions::default();
    let need = inspect(&gguf, options).memory.unwrap().total_bytes;
    let table = gguf.tensor("per_layer_token_embd.weight").unwrap();
    let bytes = need + table.size_bytes;
    assert_eq!(check_budget(&gguf, options, Some(bytes)), Ok(()));
    let error = check_budget(&gguf, options, Some(bytes - 1)).unwrap_err();
    assert!(
        error.to_string().contains("the CPU device can address"),
        "{error}"
    );
}
