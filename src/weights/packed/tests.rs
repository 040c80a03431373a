//! Packed matrices compared with plain ones: every scheme, with zeros, groups and errors.

use super::*;
use crate::weights::BytesSource;

/// Some tiles of rows; groups of which the last is not full.
const ROWS: usize = 24;
const COLS: usize = 96;
const GROUP_COLS: usize = 64;
const GROUPS: usize = 2;
const AWQ: Scheme = Scheme {
    packing: Packing::Awq,
    group_cols: Some(GROUP_COLS),
    is_symmetric: false,
    has_runs: true,
};

fn gptq(bits: usize, zero_offset: u32) -> Scheme {
    Scheme {
        packing: Packing::Gptq { bits, zero_offset },
        ..AWQ
    }
}

/// A matrix's values, row after row, its file and its tensors.
struct Matrix {
    values: Vec<f32>,
    file: Vec<u8>,
    tensors: PackedTensors,
}

/// Appends a tensor to a file.
fn add(
    file: &mut Vec<u8>,
    name: &str,
    shape: &[usize],
    dtype: &str,
    bytes: Vec<u8>,
) -> StoredTensor {
    let tensor = StoredTensor {
        name: name.into(),
        shape: shape.iter().rev().map(|&dim| dim as u64).collect(),
        dtype: dtype.into(),
        offset_bytes: file.len() as u64,
        size_bytes: bytes.len() as u64,
    };
    file.extend(bytes);
    tensor
}

fn le_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A matrix packed by the scheme; `group_of` returns the group of a column.
fn matrix(scheme: Scheme, group_of: fn(usize) -> usize) -> Matrix {
    let (bits, per_word) = (scheme.packing.bits(), scheme.packing.per_word());
    let mask = (1 << bits) - 1;
    let level = |row: usize, col: usize| ((row * 31 + col * 7 + row * col) as u32) & mask;
    let zero = |group: usize, row: usize| match scheme.is_symmetric {
        true => 1 << (bits - 1),
        false => (group * 5 + row * 3) as u32 & mask,
    };
    let scale = |group: usize, row: usize| f16::from_f32(0.01 * (1 + row + 3 * group) as f32);
    // The order that AutoAWQ packs rows in, lowest bits first.
    let order = [0, 2, 4, 6, 1, 3, 5, 7];
    let (mut words, mut zeros) = (
        vec![0; ROWS * COLS / per_word],
        vec![0; GROUPS * ROWS / per_word],
    );
    for (k, offset) in order.into_iter().enumerate().take(per_word) {
        for (i, word) in words.iter_mut().enumerate() {
            *word |= match scheme.packing {
                Packing::Gptq { .. } => level(i % ROWS, i / ROWS * per_word + k),
                Packing::Awq => level(i % (ROWS / 8) * 8 + offset, i / (ROWS / 8)),
            } << (bits * k);
        }
        for (i, word) in zeros.iter_mut().enumerate() {
            let (group, first) = (i / (ROWS / per_word), i % (ROWS / per_word) * per_word);
            *word |= match scheme.packing {
                Packing::Gptq { zero_offset, .. } => {
                    zero(group, first + k).wrapping_sub(zero_offset) & mask
                }
                Packing::Awq => zero(group, first + offset),
            } << (bits * k);
        }
    }
    let scales: Vec<u8> = (0..GROUPS * ROWS)
        .flat_map(|i| scale(i / ROWS, i % ROWS).to_le_bytes())
        .collect();
    let groups: Vec<u32> = (0..COLS).map(|col| group_of(col) as u32).collect();
    let shape = match scheme.packing {
        Packing::Gptq { .. } => [COLS / per_word, ROWS],
        Packing::Awq => [COLS, ROWS / per_word],
    };
    let mut file = Vec::new();
    let scales = add(&mut file, "m.scales", &[GROUPS, ROWS], "F16", scales);
    let tensors = PackedTensors {
        levels: add(&mut file, "m.qweight", &shape, "I32", le_bytes(&words)),
        zeros: add(
            &mut file,
            "m.qzeros",
            &[GROUPS, ROWS / per_word],
            "I32",
            le_bytes(&zeros),
        ),
        scales: scales.into_floats().unwrap(),
        groups: (scheme.packing != Packing::Awq)
            .then(|| add(&mut file, "m.g_idx", &[COLS], "I32", le_bytes(&groups))),
    };
    let value = |i: usize| {
        let (row, col) = (i / COLS, i % COLS);
        let group = group_of(col);
        scale(group, row).to_f32() * (level(row, col) as f32 - zero(group, row) as f32)
    };
    Matrix {
        values: (0..ROWS * COLS).map(value).collect(),
        file,
        tensors,
    }
}

fn read(scheme: Scheme, matrix: &Matrix, ty: TensorType) -> Result<Vec<f32>> {
    let packed = Packed::new(scheme, matrix.tensors.clone())?;
    assert_eq!(packed.shape(), [COLS as u64, ROWS as u64]);
    let bytes = pollster::block_on(packed.read(&BytesSource(&matrix.file[..]), ty))?;
    let mut values = vec![0.0; ROWS * COLS];
    ty.dequantize(&bytes, &mut values);
    Ok(values)
}

fn blocks(scheme: Scheme) -> Option<TensorType> {
    Packed::new(scheme, matrix(scheme, |col| col / GROUP_COLS).tensors)
        .unwrap()
        .blocks()
}

fn message(result: Result<Vec<f32>>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn values_follow_the_documentation_of_the_formats() {
    let runs: fn(usize) -> usize = |col| col / GROUP_COLS;
    for (scheme, group_of) in [
        (gptq(4, 1), runs),
        (gptq(4, 0), runs),
        (gptq(8, 1), runs),
        (AWQ, runs),
        // act-order: any column may belong to any group.
        (
            Scheme {
                has_runs: false,
                ..gptq(4, 1)
            },
            |col| col % GROUPS,
        ),
    ] {
        let matrix = matrix(scheme, group_of);
        let values = read(scheme, &matrix, TensorType::F32).unwrap();
        assert_eq!(values, matrix.values, "{scheme:?}");
    }
}

#[test]
fn levels_are_kept_where_groups_are_blocks() {
    for (bits, ty) in [(4, TensorType::Q4_0), (8, TensorType::Q8_0)] {
        let symmetric = Scheme {
            is_symmetric: true,
            ..gptq(bits, 1)
        };
        assert_eq!(blocks(symmetric), Some(ty));
        let m = matrix(symmetric, |col| col / GROUP_COLS);
        assert_eq!(read(symmetric, &m, ty).unwrap(), m.values);
    }
    for scheme in [gptq(4, 1), AWQ] {
        assert_eq!(blocks(scheme), Some(TensorType::Q4_1));
        let m = matrix(scheme, |col| col / GROUP_COLS);
        let values = read(scheme, &m, TensorType::Q4_1).unwrap();
        for (value, expected) in values.iter().zip(&m.values) {
            // Half of the last bit of m, which is at most 15 * 0.27.
            assert!((value - expected).abs() < 0.0011, "{value}, not {expected}");
        }
    }
    for scheme in [
        gptq(8, 1),
        Scheme {
            has_runs: false,
            ..gptq(4, 1)
        },
        Scheme {
            group_cols: Some(72),
            ..gptq(4, 1)
        },
    ] {
        assert_eq!(blocks(scheme), None, "{scheme:?}");
    }
}

#[test]
fn errors_name_the_tensor_that_contradicts_the_scheme() {
    let scheme = gptq(4, 1);
    let m = matrix(scheme, |col| col % GROUPS);
    assert!(message(read(scheme, &m, TensorType::Q4_1)).contains("m.g_idx"));
    let symmetric = Scheme {
        is_symmetric: true,
        ..scheme
    };
    let m = matrix(scheme, |col| col / GROUP_COLS);
    assert!(message(read(symmetric, &m, TensorType::Q4_0)).contains("m.qzeros"));
    for (scheme, part) in [
        (
            Scheme {
                group_cols: Some(32),
                ..scheme
            },
            "m.qzeros",
        ),
        (
            Scheme {
                group_cols: None,
                ..scheme
            },
            "m.qzeros",
        ),
        (gptq(8, 1), "m.qzeros"),
    ] {
        assert!(message(read(scheme, &m, TensorType::F32)).contains(part));
    }
    let changed = |change: fn(&mut PackedTensors)| {
        let mut tensors = m.tensors.clone();
        change(&mut tensors);
        Packed::new(scheme, tensors).unwrap_err().to_string()
    };
    assert!(changed(|it| it.levels.dtype = "F32".into()).contains("m.qweight"));
    assert!(changed(|it| it.levels.shape = vec![7]).contains("m.qweight"));
    assert!(changed(|it| it.levels.shape[1] = u64::MAX).contains("m.qweight"));
    assert!(changed(|it| it.scales.shape[0] = 1).contains("m.scales"));
    assert!(changed(|it| it.groups.as_mut().unwrap().shape[0] = 1).contains("m.g_idx"));
}
