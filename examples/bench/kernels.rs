//! What the matrix kernels reach: bytes per second for one token, operations per second for many.
//! Each pass goes over as many matrices as no cache holds.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor};
use half::{bf16, f16};
use inpage::{
    device::Graph,
    ops::{
        Activation, Addends, Finish,
        gated_matvec::gated_matvec,
        matmul::matmul,
        matrix::{Matrix, MatrixShape},
        matvec::matvec,
    },
    tensor_types::TensorType,
};
use serde_json::json;

use crate::{
    Outcome,
    machine::{Machine, Yardsticks, round},
    options::Size,
    timing::{ROUNDS, median, repeats, seconds},
};

/// Rows and columns of the matrices.
const SMALL: [[usize; 2]; 2] = [[1024, 1024], [2048, 2048]];
const LARGE: [[usize; 2]; 4] = [[2048, 2048], [4096, 4096], [4096, 14336], [14336, 4096]];

/// Measures every tensor type in every size.
pub async fn run(machine: &Machine, yardsticks: Yardsticks) -> Outcome<()> {
    let (sizes, tokens): (&[[usize; 2]], usize) = match machine.size {
        Size::Small => (&SMALL, 32),
        Size::Large => (&LARGE, 256),
    };
    for &[rows, cols] in sizes {
        let types = TensorType::ALL.iter().copied();
        for ty in types.filter(|&ty| ty != TensorType::F32) {
            let shape = MatrixShape { ty, rows, cols };
            if (4 * shape.quant_words()) as u64 > machine.device.max_binding_bytes() {
                eprintln!(
                    "{rows}x{cols} {}: more than this device's kernels see",
                    ty.lowercase_name()
                );
                continue;
            }
            measure(machine, yardsticks, shape, tokens).await?;
        }
    }
    Ok(())
}

async fn measure(
    machine: &Machine,
    yardsticks: Yardsticks,
    shape: MatrixShape,
    tokens: usize,
) -> Outcome<()> {
    let MatrixShape { ty, rows, cols } = shape;
    let device = machine.device.tensors();
    let variant = machine.variant;
    let matrices = matrices(machine, shape);
    let label = |op: &str| format!("{op}_{}", ty.lowercase_name());
    let size = format!("{rows}x{cols}");
    let ones = |tokens: usize, n: usize| Tensor::<2>::ones([tokens, n], device);
    let print_bytes = |op: &str, launches: usize, matrices: usize, seconds: f64| {
        let rate = (matrices * shape.read_bytes()) as f64 / seconds;
        let values = json!({
            "shape": size,
            "gb_per_s": round(rate / 1e9),
            "share_of_copy": round(rate / yardsticks.bytes_per_s),
            "us_per_launch": round(seconds * 1e6 / launches as f64),
            "launches": launches,
        });
        machine.print("kernels", &label(op), values);
    };

    let onto = |sum| Addends {
        residual: Some(sum),
        ..Addends::default()
    };
    let (x, start) = (ones(1, cols), ones(1, rows));
    let pass = || {
        // Each launch adds to the one before, as layers do: none starts before the last ended.
        matrices.iter().fold(start.clone(), |sum, matrix| {
            matvec(x.clone(), None, matrix, onto(sum), Finish::Plain, variant)
        })
    };
    let taken = median_seconds(machine, pass).await?;
    print_bytes("matvec", matrices.len(), matrices.len(), taken);

    let norm = Tensor::<1>::ones([cols], device);
    let pass = || {
        let gated = |pair: &[Matrix]| {
            gated_matvec(
                x.clone(),
                Some((norm.clone(), 1e-5)),
                &pair[0],
                &pair[1],
                None,
                Activation::Silu,
                variant,
            )
        };
        matrices
            .chunks_exact(2)
            .fold(None, |_, pair| Some(gated(pair)))
    };
    let taken = median_seconds(machine, pass).await?;
    let pairs = matrices.len() / 2;
    print_bytes("gated_matvec", pairs, 2 * pairs, taken);

    // Arithmetic is the bound here, and caches may hold what they can.
    let few = &matrices[..if machine.size == Size::Large {
        4.min(matrices.len())
    } else {
        1
    }];
    let (x, start) = (ones(tokens, cols), ones(tokens, rows));
    let pass = || {
        few.iter().fold(start.clone(), |sum, matrix| {
            matmul(x.clone(), matrix, onto(sum), Finish::Plain, variant)
        })
    };
    let taken = median_seconds(machine, pass).await?;
    let operations = (2 * tokens * rows * cols * few.len()) as f64;
    let values = json!({
        "shape": size,
        "tokens": tokens,
        "gflop_per_s": round(operations / taken / 1e9),
        "share_of_fma": yardsticks.flop_per_s.map(|peak| round(operations / taken / peak)),
        "us_per_launch": round(taken * 1e6 / few.len() as f64),
    });
    machine.print("kernels", &label("matmul"), values);
    Ok(())
}

/// Median seconds of a pass: a captured graph on a GPU, the ops themselves on the CPU.
pub async fn median_seconds<T>(machine: &Machine, pass: impl Fn() -> T) -> Outcome<f64> {
    let graph = match machine.gpu() {
        Some(gpu) => Some((gpu, Graph::record(gpu, &[], &pass).await?)),
        None => None,
    };
    let mut count = 1;
    let mut rounds = Vec::new();
    for i in 0..=ROUNDS {
        machine.device.sync().await?;
        let start = Instant::now();
        for _ in 0..count {
            match &graph {
                // SAFETY: what `pass` borrows outlives the graph; there is only this thread.
                Some((gpu, graph)) => unsafe { graph.replay(gpu)? },
                None => drop(pass()),
            }
        }
        machine.device.sync().await?;
        if i == 0 {
            count = repeats(start.elapsed(), Duration::from_millis(50));
        } else {
            rounds.push(seconds(start) / count as f64);
        }
    }
    Ok(median(rounds))
}

/// So many matrices that a pass over them meets none of them in a cache.
fn matrices(machine: &Machine, shape: MatrixShape) -> Vec<Matrix> {
    let bytes = if machine.size == Size::Large {
        256 << 20
    } else {
        32 << 20
    };
    let count = usize::div_ceil(bytes, shape.read_bytes()).clamp(2, 128);
    (0..count)
        .map(|_| matrix(shape, machine.device.tensors()))
        .collect()
}

/// Small finite values, in every type.
fn matrix(shape: MatrixShape, device: &Device) -> Matrix {
    let varied = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9);
    let element = |i: usize| (varied(i) >> 16) as f32 / 65536.0 - 0.5;
    let words = 0..shape.quant_words();
    let quants = match shape.ty {
        TensorType::F32 => words.map(|i| element(i).to_bits()).collect(),
        TensorType::F16 => words
            .map(|i| 0x1_0001 * u32::from(f16::from_f32(element(i)).to_bits()))
            .collect(),
        TensorType::BF16 => words
            .map(|i| 0x1_0001 * u32::from(bf16::from_f32(element(i)).to_bits()))
            .collect(),
        _ => words.map(varied).collect(),
    };
    // Read as two f16 of 1/64, or as small integers.
    let scales = match shape.ty.has_scales() {
        true => vec![0x2400_2400; shape.scale_words()],
        false => Vec::new(),
    };
    Matrix::reserve(shape, device).write(0, quants, 0, scales)
}
