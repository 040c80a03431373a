//! The tiny models in `models` as Hugging Face folders. The member `folder` of a model's reference
//! (`scripts/references/make.py`) describes the folder. Weights and references are those of the GGUF file. Tests the names, configurations,
//! transposed matrices, norms and rotary embeddings of every architecture.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use inpage::{
    Result,
    model::{Checkpoint, LoadOptions, Quantize, architecture_names},
    ops::kv_memory::KvFormat,
    weights::{ByteSource, BytesSource, FileSource, Gguf, ModelFiles},
};
use pollster::block_on;
use serde_json::{Value, json};

use crate::{
    architectures::{models, reference, tolerance},
    fixture::{Compute, floats, ids, load, sequence},
    recent_folders,
    references::{assert_greedy, assert_parity},
};

/// A folder in memory.
pub struct Folder(pub BTreeMap<String, Vec<u8>>);

impl ModelFiles for Folder {
    type Source = BytesSource<Vec<u8>>;

    fn gguf_name(&self) -> Option<String> {
        None
    }

    async fn open(&self, name: &str) -> Result<Option<Self::Source>> {
        Ok(self.0.get(name).cloned().map(BytesSource))
    }
}

/// A matrix or a vector: rows, columns, elements.
struct Array {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Array {
    /// The elements, with element `of(i)` at `i`.
    fn permuted(&self, of: impl Fn(usize) -> usize) -> Vec<f32> {
        let indices = 0..self.values.len();
        indices.map(|i| self.values[of(i)]).collect()
    }

    /// The elements as in the checkpoint. `form` is the form in which the GGUF file has them.
    fn as_in_a_checkpoint(&self, form: &str, heads: usize) -> Vec<f32> {
        let (rows, cols) = (self.rows, self.cols);
        match form {
            "as it is" => self.values.clone(),
            "plus one" => self.values.iter().map(|value| value - 1.0).collect(),
            "transposed" => self.permuted(|i| i % rows * cols + i / rows),
            // Rows 2k and 2k + 1 of a head in the file are k and half + k of the checkpoint.
            "interleaved" => self.permuted(|i| {
                let (row, head_rows) = (i / cols, rows / heads);
                let (head, within) = (row / head_rows, row % head_rows);
                let half = head_rows / 2;
                let row = head * head_rows + within % half * 2 + within / half;
                row * cols + i % cols
            }),
            other => panic!("a form {other:?}"),
        }
    }
}

/// The elements of a tensor, or of one expert in it.
fn array(gguf: &Gguf, source: &FileSource, name: &str, expert: Option<u64>) -> Array {
    let tensor = gguf.tensor(name).unwrap_or_else(|| panic!("no {name}"));
    let mut bytes = vec![0; tensor.size_bytes as usize];
    block_on(source.read_at(tensor.offset_bytes, &mut bytes)).unwrap();
    let mut values = vec![0.0; tensor.element_count() as usize];
    tensor.ty.dequantize(&bytes, &mut values);
    let (cols, mut rows) = (tensor.shape[0] as usize, tensor.row_count() as usize);
    if let Some(expert) = expert {
        rows = tensor.shape[1] as usize;
        let len = rows * cols;
        values = values[expert as usize * len..][..len].to_vec();
    }
    Array { rows, cols, values }
}

/// The folder of the model in a GGUF file.
fn folder(path: &Path) -> Folder {
    let source = FileSource::open(path).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let description = &reference(path)["folder"];
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, place) in description["tensors"].as_object().unwrap() {
        let form = place[1].as_str().unwrap();
        let heads = place[2].as_u64().unwrap() as usize;
        let tensor = place[0].as_str().unwrap();
        let array = array(&gguf, &source, tensor, place[3].as_u64());
        let values = array.as_in_a_checkpoint(form, heads);
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let shape = match (form, gguf.tensor(tensor).unwrap().shape.len()) {
            ("transposed", _) => vec![array.cols, array.rows],
            (_, 1) => vec![array.cols],
            _ => vec![array.rows, array.cols],
        };
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    let config = description["config"].to_string().into_bytes();
    Folder(BTreeMap::from([
        ("config.json".to_owned(), config),
        ("model.safetensors".to_owned(), file),
    ]))
}

#[test]
fn every_architecture_meets_its_references_as_a_folder() {
    let options = LoadOptions {
        context_tokens: Some(512),
        kv_format: KvFormat::F32,
        quantize: Quantize::None,
        ..LoadOptions::default()
    };
    let mut architectures = BTreeSet::new();
    for (name, path) in models() {
        let Checkpoint { gguf, source } = block_on(Checkpoint::open(&folder(&path), &options))
            .unwrap_or_else(|error| {
                panic!("{name}: {error}");
            });
        let architecture = gguf.metadata.str("general.architecture").unwrap();
        architectures.insert(architecture.unwrap().to_owned());
        let model = load(Compute::reference(), &gguf, &source, options, |_, _| ());
        let mut model = block_on(model).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reference = reference(&path);
        let last = floats(&reference["last_logits"]);
        let mut kv = sequence(&model);
        let all = block_on(model.feed_all(&mut kv, &ids(&reference["ids"]))).unwrap();
        let (row, tolerance) = (&all[all.len() - last.len()..], tolerance(&name));
        assert_parity(&name, row, &last, tolerance);
        assert_greedy(&name, &all, &ids(&reference["greedy_next"]), tolerance);
    }
    architectures.extend(recent_folders::architectures());
    // `tests/parity/embeddings.rs` has those that generate no text, `grid_images.rs` those of folders with a tower, `converted.rs`
    // those whose converter changes more than names.
    let others = [
        "bert",
        "nomic-bert",
        "gemma-embedding",
        "qwen2vl",
        "qwen3vl",
        "falcon-h1",
        "nanbeige",
        "bitnet",
        "bitnet-b1.58",
        "qwen3next",
        "eurobert",
        "deepseek2",
        "llama4",
    ];
    for name in architecture_names().filter(|name| !others.contains(name)) {
        assert!(architectures.contains(name), "no model of {name}");
    }
}
