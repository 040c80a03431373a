//! Encodes the values of a tensor in another type, and refuses values that the type cannot hold.

use super::quoted::quoted;
use crate::{Error, Result, tensor_types::TensorType};

/// Magnitudes from here on become infinite in 16-bit floats, which are the values of F16 and the scales of most blocks.
const BEYOND_F16: f32 = 65_520.0;

/// `values` of the tensor `name` as type `ty`.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming the tensor if a finite value would not stay finite.
pub fn encode(name: &str, ty: TensorType, values: &[f32]) -> Result<Vec<u8>> {
    let bytes = ty.quantize(values);
    let is_large = |value: &&f32| value.is_finite() && value.abs() >= BEYOND_F16;
    if let Some(large) = values.iter().find(is_large) {
        let mut decoded = vec![0.0; values.len()];
        ty.dequantize(&bytes, &mut decoded);
        let mut pairs = values.iter().zip(&decoded);
        if pairs.any(|(value, decoded)| value.is_finite() && !decoded.is_finite()) {
            return Err(Error::UnsupportedModel(format!(
                "tensor {} has the value {large:e}, which is beyond the range of {ty}; \"quantize\": \"bf16\" can hold it",
                quoted(name)
            )));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_range_of_a_type_are_refused_by_name() {
        let mut values = [1.0f32; 32];
        let encoded = |ty: TensorType, values: &[f32]| encode("blk.0.x", ty, values);
        for (value, ty, fits) in [
            (65_519.0, TensorType::F16, true),
            (65_520.0, TensorType::F16, false),
            (-1e5, TensorType::F16, false),
            // Values that are infinite in the file stay as they are.
            (f32::INFINITY, TensorType::F16, true),
            (-1e5, TensorType::BF16, true),
            (1e30, TensorType::F32, true),
            // The scale of a block is a 127th and an 8th of the largest value.
            (1e5, TensorType::Q8_0, true),
            (1e7, TensorType::Q8_0, false),
            (1e5, TensorType::Q4_0, true),
            (1e6, TensorType::Q4_0, false),
        ] {
            values[7] = value;
            let result = encoded(ty, &values);
            assert_eq!(result.is_ok(), fits, "{value} as {ty}");
            if let Err(error) = result {
                let error = error.to_string();
                assert!(error.contains("blk.0.x"), "{error}");
                assert!(error.contains("bf16"), "{error}");
            }
        }
    }
}
