//! A folder that is quantized during the load, in each type: bounds of the change of perplexity.

use inpage::{
    model::{Checkpoint, LoadOptions, Quantize},
    weights::LocalFiles,
};
use pollster::block_on;

use crate::{
    fixture::{computes, load, perplexity, stories, windows},
    shared_models,
};

/// The largest change of perplexity of each type relative to the folder's own f16, on every fortieth window of the
/// 60 stories.
const TYPES: [(&str, f64); 6] = [
    ("q6_k", 0.01),
    ("q5_k", 0.02),
    ("q5_1", 0.02),
    ("q5_0", 0.02),
    ("q4_k", 0.04),
    ("q4_1", 0.04),
];

#[test]
fn perplexity_stays_near_that_of_f16() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let tokens = stories(&folder, &folder.join("ts4m/ts4m-F16.gguf"));
    let (_, gpu) = computes().remove(1);
    let perplexity_as = |quantize: &str| {
        let options = LoadOptions {
            context_tokens: Some(256),
            quantize: Quantize::from_name(quantize).expect("a type"),
            ..LoadOptions::default()
        };
        let files = LocalFiles::at(folder.join("ts4m-hf")).unwrap();
        let Checkpoint { gguf, source } = block_on(Checkpoint::open(&files, &options)).unwrap();
        let model = load(gpu.clone(), &gguf, &source, options, |_, _| ());
        let mut model = block_on(model).expect("a model that runs");
        perplexity(&mut model, windows(&tokens).step_by(40))
    };
    let exact = perplexity_as("none");
    for (quantize, bound) in TYPES {
        let change = perplexity_as(quantize) / exact - 1.0;
        println!("{quantize}: {exact:.3}, change {change:.5}");
        assert!(change.abs() < bound, "{quantize}: {change}");
    }
}
