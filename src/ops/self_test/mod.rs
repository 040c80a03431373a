//! The proof of kernels on the device at hand: drivers lie, so those that depend on the variant are
//! compared with their CPU twins at start-up.

use burn::tensor::{Device, Tensor, TensorData};
use futures_util::future::join;

use super::{
    Activation, Addends, Arithmetic, Finish, Kernel, Variant,
    barriers::barrier_us,
    collect,
    gated_matmul::gated_matmul,
    gated_matvec::gated_matvec,
    kv_memory::KvFormat,
    matmul::matmul,
    matrix::{Format, Matrix, MatrixShape, ScaleWord},
    matvec::{MAX_TOKENS, matvec},
    quickest::quickest,
};
use crate::{Error, Result, device::Gpu};

mod attended;
mod mixture;
mod needs;

pub use needs::{Needs, Precision};

use attended::{attended, attended_tokens};
use mixture::mixture;

/// Rows that fill no workgroup.
const ROWS: usize = 37;

/// A barrier that costs more than this decides for kernels without: a GPU's costs some nanoseconds.
const DEAR_BARRIER_US: f64 = 0.2;

/// The best variant that computes rightly on the device.
///
/// # Errors
/// [`Error::NoDevice`] if none does.
pub async fn best_variant(gpu: &Gpu, needs: Needs<'_>) -> Result<Variant> {
    best_variant_with(gpu, needs, |_| Vec::new()).await
}

/// As [`best_variant`], and compiles the kernels that `own` says a variant will launch later beside
/// those of the proof.
///
/// # Errors
/// As [`best_variant`].
pub async fn best_variant_with(
    gpu: &Gpu,
    needs: Needs<'_>,
    own: impl Fn(Variant) -> Vec<Kernel>,
) -> Result<Variant> {
    let barriers_are_dear = barrier_us(gpu).await? > DEAR_BARRIER_US;
    let candidates = candidates(gpu, barriers_are_dear);
    let variant = choose_with(gpu, &candidates, needs, &own).await?;
    if barriers_are_dear || needs.precision == Precision::F32 {
        return Ok(variant);
    }
    let quickest = quickest(gpu, variant, needs.formats).await?;
    if quickest != variant {
        gpu.compile_ahead(texts(&own(quickest))).await;
    }
    Ok(quickest)
}

/// The variants worth trying on a device, best first; the last works everywhere.
pub fn candidates(gpu: &Gpu, barriers_are_dear: bool) -> Vec<Variant> {
    let report = gpu.report();
    let portable = Variant::PORTABLE;
    let mut candidates = Vec::new();
    if report.subgroups && report.subgroup_min_lanes.is_power_of_two() {
        let with_subgroups = Variant {
            subgroups: true,
            enable_directives: report.backend == "BrowserWebGpu",
            lanes_per_row: report.subgroup_min_lanes.min(32),
            rows_per_group: 4,
            ..portable
        };
        // Emulated lanes are few and each load is dear: inputs serve more rows.
        if barriers_are_dear && report.subgroup_min_lanes >= 4 {
            candidates.push(Variant {
                barrier_free: true,
                rows_per_group: 16,
                workgroup: with_subgroups.lanes_per_row.max(16),
                ..with_subgroups
            });
        }
        candidates.push(with_subgroups);
    }
    candidates.push(portable);
    candidates
}

/// The first candidate whose kernels agree with their twins.
///
/// # Errors
/// [`Error::NoDevice`] if none does, with what each got wrong.
pub async fn choose(gpu: &Gpu, candidates: &[Variant], needs: Needs<'_>) -> Result<Variant> {
    choose_with(gpu, candidates, needs, &|_| Vec::new()).await
}

async fn choose_with(
    gpu: &Gpu,
    candidates: &[Variant],
    needs: Needs<'_>,
    own: &impl Fn(Variant) -> Vec<Kernel>,
) -> Result<Variant> {
    let mut faults = Vec::new();
    for &variant in candidates {
        // The proof's come first: it runs while the others are compiled.
        let proof_compiled = gpu.compile_ahead(texts(&kernels(gpu.device(), variant, needs)));
        let own_compiled = gpu.compile_ahead(texts(&own(variant)));
        let proven = async {
            proof_compiled.await;
            prove(gpu, variant, needs).await
        };
        match join(proven, own_compiled).await.0 {
            Ok(()) => return Ok(variant),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            Err(fault) => faults.push(format!("{variant:?}: {fault}")),
        }
    }
    Err(Error::NoDevice(format!(
        "no kernel variant computes rightly: {}",
        faults.join("; ")
    )))
}

fn texts(kernels: &[Kernel]) -> Vec<String> {
    kernels.iter().map(Kernel::wgsl).collect()
}

/// Formats and numbers of tokens to compare products of.
fn cases(formats: &[Format]) -> Vec<(Format, usize)> {
    // Several tokens once: what differs then lies outside the formats' modules.
    let mut cases: Vec<_> = formats.iter().map(|&format| (format, 1)).collect();
    if let Some(&first) = formats.first() {
        cases.extend([(first, MAX_TOKENS), (first, 2 * ROWS)]);
    }
    cases
}

/// As [`cases`], of mixtures of experts; their formats' modules are those of other products.
fn expert_cases(needs: Needs) -> impl Iterator<Item = (Format, usize)> {
    let first = needs.formats.iter().take(usize::from(needs.experts));
    first.flat_map(|&format| [3, 2 * ROWS].map(|tokens| (format, tokens)))
}

/// What [`prove`] launches.
fn kernels(device: &Device, variant: Variant, needs: Needs) -> Vec<Kernel> {
    let Needs {
        formats, kv_format, ..
    } = needs;
    collect(|| {
        for (format, tokens) in cases(formats) {
            products(device, format, tokens, variant);
        }
        if let Some(&first) = formats.first() {
            products(device, first, MAX_TOKENS + 1, variant);
        }
        for &tokens in attended_tokens(variant) {
            attended(device, tokens, kv_format, variant);
        }
        for (format, tokens) in expert_cases(needs) {
            mixture(device, format, tokens, variant);
        }
    })
}

/// Compares the variant's kernels with their twins.
async fn prove(gpu: &Gpu, variant: Variant, needs: Needs<'_>) -> Result<()> {
    let Needs {
        formats, kv_format, ..
    } = needs;
    for (format, tokens) in cases(formats) {
        prove_products(gpu, variant, format, tokens).await?;
    }
    if let Some(&first) = formats.first() {
        any_tile(gpu, first, variant).await?;
    }
    // What is kept of a key may be rounded to either side.
    let tolerance = match kv_format {
        KvFormat::F32 => 1e-3,
        KvFormat::F16 => 4e-3,
        KvFormat::Q8_0 => 3e-2,
    };
    for &tokens in attended_tokens(variant) {
        let on_gpu = floats(attended(gpu.device(), tokens, kv_format, variant)).await;
        let on_cpu = floats(attended(&Device::flex(), tokens, kv_format, variant)).await?;
        let on_gpu = on_gpu.map_err(|e| gpu.failure(e))?;
        let what = format!("attention of {tokens} tokens to {} keys", kv_format.name());
        compare(&what, &on_gpu, &on_cpu, tolerance)?;
    }
    for (format, tokens) in expert_cases(needs) {
        let on_gpu = floats(mixture(gpu.device(), format, tokens, variant)).await;
        let on_cpu = floats(mixture(&Device::flex(), format, tokens, variant)).await?;
        let on_gpu = on_gpu.map_err(|e| gpu.failure(e))?;
        let what = format!("experts in {} for {tokens} tokens", format.name());
        compare(&what, &on_gpu, &on_cpu, 1e-3)?;
    }
    Ok(())
}

/// Compares only the products for a few or for `many` tokens with their twins, on formats on which
/// the variant's arithmetic differs from f32: what the rest of the variant is was proven before.
///
/// # Errors
/// When an output is wrong, or the device fails.
pub(super) async fn agrees(
    gpu: &Gpu,
    variant: Variant,
    formats: &[Format],
    many: bool,
) -> Result<()> {
    let (arithmetic, tokens) = if many {
        (variant.matmul, [MAX_TOKENS + 1, 2 * ROWS])
    } else {
        (variant.matvec, [1, MAX_TOKENS])
    };
    let formats = formats
        .iter()
        .filter(|format| arithmetic.on(&[**format]) == arithmetic);
    for (i, &format) in formats.enumerate() {
        // Several tokens once, as in `prove`.
        let tokens = if i == 0 { &tokens[..] } else { &tokens[..1] };
        for &tokens in tokens {
            prove_products(gpu, variant, format, tokens).await?;
        }
        if many && i == 0 {
            any_tile(gpu, format, variant).await?;
        }
    }
    Ok(())
}

async fn prove_products(gpu: &Gpu, variant: Variant, format: Format, tokens: usize) -> Result<()> {
    let arithmetic = if tokens <= MAX_TOKENS {
        variant.matvec
    } else {
        variant.matmul
    };
    let on_gpu = all_floats(products(gpu.device(), format, tokens, variant)).await;
    let on_cpu = all_floats(products(&Device::flex(), format, tokens, variant)).await?;
    let what = format!("{} of {tokens} tokens", format.name());
    let on_gpu = on_gpu.map_err(|e| gpu.failure(e))?;
    let tolerance = match arithmetic {
        Arithmetic::F32 => 1e-3,
        Arithmetic::F16 | Arithmetic::I8 => 5e-2,
    };
    compare(&what, &on_gpu, &on_cpu, tolerance)
}

/// Small and large tiles must give a token the same, to the last bit: a compiler may reorder sums.
async fn any_tile(gpu: &Gpu, format: Format, variant: Variant) -> Result<()> {
    let (few, many) = (MAX_TOKENS + 1, 2 * ROWS);
    let small = all_floats(products(gpu.device(), format, few, variant)).await;
    let large = all_floats(products(gpu.device(), format, many, variant)).await;
    let [small, large] = [small, large].map(|of| of.map_err(|e| gpu.failure(e)));
    let (small, large) = (small?, large?);
    // Plain products, then gated ones.
    for (small, large) in small.chunks(few * ROWS).zip(large.chunks(many * ROWS)) {
        if small
            .iter()
            .zip(large)
            .any(|(a, b)| a.to_bits() != b.to_bits())
        {
            return Err(Error::Internal("a token depends on its tile".into()));
        }
    }
    Ok(())
}

fn compare(what: &str, on_gpu: &[f32], on_cpu: &[f32], tolerance: f32) -> Result<()> {
    for (i, (a, b)) in on_gpu.iter().zip(on_cpu).enumerate() {
        // False for NaN too.
        let close = (a - b).abs() <= tolerance * (1.0 + b.abs());
        if !close {
            return Err(Error::Internal(format!(
                "output {i} of {what} is {a}, not {b}"
            )));
        }
    }
    Ok(())
}

fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

fn rows(tokens: usize, n: usize, step: f32, device: &Device) -> Tensor<2> {
    let values = TensorData::new(wave(tokens * n, step), [tokens, n]);
    Tensor::from_data(values, device)
}

fn vector(n: usize, step: f32, device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(wave(n, step), [n]), device)
}

async fn floats(tensor: Tensor<2>) -> Result<Vec<f32>> {
    let data = tensor.into_data_async().await;
    let data = data.map_err(|e| Error::Internal(format!("{e:?}")))?;
    data.try_into_vec()
        .map_err(|e| Error::Internal(format!("{e:?}")))
}

async fn all_floats(tensors: [Tensor<2>; 2]) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for tensor in tensors {
        values.extend(floats(tensor).await?);
    }
    Ok(values)
}

/// Plain and gated products of `tokens` inputs, by the kernels for so many.
fn products(device: &Device, format: Format, tokens: usize, variant: Variant) -> [Tensor<2>; 2] {
    // Columns that leave some lanes of a row idle.
    let cols = 160usize.next_multiple_of(format.row_multiple());
    let (x, norm) = (rows(tokens, cols, 0.3, device), vector(cols, 0.7, device));
    let addends = Addends {
        bias: Some(vector(ROWS, 1.1, device)),
        delta: None,
        residual: Some(rows(tokens, ROWS, 1.3, device)),
    };
    let matrix = || matrix(device, format, ROWS, cols);
    let (weights, up) = (matrix(), matrix());
    if tokens <= MAX_TOKENS {
        let norm = (norm, 1e-5);
        [
            matvec(
                x.clone(),
                Some(norm.clone()),
                &weights,
                addends,
                Finish::Plain,
                variant,
            ),
            gated_matvec(
                x,
                Some(norm),
                &weights,
                &up,
                None,
                Activation::Silu,
                variant,
            ),
        ]
    } else {
        [
            matmul(x.clone(), &weights, addends, Finish::Plain, variant),
            gated_matmul(x, &weights, &up, None, Activation::Silu, variant),
        ]
    }
}

fn matrix(device: &Device, format: Format, rows: usize, cols: usize) -> Matrix {
    let shape = MatrixShape { format, rows, cols };
    let quants = (0..shape.quant_words()).map(|i| word(format, i)).collect();
    let scales = match format.has_scales() {
        true => (0..shape.scale_words()).map(|i| scale(format, i)).collect(),
        false => vec![],
    };
    Matrix::reserve(shape, device).write(0, quants, 0, scales)
}

/// Varied but finite contents of a quant word.
fn word(format: Format, i: usize) -> u32 {
    let value = ((i % 23) as f32 - 11.0) / 16.0;
    match format {
        Format::F32 => value.to_bits(),
        Format::F16 => 0x1_0001 * u32::from(half::f16::from_f32(value).to_bits()),
        Format::Bf16 => 0x1_0001 * u32::from(half::bf16::from_f32(value).to_bits()),
        _ => (i as u32).wrapping_mul(0x9e37_79b9),
    }
}

/// Contents of a scale word that keep weights near one: f16 of 1/64, or of 1/1024 where a scale of more
/// bits multiplies them, exponents of 1/8.
fn scale(format: Format, i: usize) -> u32 {
    let bits = (i as u32 + 1).wrapping_mul(0x9e37_79b9);
    let half = match format.row_multiple() {
        256 => 0x1400,
        _ => 0x2400,
    };
    match format.scale_word(i) {
        ScaleWord::Halves => half << 16 | half,
        ScaleWord::LowerHalf => bits & 0xffff_0000 | half,
        ScaleWord::UpperHalf => half << 16 | bits & 0xffff,
        ScaleWord::Bits => bits,
        ScaleWord::Exponents => 0x7c7c_7c7c,
    }
}
