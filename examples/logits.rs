//! Writes the logits of a model after given token ids as a NumPy file:
//! `cargo run --release --example logits -- --model FILE.gguf|FOLDER --ids 1,2,3 [--device cpu|gpu]
//! [--kv-format f16|f32|q8_0] [--quantize TYPE] [--lora FILE.gguf|FOLDER[=SCALE]]... [--all] --out F.npy`

use std::{io::Write, process::ExitCode};

use inpage::{
    device::{Gpu, GpuOptions},
    engine::{CausalModel, Chooser, Row, SequenceMemory},
    model::{Adapter, Checkpoint, Compute, LoadOptions, Quantize, formats, load},
    ops::{
        kv_memory::KvFormat,
        self_test::{self, Precision},
    },
    weights::LocalFiles,
};

const USAGE: &str = "usage: logits --model FILE.gguf|FOLDER --ids 1,2,3 [--device cpu|gpu] [--kv-format f16|f32|q8_0] \
     [--quantize none|q8_0|q4_0|...] [--lora FILE.gguf|FOLDER[=SCALE]]... [--all] --out F.npy";

struct Arguments {
    model: String,
    ids: Vec<u32>,
    gpu: bool,
    all: bool,
    kv_format: KvFormat,
    quantize: Quantize,
    /// Paths and scales.
    adapters: Vec<(String, f32)>,
    out: String,
}

fn parse() -> Result<Arguments, String> {
    let (mut model, mut ids, mut out) = (None, None, None);
    let (mut gpu, mut all) = (true, false);
    // What is compared with references should be exact.
    let mut kv_format = KvFormat::F32;
    let mut quantize = Quantize::default();
    let mut adapters = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} wants a value"));
        match name.as_str() {
            "--model" => model = Some(value()?),
            "--out" => out = Some(value()?),
            "--all" => all = true,
            "--device" => {
                gpu = match value()?.as_str() {
                    "gpu" => true,
                    "cpu" => false,
                    other => return Err(format!("--device is cpu or gpu, not {other}")),
                }
            }
            "--kv-format" => {
                let format = value()?;
                kv_format = KvFormat::from_name(&format)
                    .ok_or(format!("--kv-format is f16, f32 or q8_0, not {format}"))?;
            }
            "--quantize" => {
                let ty = value()?;
                quantize = Quantize::from_name(&ty).ok_or(format!(
                    "--quantize is none or a type such as q4_0, not {ty}"
                ))?;
            }
            "--lora" => {
                let value = value()?;
                adapters.push(match value.rsplit_once('=') {
                    Some((path, scale)) => {
                        let scale = scale.parse().map_err(|e| format!("--lora {value}: {e}"))?;
                        (path.to_owned(), scale)
                    }
                    None => (value, 1.0),
                });
            }
            "--ids" => {
                let parsed: Result<Vec<u32>, _> =
                    value()?.split(',').map(|id| id.trim().parse()).collect();
                ids = Some(parsed.map_err(|e| format!("--ids: {e}"))?);
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(Arguments {
        model: model.ok_or("--model is missing")?,
        ids: ids
            .filter(|ids| !ids.is_empty())
            .ok_or("--ids is missing")?,
        out: out.ok_or("--out is missing")?,
        gpu,
        all,
        kv_format,
        quantize,
        adapters,
    })
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let options = LoadOptions {
        context_tokens: Some(arguments.ids.len()),
        kv_format: arguments.kv_format,
        kv_pool_tokens: Some(arguments.ids.len()),
        quantize: arguments.quantize,
        precision: Precision::F32,
    };
    let files = LocalFiles::at(&arguments.model)?;
    let Checkpoint { gguf, source } = Checkpoint::open(&files, &options).await?;
    let compute = if arguments.gpu {
        let gpu = Gpu::request(GpuOptions::default()).await?;
        let variant = self_test::best_variant(&gpu, options.needs(&gguf, &formats(&gguf))).await?;
        Compute::Gpu { gpu, variant }
    } else {
        Compute::cpu()
    };
    let mut model = load(compute, &gguf, &source, options, |_, _| ()).await?;
    let mut adapters = Vec::new();
    for (path, scale) in &arguments.adapters {
        adapters.push((Adapter::open(&LocalFiles::at(path)?).await?, *scale));
    }
    let adapters: Vec<_> = adapters.iter().map(|(it, scale)| (it, *scale)).collect();
    if !adapters.is_empty() {
        model.set_adapters(&adapters).await?;
    }
    if let Some(id) = arguments
        .ids
        .iter()
        .find(|id| **id as usize >= model.limits().vocab_size)
    {
        return Err(format!(
            "id {id} is outside the vocabulary of {}",
            model.limits().vocab_size
        )
        .into());
    }
    if arguments.ids.len() > model.limits().context_tokens {
        return Err(format!(
            "{} ids exceed the context of {}",
            arguments.ids.len(),
            model.limits().context_tokens
        )
        .into());
    }
    let mut kv = SequenceMemory::new((0..model.limits().page_count as u32).collect());
    let vocab = model.limits().vocab_size;
    let (logits, shape) = if arguments.all {
        let logits = model.feed_all(&mut kv, &arguments.ids).await?;
        (logits, format!("({}, {vocab})", arguments.ids.len()))
    } else {
        let mut rows = [Row {
            memory: &mut kv,
            tokens: &arguments.ids,
        }];
        let output = model.step(&mut rows, Chooser::Host).await?;
        (output.into_logits()?.concat(), format!("({vocab},)"))
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
    let arguments = match parse() {
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
