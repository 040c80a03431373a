//! Hugging Face folders of the models in `images`, in memory: `folder.json` says which tensors of the files are those of
//! a checkpoint.

use std::collections::BTreeMap;

use inpage::{
    Error,
    weights::{BytesSource, Gguf, ModelFiles},
};
use pollster::block_on;
use serde_json::{Value, json};

use crate::image_files::ImageFiles;

/// A folder in memory.
pub struct Folder(BTreeMap<String, Vec<u8>>);

impl ModelFiles for Folder {
    type Source = BytesSource<Vec<u8>>;

    fn gguf_name(&self) -> Option<String> {
        None
    }

    async fn open(&self, name: &str) -> Result<Option<Self::Source>, Error> {
        Ok(self.0.get(name).cloned().map(BytesSource))
    }
}

impl Folder {
    /// The bytes of one of its files.
    pub fn file(&self, name: &str) -> &[u8] {
        &self.0[name]
    }

    /// The folder with another file.
    pub fn with(mut self, name: &str, bytes: Vec<u8>) -> Folder {
        self.0.insert(name.to_owned(), bytes);
        self
    }

    /// The folder of the model in `files`, a text model and its tower. Its tensors are f32.
    pub fn of(files: &ImageFiles) -> Folder {
        let description = files.json("folder.json");
        let files = files.ggufs();
        let (mut header, mut data) = (serde_json::Map::new(), Vec::<u8>::new());
        for (name, place) in description["tensors"].as_object().unwrap() {
            let file = &files[place[0].as_u64().unwrap() as usize];
            let heads = place[3].as_u64().unwrap() as usize;
            let values = elements(file, &place[1], place[2].as_str().unwrap(), heads);
            let start = data.len();
            data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let offsets = [start, data.len()];
            let entry = json!({"dtype": "F32", "shape": place[4], "data_offsets": offsets});
            header.insert(name.clone(), entry);
        }
        let header = serde_json::to_vec(&header).unwrap();
        let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
        tensors.extend(header);
        tensors.extend(data);
        let mut files = BTreeMap::from([("model.safetensors".to_owned(), tensors)]);
        for name in ["config.json", "preprocessor_config.json"] {
            let bytes = serde_json::to_vec(&description[name]).unwrap();
            files.insert(name.to_owned(), bytes);
        }
        Folder(files)
    }

    /// A JSON file of the folder, to change.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut json = serde_json::from_slice(&self.0[name]).unwrap();
        change(&mut json);
        let bytes = serde_json::to_vec(&json).unwrap();
        self.0.insert(name.to_owned(), bytes);
    }
}

/// The elements of a tensor of the checkpoint, which is one of the file or several.
fn elements(
    (gguf, source): &(Gguf, BytesSource<Vec<u8>>),
    names: &Value,
    form: &str,
    heads: usize,
) -> Vec<f32> {
    let read = |name: &Value| {
        let tensor = gguf.tensor(name.as_str().unwrap()).unwrap();
        let values = block_on(tensor.read_f32(source)).unwrap();
        (values, tensor.shape.clone())
    };
    let parts: Vec<_> = match names.as_array() {
        Some(names) => names.iter().map(read).collect(),
        None => vec![read(names)],
    };
    let cols = parts[0].1[0] as usize;
    let joined: Vec<f32> = parts
        .iter()
        .flat_map(|(values, _)| values)
        .copied()
        .collect();
    match form {
        // The shapes of "squeezed" ones have one dimension less in the file.
        "as it is" | "squeezed" => joined,
        // Kernels of three channels each become rows of pixels.
        "channels last" => {
            let kernels = joined.chunks_exact(cols * cols * 3);
            let pixel = |kernel: &[f32], at: usize| {
                kernel
                    .iter()
                    .skip(at)
                    .step_by(cols * cols)
                    .copied()
                    .collect::<Vec<f32>>()
            };
            kernels
                .flat_map(|kernel| (0..cols * cols).flat_map(move |at| pixel(kernel, at)))
                .collect()
        }
        "negated exponential" => joined.into_iter().map(|value| (-value).ln()).collect(),
        "plus one" => joined.into_iter().map(|value| value - 1.0).collect(),
        // Rows 2k and 2k + 1 of a head in the file are k and half + k of the checkpoint.
        "interleaved" => {
            let head_rows = joined.len() / cols / heads;
            let row = |row: usize| {
                let (head, within) = (row / head_rows, row % head_rows);
                let half = head_rows / 2;
                let from = head * head_rows + within % half * 2 + within / half;
                joined[from * cols..(from + 1) * cols].to_vec()
            };
            (0..heads * head_rows).flat_map(row).collect()
        }
        // The kernels of a convolution: each channel has the pixels of one tensor, then those of the next.
        "frames" => {
            let pixels = cols * parts[0].1[1] as usize;
            let channels = 0..parts[0].0.len() / pixels;
            let channel = |at: usize| {
                let parts = parts.iter();
                parts.flat_map(move |(values, _)| &values[at * pixels..(at + 1) * pixels])
            };
            channels.flat_map(channel).copied().collect()
        }
        other => panic!("a form {other:?}"),
    }
}
