//! Choices by measurement: arithmetic that is clearly faster on a device than f32 and computes
//! correctly, and sizes of tiles. One matrix represents all of a model.

use super::self_test::agrees;
use crate::{
    Error, Result,
    device::{ComputeDevice, Gpu, Graph, upload, upload_words},
    ops::{
        Addends, Arithmetic, Finish, Variant,
        matrix::{Layout, Matrix, MatrixShape},
        matvec::MAX_TOKENS,
        product::{matmul, matvec},
    },
    tensor_types::TensorType,
};

/// The matrix that is measured: 5 MB in Q4_0, more than the nearest caches of a GPU hold.
const MEASURED: [usize; 2] = [4096, 2048];
const MATVEC_TOKENS: usize = 1;
const MATMUL_TOKENS: usize = 128;
/// Launches of one replay: enough that waiting for the device does not dominate.
const MATVEC_LAUNCHES: usize = 32;
const MATMUL_LAUNCHES: usize = 2;
/// With this many tokens the measured matrix makes [`TILES`] large tiles.
const TILES_TOKENS: usize = 64;
const TILES: u32 = 64;
/// Minimum number of large tiles of a product. `WIDE` applies if small tiles were faster than [`TILES`]
/// large ones, `NARROW` otherwise.
const WIDE: u32 = 96;
const NARROW: u32 = 24;
/// Other arithmetic than f32 is chosen if it takes at most this share of f32's time. A smaller gain
/// is not worth its rounding.
const GAIN: f64 = 0.85;
/// After this time nothing more is measured, and the rest stays in f32; compiling does not count.
const BUDGET_MS: f64 = 100.0;
/// Shortest round of replays; the clock's resolution would distort shorter ones.
const ROUND_MS: f64 = 3.0;
const ROUNDS: usize = 3;

/// `variant`, which computes correctly in f32, with the fastest arithmetic for matrices of `types`,
/// the most frequent first, and the faster size of tiles. Unchanged for kernels without barriers and
/// on devices that record no graphs.
///
/// # Errors
/// When the device fails.
pub async fn quickest(
    device: &ComputeDevice,
    variant: Variant,
    types: &[TensorType],
) -> Result<Variant> {
    let (false, Some(&ty), Some(recorder)) =
        (variant.barrier_free, types.first(), device.recorder())
    else {
        return Ok(variant);
    };
    let report = device.report();
    let i8 = report.packed_dot && Arithmetic::I8.on(&[ty]) == Arithmetic::I8;
    let i8 = i8.then_some(Arithmetic::I8);
    let f16 = report.shader_f16.then_some(Arithmetic::F16);
    let mut bench = Bench {
        device,
        recorder,
        matrix: matrix(device, ty),
        left_ms: BUDGET_MS,
    };
    let with = i8.map(|matvec| Variant { matvec, ..variant });
    let others: Vec<_> = with.into_iter().collect();
    let variant = best(&mut bench, variant, &others, types, MATVEC_TOKENS).await?;
    let with = |matmul| Variant { matmul, ..variant };
    let others: Vec<_> = f16.into_iter().chain(i8).map(with).collect();
    let variant = best(&mut bench, variant, &others, types, MATMUL_TOKENS).await?;
    Ok(Variant {
        large_tiles_from: large_tiles_from(&mut bench, variant).await?,
        ..variant
    })
}

/// The fastest of `others` that computes correctly, if it is clearly faster than `f32`; else `f32`.
async fn best(
    bench: &mut Bench<'_>,
    f32: Variant,
    others: &[Variant],
    types: &[TensorType],
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
            // A variant that does not compile or run is skipped.
            Ok(_) | Err(_) => {}
        }
    }
    quicker.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (_, variant) in quicker {
        match agrees(bench.device, variant, types, tokens > MAX_TOKENS).await {
            Ok(()) => return Ok(variant),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            Err(_) => {}
        }
    }
    Ok(f32)
}

/// The number of large tiles that a product must have before they are used: whether [`TILES`] large ones are
/// faster than small ones distinguishes narrow devices from wide ones.
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

/// The measured matrix, and the time that is left for measuring.
struct Bench<'a> {
    device: &'a ComputeDevice,
    recorder: &'a Gpu,
    matrix: Matrix,
    left_ms: f64,
}

impl Bench<'_> {
    /// Milliseconds of one product of `tokens` inputs.
    async fn launch_ms(&mut self, variant: Variant, tokens: usize) -> Result<f64> {
        let (device, recorder, matrix) = (self.device, self.recorder, &self.matrix);
        let MatrixShape { cols, .. } = matrix.shape;
        let x = upload(vec![1.0; tokens * cols], [tokens, cols], device.tensors());
        let launches = if tokens <= MAX_TOKENS {
            MATVEC_LAUNCHES
        } else {
            MATMUL_LAUNCHES
        };
        // Each launch adds to the result of the one before it, as layers do: launches that overlap would hide a device's idle
        // processors.
        let graph = Graph::record(recorder, || {
            let mut residual = None;
            for _ in 0..launches {
                let addends = Addends {
                    residual,
                    ..Addends::default()
                };
                residual = Some(if tokens <= MAX_TOKENS {
                    matvec(x.clone(), None, matrix, addends, Finish::Plain, variant)
                } else {
                    matmul(x.clone(), matrix, addends, Finish::Plain, variant)
                });
            }
        });
        let graph = graph.await?;
        let start_ms = device.now_ms();
        let (mut replays, mut rounds, mut best_ms) = (1, 0, f64::INFINITY);
        while rounds < ROUNDS && (rounds == 0 || device.now_ms() - start_ms < self.left_ms) {
            let round_start_ms = device.now_ms();
            for _ in 0..replays {
                // SAFETY: `x` and `matrix` outlive the graph, and nothing else uses them meanwhile.
                unsafe { graph.replay(recorder)? };
            }
            device.sync().await?;
            let round_ms = device.now_ms() - round_start_ms;
            if rounds == 0 && round_ms < ROUND_MS {
                replays *= 2;
                continue;
            }
            best_ms = best_ms.min(round_ms);
            rounds += 1;
        }
        self.left_ms -= device.now_ms() - start_ms;
        Ok(best_ms / (replays * launches) as f64)
    }
}

/// A matrix of zeros: the time of a product does not depend on the values.
fn matrix(device: &ComputeDevice, ty: TensorType) -> Matrix {
    let [rows, cols] = MEASURED;
    let shape = MatrixShape { ty, rows, cols };
    let zeros = |words| upload_words(vec![0; words], [words], device.tensors());
    Matrix {
        quants: zeros(shape.quant_words()),
        scales: zeros(shape.scale_words()),
        shape,
        layout: Layout::Blocks,
    }
}
