//! The choice of arithmetic for a device: what is clearly quicker there than f32 and computes rightly.
//! Knows no models: one matrix stands for all.

use burn::tensor::{DType, Tensor};

use super::{
    Arithmetic, Finish, Variant,
    matmul::matmul,
    matrix::{Format, Matrix, MatrixShape},
    matvec::{MAX_TOKENS, matvec},
    self_test::agrees,
};
use crate::{
    Error, Result,
    device::{Gpu, Graph},
};

/// The matrix that is measured: 5 MB in Q4_0, more than the nearest caches of a GPU hold.
const MEASURED: [usize; 2] = [4096, 2048];
const MATVEC_TOKENS: usize = 1;
const MATMUL_TOKENS: usize = 128;
/// Launches of one replay: enough of them to be measured beside the wait for the device.
const MATVEC_LAUNCHES: usize = 32;
const MATMUL_LAUNCHES: usize = 2;
/// Another arithmetic than f32 serves where it takes at most this share of f32's time: less is not
/// worth its rounding.
const GAIN: f64 = 0.85;
/// What is not measured after this stays in f32; compiling does not count.
const BUDGET_MS: f64 = 100.0;
/// A round of replays takes at least this, or the clock's own steps would show.
const ROUND_MS: f64 = 3.0;
const ROUNDS: usize = 3;

/// `variant`, which computes rightly in f32, with the quickest arithmetic for matrices of `formats`,
/// the most frequent first. Where lanes compute without barriers f32 stays.
///
/// # Errors
/// When the device fails.
pub async fn quickest(gpu: &Gpu, variant: Variant, formats: &[Format]) -> Result<Variant> {
    let (false, Some(&format)) = (variant.barrier_free, formats.first()) else {
        return Ok(variant);
    };
    let report = gpu.report();
    let mut left_ms = BUDGET_MS;
    let matrix = matrix(gpu, format);
    let i8 = (report.packed_dot && Arithmetic::I8.on(&[format]) == Arithmetic::I8)
        .then_some(Arithmetic::I8);
    let f16 = report.shader_f16.then_some(Arithmetic::F16);
    let with_matvec = |matvec| Variant { matvec, ..variant };
    let variants: Vec<_> = i8.into_iter().map(with_matvec).collect();
    let tokens = MATVEC_TOKENS;
    let matvec = best(
        gpu,
        variant,
        &variants,
        formats,
        &matrix,
        tokens,
        &mut left_ms,
    )
    .await?;
    let with_matmul = |matmul| Variant { matmul, ..matvec };
    let variants: Vec<_> = f16.into_iter().chain(i8).map(with_matmul).collect();
    let tokens = MATMUL_TOKENS;
    best(
        gpu,
        matvec,
        &variants,
        formats,
        &matrix,
        tokens,
        &mut left_ms,
    )
    .await
}

/// The quickest of `variants` that computes rightly if it is clearly quicker than `f32`, else `f32`.
async fn best(
    gpu: &Gpu,
    f32: Variant,
    variants: &[Variant],
    formats: &[Format],
    matrix: &Matrix,
    tokens: usize,
    left_ms: &mut f64,
) -> Result<Variant> {
    if variants.is_empty() {
        return Ok(f32);
    }
    let f32_ms = launch_ms(gpu, f32, matrix, tokens, left_ms).await?;
    let mut quicker = Vec::new();
    for &variant in variants {
        if *left_ms <= 0.0 {
            break;
        }
        match launch_ms(gpu, variant, matrix, tokens, left_ms).await {
            Ok(ms) if ms < GAIN * f32_ms => quicker.push((ms, variant)),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            // What does not compile or run is no candidate.
            Ok(_) | Err(_) => {}
        }
    }
    quicker.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (_, variant) in quicker {
        match agrees(gpu, variant, formats, tokens > MAX_TOKENS).await {
            Ok(()) => return Ok(variant),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            Err(_) => {}
        }
    }
    Ok(f32)
}

/// Milliseconds of one product of `tokens` inputs. Takes what measuring took off `left_ms`.
async fn launch_ms(
    gpu: &Gpu,
    variant: Variant,
    matrix: &Matrix,
    tokens: usize,
    left_ms: &mut f64,
) -> Result<f64> {
    let MatrixShape { rows, cols, .. } = matrix.shape;
    let x = Tensor::<2>::ones([tokens, cols], gpu.device());
    let product = || match tokens <= MAX_TOKENS {
        true => matvec(x.clone(), None, matrix, None, Finish::Plain, None, variant),
        false => matmul(x.clone(), matrix, None, Finish::Plain, None, variant),
    };
    let launches = match tokens <= MAX_TOKENS {
        true => MATVEC_LAUNCHES,
        false => MATMUL_LAUNCHES,
    };
    let sizes_bytes = [tokens * rows * 4];
    let graph = Graph::record(gpu, &sizes_bytes, || {
        for _ in 0..launches {
            product();
        }
    });
    let graph = graph.await?;
    let start_ms = gpu.now_ms();
    let mut replays = 1;
    let mut best_ms = f64::INFINITY;
    let mut rounds = 0;
    while rounds < ROUNDS && (rounds == 0 || gpu.now_ms() - start_ms < *left_ms) {
        let round_ms = gpu.now_ms();
        for _ in 0..replays {
            // SAFETY: `x` and `matrix` outlive the graph, and nothing else uses them meanwhile.
            unsafe { graph.replay(gpu)? };
        }
        gpu.sync().await?;
        let round_ms = gpu.now_ms() - round_ms;
        if round_ms < ROUND_MS && rounds == 0 {
            replays *= 2;
            continue;
        }
        best_ms = best_ms.min(round_ms);
        rounds += 1;
    }
    *left_ms -= gpu.now_ms() - start_ms;
    Ok(best_ms / (replays * launches) as f64)
}

/// A matrix of zeros: how long products take does not depend on what they are of.
fn matrix(gpu: &Gpu, format: Format) -> Matrix {
    let [rows, cols] = MEASURED;
    let shape = MatrixShape { format, rows, cols };
    let zeros = |words| Tensor::zeros([words], (gpu.device(), DType::U32));
    Matrix {
        quants: zeros(shape.quant_words()),
        scales: zeros(shape.scale_words()),
        shape,
    }
}
