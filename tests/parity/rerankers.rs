//! Models that score a query beside a document: against the tokens and the outputs that `scripts/references/rerankers.py`
//! computes, on all devices, alone and together, as files and as folders.

use std::path::{Path, PathBuf};

use inpage::engine::embed::{EmbeddingInput, EmbeddingModel};
use pollster::block_on;

use crate::embeddings::start;
use crate::fixture::{Compute, all_computes, floats, ids, json};

const MODELS: [&str; 6] = [
    "bert",
    "bert-no-hidden",
    "bert-hf",
    "xlm-roberta",
    "xlm-roberta-rank-hf",
    "qwen3",
];

/// The largest difference of an output. Outputs differ by 0.1 and more.
const TOLERANCE: f32 = 0.002;

struct Reference {
    query: String,
    document: String,
    input: EmbeddingInput,
    outputs: Vec<f32>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/rerankers")
}

fn references(name: &str) -> Vec<Reference> {
    let file = json(&folder().join(format!("{name}.json")));
    let pairs = file["pairs"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let pairs = pairs.map(|pair| Reference {
        query: text(&pair["query"]),
        document: text(&pair["document"]),
        input: EmbeddingInput {
            ids: ids(&pair["ids"]),
            first_tokens: pair["first_tokens"].as_u64().unwrap() as usize,
        },
        outputs: floats(&pair["outputs"]),
    });
    let pairs: Vec<Reference> = pairs.collect();
    assert!(pairs.len() > 3);
    pairs
}

#[test]
fn outputs_are_those_of_the_references() {
    for (device, compute) in all_computes() {
        for name in MODELS {
            let (mut model, _) = start(&compute, &folder(), name);
            let pairs = references(name);
            let all: Vec<&EmbeddingInput> = pairs.iter().map(|pair| &pair.input).collect();
            let together = block_on(model.embed(&all)).unwrap();
            let mut largest = 0.0_f32;
            for (pair, outputs) in pairs.iter().zip(&together) {
                let alone = block_on(model.embed(&[&pair.input])).unwrap();
                assert_eq!(alone[0], *outputs, "{name} on {device}");
                assert_eq!(outputs.len(), pair.outputs.len(), "{name} on {device}");
                for (found, wanted) in outputs.iter().zip(&pair.outputs) {
                    largest = largest.max((found - wanted).abs());
                }
            }
            println!("{name} on {device}: {largest:.6}");
            assert!(largest < TOLERANCE, "{name} on {device}: {largest}");
        }
    }
}

#[test]
fn types_of_tokens_change_the_outputs() {
    let (mut model, _) = start(&Compute::reference(), &folder(), "bert");
    let mut largest = 0.0_f32;
    for pair in references("bert") {
        let of_one_type = EmbeddingInput::from(pair.input.ids.clone());
        let outputs = block_on(model.embed(&[&pair.input, &of_one_type])).unwrap();
        largest = largest.max((outputs[0][0] - outputs[1][0]).abs());
    }
    assert!(largest > 5.0 * TOLERANCE, "{largest}");
}

#[test]
fn texts_become_the_tokens_of_the_references() {
    for name in MODELS {
        let (_, tokenizer) = start(&Compute::reference(), &folder(), name);
        for reference in references(name) {
            let pause = || -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
                Box::pin(std::future::ready(()))
            };
            let documents = [reference.document.clone()];
            let pairs = block_on(tokenizer.pairs(&reference.query, &documents, &pause)).unwrap();
            let pair = block_on(pairs.encode(&reference.document, &pause)).unwrap();
            let what = format!("{name}: {:?}, {:?}", reference.query, reference.document);
            assert_eq!(pair.ids, reference.input.ids, "{what}");
            assert_eq!(pair.first_tokens, reference.input.first_tokens, "{what}");
            let document = tokenizer.decode(&pair.ids[pair.document.clone()], false);
            let is_same = name.starts_with("bert") || document.trim() == reference.document.trim();
            assert!(is_same, "{what}: {document:?}");
        }
    }
}
