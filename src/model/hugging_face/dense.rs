//! The dense layers of a folder of sentence-transformers: each is a subfolder with a `config.json` and a safetensors
//! file of one matrix.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error, Result,
    weights::{quoted::quoted, safetensors::StoredTensor},
};

/// The only function after the product that is computed: none.
const IDENTITY: &str = "torch.nn.modules.linear.Identity";
/// Name of the matrix in its file.
const MATRIX: &str = "linear.weight";
/// The input of layers, by the name that sentence-transformers gives the pooled vector.
const POOLED: &str = "sentence_embedding";

/// A layer without a bias.
#[derive(Debug, PartialEq, Eq)]
pub struct Dense {
    folder: String,
    /// Length of the vectors that it multiplies.
    pub cols: u32,
    /// Length of the products.
    pub rows: u32,
}

/// A layer's `config.json`.
#[derive(Deserialize)]
struct DenseJson {
    in_features: u32,
    out_features: u32,
    /// Whether the layer has a bias; true if the member is missing.
    #[serde(default = "with_bias")]
    bias: bool,
    /// The class of the function; the hyperbolic tangent if the member is missing.
    #[serde(default)]
    activation_function: Option<String>,
    #[serde(default)]
    module_input_name: Option<String>,
    #[serde(default)]
    module_output_name: Option<String>,
}

fn with_bias() -> bool {
    true
}

impl Dense {
    /// The layer in `folder`, whose `config.json` is called `file` and holds `config`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming what this build does not compute, [`Error::InvalidModelFile`] for missing
    /// and mistyped members.
    pub fn read(folder: &str, file: &str, config: Value) -> Result<Dense> {
        let json: DenseJson = serde_json::from_value(config)
            .map_err(|error| Error::InvalidModelFile(format!("{file}: {error}")))?;
        let unsupported = |what: &str| Err(Error::UnsupportedModel(format!("{file}: {what}")));
        if json.bias {
            return unsupported("a dense layer with a bias");
        }
        let activation = json.activation_function.unwrap_or_default();
        if activation != IDENTITY {
            return unsupported(&format!("activation_function {}", quoted(&activation)));
        }
        for (key, name) in [
            ("module_input_name", json.module_input_name),
            ("module_output_name", json.module_output_name),
        ] {
            if let Some(name) = name.filter(|name| name != POOLED) {
                return unsupported(&format!("{key} {}", quoted(&name)));
            }
        }
        Ok(Dense {
            folder: folder.to_owned(),
            cols: json.in_features,
            rows: json.out_features,
        })
    }

    /// Name of the file with the matrix.
    pub fn file(&self) -> String {
        format!("{}/model.safetensors", self.folder)
    }

    /// The matrix, which must be the only one of the file's `tensors`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming another tensor, [`Error::InvalidModelFile`] for a matrix that is missing or
    /// has another shape than `config.json` says.
    pub fn matrix(&self, tensors: Vec<StoredTensor>) -> Result<StoredTensor> {
        let file = self.file();
        if let Some(other) = tensors.iter().find(|tensor| tensor.name != MATRIX) {
            let name = quoted(&other.name);
            return Err(Error::UnsupportedModel(format!(
                "{file} with a tensor {name}"
            )));
        }
        let missing = || Error::InvalidModelFile(format!("{file} has no tensor {MATRIX:?}"));
        let matrix = tensors.into_iter().next().ok_or_else(missing)?;
        let shape = [u64::from(self.cols), u64::from(self.rows)];
        if matrix.shape != shape {
            return Err(Error::InvalidModelFile(format!(
                "{file}: tensor {MATRIX:?} has shape {:?}, not {shape:?}",
                matrix.shape
            )));
        }
        Ok(matrix)
    }
}
