//! The proof of kernels on the device at hand: drivers lie, so those that depend on the variant are
//! compared with their CPU twins at start-up, and those that sample before they first do.

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{
    Variant,
    gated_matvec::gated_matvec,
    matrix::{Format, Matrix, MatrixShape},
    matvec::{MAX_TOKENS, matvec},
    sample::{RowChoice, SamplerMemory, SamplerShape, parse, sample},
    step::{Segment, Step},
};
use crate::sample::{DryParams, MirostatParams, Sampler, SamplingParams};
use crate::{Error, Result, device::Gpu};

/// Rows that fill no workgroup.
const ROWS: usize = 37;

/// The variants worth trying on a device, best first; the last works everywhere.
pub fn candidates(gpu: &Gpu) -> Vec<Variant> {
    let report = gpu.report();
    let portable = Variant::PORTABLE;
    let mut candidates = Vec::new();
    if report.subgroups && report.subgroup_min_lanes.is_power_of_two() {
        candidates.push(Variant {
            subgroups: true,
            enable_directives: report.backend == "BrowserWebGpu",
            lanes_per_row: report.subgroup_min_lanes.min(32),
            rows_per_group: 4,
            ..portable
        });
    }
    candidates.push(portable);
    candidates
}

/// The first candidate whose kernels agree with their twins.
///
/// # Errors
/// [`Error::NoDevice`] if none does, with what each got wrong.
pub async fn choose(gpu: &Gpu, candidates: &[Variant]) -> Result<Variant> {
    let mut faults = Vec::new();
    for &variant in candidates {
        match prove(gpu, variant).await {
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

/// Compares the variant's kernels with their twins.
async fn prove(gpu: &Gpu, variant: Variant) -> Result<()> {
    let cpu = Device::flex();
    // Several tokens once: what differs then lies outside the formats' modules.
    let mut cases = Format::ALL.map(|format| (format, 1)).to_vec();
    cases.push((Format::Q8_0, MAX_TOKENS));
    for (format, tokens) in cases {
        let on_gpu = outputs(gpu.device(), format, tokens, variant)
            .await
            .map_err(|e| gpu.failure(e))?;
        let on_cpu = outputs(&cpu, format, tokens, variant).await?;
        for (i, (a, b)) in on_gpu.iter().zip(&on_cpu).enumerate() {
            // False for NaN too.
            let close = (a - b).abs() <= 1e-3 * (1.0 + b.abs());
            if !close {
                return Err(Error::Internal(format!(
                    "output {i} of matvec_{} of {tokens} tokens is {a}, not {b}",
                    format.name()
                )));
            }
        }
    }
    Ok(())
}

async fn outputs(
    device: &Device,
    format: Format,
    tokens: usize,
    variant: Variant,
) -> Result<Vec<f32>> {
    // Columns that leave some lanes of a row idle.
    let cols = 160usize.next_multiple_of(format.row_multiple());
    let wave =
        |n: usize, step: f32| -> Vec<f32> { (0..n).map(|i| (i as f32 * step).sin()).collect() };
    let matrix = || {
        let shape = MatrixShape {
            format,
            rows: ROWS,
            cols,
        };
        let quants = (0..shape.quant_words()).map(|i| word(format, i)).collect();
        // Two f16 of 1/64 a word.
        let scales = if format.has_scales() {
            vec![0x2400_2400; shape.scale_words()]
        } else {
            vec![]
        };
        Matrix::reserve(shape, device).write(0, quants, 0, scales)
    };
    let vector = |n, step| Tensor::<1>::from_data(TensorData::new(wave(n, step), [n]), device);
    let rows = |n: usize, step| {
        Tensor::<2>::from_data(TensorData::new(wave(tokens * n, step), [tokens, n]), device)
    };
    let (x, norm) = (rows(cols, 0.3), vector(cols, 0.7));
    let (bias, residual) = (vector(ROWS, 1.1), rows(ROWS, 1.3));
    let weights = matrix();
    let plain = matvec(
        x.clone(),
        Some((norm.clone(), 1e-5)),
        &weights,
        Some(bias),
        Some(residual),
        variant,
    );
    let gated = gated_matvec(x, (norm, 1e-5), &weights, &matrix(), variant);
    let mut values = Vec::with_capacity(2 * tokens * ROWS);
    for tensor in [plain, gated] {
        let data = tensor
            .into_data_async()
            .await
            .map_err(|e| Error::Internal(format!("{e:?}")))?;
        values.extend(
            data.try_into_vec::<f32>()
                .map_err(|e| Error::Internal(format!("{e:?}")))?,
        );
    }
    Ok(values)
}

/// Whether the sampler kernels, in the shape in which they will run, choose as their twin does.
///
/// # Errors
/// When the device fails.
pub async fn samples(gpu: &Gpu, shape: SamplerShape) -> Result<bool> {
    let on_gpu = sampled(gpu.device(), shape).await;
    let on_gpu = on_gpu.map_err(|e| gpu.failure(e))?;
    let on_cpu = sampled(&Device::flex(), shape).await?;
    Ok(on_gpu == on_cpu)
}

/// Two tokens each of samplers that run every stage between them.
async fn sampled(device: &Device, shape: SamplerShape) -> Result<Vec<Result<u32>>> {
    const STEPS: usize = 2;
    let plain = SamplingParams {
        temperature: 0.8,
        seed: 7,
        ..SamplingParams::default()
    };
    let truncated = SamplingParams {
        top_k: Some(40),
        top_p: 0.9,
        min_p: 0.02,
        ..plain.clone()
    };
    let penalised = SamplingParams {
        repetition_penalty: 1.2,
        frequency_penalty: 0.5,
        logit_bias: vec![(3, 2.0)],
        dry: Some(DryParams {
            multiplier: 1.0,
            base: 1.5,
            allowed_length: 1,
            breakers: [].into(),
        }),
        ..plain.clone()
    };
    let greedy = SamplingParams {
        temperature: 0.0,
        ..penalised.clone()
    };
    let mirostat = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 3.0,
            learning_rate: 0.1,
        }),
        ..plain.clone()
    };
    let mut kinds = vec![plain, truncated, penalised, greedy, mirostat];
    kinds.truncate(shape.slots);
    let count = kinds.len();
    let mut memory = SamplerMemory::new(shape, device);
    let row = |slot| RowChoice {
        slot,
        is_masked: false,
        score: None,
    };
    for (slot, params) in kinds.iter().enumerate() {
        let prompt = [1, 2, 1, 2].map(|id| id % shape.vocab as u32);
        memory.load(slot, &Sampler::new(params, 0, &prompt));
    }
    memory.set_rows(&(0..count).map(row).collect::<Vec<_>>());
    let mut step = Step::new(count, 1, device);
    let segment = Segment {
        position: 0,
        tokens: 1,
        pages: &[],
    };
    step.set(&vec![segment; count]);
    let ids = TensorData::new(vec![0u32; count], [count]);
    let mut ids = Some(Tensor::from_data(ids, (device, DType::U32)));
    // A few likely tokens, many unlikely ones, and ties.
    let wave =
        |i: usize| (i as f32 * 0.7).sin() * 4.0 + if i.is_multiple_of(97) { 5.0 } else { 0.0 };
    let logits: Vec<f32> = (0..count * shape.vocab).map(wave).collect();
    for _ in 0..STEPS {
        let logits = TensorData::new(logits.clone(), [count, shape.vocab]);
        let logits = Tensor::<2>::from_data(logits, device);
        sample(logits, &mut memory, &mut ids, &mut step);
    }
    let data = memory.results().into_data_async().await;
    let data = data.map_err(|e| Error::Internal(format!("{e:?}")))?;
    let words = data
        .try_into_vec::<u32>()
        .map_err(|e| Error::Internal(format!("{e:?}")))?;
    let wanted = (0..count).flat_map(|slot| (0..STEPS).map(move |step| (slot, step)));
    let ids = wanted.map(|(slot, step)| {
        let chosen = parse(&words, slot, step, None)?;
        Ok(chosen.0.id)
    });
    Ok(ids.collect())
}

/// Varied but finite contents of a quant word.
fn word(format: Format, i: usize) -> u32 {
    let value = ((i % 23) as f32 - 11.0) / 16.0;
    match format {
        Format::F32 => value.to_bits(),
        Format::F16 => 0x1_0001 * u32::from(half::f16::from_f32(value).to_bits()),
        Format::Bf16 => 0x1_0001 * u32::from(half::bf16::from_f32(value).to_bits()),
        Format::Q8_0 | Format::Q4_0 | Format::Q6K => (i as u32).wrapping_mul(0x9e37_79b9),
    }
}
