//! Scales that are tensors of their own: of matrices of 8-bit floats or of three levels, and of MXFP4 blocks. Finds which tensor each belongs to.

use std::collections::{HashMap, HashSet};

use crate::{
    Error, Result,
    model::{architectures::Form, config::ConfigJson},
    weights::{
        converted::{Part, Selection},
        quoted::quoted,
        safetensors::StoredTensor,
        scaled::{Fp8, Mxfp4},
        ternary::Ternary,
    },
};

/// Suffixes of scales of weights, after the name of the module.
const OF_WEIGHTS: [&str; 2] = [".weight_scale_inv", ".weight_scale"];
/// Ends of names of the scales of activations and of K and V, which stay floats here.
const OF_ACTIVATIONS: [&str; 4] = ["activation_scale", ".input_scale", ".k_scale", ".v_scale"];

/// The scales of a folder by the name of the tensor that they belong to.
pub struct Scales {
    tensors: HashMap<String, StoredTensor>,
    /// Columns and rows of the elements that a scale belongs to, if the configuration states them.
    rectangle: Option<[u64; 2]>,
    /// Scales of matrices of three levels are reciprocals.
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
        for tensor in stored {
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
        let scales = Scales {
            tensors,
            rectangle,
            are_reciprocals: quantization.str("linear_class")? != Some("autobitlinear"),
        };
        Ok((scales, others))
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
