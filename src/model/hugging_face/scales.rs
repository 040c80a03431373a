//! Scales that are tensors of their own: of matrices of 8-bit floats or of three levels, of MXFP4 blocks and of NVFP4. Finds
//! which tensor each belongs to.

use std::collections::{HashMap, HashSet};

use crate::{
    Error, Result,
    model::{architectures::Form, config::ConfigJson},
    weights::{
        converted::{Part, Selection},
        nvfp4::Nvfp4,
        quoted::quoted,
        safetensors::StoredTensor,
        scaled::{Fp8, Mxfp4},
        ternary::Ternary,
    },
};

/// Suffixes of scales of weights, after the name of the module.
const OF_WEIGHTS: [&str; 2] = [".weight_scale_inv", ".weight_scale"];
/// Ends of names of the scales of activations and of K and V, which stay floats here.
const OF_ACTIVATIONS: [&str; 5] = [
    "activation_scale",
    ".input_scale",
    ".input_global_scale",
    ".k_scale",
    ".v_scale",
];
/// Ends of names of the factor of a matrix of NVFP4. The second is that of its reciprocal.
const OF_MATRICES: [&str; 2] = [".weight_scale_2", ".weight_global_scale"];
/// The end of names of matrices of NVFP4 whose factor is a reciprocal.
const PACKED: &str = ".weight_packed";

/// The scales of a folder by the name of the tensor that they belong to.
pub struct Scales {
    tensors: HashMap<String, StoredTensor>,
    /// Factors of matrices of NVFP4 by the name of the matrix.
    factors: HashMap<String, StoredTensor>,
    /// Columns and rows of the elements that a scale belongs to, if the configuration states them.
    rectangle: Option<[u64; 2]>,
    /// Whether scales of matrices of three levels are reciprocals.
    are_reciprocals: bool,
}

impl Scales {
    /// Takes the scales out of the tensors of a folder.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for a configuration of another type, and naming scales whose tensor the folder lacks or
    /// has other scales for.
    pub fn take(
        config: &ConfigJson,
        stored: Vec<StoredTensor>,
    ) -> Result<(Scales, Vec<StoredTensor>)> {
        let quantization = config.object("quantization_config")?;
        let Some(quantization) = quantization else {
            let none = Scales {
                tensors: HashMap::new(),
                factors: HashMap::new(),
                rectangle: None,
                are_reciprocals: false,
            };
            return Ok((none, stored));
        };
        let sizes = quantization.numbers("weight_block_size")?;
        let rectangle = match sizes.as_deref() {
            Some([rows, cols]) => Some([*cols as u64, *rows as u64]),
            _ => None,
        };
        let (mut scales, mut others) = (Vec::new(), Vec::new());
        let mut factors = HashMap::new();
        for mut tensor in stored {
            let of_matrix = |end: &&str| tensor.name.strip_suffix(*end);
            if let Some(module) = OF_MATRICES.iter().find_map(of_matrix) {
                factors.insert(format!("{module}.weight"), tensor);
                continue;
            }
            if let Some(module) = tensor.name.strip_suffix(PACKED) {
                tensor.name = format!("{module}.weight");
            }
            match owner(&tensor.name) {
                Some(owner) => scales.push((owner, tensor)),
                None if OF_ACTIVATIONS.iter().any(|end| tensor.name.ends_with(end)) => {}
                None => others.push(tensor),
            }
        }
        let names: HashSet<&str> = others.iter().map(|tensor| &*tensor.name).collect();
        let mut tensors: HashMap<String, StoredTensor> = HashMap::new();
        for (owner, tensor) in scales {
            let invalid = |fault: String| {
                let (owner, scales) = (quoted(&owner), quoted(&tensor.name));
                let what = format!("tensor {owner}, to which the scales {scales} belong, {fault}");
                Error::InvalidModelFile(what)
            };
            if !names.contains(&*owner) {
                return Err(invalid("is missing".into()));
            }
            if let Some(earlier) = tensors.get(&owner) {
                return Err(invalid(format!("also has {}", quoted(&earlier.name))));
            }
            tensors.insert(owner, tensor);
        }
        if let Some(owner) = factors.keys().find(|owner| !tensors.contains_key(*owner)) {
            let what = format!("tensor {} has a factor and no scales", quoted(owner));
            return Err(Error::InvalidModelFile(what));
        }
        let scales = Scales {
            tensors,
            factors,
            rectangle,
            are_reciprocals: quantization.str("linear_class")? != Some("autobitlinear"),
        };
        Ok((scales, others))
    }

    /// The factor of a matrix of NVFP4, if it has one.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] if it is not one float.
    pub fn factor(&self, matrix: &str) -> Result<Option<Part>> {
        let Some(factor) = self.factors.get(matrix) else {
            return Ok(None);
        };
        let is_reciprocal = factor.name.ends_with(OF_MATRICES[1]);
        let mut factor = factor.clone();
        if factor.shape.iter().any(|len| *len != 1) {
            let (name, shape) = (quoted(&factor.name), &factor.shape);
            let what = format!("tensor {name} has the shape {shape:?}, not that of one factor");
            return Err(Error::InvalidModelFile(what));
        }
        factor.shape = vec![1];
        let factor = factor.into_floats()?;
        Ok(Some(match is_reciprocal {
            true => Part::Reciprocal(factor),
            false => Part::Rows(factor, 0.0),
        }))
    }

    /// The part of a GGUF tensor that is made of `tensor` in this way.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming a tensor of the wrong type or shape, without its
    /// scales, or with scales that its type does not have.
    pub fn part(&self, mut tensor: StoredTensor, name: &str, form: Form) -> Result<Part> {
        let scales = self.tensors.get(&tensor.name).cloned();
        if let Form::Mxfp4(every_second) = form {
            let scales = scales.ok_or_else(|| {
                let what = format!("tensor {} has no scales", tensor.name);
                Error::InvalidModelFile(what)
            })?;
            let blocks = Mxfp4::new(tensor, scales, every_second)?;
            return Ok(Part::Mxfp4(Box::new(blocks)));
        }
        if let ("U8", Form::SAME, Some(scale)) = (&*tensor.dtype, form, &scales)
            && scale.dtype == "F8_E4M3"
        {
            let matrix = Nvfp4::new(tensor, scale.clone())?;
            return Ok(Part::Nvfp4(Box::new(matrix)));
        }
        if let ("U8", Form::SAME, Some(scale)) = (&*tensor.dtype, form, &scales) {
            let scale = scale.clone().into_floats()?;
            let matrix = Ternary::new(tensor, scale, self.are_reciprocals)?;
            return Ok(Part::Ternary(Box::new(matrix)));
        }
        if let Some(mut scales) = scales {
            let ("F8_E4M3", Form::Plus(0.0)) = (&*tensor.dtype, form) else {
                return Err(Error::UnsupportedModel(format!(
                    "tensor {} of type {} with scales in {}",
                    quoted(&tensor.name),
                    quoted(&tensor.dtype),
                    quoted(&scales.name)
                )));
            };
            if scales.shape.is_empty() {
                scales.shape = vec![1];
            }
            let matrix = Fp8::new(tensor, scales.into_floats()?, self.rectangle)?;
            return Ok(Part::Fp8(Box::new(matrix)));
        }
        // The kernels of convolutions have one channel each.
        if name.contains("conv") && tensor.shape.len() == 3 && tensor.shape[1] == 1 {
            tensor.shape.remove(1);
        }
        let tensor = tensor.into_floats()?;
        Ok(match form {
            Form::Transposed => Part::Transposed(tensor),
            Form::TransposedHalf(half) => Part::TransposedHalf(tensor, half),
            Form::NegatedExp => Part::NegatedExp(tensor),
            Form::Alternate(first) => Part::Alternate(tensor, first),
            Form::HalfRows(half) => {
                let selection = Selection::half(&tensor, half)?;
                Part::Selected(tensor, selection)
            }
            Form::RowsFrom(first) => {
                let selection = Selection::from(&tensor, first)?;
                Part::Selected(tensor, selection)
            }
            Form::Plus(plus) => Part::Rows(tensor, plus),
            Form::Mxfp4(_) => unreachable!("handled above"),
        })
    }
}

/// The tensor that the scales called `name` belong to.
fn owner(name: &str) -> Option<String> {
    let module = OF_WEIGHTS.iter().find_map(|end| name.strip_suffix(end));
    match module {
        Some(module) => Some(format!("{module}.weight")),
        None => name
            .strip_suffix("_scales")
            .map(|it| format!("{it}_blocks")),
    }
}
