//! The training loop: AdamW with warm-up and linear decay, checkpoints, and the loss curve.
//! Making the corpus and exporting the result are the responsibilities of `corpus` and `export`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::Device;

use super::batches::{self, Batch};
use super::bpe::Bpe;
use super::corpus::Part;
use super::corpus::random::Random;
use super::model::{Llama, Positions, Shape, cross_entropy};
use super::options::Options;

/// Steps between two checkpoints, and between two measurements of held-out loss.
const CHECKPOINT_STEPS: usize = 100;
const MEASURE_STEPS: usize = 500;
const WARM_UP_STEPS: usize = 150;

type Failure = Box<dyn std::error::Error>;

/// The learning rate of a step. In every stage it rises linearly, stays constant, and falls linearly
/// to zero over the last three tenths. `stages` are the steps at which stages end, in rising order.
/// A run that is resumed before the fall with another end of that stage equals a run that was started
/// with that end.
fn learning_rate(step: usize, options: &Options) -> f64 {
    let start = options
        .stages
        .iter()
        .copied()
        .filter(|&end| end <= step)
        .max()
        .unwrap_or(0);
    let end = options
        .stages
        .iter()
        .copied()
        .find(|&end| end > step)
        .unwrap_or(step + 1);
    let rise = (step - start + 1) as f64 / WARM_UP_STEPS as f64;
    let fall = (end - step) as f64 / (0.3 * (end - start) as f64);
    options.learning_rate * rise.min(fall).min(1.0)
}

/// Mean held-out negative log-likelihood in nats per token over `count` batches.
pub fn held_out_loss(model: &Llama, shape: &Shape, bpe: &Bpe, count: usize, gpu: &Device) -> f64 {
    let size = [8, 128];
    let positions = Positions::new(shape, size[1], gpu);
    // One fixed stream of held-out documents, whatever the training seed.
    let mut random = Random::new(0x4845_4c44);
    let mut sum = 0.0;
    for _ in 0..count {
        let Batch { ids, targets } = batches::draw(&mut random, bpe, Part::HeldOut, size, gpu);
        let loss = cross_entropy(model.forward(ids, shape, &positions), targets);
        sum += f64::from(loss.into_scalar::<f32>());
    }
    sum / count as f64
}

fn optimizer() -> ModuleOptimizer {
    AdamWConfig::new()
        .with_beta_2(0.99)
        .with_epsilon(1e-8)
        .with_weight_decay(0.02)
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
        .init()
}

/// Trains, or continues to train, to the end of the last stage. Returns the model without autodiff.
///
/// # Errors
/// Fails if a checkpoint or the log cannot be read or written.
pub fn run(options: &Options, shape: &Shape, bpe: &Bpe, device: &Device) -> Result<Llama, Failure> {
    let device = device.clone().autodiff();
    device.seed(options.seed);
    let mut model = Llama::new(shape, &device);
    let mut optimizer = optimizer();
    let mut first = 0;
    let checkpoint = options.work.join("checkpoint");
    if options.resume {
        model = model.try_load_file(checkpoint.with_extension("model.bpk"))?;
        optimizer = optimizer.load(checkpoint.with_extension("optimizer.bpk"))?;
        first = fs::read_to_string(options.work.join("step"))?
            .trim()
            .parse()?;
    }
    println!("{} parameters", model.num_params());
    let windows = [
        [options.rows, options.window_tokens],
        // Every fourth step uses windows of twice the length, so that the model also learns
        // positions further from the start.
        [(options.rows / 2).max(1), options.window_tokens * 2],
    ];
    let positions = windows.map(|[_, tokens]| Positions::new(shape, tokens, &device));
    let mut log = fs::OpenOptions::new()
        .create(true)
        .append(options.resume)
        .write(true)
        .truncate(!options.resume)
        .open(options.work.join("loss.tsv"))?;
    let (mut recent, mut recent_steps, mut since) = (0.0, 0, Instant::now());
    let steps = options.steps();
    for step in first..steps {
        let long = usize::from(step % 4 == 3);
        let mut random = Random::new(options.seed.wrapping_mul(1_000_003) + step as u64);
        let Batch { ids, targets } =
            batches::draw(&mut random, bpe, Part::Training, windows[long], &device);
        let loss = cross_entropy(model.forward(ids, shape, &positions[long]), targets);
        recent += f64::from(loss.clone().into_scalar::<f32>());
        recent_steps += 1;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(learning_rate(step, options), model, gradients);

        let done = step + 1;
        if done % 50 == 0 || done == steps {
            let tokens = recent_steps * options.rows * options.window_tokens;
            let rate = tokens as f64 / since.elapsed().as_secs_f64();
            let loss = recent / recent_steps as f64;
            writeln!(log, "{done}\ttrain\t{loss:.4}\t{rate:.0} tokens/s")?;
            (recent, recent_steps, since) = (0.0, 0, Instant::now());
        }
        if done % MEASURE_STEPS == 0 || done == steps {
            let loss = held_out_loss(&model.valid(), shape, bpe, 4, &device.clone().inner());
            writeln!(
                log,
                "{done}\theld out\t{loss:.4}\tperplexity {:.3}",
                loss.exp()
            )?;
            since = Instant::now();
        }
        if done % CHECKPOINT_STEPS == 0 || done == steps {
            save(&model, &optimizer, done, &options.work, &checkpoint)?;
        }
    }
    Ok(model.valid())
}

fn save(
    model: &Llama,
    optimizer: &ModuleOptimizer,
    step: usize,
    work: &Path,
    checkpoint: &Path,
) -> Result<(), Failure> {
    model
        .valid()
        .save_file(checkpoint.with_extension("model.bpk"))?;
    optimizer.save(checkpoint.with_extension("optimizer.bpk"))?;
    fs::write(work.join("step"), step.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_stays_and_falls_in_every_stage() {
        let options = Options {
            stages: vec![1000, 3000],
            learning_rate: 1.0,
            ..Options::default()
        };
        let rates = [0, 74, 500, 850, 999, 1000, 2000, 2700, 2999]
            .map(|step| learning_rate(step, &options));
        let expected = [
            1.0 / 150.0,
            0.5,
            1.0,
            0.5,
            1.0 / 300.0,
            1.0 / 150.0,
            1.0,
            0.5,
            1.0 / 600.0,
        ];
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rates:?}");
        }
    }
}
