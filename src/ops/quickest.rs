//! The choice by the clock: arithmetic that is clearly quicker on a device than f32 and computes
//! rightly, and sizes of tiles. Knows no models: one matrix stands for all.

use burn::tensor::{DType, Tensor};

use super::{
    Addends, Arithmetic, Finish, Variant,
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
/// Tokens with which the measured matrix makes so many large tiles.
const TILES_TOKENS: usize = 64;
const TILES: u32 = 64;
/// Where small tiles are quicker than [`TILES`] large ones, and where they are not.
const WIDE: u32 = 96;
const NARROW: u32 = 24;
/// Another arithmetic than f32 serves where it takes at most this share of f32's time: less is not
/// worth its rounding.
const GAIN: f64 = 0.85;
/// What is not measured after this stays in f32; compiling does not count.
const BUDGET_MS: f64 = 100.0;
/// A round of replays takes at least this, or the clock's own steps would show.
const ROUND_MS: f64 = 3.0;
const ROUNDS: usize = 3;

/// `variant`, which computes rightly in f32, with the quickest arithmetic for matrices of `formats`,
/// the most frequent first, and the quicker size of tiles. Where lanes compute without barriers it
/// stays as it is.
///
/// # Errors
/// When the device fails.
pub async fn quickest(gpu: &Gpu, variant: Variant, formats: &[Format]) -> Result<Variant> {
    let (false, Some(&format)) = (variant.barrier_free, formats.first()) else {
        return Ok(variant);
    };
    let report = gpu.report();
    let i8 = report.packed_dot && Arithmetic::I8.on(&[format]) == Arithmetic::I8;
    let i8 = i8.then_some(Arithmetic::I8);
    let f16 = report.shader_f16.then_some(Arithmetic::F16);
    let mut bench = Bench {
        gpu,
        matrix: matrix(gpu, format),
        left_ms: BUDGET_MS,
    };
    let with = i8.map(|matvec| Variant { matvec, ..variant });
    let others: Vec<_> = with.into_iter().collect();
    let variant = best(&mut bench, variant, &others, formats, MATVEC_TOKENS).await?;
    let with = |matmul| Variant { matmul, ..variant };
    let others: Vec<_> = f16.into_iter().chain(i8).map(with).collect();
    let variant = best(&mut bench, variant, &others, formats, MATMUL_TOKENS).await?;
    Ok(Variant {
        large_tiles_from: large_tiles_from(&mut bench, variant).await?,
        ..variant
    })
}

/// The quickest of `others` that computes rightly if it is clearly quicker than `f32`, else `f32`.
async fn best(
    bench: &mut Bench<'_>,
    f32: Variant,
    others: &[Variant],
    formats: &[Format],
    tokens: usize,
) -> Result<Variant> {
    if others.is_empty() {
        return Ok(f32);
    }
    let f32_ms = bench.launch_ms(f32, tokens).await?;
    let mut quicker = Vec::new();
    for &variant in others {
        if bench.left_ms <= 0.0 {
            break;
        }
        match bench.launch_ms(variant, tokens).await {
            Ok(ms) if ms < GAIN * f32_ms => quicker.push((ms, variant)),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            // What does not compile or run is no candidate.
            Ok(_) | Err(_) => {}
        }
    }
    quicker.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (_, variant) in quicker {
        match agrees(bench.gpu, variant, formats, tokens > MAX_TOKENS).await {
            Ok(()) => return Ok(variant),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            Err(_) => {}
        }
    }
    Ok(f32)
}

/// How many large tiles a product must have for the device: whether [`TILES`] of them keep it busier
/// than small ones tells wide devices from narrow ones.
async fn large_tiles_from(bench: &mut Bench<'_>, variant: Variant) -> Result<u32> {
    let from = |large_tiles_from| Variant {
        large_tiles_from,
        ..variant
    };
    let large_ms = bench.launch_ms(from(TILES), TILES_TOKENS).await?;
    if bench.left_ms <= 0.0 {
        return Ok(NARROW);
    }
    let small_ms = bench.launch_ms(from(TILES + 1), TILES_TOKENS).await?;
    Ok(if small_ms < large_ms { WIDE } else { NARROW })
}

/// What is measured, and the time that is left for it.
struct Bench<'a> {
    gpu: &'a Gpu,
    matrix: Matrix,
    left_ms: f64,
}

impl Bench<'_> {
    /// Milliseconds of one product of `tokens` inputs.
    async fn launch_ms(&mut self, variant: Variant, tokens: usize) -> Result<f64> {
        let (gpu, matrix) = (self.gpu, &self.matrix);
        let MatrixShape { rows, cols, .. } = matrix.shape;
        let x = Tensor::<2>::ones([tokens, cols], gpu.device());
        let launches = if tokens <= MAX_TOKENS {
            MATVEC_LAUNCHES
        } else {
            MATMUL_LAUNCHES
        };
        let sizes_bytes = [tokens * rows * 4];
        let none = Addends::default;
        let graph = Graph::record(gpu, &sizes_bytes, || {
            for _ in 0..launches {
                if tokens <= MAX_TOKENS {
                    matvec(x.clone(), None, matrix, none(), Finish::Plain, variant);
                } else {
                    matmul(x.clone(), matrix, none(), Finish::Plain, variant);
                }
            }
        });
        let graph = graph.await?;
        let start_ms = gpu.now_ms();
        let (mut replays, mut rounds, mut best_ms) = (1, 0, f64::INFINITY);
        while rounds < ROUNDS && (rounds == 0 || gpu.now_ms() - start_ms < self.left_ms) {
            let round_start_ms = gpu.now_ms();
            for _ in 0..replays {
                // SAFETY: `x` and `matrix` outlive the graph, and nothing else uses them meanwhile.
                unsafe { graph.replay(gpu)? };
            }
            gpu.sync().await?;
            let round_ms = gpu.now_ms() - round_start_ms;
            if rounds == 0 && round_ms < ROUND_MS {
                replays *= 2;
                continue;
            }
            best_ms = best_ms.min(round_ms);
            rounds += 1;
        }
        self.left_ms -= gpu.now_ms() - start_ms;
        Ok(best_ms / (replays * launches) as f64)
    }
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
