//! Trains the embedded model from scratch: generates its corpus, learns a vocabulary, trains a
//! small Llama with burn, measures it on held-out stories and writes it as a Q8_0 GGUF file.
//! See docs/training.md.

mod batches;
mod bpe;
mod corpus;
mod export;
mod learn;
mod model;
mod options;
mod sample;

use burn::module::Module;
use burn::tensor::Device;
use model::{Llama, Shape};
use options::Options;

/// Documents that the vocabulary is learned from.
const VOCABULARY_DOCUMENTS: usize = 20_000;

/// Batches of held-out documents for the final perplexities.
const MEASURED_BATCHES: usize = 20;

/// Beginnings of texts that show what was learned. None of the stories comes from the corpus.
const PROMPTS: &[&str] = &[
    "Once upon a time",
    "Lily found a red ball",
    "The little dog was",
    "One day, Tom and Mia went to the beach",
    "A brave little mouse",
    "There was a bear who",
    "It was a rainy day",
    "Ben wanted to",
    "\"Help me!\" cried the cat",
    "Question: What does a cow say?",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    std::fs::create_dir_all(&options.work)?;
    let device = if options.gpu {
        Device::default()
    } else {
        Device::flex()
    };
    let shape = Shape {
        vocab: options.vocab,
        dim: 256,
        ffn: options.ffn,
        layers: options.layers,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        rope_theta: 10_000.0,
        norm_eps: 1e-5,
    };
    let bpe = bpe::Bpe::train(options.vocab, VOCABULARY_DOCUMENTS, options.seed);
    let model = if options.export_only {
        let file = options.work.join("checkpoint.model.bpk");
        Llama::new(&shape, &device).try_load_file(file)?
    } else {
        learn::run(&options, &shape, &bpe, &device)?
    };
    let bytes = export::write(&options.out, &model, &shape, &bpe)?;
    println!("{}: {bytes} bytes", options.out.display());

    let perplexity =
        |model: &Llama| learn::held_out_loss(model, &shape, &bpe, MEASURED_BATCHES, &device).exp();
    println!("held-out perplexity {:.4}", perplexity(&model));
    let model = export::through_q8_0(model, &device);
    println!("held-out perplexity {:.4} as Q8_0", perplexity(&model));
    for text in sample::continue_texts(&model, &shape, &bpe, PROMPTS, [0.8, 150.0], &device) {
        println!("---\n{text}");
    }
    Ok(())
}
