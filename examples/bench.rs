//! Measures inpage on this machine: the CPU time of a launch, the shares of the memory bandwidth and of
//! the arithmetic peak that kernels reach, the share of the memory bound that decoding with a model
//! reaches, and what guessed tokens gain. Prints one line per measurement.
//!
//! `cargo run --release --example bench -- [launch|kernels|sweep|model|speculation] [--model FILE.gguf|FOLDER]
//! [--device cpu|gpu] [--size small|large] [--tokens N] [--contexts N,N,...] [--batches N,N,...] [--json]`

#[path = "bench/decode.rs"]
mod decode;
#[path = "bench/floor.rs"]
mod floor;
#[path = "bench/kernels.rs"]
mod kernels;
#[path = "bench/launch.rs"]
mod launch;
#[path = "shared/load_arguments.rs"]
mod load_arguments;
#[path = "bench/machine.rs"]
mod machine;
#[path = "bench/model.rs"]
mod model;
#[path = "bench/options.rs"]
mod options;
#[path = "bench/raw.rs"]
mod raw;
#[path = "bench/speculation.rs"]
mod speculation;
#[path = "bench/sweep.rs"]
mod sweep;
#[path = "bench/timing.rs"]
mod timing;

use std::process::ExitCode;

use machine::Machine;
use options::{Bench, Options, USAGE};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

async fn run(options: &Options) -> Outcome<()> {
    let machine = Machine::find(options).await?;
    machine.introduce();
    if options.wants(Bench::Launch) {
        launch::run(&machine).await?;
    }
    if let (true, Some(path)) = (options.wants(Bench::Speculation), &options.model) {
        speculation::run(&machine, path, options).await?;
    }
    if options.wants(Bench::Sweep) {
        sweep::run(&machine).await?;
    }
    if !options.wants(Bench::Kernels) && !options.wants(Bench::Model) {
        return Ok(());
    }
    let yardsticks = machine.yardsticks().await?;
    if options.wants(Bench::Kernels) {
        kernels::run(&machine, yardsticks).await?;
    }
    if options.wants(Bench::Model) {
        match &options.model {
            Some(path) => model::run(&machine, path, options, yardsticks).await?,
            None => eprintln!("model: skipped, because there is no --model FILE.gguf"),
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match pollster::block_on(run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
