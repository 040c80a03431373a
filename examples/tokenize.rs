//! Tokenizes strings and decodes them again: reads JSON strings from standard input, one per line, and
//! writes `{"ids":[...],"text":"..."}` for each:
//! `cargo run --example tokenize -- FILE.gguf | FOLDER [--special]`
//!
//! A folder contains `tokenizer.json` and the files beside it. With `--special` the model's start- and
//! end-of-text tokens are added.

use std::{
    io::{BufRead, Write},
    path::Path,
    process::ExitCode,
};

use inpage::{
    text::Tokenizer,
    weights::{FileSource, Gguf, LocalFiles, Metadata, ModelFiles},
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (mut path, mut add_special) = (None, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--special" => add_special = true,
            _ => path = Some(argument),
        }
    }
    let path = path.ok_or("usage: tokenize FILE.gguf | FOLDER [--special] < lines.jsonl")?;
    let tokenizer = load(Path::new(&path))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        let ids = tokenizer.encode(&text, add_special)?;
        let text = tokenizer.decode(&ids, false);
        serde_json::to_writer(&mut out, &serde_json::json!({ "ids": ids, "text": text }))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn load(path: &Path) -> Result<Tokenizer, inpage::Error> {
    let files = LocalFiles::at(path)?;
    let metadata = match files.gguf_name() {
        Some(_) => pollster::block_on(Gguf::read(&FileSource::open(path)?))?.metadata,
        None => Metadata::new(),
    };
    pollster::block_on(Tokenizer::of(&files, &metadata))
}
