//! Models that make embeddings: against the vectors that `scripts/references/embeddings.py` computes, on all
//! devices, alone and together, as files and as folders.

use std::path::{Path, PathBuf};

use inpage::{
    engine::embed::{EmbeddingInput, EmbeddingModel},
    model::{LoadOptions, Quantize, Transformer},
    runtime::{Opened, open},
    text::Tokenizer,
    weights::LocalFiles,
};
use pollster::block_on;

use crate::fixture::{Compute, all_computes, floats, ids, json, load};

/// A name in `tests/parity/embeddings`, and the least cosine on the CPU device, whose products of quantized matrices are
/// of bytes.
const MODELS: [(&str, f64); 13] = [
    ("qwen3", 0.9999),
    ("qwen3-Q8_0", 0.999),
    ("bert", 0.9999),
    ("bert-f32", 0.9999),
    ("bert-cls-Q8_0", 0.999),
    ("bert-hf", 0.9999),
    ("bert-cls-hf", 0.9999),
    ("nomic-bert", 0.9999),
    ("nomic-bert-hf", 0.9999),
    ("gemma-embedding-Q8_0", 0.999),
    ("gemma-embedding-hf", 0.9999),
    ("eurobert", 0.9999),
    ("xlm-roberta-hf", 0.9999),
];

/// The least cosine where products are of floats.
const COSINE: f64 = 0.9999;

struct Input {
    text: Option<String>,
    tokens: EmbeddingInput,
    vector: Vec<f32>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/embeddings")
}

fn inputs(name: &str) -> Vec<Input> {
    let reference = json(&folder().join(format!("{name}.json")));
    let inputs = reference["inputs"].as_array().unwrap().iter();
    let inputs: Vec<Input> = inputs
        .map(|input| Input {
            text: input["text"].as_str().map(str::to_owned),
            tokens: ids(&input["ids"]).into(),
            vector: floats(&input["vector"]),
        })
        .collect();
    assert!(inputs.len() > 3);
    inputs
}

/// The model called `name` in `folder`, which is a file or a folder itself.
pub fn start(
    compute: &Compute,
    folder: &Path,
    name: &str,
) -> (Transformer, std::rc::Rc<Tokenizer>) {
    let path = match name.ends_with("-hf") {
        true => folder.join(name),
        false => folder.join(format!("{name}.gguf")),
    };
    let options = LoadOptions {
        quantize: Quantize::None,
        ..LoadOptions::default()
    };
    let files = LocalFiles::at(path).unwrap();
    let opened = block_on(open(
        &files,
        &[] as &[inpage::runtime::AdapterFiles<LocalFiles>],
        &options,
    ));
    let Opened {
        checkpoint,
        tokenizer,
        ..
    } = opened.unwrap();
    let (gguf, source) = (checkpoint.gguf, checkpoint.source);
    let model = load(compute.clone(), &gguf, &source, options, |_, _| ());
    (block_on(model).expect("a model that runs"), tokenizer)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn length(vector: &[f32]) -> f64 {
    vector
        .iter()
        .map(|x| f64::from(*x) * f64::from(*x))
        .sum::<f64>()
        .sqrt()
}

#[test]
fn vectors_are_those_of_the_references() {
    for (device, compute) in all_computes() {
        for (name, cosine_on_cpu) in MODELS {
            let least = match device {
                "CPU" => cosine_on_cpu,
                _ => COSINE,
            };
            let (mut model, _) = start(&compute, &folder(), name);
            let inputs = inputs(name);
            let all: Vec<&EmbeddingInput> = inputs.iter().map(|input| &input.tokens).collect();
            let together = block_on(model.embed(&all)).unwrap();
            let mut worst = 1.0_f64;
            for (input, vector) in inputs.iter().zip(&together) {
                let alone = block_on(model.embed(&[&input.tokens])).unwrap();
                // The other inputs of a call do not change a vector, to the last bit.
                assert_eq!(alone[0], *vector, "{name} on {device}");
                worst = worst.min(cosine(vector, &input.vector));
                let lengths = [length(vector), length(&input.vector)];
                let relative = (lengths[0] / lengths[1] - 1.0).abs();
                assert!(relative < 0.05, "{name} on {device}: lengths {lengths:?}");
            }
            println!("{name} on {device}: cosine {worst:.6}");
            assert!(worst >= least, "{name} on {device}: cosine {worst}");
            // Longer and shorter inputs do not disturb a later one.
            let again = block_on(model.embed(&all[..1])).unwrap();
            assert_eq!(again[0], together[0], "{name} on {device}");
        }
    }
}

#[test]
fn texts_become_the_ids_of_the_references() {
    for (name, _) in MODELS {
        let (_, tokenizer) = start(&Compute::reference(), &folder(), name);
        for input in inputs(name) {
            match &input.text {
                Some(text) => {
                    let ids = tokenizer.encode(text, true).unwrap();
                    assert_eq!(ids, input.tokens.ids, "{text:?}")
                }
                // The tokenizer of this file adds no token after a text, so its random ids end with none.
                None if name == "eurobert" => {}
                None => {
                    let ids = tokenizer.encode("the text", true).unwrap();
                    assert_eq!(ids.last(), input.tokens.ids.last(), "{name}");
                }
            }
        }
    }
}
