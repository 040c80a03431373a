//! Writes the logits of a model after given token ids as a NumPy file:
//! `cargo run --release --example logits -- --model FILE.gguf|FOLDER --ids 1,2,3 [--device gpu|cpu|reference] [--threads N]
//! [--kv-format FORMAT] [--quantize TYPE] [--lora FILE.gguf|FOLDER[=SCALE]]... [--all] --out F.npy`

#[path = "shared/adapters.rs"]
mod adapters;
#[path = "shared/device.rs"]
mod device;
#[path = "shared/load_arguments.rs"]
mod load_arguments;

use std::{io::Write, process::ExitCode};

use inpage::{
    engine::{CausalModel, Chooser, Input, Row, SequenceMemory},
    model::{Checkpoint, LoadOptions},
    ops::kv_memory::KvFormat,
    runtime::{Adapters, DeviceChoice, Tuning, start},
    tuner::Precision,
    weights::LocalFiles,
};

use adapters::{AdapterPath, adapter_files};
use device::{DeviceName, parse_threads};
use load_arguments::set_load_option;

const USAGE: &str = "usage: logits --model FILE.gguf|FOLDER --ids 1,2,3 [--device gpu|cpu|reference] [--threads N] [--kv-format FORMAT] \
     [--quantize none|q8_0|q4_0|...] [--lora FILE.gguf|FOLDER[=SCALE]]... [--all] --out F.npy";

struct Arguments {
    model: String,
    ids: Vec<u32>,
    device: DeviceName,
    threads: Option<usize>,
    all: bool,
    load: LoadOptions,
    adapters: Vec<AdapterPath>,
    out: String,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut model, mut ids, mut out) = (None, Vec::new(), None);
    let (mut device, mut all) = (DeviceName::Of(DeviceChoice::WebGpu), false);
    let mut threads = None;
    let mut load = LoadOptions {
        // Full precision, because the logits are compared with references.
        kv_format: KvFormat::F32,
        precision: Precision::F32,
        ..LoadOptions::default()
    };
    let mut adapters = Vec::new();
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--model" => model = Some(value()?),
            "--out" => out = Some(value()?),
            "--all" => all = true,
            "--device" => device = DeviceName::parse(&value()?)?,
            "--threads" => threads = Some(parse_threads(&value()?)?),
            "--lora" => adapters.push(AdapterPath::parse(&value()?)?),
            "--ids" => {
                let given = value()?;
                let parsed = given.split(',').map(|id| id.trim().parse());
                let parsed: Result<Vec<u32>, _> = parsed.collect();
                ids = parsed.map_err(|error| format!("--ids: {error}"))?;
            }
            other => {
                let other = other.to_owned();
                set_load_option(&mut load, &other, &value()?)?;
            }
        }
    }
    if ids.is_empty() {
        return Err("--ids is missing".into());
    }
    load.context_tokens = Some(ids.len());
    load.kv_pool_tokens = Some(ids.len());
    Ok(Arguments {
        model: model.ok_or("--model is missing")?,
        ids,
        out: out.ok_or("--out is missing")?,
        device,
        threads,
        all,
        load,
        adapters,
    })
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { ids, load, .. } = arguments;
    let files = LocalFiles::at(&arguments.model)?;
    let Checkpoint { gguf, source } = Checkpoint::open(&files, &load).await?;
    let chosen = arguments.device.request(arguments.threads).await?;
    let (mut model, _) = start(
        chosen.device(),
        Tuning::Best,
        &gguf,
        &source,
        load,
        |_, _| (),
    )
    .await?;
    let adapters = adapter_files(&arguments.adapters)?;
    Adapters::open(&adapters).await?.set_on(&mut model).await?;

    let limits = model.limits();
    let vocab = limits.vocab_size;
    if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
        return Err(format!("id {id} is outside the vocabulary of {vocab}").into());
    }
    if ids.len() > limits.context_tokens {
        let (count, most) = (ids.len(), limits.context_tokens);
        return Err(format!("{count} ids exceed the context of {most}").into());
    }
    let mut memory = SequenceMemory::new((0..limits.page_count as u32).collect());
    let (logits, shape) = match arguments.all {
        true => {
            let logits = model.feed_all(&mut memory, &ids).await?;
            (logits, format!("({}, {vocab})", ids.len()))
        }
        false => {
            let mut rows = [Row {
                memory: &mut memory,
                input: Input::tokens(&ids),
            }];
            let output = model.step(&mut rows, Chooser::Host).await?;
            (output.into_logits()?.concat(), format!("({vocab},)"))
        }
    };
    write_npy(&arguments.out, &logits, &shape)?;
    Ok(())
}

/// NumPy's format 1.0: magic, header padded to 64 bytes, little-endian f32.
fn write_npy(path: &str, values: &[f32], shape: &str) -> std::io::Result<()> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.push_str(&" ".repeat(length - header.len() - 1));
    header.push('\n');
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    file.write_all(bytemuck::cast_slice(values))?;
    file.flush()
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match pollster::block_on(run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
