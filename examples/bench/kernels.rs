//! The rates of the matrix kernels: bytes per second for one token, operations per second for many.
//! Each pass reads more matrices than fit in a cache.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;
use half::{bf16, f16};
use inpage::{
    device::{ComputeDevice, Graph, upload},
    ops::{
        Activation, Addends, Finish,
        gated_product::gated_matvec,
        matrix::{Layout, Matrix, MatrixShape},
        product::{matmul, matvec},
    },
    tensor_types::TensorType,
};
use serde_json::{Value, json};

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
                    "{rows}x{cols} {}: exceeds this device's binding size",
                    ty.lowercase_name()
                );
                continue;
            }
            measure(machine, yardsticks, shape, tokens).await?;
        }
    }
    Ok(())
}

/// Measures one matrix shape.
async fn measure(
    machine: &Machine,
    yardsticks: Yardsticks,
    shape: MatrixShape,
    tokens: usize,
) -> Outcome<()> {
    let measured = Measured {
        machine,
        yardsticks,
        shape,
        matrices: &matrices(machine, shape),
    };
    measured.matvec().await?;
    measured.gated_matvec().await?;
    measured.matmul(tokens).await
}

/// Matrices of one shape.
struct Measured<'m> {
    machine: &'m Machine,
    yardsticks: Yardsticks,
    shape: MatrixShape,
    matrices: &'m [Matrix],
}

impl Measured<'_> {
    fn ones(&self, tokens: usize, n: usize) -> Tensor<2> {
        ones(self.machine, tokens, n)
    }

    fn print(&self, op: &str, values: Value) {
        let MatrixShape { ty, rows, cols } = self.shape;
        let mut line = json!({ "shape": format!("{rows}x{cols}") });
        if let (Value::Object(line), Value::Object(values)) = (&mut line, values) {
            line.extend(values);
        }
        let label = format!("{op}_{}", ty.lowercase_name());
        self.machine.print("kernels", &label, line);
    }

    /// `seconds` is the time of `launches` that read `matrices` matrices.
    fn print_bytes(&self, op: &str, launches: usize, matrices: usize, seconds: f64) {
        let rate = (matrices * self.shape.read_bytes()) as f64 / seconds;
        let values = json!({
            "gb_per_s": round(rate / 1e9),
            "share_of_copy": round(rate / self.yardsticks.bytes_per_s),
            "us_per_launch": round(seconds * 1e6 / launches as f64),
            "launches": launches,
        });
        self.print(op, values);
    }

    async fn matvec(&self) -> Outcome<()> {
        let MatrixShape { rows, cols, .. } = self.shape;
        let (x, start) = (self.ones(1, cols), self.ones(1, rows));
        let variant = self.machine.variant;
        let pass = || {
            // Each launch adds to the result of the previous one, as layers do, so launches do not overlap.
            self.matrices.iter().fold(start.clone(), |sum, matrix| {
                matvec(x.clone(), None, matrix, onto(sum), Finish::Plain, variant)
            })
        };
        let taken = median_seconds(self.machine, pass).await?;
        let count = self.matrices.len();
        self.print_bytes("matvec", count, count, taken);
        Ok(())
    }

    async fn gated_matvec(&self) -> Outcome<()> {
        let cols = self.shape.cols;
        let norm = upload(vec![1.0; cols], [cols], self.machine.device.tensors());
        let (x, variant) = (self.ones(1, cols), self.machine.variant);
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
        let pass = || {
            let pairs = self.matrices.chunks_exact(2);
            pairs.fold(None, |_, pair| Some(gated(pair)))
        };
        let taken = median_seconds(self.machine, pass).await?;
        let pairs = self.matrices.len() / 2;
        self.print_bytes("gated_matvec", pairs, 2 * pairs, taken);
        Ok(())
    }

    async fn matmul(&self, tokens: usize) -> Outcome<()> {
        let MatrixShape { rows, cols, .. } = self.shape;
        // Arithmetic is the bound here, so weights may come from caches.
        let count = match self.machine.size {
            Size::Large => 4.min(self.matrices.len()),
            Size::Small => 1,
        };
        let few = &self.matrices[..count];
        let (x, start) = (self.ones(tokens, cols), self.ones(tokens, rows));
        let variant = self.machine.variant;
        let pass = || {
            few.iter().fold(start.clone(), |sum, matrix| {
                matmul(x.clone(), matrix, onto(sum), Finish::Plain, variant)
            })
        };
        let taken = median_seconds(self.machine, pass).await?;
        let operations = (2 * tokens * rows * cols * few.len()) as f64;
        let peak = self.yardsticks.flop_per_s;
        let values = json!({
            "tokens": tokens,
            "gflop_per_s": round(operations / taken / 1e9),
            "share_of_fma": peak.map(|peak| round(operations / taken / peak)),
            "us_per_launch": round(taken * 1e6 / few.len() as f64),
        });
        self.print("matmul", values);
        Ok(())
    }
}

/// Ones, `[tokens, n]`.
pub fn ones(machine: &Machine, tokens: usize, n: usize) -> Tensor<2> {
    upload(vec![1.0; tokens * n], [tokens, n], machine.device.tensors())
}

/// A sum with `sum`.
pub fn onto(sum: Tensor<2>) -> Addends {
    Addends {
        residual: Some(sum),
        ..Addends::default()
    }
}

/// Median seconds of a pass: a captured graph on a GPU, the ops themselves on the CPU.
pub async fn median_seconds<T>(machine: &Machine, pass: impl Fn() -> T) -> Outcome<f64> {
    let graph = match machine.gpu() {
        Some(gpu) => Some((gpu, Graph::record(gpu, &pass).await?)),
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

/// Enough matrices that a pass over them finds none of them in a cache.
pub fn matrices(machine: &Machine, shape: MatrixShape) -> Vec<Matrix> {
    let bytes = if machine.size == Size::Large {
        256 << 20
    } else {
        32 << 20
    };
    let count = usize::div_ceil(bytes, shape.read_bytes()).clamp(2, 128);
    (0..count).map(|_| matrix(shape, &machine.device)).collect()
}

/// Small finite values, in every type.
fn matrix(shape: MatrixShape, device: &ComputeDevice) -> Matrix {
    let layout = Layout::of(device);
    let device = device.tensors();
    if layout == Layout::Panels {
        // Scales of 1/64 wherever they are.
        let words = vec![0x2400_2400; shape.panel_words()];
        return Matrix::reserve(shape, layout, device).write(0, words, 0, Vec::new());
    }
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
    // Read as two f16 of 1/64, as small integers, or as a tiny f32.
    let scales = match shape.ty.has_scales() {
        true => vec![0x2400_2400; shape.scale_words()],
        false => Vec::new(),
    };
    Matrix::reserve(shape, layout, device).write(0, quants, 0, scales)
}
