//! Converted tensors: every range of bytes, and shapes that are rejected.

use super::*;
use crate::{tensor_types::TensorType, weights::BytesSource};

fn stored(offset_bytes: u64, rows: u64) -> TensorInfo {
    TensorInfo {
        name: String::new(),
        shape: vec![32, rows],
        ty: TensorType::F32,
        offset_bytes,
        size_bytes: 128 * rows,
    }
}

/// Every range of bytes equals that of all tensors converted at once, with parts stacked and numbers added.
#[test]
fn every_range_equals_that_of_the_whole() {
    let values: Vec<f32> = (0..32 * 5).map(|i| (i % 37) as f32 - 9.0).collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let recipe = |name: &str, shape: &[u64], ty, origin| Recipe {
        name: name.into(),
        shape: shape.to_vec(),
        ty,
        origin,
    };
    let rows = |at, count, plus| Part::Rows(stored(at, count), plus);
    let stack = Origin::Stored(vec![rows(2 * 128, 3, 0.0), rows(0, 2, 0.0)]);
    let transposed = Origin::Stored(vec![Part::Transposed(stored(128, 4)); 2]);
    // Two matrices of two rows, of which the second ones are taken.
    let pairs = TensorInfo {
        shape: vec![32, 2, 2],
        ..stored(128, 4)
    };
    let seconds = Selection::half(&pairs, 1).unwrap();
    let seconds = Origin::Stored(vec![Part::Selected(pairs, seconds)]);
    let negated = Origin::Stored(vec![Part::NegatedExp(stored(0, 1))]);
    let odd = Origin::Stored(vec![Part::Alternate(stored(0, 2), 1)]);
    // Factors of one row, and of the others.
    let factors = RowFactors(vec![(1, 3.0), (2, -0.5)]);
    let scaled = Origin::Stored(vec![Part::Scaled(stored(128, 4), factors)]);
    // 10 outputs of 2 channels of 2 frames of 4 pixels.
    let kernels = TensorInfo {
        shape: vec![4, 2, 2, 10],
        ..stored(0, 5)
    };
    let recipes = vec![
        recipe("stack", &[32, 5], TensorType::Q8_0, stack),
        recipe(
            "same",
            &[32, 2],
            TensorType::F32,
            Origin::Stored(vec![rows(128, 2, 0.0)]),
        ),
        recipe(
            "more",
            &[32, 1],
            TensorType::F32,
            Origin::Stored(vec![rows(0, 1, 1.0)]),
        ),
        recipe("turned", &[4, 64], TensorType::F16, transposed),
        recipe(
            "framed",
            &[8, 10],
            TensorType::F16,
            Origin::Stored(vec![Part::Frame(kernels, 1)]),
        ),
        recipe("odd", &[16, 2], TensorType::F32, odd),
        recipe("negated", &[32], TensorType::F32, negated),
        recipe("scaled", &[32, 4], TensorType::F16, scaled),
        recipe("seconds", &[32, 1, 2], TensorType::Q8_0, seconds),
        recipe(
            "made",
            &[2],
            TensorType::F32,
            Origin::Values(vec![0.5, 0.25]),
        ),
    ];
    let made = ConvertedSource::new(BytesSource(bytes), Metadata::new(), recipes);
    let (gguf, source) = made.unwrap();
    let mut whole = TensorType::Q8_0.quantize(&values[64..]);
    whole.extend(TensorType::Q8_0.quantize(&values[..64]));
    let floats = values[32..96].iter().copied();
    let floats = floats.chain(values[..32].iter().map(|value| value + 1.0));
    whole.extend(floats.flat_map(f32::to_le_bytes));
    let turned: Vec<f32> = (0..4 * 32)
        .map(|i| values[32 + i % 4 * 32 + i / 4])
        .collect();
    for _ in 0..2 {
        whole.extend(TensorType::F16.quantize(&turned));
    }
    let second = values.chunks_exact(4).skip(1).step_by(2);
    whole.extend(TensorType::F16.quantize(&second.collect::<Vec<_>>().concat()));
    let odd = values[..64].iter().skip(1).step_by(2);
    whole.extend(odd.flat_map(|value| value.to_le_bytes()));
    let negated = values[..32].iter().map(|value| -value.exp());
    whole.extend(negated.flat_map(f32::to_le_bytes));
    let scaled = values[32..].iter().enumerate();
    let scaled = scaled.map(|(i, value)| value * if i < 32 { 3.0 } else { -0.5 });
    whole.extend(TensorType::F16.quantize(&scaled.collect::<Vec<_>>()));
    let seconds = [&values[64..96], &values[128..160]].concat();
    whole.extend(TensorType::Q8_0.quantize(&seconds));
    whole.extend([0.5f32, 0.25].iter().flat_map(|value| value.to_le_bytes()));
    assert_eq!(source.size_bytes(), whole.len() as u64);
    assert_eq!(gguf.tensor("more").unwrap().offset_bytes, 5 * 34 + 256);
    for start in (0..whole.len()).step_by(7) {
        for end in (start..=whole.len()).step_by(5) {
            let mut bytes = vec![0; end - start];
            pollster::block_on(source.read_at(start as u64, &mut bytes)).unwrap();
            assert_eq!(bytes, whole[start..end], "{start}..{end}");
        }
    }
}

#[test]
fn shapes_that_differ_from_the_origin_are_rejected() {
    let recipe = Recipe {
        name: "stack".into(),
        shape: vec![32, 4],
        ty: TensorType::F32,
        origin: Origin::Stored(vec![Part::Rows(stored(0, 3), 0.0)]),
    };
    let made = ConvertedSource::new(BytesSource([]), Metadata::new(), vec![recipe]);
    assert!(made.unwrap_err().to_string().contains("\"stack\""));
}
