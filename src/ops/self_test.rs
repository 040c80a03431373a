//! The start-up proof of a kernel variant: drivers lie, so the kernels that depend on the variant
//! are compared with their CPU twins on the device at hand before any is used.

use burn::tensor::{Device, Tensor, TensorData};

use super::{
    Variant,
    gated_matvec::gated_matvec,
    matrix::{Format, Matrix, MatrixShape},
    matvec::{MAX_TOKENS, matvec},
};
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
