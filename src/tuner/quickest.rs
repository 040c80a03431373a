//! Choices by measurement: arithmetic that is clearly faster on a device than f32 and computes
//! correctly, and sizes of tiles. One matrix represents all of a model.

use burn::tensor::Tensor;

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
/// Fails when the device fails.
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
    let mut variants = vec![f32];
    variants.extend(others);
    let times_ms = bench.launch_ms(&variants, tokens).await?;
    let Some(f32_ms) = times_ms[0] else {
        return Ok(f32);
    };
    let timed = times_ms.into_iter().zip(variants).skip(1);
    let mut quicker: Vec<_> = timed
        .filter_map(|(ms, variant)| Some((ms?, variant)))
        .filter(|(ms, _)| *ms < GAIN * f32_ms)
        .collect();
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
    let sizes = [from(TILES), from(TILES + 1)];
    Ok(match bench.launch_ms(&sizes, TILES_TOKENS).await?[..] {
        [Some(large_ms), Some(small_ms)] if small_ms < large_ms => WIDE,
        _ => NARROW,
    })
}

/// The measured matrix, and the time that is left for measuring.
struct Bench<'a> {
    device: &'a ComputeDevice,
    recorder: &'a Gpu,
    matrix: Matrix,
    left_ms: f64,
}

/// The recorded launches of a variant and their times.
struct Timed {
    graph: Graph<()>,
    /// Replays that take [`ROUND_MS`].
    replays: usize,
    best_ms: f64,
}

impl Bench<'_> {
    /// Milliseconds of one product of `tokens` inputs with each of `variants`: `None` for one that does not compile or run, and for
    /// all once the time is used up. The variants take turns, because the clock of a device that was idle rises while it works,
    /// which would favor the last one.
    async fn launch_ms(&mut self, variants: &[Variant], tokens: usize) -> Result<Vec<Option<f64>>> {
        if self.left_ms <= 0.0 {
            return Ok(vec![None; variants.len()]);
        }
        let x = self.inputs(tokens);
        let mut timed = Vec::new();
        for &variant in variants {
            timed.push(match self.record(&x, variant).await {
                Ok(graph) => Some(Timed {
                    graph,
                    replays: 1,
                    best_ms: f64::INFINITY,
                }),
                Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
                Err(_) => None,
            });
        }
        let start_ms = self.device.now_ms();
        for slot in &mut timed {
            self.calibrate(slot).await?;
        }
        for round in 0..ROUNDS {
            if round > 0 && self.device.now_ms() - start_ms > self.left_ms {
                break;
            }
            for slot in &mut timed {
                if let Some(ms) = self.replay(slot).await?
                    && let Some(timed) = slot
                {
                    timed.best_ms = timed.best_ms.min(ms);
                }
            }
        }
        self.left_ms -= self.device.now_ms() - start_ms;
        let launches = launches(tokens);
        let each = |timed: Timed| timed.best_ms / (timed.replays * launches) as f64;
        Ok(timed.into_iter().map(|slot| slot.map(each)).collect())
    }

    /// Finds the number of replays of a round.
    async fn calibrate(&self, slot: &mut Option<Timed>) -> Result<()> {
        while let Some(ms) = self.replay(slot).await?
            && ms < ROUND_MS
        {
            if let Some(timed) = slot {
                timed.replays *= 2;
            }
        }
        Ok(())
    }

    fn inputs(&self, tokens: usize) -> Tensor<2> {
        let cols = self.matrix.shape.cols;
        upload(
            vec![1.0; tokens * cols],
            [tokens, cols],
            self.device.tensors(),
        )
    }

    /// Records the launches of a replay. Each adds to the result of the one before it, as layers do: launches that overlap
    /// would hide a device's idle processors.
    async fn record(&self, x: &Tensor<2>, variant: Variant) -> Result<Graph<()>> {
        let [tokens, _] = x.dims();
        let launch = |residual| {
            let addends = Addends {
                residual,
                ..Addends::default()
            };
            match tokens <= MAX_TOKENS {
                true => matvec(
                    x.clone(),
                    None,
                    &self.matrix,
                    addends,
                    Finish::Plain,
                    variant,
                ),
                false => matmul(x.clone(), &self.matrix, addends, Finish::Plain, variant),
            }
        };
        let pass = || (0..launches(tokens)).fold(None, |sum, _| Some(launch(sum)));
        Graph::record(self.recorder, || drop(pass())).await
    }

    /// Milliseconds of the replays of a round. A variant that does not run leaves its slot.
    async fn replay(&self, slot: &mut Option<Timed>) -> Result<Option<f64>> {
        let Some(timed) = slot else {
            return Ok(None);
        };
        match self.round_ms(timed).await {
            Ok(ms) => Ok(Some(ms)),
            Err(Error::DeviceLost(why)) => Err(Error::DeviceLost(why)),
            Err(_) => {
                *slot = None;
                Ok(None)
            }
        }
    }

    async fn round_ms(&self, timed: &Timed) -> Result<f64> {
        let start_ms = self.device.now_ms();
        for _ in 0..timed.replays {
            // SAFETY: the inputs and the matrix outlive the graph, and nothing else uses them meanwhile.
            unsafe { timed.graph.replay(self.recorder)? };
        }
        self.device.sync().await?;
        Ok(self.device.now_ms() - start_ms)
    }
}

/// Launches of one replay: enough that waiting for the device does not dominate.
fn launches(tokens: usize) -> usize {
    match tokens <= MAX_TOKENS {
        true => MATVEC_LAUNCHES,
        false => MATMUL_LAUNCHES,
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
