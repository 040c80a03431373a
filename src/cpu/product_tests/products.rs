//! Products: equal bits on all instruction sets, and closeness to the product of floats.

use super::matrices::{Packed, Random, activations, bits, file_block};
use crate::{
    activations::Activations,
    product::{InstructionSet, Job, multiply},
    tensor_types::{ScaleWord, TensorType},
};

/// Columns to test: one unit, several.
fn widths(ty: TensorType) -> [usize; 3] {
    [1, 3, 10].map(|units| units * ty.unit_cols())
}

#[test]
fn instruction_sets_give_equal_bits() {
    let mut random = Random(3);
    for &ty in TensorType::ALL {
        for rows in [1, 7, 8, 13] {
            for cols in widths(ty) {
                let packed = Packed::random(ty, rows, cols, &mut random);
                for tokens in [1, 2, 3, 5, 8, 9] {
                    let x = random.floats(tokens * cols);
                    let x = activations(&x, cols, ty);
                    for range in [0..rows, rows / 2..rows, rows / 3..rows - rows / 4, 1..1] {
                        let expected = packed.product(range.clone(), &x, InstructionSet::Scalar);
                        assert!(expected.iter().all(|x| x.is_finite()));
                        for set in InstructionSet::available() {
                            let found = packed.product(range.clone(), &x, set);
                            assert_eq!(
                                bits(&found),
                                bits(&expected),
                                "{ty:?} on {set:?}, {rows} rows, {cols} columns, {tokens} tokens, {range:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The inputs as quantized, in f64.
fn dequantized(x: &[f32], ty: TensorType) -> Vec<f64> {
    if ty.unit_cols() == 4 {
        return x.iter().map(|&x| x.into()).collect();
    }
    let blocks = x.chunks(32).flat_map(|block| {
        let greatest = block
            .iter()
            .fold(0.0f32, |greatest, x| greatest.max(x.abs()));
        let scale = f64::from(greatest / 127.0);
        block.iter().map(move |&x| {
            let q = (x * (127.0 / greatest)).round_ties_even();
            f64::from(q) * scale
        })
    });
    blocks.collect()
}

#[test]
fn products_are_close_to_those_of_floats() {
    let mut random = Random(4);
    for &ty in TensorType::ALL {
        for cols in [ty.unit_cols(), 1024] {
            let rows = 11;
            let packed = Packed::random(ty, rows, cols, &mut random);
            let x = random.floats(3 * cols);
            let mut found = vec![0.0; 3 * rows];
            multiply(
                packed.matrix(),
                0..rows,
                &activations(&x, cols, ty),
                1,
                &mut found,
            );
            for (token, x) in dequantized(&x, ty).chunks(cols).enumerate() {
                for row in 0..rows {
                    let products = packed
                        .row(row)
                        .into_iter()
                        .zip(x)
                        .map(|(w, x)| f64::from(w) * x);
                    let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| {
                        (sum + product, size + f64::abs(product))
                    });
                    let error = (f64::from(found[token * rows + row]) - sum).abs();
                    // Roundings of 2^-24 each, of partial sums that are at most `size`.
                    let bound = size * 40.0 / f64::from(1 << 24) + 1e-30;
                    assert!(
                        error <= bound,
                        "{ty:?} {cols} columns, token {token}, row {row}: {sum} is off by {error}, more than {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_token_depends_neither_on_others_nor_on_the_division_of_rows() {
    let mut random = Random(5);
    for &ty in TensorType::ALL {
        let (rows, cols) = (29, 4 * ty.unit_cols());
        let packed = Packed::random(ty, rows, cols, &mut random);
        let inputs = random.floats(9 * cols);
        let together = activations(&inputs, cols, ty);
        let mut all = vec![0.0; 9 * rows];
        multiply(packed.matrix(), 0..rows, &together, 1, &mut all);
        let mut x = Activations::default();
        for (token, inputs) in inputs.chunks(cols).enumerate() {
            x.set(inputs, cols, ty);
            let mut alone = vec![0.0; rows];
            multiply(packed.matrix(), 0..rows, &x, 1, &mut alone);
            assert_eq!(bits(&alone), bits(&all[token * rows..][..rows]), "{ty:?}");
        }
        // Parts write only what is theirs: panels 0, 1 and 2..=3, of which some rows are outside of the range.
        let range = 3..26;
        let mut parts = vec![-0.0; 9 * range.len()];
        let job = Job::new(
            packed.matrix(),
            range.clone(),
            &together,
            parts.as_mut_ptr(),
        );
        let mut seen = 0;
        for (part, written_rows) in [(2, 10), (0, 5), (1, 8)] {
            // SAFETY: `parts` has the size.
            unsafe { job.run_with(InstructionSet::best(), part, 3) };
            seen += written_rows;
            let written = parts
                .iter()
                .filter(|x| x.to_bits() != (-0.0f32).to_bits())
                .count();
            assert_eq!(written, 9 * seen, "{ty:?} {part}");
        }
        for token in 0..9 {
            let expected = &all[token * rows..][range.clone()];
            assert_eq!(
                bits(&parts[token * range.len()..][..range.len()]),
                bits(expected)
            );
        }
        for parts in [0, 2, 3, 400] {
            let mut divided = vec![0.0; 9 * rows];
            multiply(packed.matrix(), 0..rows, &together, parts, &mut divided);
            assert_eq!(bits(&divided), bits(&all), "{ty:?}, {parts} parts");
        }
    }
}

/// Rows of blocks whose quants have all bits of `byte`, and scales of 1.
fn uniform_rows(ty: TensorType, byte: u8, rows: usize, cols: usize) -> Vec<u8> {
    let (bytes, scales) = file_block(ty);
    let mut block = vec![byte; bytes];
    for &at in scales {
        block[at..at + 2].copy_from_slice(&0x3c00u16.to_le_bytes());
    }
    if ty.has_scales() && ty.scale_word(0) == ScaleWord::Exponents {
        block[0] = 127;
    }
    if ty == TensorType::IQ1_M {
        // Its d is in four parts.
        let parts = block[48..].iter_mut().skip(1).step_by(2);
        parts
            .zip([0x00, 0x00, 0xc0, 0x30])
            .for_each(|(byte, bits)| *byte = *byte & 15 | bits);
    }
    block.repeat(rows * cols / ty.unit_cols())
}

#[test]
fn extreme_weights_do_not_saturate() {
    for &ty in TensorType::ALL.iter().filter(|ty| ty.unit_cols() > 4) {
        let cols = 512;
        for byte in [0x00, 0x7f, 0x80, 0xff, 0x88, 0x77, 0x08, 0x80 | 0x07] {
            let packed = Packed::new(ty, cols, &uniform_rows(ty, byte, 9, cols));
            let alternating: Vec<f32> = (0..cols).map(|i| [1.0, -1.0][i % 2]).collect();
            for x in [vec![1.0; cols], vec![-1.0; cols], alternating] {
                let prepared = activations(&x, cols, ty);
                let weights = packed.row(0).into_iter();
                let products = weights.zip(&x).map(|(w, x)| f64::from(w) * f64::from(*x));
                let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| {
                    (sum + product, size + f64::abs(product))
                });
                for set in InstructionSet::available() {
                    for found in packed.product(0..9, &prepared, set) {
                        let error = (f64::from(found) - sum).abs();
                        assert!(
                            error <= size * 1e-5,
                            "{ty:?} on {set:?}, bytes {byte:x}: {found}, not {sum}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn inputs_that_are_not_finite_show_in_their_token() {
    let mut random = Random(6);
    for &ty in TensorType::ALL {
        let (rows, cols) = (9, 2 * ty.unit_cols());
        let packed = Packed::random(ty, rows, cols, &mut random);
        for value in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = random.floats(6 * cols);
            // In the tile of 4, and in the one of 2.
            x[cols + cols / 2] = value;
            x[5 * cols - 1] = value;
            let x = activations(&x, cols, ty);
            let expected = packed.product(0..rows, &x, InstructionSet::Scalar);
            for set in InstructionSet::available() {
                let found = packed.product(0..rows, &x, set);
                assert_eq!(bits(&found), bits(&expected), "{ty:?} on {set:?}");
                for (token, found) in found.chunks(rows).enumerate() {
                    let finite = token != 1 && token != 4;
                    assert!(
                        found.iter().all(|x| x.is_finite() == finite),
                        "{ty:?} on {set:?}, token {token} of {value}: {found:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn zero_and_tiny_inputs_give_zero_or_tiny_results() {
    let mut random = Random(7);
    for &ty in TensorType::ALL {
        let cols = ty.unit_cols();
        let packed = Packed::random(ty, 8, cols, &mut random);
        for value in [0.0, -0.0, 1e-45, 1e-38, f32::MIN_POSITIVE] {
            let x = activations(&vec![value; 5 * cols], cols, ty);
            for set in InstructionSet::available() {
                let found = packed.product(0..8, &x, set);
                assert!(found.iter().all(|x| x.abs() < 1e-30), "{ty:?} on {set:?}");
            }
        }
        let huge = activations(&vec![f32::MAX; cols], cols, ty);
        let scalar = packed.product(0..8, &huge, InstructionSet::Scalar);
        for set in InstructionSet::available() {
            assert_eq!(bits(&packed.product(0..8, &huge, set)), bits(&scalar));
        }
    }
}

#[test]
fn scales_that_are_not_finite_show() {
    let mut random = Random(8);
    for &ty in TensorType::ALL {
        let (_, scales) = file_block(ty);
        for half in [0x7c00u16, 0xfc00, 0x7e01] {
            for &at in scales {
                let cols = 2 * ty.unit_cols();
                let mut file = uniform_rows(ty, 0x5b, 8, cols);
                file[at..at + 2].copy_from_slice(&half.to_le_bytes());
                let packed = Packed::new(ty, cols, &file);
                let x = activations(&random.floats(cols), cols, ty);
                let expected = packed.product(0..8, &x, InstructionSet::Scalar);
                assert!(!expected[0].is_finite() && expected[1..].iter().all(|x| x.is_finite()));
                for set in InstructionSet::available() {
                    assert_eq!(bits(&packed.product(0..8, &x, set)), bits(&expected));
                }
            }
        }
    }
}
