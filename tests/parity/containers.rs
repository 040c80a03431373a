//! Models in other containers than a single GGUF file: split files and Hugging Face folders, against the
//! same model in one file and against references.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use inpage::{
    model::{Checkpoint, CheckpointSource, LoadOptions, Quantize, Transformer},
    ops::kv_memory::KvFormat,
    tensor_types::TensorType,
    weights::{ByteSource, FileSource, Gguf, GgufWriter, LocalFiles, Metadata, TensorInfo},
};
use pollster::block_on;

use crate::{
    fixture::{Compute, computes, floats, ids, json, load, npy, sequence},
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

/// Logits of all positions.
fn logits(compute: &Compute, path: &Path, quantize: &str, prompt: &[u32]) -> Vec<f32> {
    let mut model = model(compute, path, quantize);
    let mut kv = sequence(&model);
    block_on(model.feed_all(&mut kv, prompt)).unwrap()
}

fn meets_its_reference(name: &str, tolerance: f32, device: &str, compute: &Compute) {
    let reference = json(&tiny(&format!("{name}.json")));
    let last = floats(&reference["last_logits"]);
    let prompt = ids(&reference["ids"]);
    let what = format!("{name} on the {device}");
    let all = logits(compute, &tiny(name), "none", &prompt);
    let row = &all[all.len() - last.len()..];
    assert_parity(&what, row, &last, tolerance);
    assert_greedy(&what, &all, &ids(&reference["greedy_next"]), tolerance);
}

/// Folders of floats, sharded or not, and folders of packed integers, with groups that can be kept and with
/// groups that cannot.
#[test]
fn folders_meet_their_references() {
    for (device, compute) in computes() {
        for (name, tolerance) in [
            ("mistral-hf", 0.002),
            ("qwen3-hf", 0.002),
            ("gptq-sym-hf", 0.002),
            // The minima of blocks are rounded to f16.
            ("gptq-asym-hf", 0.02),
            ("awq-hf", 0.02),
            // Values are rounded to f16.
            ("gptq-act-order-hf", 0.02),
        ] {
            meets_its_reference(name, tolerance, device, &compute);
        }
    }
}

/// Matrices that are converted to another type are exact up to the precision of that type.
#[test]
fn groups_of_any_columns_are_read_exactly() {
    let reference = json(&tiny("gptq-act-order-hf.json"));
    let last = floats(&reference["last_logits"]);
    let prompt = ids(&reference["ids"]);
    let all = logits(
        &Compute::reference(),
        &tiny("gptq-act-order-hf"),
        "f32",
        &prompt,
    );
    let row = &all[all.len() - last.len()..];
    assert_parity("gptq-act-order-hf", row, &last, 0.002);
}

/// Packed matrices stay packed, whatever type floats are converted to.
#[test]
fn packed_matrices_keep_four_bits() {
    let types = |name: &str, quantize: &str| -> HashSet<TensorType> {
        let gguf = open(&tiny(name), quantize).gguf;
        let layers = gguf.tensors.iter().filter(|it| it.name.contains("blk."));
        let matrices = layers.filter(|it| it.shape.len() > 1 && !it.name.contains("gate_inp"));
        matrices.map(|it| it.ty).collect()
    };
    for quantize in ["none", "q8_0", "f16"] {
        let only = HashSet::from([TensorType::Q4_0]);
        assert_eq!(types("gptq-sym-hf", quantize), only, "{quantize}");
        for name in ["gptq-asym-hf", "awq-hf"] {
            let only = HashSet::from([TensorType::Q4_1]);
            assert_eq!(types(name, quantize), only, "{name}, {quantize}");
        }
    }
    // Here a group is not a run of adjacent columns.
    for (quantize, ty) in [("none", TensorType::F16), ("q5_1", TensorType::Q5_1)] {
        assert_eq!(types("gptq-act-order-hf", quantize), HashSet::from([ty]));
    }
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
        let all = logits(&Compute::reference(), &folder, "none", &prompt);
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

/// A folder that is quantized during the load equals the file that llama.cpp makes of it: types, bytes
/// (except the order of rotated rows) and logits.
#[test]
fn quantized_folders_equal_llama_cpps_files() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let prompt = ids(&json(&folder.join("ts4m-hf/ref.json"))["ids"]);
    for (quantize, file) in [
        ("q8_0", "ts4m-Q8_0"),
        ("q4_0", "ts4m-Q4_0"),
        ("q6_k", "ts4m-Q6_K"),
        ("q4_k", "ts4m-Q4_K_M"),
    ] {
        let path = folder.join(format!("ts4m/{file}.gguf"));
        let Checkpoint { gguf, source } = open(&folder.join("ts4m-hf"), quantize);
        assert!(matches!(source, CheckpointSource::Converted(_)));
        let file = FileSource::open(&path).unwrap();
        let expected = block_on(Gguf::read(&file)).unwrap();
        // llama.cpp's mixtures have more bits in some matrices.
        let is_mixture = quantize == "q4_k";
        let types = |gguf: &Gguf| -> BTreeMap<String, (TensorType, Vec<u64>)> {
            let tensors = gguf.tensors.iter();
            tensors
                .map(|t| (t.name.clone(), (t.ty, t.shape.clone())))
                .collect()
        };
        assert!(is_mixture || types(&gguf) == types(&expected), "{quantize}");
        let mut compared = 0;
        for tensor in &expected.tensors {
            let rotates = ["attn_q.", "attn_k."]
                .iter()
                .any(|it| tensor.name.contains(it));
            let ours = gguf.tensor(&tensor.name).unwrap();
            if rotates || (is_mixture && ours.ty != tensor.ty) {
                continue;
            }
            let equal = bytes(&source, ours) == bytes(&file, tensor);
            assert!(equal, "{quantize}: {}", tensor.name);
            compared += usize::from(tensor.ty.name().to_lowercase() == quantize);
        }
        assert!(compared >= 15, "{quantize}: {compared} tensors");
        if !is_mixture {
            let ours = logits(
                &Compute::reference(),
                &folder.join("ts4m-hf"),
                quantize,
                &prompt,
            );
            let theirs = logits(&Compute::reference(), &path, quantize, &prompt);
            assert_parity(quantize, &ours, &theirs, 1e-3);
        }
    }
}

/// The more bits, the closer to the model of floats. Bounds are twice the measured errors.
#[test]
fn folders_are_converted_to_every_quantizable_type() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let folder = folder.join("ts4m-hf");
    let prompt = ids(&json(&folder.join("ref.json"))["ids"]);
    let reference = npy(&folder.join("ref_logits_f32.npy"));
    for ty in TensorType::quantizable() {
        let name = ty.name().to_lowercase();
        let bound = match &*name {
            "f32" | "f16" => 1e-5,
            "bf16" => 0.02,
            "q8_0" => 0.05,
            "q6_k" => 0.15,
            "q5_0" | "q5_1" | "q5_k" => 0.25,
            "q4_0" | "q4_1" | "q4_k" => 0.5,
            _ => 8.0 * ty.quantization_error(),
        };
        let all = logits(&Compute::reference(), &folder, &name, &prompt);
        let squares = all.iter().zip(&reference).map(|(a, b)| (a - b) * (a - b));
        let mean = (squares.sum::<f32>() / all.len() as f32).sqrt();
        assert!(mean <= bound, "{name}: off by {mean} on average");
    }
}

/// Splits a file into parts like llama.cpp's gguf-split. Returns the path of the first part.
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
fn a_split_file_equals_the_whole_one() {
    let prompt: Vec<u32> = (0..9).map(|i| i * 31 % 280).collect();
    let whole = tiny("qwen3.gguf");
    let parts = split(
        &whole,
        &Path::new(env!("CARGO_TARGET_TMPDIR")).join("split"),
        3,
    );
    let cpu = Compute::reference();
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
