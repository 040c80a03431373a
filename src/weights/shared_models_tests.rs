//! Reads, quantizes and rewrites the model files of `INPAGE_MODELS`, by default `../shared/models` next to the
//! repository. Without model files, each test prints that it is skipped and passes.

use std::path::{Path, PathBuf};

use super::*;
use crate::{Error, Result, tensor_types::TensorType};

/// Types in recent files that this build does not support.
const UNSUPPORTED_TYPES: [&str; 4] = ["Q1_0", "TQ1_0", "TQ2_0", "ggml type 42"];

fn models_dir(test: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("INPAGE_MODELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
        PathBuf::from,
    );
    if !dir.is_dir() {
        println!("skipped: {test}: no model files in {}", dir.display());
        return None;
    }
    Some(dir)
}

fn gguf_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(gguf_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "gguf")
        {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn read(path: &Path) -> Result<(FileSource, Gguf)> {
    let source = FileSource::open(path)?;
    let gguf = pollster::block_on(Gguf::read(&source))?;
    Ok((source, gguf))
}

fn data(source: &FileSource, tensor: &TensorInfo) -> Vec<u8> {
    pollster::block_on(source.read_vec(tensor.offset_bytes, tensor.size_bytes)).unwrap()
}

#[test]
fn every_file_can_be_read() {
    let Some(dir) = models_dir("every_file_can_be_read") else {
        return;
    };
    let files = gguf_files(&dir);
    assert!(!files.is_empty());
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let started = std::time::Instant::now();
        let gguf = match read(path) {
            Ok((_, gguf)) => gguf,
            Err(Error::UnsupportedModel(message)) => {
                let is_named = UNSUPPORTED_TYPES.iter().any(|ty| message.contains(ty));
                assert!(is_named, "{name}: {message}");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        println!("{name}: {:?}", started.elapsed());
        let m = &gguf.metadata;
        assert!(m.str("general.architecture").unwrap().is_some(), "{name}");
        if name.contains("vocab") {
            assert!(gguf.tensors.is_empty(), "{name}");
        }
        if !name.starts_with("mmproj") {
            let tokens = m.strings("tokenizer.ggml.tokens").unwrap().unwrap();
            assert!(tokens.len() >= 512, "{name}");
            if let Some(embedding) = gguf.tensor("token_embd.weight") {
                assert_eq!(embedding.shape[1], tokens.len() as u64, "{name}");
            }
        }
        println!(
            "    version {}, {} entries, {} tensors",
            gguf.version,
            m.len(),
            gguf.tensors.len()
        );
    }
}

/// Quantizes the tensors of `from` and compares them with those of `to` that have type `ty`.
fn assert_quantizes_like(from: &Path, to: &Path, ty: TensorType) {
    let (source, unquantized) = read(from).unwrap();
    let (reference_source, reference) = read(to).unwrap();
    let mut compared = 0;
    for expected in reference.tensors.iter().filter(|tensor| tensor.ty == ty) {
        let tensor = unquantized.tensor(&expected.name).unwrap();
        assert_eq!(tensor.shape, expected.shape);
        let values = pollster::block_on(tensor.read_f32(&source)).unwrap();
        let ours = ty.quantize(&values);
        let theirs = data(&reference_source, expected);
        let blocks = ours
            .chunks(ty.block_bytes())
            .zip(theirs.chunks(ty.block_bytes()));
        let different = blocks.filter(|(ours, theirs)| ours != theirs).count();
        println!(
            "{}: {different} of {} blocks differ",
            expected.name,
            theirs.len() / ty.block_bytes()
        );
        assert!(ours == theirs, "{}", expected.name);
        compared += 1;
    }
    assert!(
        compared > 10,
        "{} has {compared} {ty} tensors",
        to.display()
    );
}

#[test]
fn q8_0_equals_ggmls() {
    let Some(dir) = models_dir("q8_0_equals_ggmls") else {
        return;
    };
    let ts4m = dir.join("ts4m");
    assert_quantizes_like(
        &ts4m.join("ts4m-F16.gguf"),
        &ts4m.join("ts4m-Q8_0.gguf"),
        TensorType::Q8_0,
    );
}

#[test]
fn q4_0_equals_ggmls() {
    let Some(dir) = models_dir("q4_0_equals_ggmls") else {
        return;
    };
    for (from, to) in [
        (
            "stories260K/stories260K-F32.gguf",
            "stories260K/stories260K-Q4_0.gguf",
        ),
        ("ts4m/ts4m-F16.gguf", "ts4m/ts4m-Q4_0.gguf"),
    ] {
        assert_quantizes_like(&dir.join(from), &dir.join(to), TensorType::Q4_0);
    }
}

#[test]
fn q6_k_equals_ggmls() {
    let Some(dir) = models_dir("q6_k_equals_ggmls") else {
        return;
    };
    let ts4m = dir.join("ts4m");
    assert_quantizes_like(
        &ts4m.join("ts4m-F16.gguf"),
        &ts4m.join("ts4m-Q6_K.gguf"),
        TensorType::Q6_K,
    );
}

#[test]
fn q4_k_equals_ggmls() {
    let Some(dir) = models_dir("q4_k_equals_ggmls") else {
        return;
    };
    let ts4m = dir.join("ts4m");
    assert_quantizes_like(
        &ts4m.join("ts4m-F16.gguf"),
        &ts4m.join("ts4m-Q4_K_M.gguf"),
        TensorType::Q4_K,
    );
}

#[test]
fn a_rewritten_file_is_the_same() {
    let Some(dir) = models_dir("a_rewritten_file_is_the_same") else {
        return;
    };
    for name in [
        "stories260K/stories260K-Q8_0.gguf",
        "ts4m/ts4m-Q4_0.gguf",
        "vocab/ggml-vocab-gpt-2.gguf",
    ] {
        let path = dir.join(name);
        let (source, gguf) = read(&path).unwrap();
        let mut writer = GgufWriter::new(gguf.metadata.clone()).unwrap();
        for tensor in &gguf.tensors {
            writer
                .tensor(&tensor.name, &tensor.shape, tensor.ty)
                .unwrap();
        }
        let mut out = writer.start(Vec::new()).unwrap();
        for tensor in &gguf.tensors {
            out.write(&data(&source, tensor)).unwrap();
        }
        let rewritten = out.finish().unwrap();

        let again = pollster::block_on(Gguf::read(&BytesSource(&rewritten))).unwrap();
        assert_eq!(again.metadata, gguf.metadata, "{name}");
        assert_eq!(again.tensors.len(), gguf.tensors.len(), "{name}");
        for (tensor, original) in again.tensors.iter().zip(&gguf.tensors) {
            assert_eq!(tensor.name, original.name);
            assert_eq!((&tensor.shape, tensor.ty), (&original.shape, original.ty));
            let start = tensor.offset_bytes as usize;
            let bytes = &rewritten[start..start + tensor.size_bytes as usize];
            assert!(bytes == data(&source, original), "{name}: {}", tensor.name);
        }
        let identical = rewritten == std::fs::read(&path).unwrap();
        println!("{name}: identical bytes: {identical}");
    }
}
