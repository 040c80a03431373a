//! Models in other containers than one GGUF file: split files and Hugging Face folders, against the
//! same model in one file and against references.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use inpage::{
    model::{Checkpoint, CheckpointSource, Compute, LoadOptions, Quantize, Transformer, load},
    ops::kv_memory::KvFormat,
    weights::{
        ByteSource, BytesSource, FileSource, Gguf, GgufWriter, LocalFiles, Metadata, TensorInfo,
        TensorType,
    },
};
use pollster::block_on;

use crate::{
    fixture::{computes, floats, ids, json, npy, sequence},
    references::{assert_greedy, assert_parity},
    shared_models,
};

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/parity/models")
        .join(name)
}

fn open(path: &Path, quantize: &str) -> Checkpoint<FileSource> {
    let options = LoadOptions {
        quantize: Quantize::from_name(quantize).expect("a type"),
        ..LoadOptions::default()
    };
    block_on(Checkpoint::open(&LocalFiles::at(path).unwrap(), &options)).expect("a checkpoint")
}

fn model(compute: &Compute, path: &Path, quantize: &str) -> Transformer {
    let Checkpoint { gguf, source } = open(path, quantize);
    block_on(load(compute.clone(), &gguf, &source, options(), |_, _| ()))
        .expect("a model that runs")
}

fn options() -> LoadOptions {
    LoadOptions {
        context_tokens: Some(512),
        kv_format: KvFormat::F32,
        ..LoadOptions::default()
    }
}

fn to_f16(value: f32) -> f32 {
    half::f16::from_f32(value).to_f32()
}

fn to_bf16(value: f32) -> f32 {
    half::bf16::from_f32(value).to_f32()
}

/// Logits of all positions.
fn logits(compute: &Compute, path: &Path, quantize: &str, prompt: &[u32]) -> Vec<f32> {
    let mut model = model(compute, path, quantize);
    let mut kv = sequence(&model);
    block_on(model.feed_all(&mut kv, prompt)).unwrap()
}

#[test]
fn folders_meet_their_references() {
    for (device, compute) in computes() {
        for (name, dims, round) in [
            ("mistral-hf", 16, to_f16 as fn(f32) -> f32),
            ("qwen3-hf", 32, to_bf16),
        ] {
            let reference = json(&tiny(&format!("{name}.json")));
            let last = floats(&reference["last_logits"]);
            let prompt = ids(&reference["ids"]);
            let what = format!("{name} on the {device}");
            let file = with_rounded_frequencies(&tiny(name), 1e6, dims, round);
            let source = BytesSource(file);
            let gguf = block_on(Gguf::read(&source)).unwrap();
            let model = load(compute.clone(), &gguf, &source, options(), |_, _| ());
            let mut model = block_on(model).expect("a model that runs");
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            let row = &all[all.len() - last.len()..];
            assert_parity(&what, row, &last, 0.002);
            assert_greedy(&what, &all, &ids(&reference["greedy_next"]), 0.002);
        }
    }
}

/// Its frequencies are those of 16 bits nearly enough for the usual bound.
#[test]
fn a_folder_meets_its_references_as_it_is() {
    let reference = json(&tiny("mistral-hf.json"));
    let last = floats(&reference["last_logits"]);
    let prompt = ids(&reference["ids"]);
    let all = logits(&Compute::cpu(), &tiny("mistral-hf"), "none", &prompt);
    assert_parity("mistral-hf", &all[all.len() - last.len()..], &last, 0.02);
}

#[test]
fn real_folders_meet_their_references() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for name in ["ts4m-hf", "stories260K"] {
        let folder = folder.join(name);
        let prompt = ids(&json(&folder.join("ref.json"))["ids"]);
        let reference = npy(&folder.join("ref_logits_f32.npy"));
        let all = logits(&Compute::cpu(), &folder, "none", &prompt);
        let vocab = reference.len() / prompt.len();
        for (row, wanted) in all.chunks_exact(vocab).zip(reference.chunks_exact(vocab)) {
            assert_parity(name, row, wanted, 0.02);
        }
    }
}

fn bytes<S: ByteSource>(source: &S, tensor: &TensorInfo) -> Vec<u8> {
    let mut bytes = vec![0; tensor.size_bytes as usize];
    block_on(source.read_at(tensor.offset_bytes, &mut bytes)).unwrap();
    bytes
}

/// The folder as a GGUF file whose frequencies are rounded as `scripts/references/make.py` left them:
/// with the weights, to the folder's type.
fn with_rounded_frequencies(folder: &Path, base: f32, dims: i32, round: fn(f32) -> f32) -> Vec<u8> {
    let Checkpoint { gguf, source } = open(folder, "none");
    let pairs = (0..dims).step_by(2);
    let exact = pairs.map(|i| base.powf(-(i as f32) / dims as f32));
    let factors: Vec<u8> = exact
        .flat_map(|freq| (freq / round(freq)).to_le_bytes())
        .collect();
    let mut writer = GgufWriter::new(gguf.metadata.clone()).unwrap();
    let name = "rope_freqs.weight";
    let shape = [factors.len() as u64 / 4];
    writer.tensor(name, &shape, TensorType::F32).unwrap();
    for tensor in &gguf.tensors {
        writer
            .tensor(&tensor.name, &tensor.shape, tensor.ty)
            .unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    data.write(&factors).unwrap();
    for tensor in &gguf.tensors {
        data.write(&bytes(&source, tensor)).unwrap();
    }
    data.finish().unwrap()
}

/// A folder that is quantized while it is loaded is the file that llama.cpp makes of it: types, bytes
/// (but for the order of the rows that rotate) and logits.
#[test]
fn quantized_folders_equal_llama_cpps_files() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let prompt = ids(&json(&folder.join("ts4m-hf/ref.json"))["ids"]);
    for (quantize, file) in [("q8_0", "ts4m-Q8_0"), ("q4_0", "ts4m-Q4_0")] {
        let path = folder.join(format!("ts4m/{file}.gguf"));
        let Checkpoint { gguf, source } = open(&folder.join("ts4m-hf"), quantize);
        assert!(matches!(source, CheckpointSource::Converted(_)));
        let file = FileSource::open(&path).unwrap();
        let expected = block_on(Gguf::read(&file)).unwrap();
        let types = |gguf: &Gguf| -> BTreeMap<String, (TensorType, Vec<u64>)> {
            let tensors = gguf.tensors.iter();
            tensors
                .map(|t| (t.name.clone(), (t.ty, t.shape.clone())))
                .collect()
        };
        assert_eq!(types(&gguf), types(&expected));
        for tensor in &expected.tensors {
            let rotates = ["attn_q.", "attn_k."]
                .iter()
                .any(|it| tensor.name.contains(it));
            let ours = gguf.tensor(&tensor.name).unwrap();
            let equal = bytes(&source, ours) == bytes(&file, tensor);
            assert!(rotates || equal, "{quantize}: {}", tensor.name);
        }
        let ours = logits(&Compute::cpu(), &folder.join("ts4m-hf"), quantize, &prompt);
        let theirs = logits(&Compute::cpu(), &path, quantize, &prompt);
        assert_parity(quantize, &ours, &theirs, 1e-3);
    }
}

/// Cuts a file into parts as llama.cpp's gguf-split does; gives the path of the first one.
fn split(path: &Path, folder: &Path, count: usize) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let source = FileSource::open(path).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let name = |number: usize| folder.join(format!("m-{number:05}-of-{count:05}.gguf"));
    for (index, tensors) in gguf
        .tensors
        .chunks(gguf.tensors.len().div_ceil(count))
        .enumerate()
    {
        let mut metadata = if index == 0 {
            gguf.metadata.clone()
        } else {
            Metadata::new()
        };
        metadata.insert("split.no", index as u16);
        metadata.insert("split.count", count as u16);
        metadata.insert("split.tensors.count", gguf.tensors.len() as i32);
        let mut writer = GgufWriter::new(metadata).unwrap();
        for tensor in tensors {
            writer
                .tensor(&tensor.name, &tensor.shape, tensor.ty)
                .unwrap();
        }
        let mut data = writer
            .start(fs::File::create(name(index + 1)).unwrap())
            .unwrap();
        for tensor in tensors {
            data.write(&bytes(&source, tensor)).unwrap();
        }
        data.finish().unwrap();
    }
    name(1)
}

#[test]
fn a_split_file_is_the_whole_one() {
    let prompt: Vec<u32> = (0..9).map(|i| i * 31 % 280).collect();
    let whole = tiny("qwen3.gguf");
    let parts = split(
        &whole,
        &Path::new(env!("CARGO_TARGET_TMPDIR")).join("split"),
        3,
    );
    let cpu = Compute::cpu();
    assert_eq!(
        logits(&cpu, &parts, "none", &prompt),
        logits(&cpu, &whole, "none", &prompt)
    );
    fs::remove_file(parts.with_file_name("m-00002-of-00003.gguf")).unwrap();
    let files = LocalFiles::at(&parts).unwrap();
    let error = block_on(Checkpoint::open(&files, &LoadOptions::default())).unwrap_err();
    assert!(
        error.to_string().contains("m-00002-of-00003.gguf"),
        "{error}"
    );
}
