//! A model whose kernels an earlier load validated: what it does not record at its start it records when it is needed,
//! and computes the same.

use std::path::Path;

use inpage::{model::LoadOptions, runtime::Tuning, weights::FileSource};
use inpage::{model::Transformer, runtime::start, weights::Gguf};
use pollster::block_on;

use crate::fixture::{Compute, Feed, computes, sequence};

fn started(compute: &Compute, tuning: Tuning) -> Transformer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models/llama.gguf");
    let source = FileSource::open(file).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions::default();
    let started = start(&compute.device, tuning, &gguf, &source, options, |_, _| ());
    block_on(started).unwrap().0
}

/// The bits of logits after a single token, after a few, and after many.
fn answers(model: &mut Transformer) -> Vec<Vec<u32>> {
    let prompts = [1, 7, 40, 100].map(|len| (1..=len).collect::<Vec<u32>>());
    let answers = prompts.map(|prompt| {
        let mut memory = sequence(model);
        let logits = block_on(model.feed(&mut memory, &prompt)).unwrap();
        logits.iter().map(|logit| logit.to_bits()).collect()
    });
    answers.to_vec()
}

#[test]
fn kept_kernels_answer_alike() {
    for (device, compute) in computes() {
        let mut first = started(&compute, Tuning::Fixed(compute.variant));
        block_on(first.warm_up()).unwrap();
        let mut second = started(&compute, Tuning::Kept(first.variant()));
        block_on(second.warm_up_kept(first.sampler_verdict())).unwrap();
        second.compile_rest();
        assert_eq!(second.variant(), first.variant(), "{device}");
        assert_eq!(
            second.sampler_verdict(),
            first.sampler_verdict(),
            "{device}"
        );
        assert_eq!(answers(&mut second), answers(&mut first), "{device}");
    }
}
