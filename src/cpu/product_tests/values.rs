//! Exact values of packed rows, against vectors of another implementation.

use super::matrices::{Packed, Random, file_block};
use crate::tensor_types::{PANEL_ROWS, TensorType};

/// TensorType, blocks and values of each line of decoded blocks.
fn vectors() -> impl Iterator<Item = (TensorType, Vec<u8>, Vec<u32>)> {
    let lines = include_str!("../../tensor_types/vectors.txt").lines();
    lines.filter_map(|line| {
        let words: Vec<&str> = line.strip_prefix("decode ")?.split(' ').collect();
        let ty = TensorType::ALL.iter().find(|ty| ty.name() == words[0])?;
        let values = unhex(words[2]);
        let values = values
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| u32::from_le_bytes(bytes));
        Some((*ty, unhex(words[1]), values.collect()))
    })
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn packed_blocks_have_the_values_of_the_vectors() {
    let mut types = Vec::new();
    for (ty, bytes, values) in vectors() {
        types.push(ty);
        let (block, _) = file_block(ty);
        let cols = values.len();
        assert_eq!(bytes.len() / block * ty.unit_cols(), cols);
        // As one row, and as a row for each block: more than a panel of Q8_0.
        for cols in [cols, ty.unit_cols()] {
            let packed = Packed::new(ty, cols, &bytes);
            for (row, values) in values.chunks(cols).enumerate() {
                let unpacked: Vec<u32> = packed.row(row).iter().map(|x| x.to_bits()).collect();
                assert_eq!(unpacked, values, "{ty:?} row {row} of {cols} columns");
            }
        }
    }
    for ty in TensorType::ALL.iter().filter(|ty| ty.has_scales()) {
        assert!(types.contains(ty), "no vectors of {ty}");
    }
}

#[test]
fn floats_have_their_own_bits() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let f16 = Packed::new(TensorType::F16, 1 << 13, &halves);
    let bf16 = Packed::new(TensorType::BF16, 1 << 13, &halves);
    for row in 0..8 {
        let (f16, bf16) = (f16.row(row), bf16.row(row));
        for (column, (f16, bf16)) in f16.into_iter().zip(bf16).enumerate() {
            let half = row << 13 | column;
            assert_eq!(bf16.to_bits(), (half as u32) << 16);
            let (exponent, mantissa) = (half >> 10 & 31, (half & 1023) as f32);
            let magnitude = match exponent {
                0 => mantissa * 2f32.powi(-24),
                31 if mantissa == 0.0 => f32::INFINITY,
                31 => f32::NAN,
                _ => (1.0 + mantissa / 1024.0) * 2f32.powi(exponent as i32 - 15),
            };
            let value = if half >> 15 == 1 {
                -magnitude
            } else {
                magnitude
            };
            assert!(
                f16.to_bits() == value.to_bits() || f16.is_nan() && value.is_nan(),
                "{half:x}"
            );
        }
    }
    let values = Random(1).floats(12 * 20);
    let f32 = Packed::new(TensorType::F32, 20, bytes(&values));
    for (row, values) in values.chunks(20).enumerate() {
        assert_eq!(f32.row(row), values);
    }
}

fn bytes(values: &[f32]) -> &[u8] {
    // SAFETY: all bits are bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), 4 * values.len()) }
}

#[test]
fn missing_rows_are_zero() {
    let mut random = Random(2);
    for &ty in TensorType::ALL {
        let cols = 2 * ty.unit_cols();
        let packed = Packed::random(ty, 3, cols, &mut random);
        assert_eq!(packed.panels.len() % 4, 0);
        for row in 3..PANEL_ROWS {
            let mut values = vec![1.0; cols];
            ty.unpack_row(&packed.panels, row, &mut values);
            assert!(values.iter().all(|&x| x == 0.0), "{ty:?} row {row}");
        }
    }
}
