//! The ops of the CPU device on panels, against the twins on blocks of the same file bytes. `inpage_cpu` tests its
//! products themselves.

use burn::tensor::Device;
use inpage::{
    device::upload_words,
    ops::{
        Activation, Addends, Finish, Variant,
        add_positions::add_positions,
        embedding::embedding,
        expert_gated_product::{expert_gated_matmul, expert_gated_matvec},
        expert_matmul::expert_matmul,
        expert_matvec::expert_matvec,
        gated_product::{gated_matmul, gated_matvec},
        group_experts::group_experts,
        matrix::{Layout, Matrix, MatrixShape},
        product::{matmul, matvec},
        route_experts::Routes,
        step::Step,
    },
    tensor_types::{PANEL_ROWS, TensorType},
};

use crate::fixture::{Noise, ids, segment, tensor, values};

/// A random matrix in both layouts: blocks for the twins, panels for the CPU device.
fn both(ty: TensorType, rows: usize, cols: usize, noise: &mut Noise) -> [Matrix; 2] {
    let shape = MatrixShape { ty, rows, cols };
    let device = Device::flex();
    let row_bytes = cols / ty.block_len() * ty.block_bytes();
    let mut bytes = Vec::new();
    while bytes.len() < rows * row_bytes {
        let block: Vec<u8> = match ty.is_quantizable() {
            true => ty.quantize(&noise.floats(ty.block_len())),
            false => (0..ty.block_bytes())
                .map(|_| (noise.next() * 127.0) as i8 as u8)
                .collect(),
        };
        let mut decoded = vec![0.0; ty.block_len()];
        ty.dequantize(&block, &mut decoded);
        let largest = decoded
            .iter()
            .fold(0.0f32, |largest, v| largest.max(v.abs()));
        // Of random bytes, blocks of similar scales: one large row would decide what is compared.
        let usual = match ty.is_quantizable() {
            true => 1e-3..10.0,
            false => 0.5..2.0,
        };
        if decoded.iter().all(|v| v.is_finite()) && usual.contains(&largest) {
            bytes.extend(block);
        }
    }
    let (mut quants, mut scales) = (Vec::new(), Vec::new());
    let factors: Vec<f32> = match ty.has_row_factors() {
        true => (0..rows).map(|_| noise.next() + 1.5).collect(),
        false => Vec::new(),
    };
    for (row, bytes) in bytes.chunks_exact(row_bytes).enumerate() {
        scales.extend(factors.get(row).into_iter().flat_map(|it| it.to_le_bytes()));
        ty.repack(bytes, &mut quants, &mut scales);
        let whole = shape.row_blocks() * ty.kernel_block_words() * 4;
        quants.resize(quants.len().next_multiple_of(whole), 0);
    }
    scales.resize(shape.scale_words() * 4, 0);
    let words = |bytes: &[u8]| -> Vec<u32> {
        let words = bytes.as_chunks().0.iter();
        words.map(|&word| u32::from_le_bytes(word)).collect()
    };
    let blocks = Matrix::reserve(shape, Layout::Blocks, &device);
    let blocks = blocks.write(0, words(&quants), 0, words(&scales));
    let mut panels = vec![0u8; shape.panel_words() * 4];
    let of_rows = bytes.chunks(PANEL_ROWS * row_bytes);
    for (rows, panel) in of_rows.zip(panels.chunks_exact_mut(ty.panel_bytes(cols))) {
        ty.pack(cols, rows, panel);
    }
    let packed = Matrix::reserve(shape, Layout::Panels, &device);
    let factors = factors.into_iter().map(f32::to_bits).collect();
    [blocks, packed.write(0, words(&panels), 0, factors)]
}

/// A size that fills neither a panel nor, for floats, a block.
fn size(ty: TensorType) -> (usize, usize) {
    (37, 172usize.next_multiple_of(ty.row_multiple()))
}

/// Within two hundredths of the usual size of outputs: inputs are rounded to bytes.
fn assert_near(what: &str, found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let mean_square = wanted.iter().map(|v| v * v).sum::<f32>() / wanted.len() as f32;
    assert!(mean_square > 0.0, "{what}: the twin is all zeros");
    let error = found.iter().zip(wanted).map(|(a, b)| (a - b) * (a - b));
    let error = error.sum::<f32>() / wanted.len() as f32;
    let ratio = (error / mean_square).sqrt();
    assert!(ratio <= 2e-2, "{what}: off by {ratio} of the outputs");
}

/// Runs an op on both layouts and compares.
fn compare(what: &str, run: impl Fn(usize, Variant) -> Vec<f32>) {
    assert_near(what, &run(1, Variant::CPU), &run(0, Variant::PORTABLE));
}

#[test]
fn products_equal_their_twins() {
    let (device, mut noise) = (Device::flex(), Noise(31));
    for &ty in TensorType::ALL {
        let (rows, cols) = size(ty);
        let weights = both(ty, rows, cols, &mut noise);
        let (norm, bias) = (noise.floats(cols), noise.floats(rows));
        for tokens in [1, 3, 8, 9, 50] {
            let x = noise.floats(tokens * cols);
            let [delta, residual] = [(); 2].map(|()| noise.floats(tokens * rows));
            compare(&format!("{ty}, {tokens} tokens"), |i, variant| {
                let of = |values: &[f32]| tensor(values, [tokens, rows], &device);
                let addends = Addends {
                    bias: Some(tensor(&bias, [rows], &device)),
                    delta: Some(of(&delta)),
                    residual: Some(of(&residual)),
                };
                let x = tensor(&x, [tokens, cols], &device);
                let finish = Finish::Activation(Activation::Gelu);
                values(match tokens <= 8 {
                    true => {
                        let norm = Some((tensor(&norm, [cols], &device), 1e-5));
                        matvec(x, norm, &weights[i], addends, finish, variant)
                    }
                    false => matmul(x, &weights[i], addends, finish, variant),
                })
            });
        }
    }
}

#[test]
fn gated_products_equal_their_twins() {
    let (device, mut noise) = (Device::flex(), Noise(32));
    for &ty in TensorType::ALL {
        let (rows, cols) = size(ty);
        let gate = both(ty, rows, cols, &mut noise);
        let up = both(
            TensorType::Q8_0,
            rows,
            cols.next_multiple_of(32),
            &mut noise,
        );
        // Types may differ within a layer, if the sizes allow it.
        let up = match cols.is_multiple_of(32) {
            true => up,
            false => both(ty, rows, cols, &mut noise),
        };
        let norm = noise.floats(cols);
        for tokens in [1, 4, 20] {
            let x = noise.floats(tokens * cols);
            let delta = noise.floats(tokens * 2 * rows);
            // A row per token, or one for all.
            for (added, activation) in [(tokens, Activation::Silu), (1, Activation::QuickGelu)] {
                let what = format!("{ty}, {tokens} tokens, {added} rows added");
                compare(&what, |i, variant| {
                    let x = tensor(&x, [tokens, cols], &device);
                    let delta = &delta[..added * 2 * rows];
                    let delta = Some(tensor(delta, [added, 2 * rows], &device));
                    let (gate, up) = (&gate[i], &up[i]);
                    values(match tokens <= 8 {
                        true => {
                            let norm = Some((tensor(&norm, [cols], &device), 1e-5));
                            gated_matvec(x, norm, gate, up, delta, activation, variant)
                        }
                        false => gated_matmul(x, gate, up, delta, activation, variant),
                    })
                });
            }
        }
    }
}

/// Rows of tables are exact.
#[test]
fn rows_of_tables_equal_their_twins() {
    let (device, mut noise) = (Device::flex(), Noise(33));
    for &ty in TensorType::ALL {
        let (rows, cols) = size(ty);
        let table = both(ty, rows, cols, &mut noise);
        let x = noise.floats(2 * cols);
        let mut step = Step::new(2, 1, &device);
        step.set(&[segment(9, 2, &[0])]);
        let run = |table: &Matrix| {
            let x = tensor(&x, [2, cols], &device);
            (
                values(embedding(ids(&[0, 36, 8, 500], &device), table, 1.5)),
                values(add_positions(x, table, &step)),
            )
        };
        assert_eq!(run(&table[1]), run(&table[0]), "{ty}");
    }
}

#[test]
fn experts_equal_their_twins() {
    const EXPERTS: usize = 5;
    const USED: usize = 2;
    let (device, mut noise) = (Device::flex(), Noise(34));
    for ty in [TensorType::F32, TensorType::Q8_0, TensorType::Q4_K] {
        let dim = 172usize.next_multiple_of(ty.row_multiple());
        // Experts begin within panels where their rows are no multiple of eight.
        let ffn_dim = 20usize.next_multiple_of(ty.row_multiple());
        let gate = both(ty, EXPERTS * ffn_dim, dim, &mut noise);
        let up = both(ty, EXPERTS * ffn_dim, dim, &mut noise);
        let down = both(ty, EXPERTS * dim, ffn_dim, &mut noise);
        let norm = noise.floats(dim);
        for tokens in [1, 3, 20] {
            let x = noise.floats(tokens * dim);
            let inner = noise.floats(tokens * USED * ffn_dim);
            let shares = noise.floats(tokens * USED);
            let chosen: Vec<u32> = (0..tokens)
                .flat_map(|token| [token % EXPERTS, (token * 3 + 1) % EXPERTS])
                .map(|expert| expert as u32)
                .collect();
            let routed = || upload_words(chosen.to_vec(), [tokens, USED], &device);
            let of_x = || tensor(&x, [tokens, dim], &device);
            let of_inner = || tensor(&inner, [tokens * USED, ffn_dim], &device);
            let activation = Activation::ALL[tokens % Activation::ALL.len()];
            compare(&format!("gated {ty}, {tokens} tokens"), |i, variant| {
                let (gate, up) = (&gate[i], &up[i]);
                values(match tokens <= 8 {
                    true => {
                        let has_factors = tokens > 1;
                        let norm = (tensor(&norm, [dim], &device), 1e-5);
                        let norm = (!has_factors).then_some(norm);
                        let factors = has_factors.then(|| tensor(&shares, [tokens, USED], &device));
                        expert_gated_matvec(
                            of_x(),
                            norm,
                            gate,
                            up,
                            ffn_dim,
                            routed(),
                            None,
                            factors,
                            activation,
                            variant,
                        )
                    }
                    false => {
                        let groups = group_experts(routed(), EXPERTS);
                        let biases = Noise(31).floats(EXPERTS * 2 * ffn_dim);
                        let biases = tensor(&biases, [EXPERTS, 2 * ffn_dim], &device);
                        expert_gated_matmul(
                            of_x(),
                            gate,
                            up,
                            ffn_dim,
                            USED,
                            groups,
                            Some(biases),
                            None,
                            activation,
                            variant,
                        )
                    }
                })
            });
            compare(&format!("down {ty}, {tokens} tokens"), |i, variant| {
                values(match tokens <= 8 {
                    true => {
                        let routes = Routes {
                            experts: routed(),
                            shares: tensor(&shares, [tokens, USED], &device),
                        };
                        {
                            let (inner, x) = (of_inner(), Some(of_x()));
                            expert_matvec(inner, &down[i], None, routes, x, dim, variant)
                        }
                    }
                    false => {
                        let groups = group_experts(routed(), EXPERTS);
                        expert_matmul(of_inner(), &down[i], dim, groups, variant)
                    }
                })
            });
        }
    }
}
