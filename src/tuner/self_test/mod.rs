//! Validation of kernels on the device at hand: drivers have bugs, so the kernels that depend on the
//! variant are compared with the reference at start-up.

use burn::tensor::{Device, Tensor};

use super::needs::Needs;
use crate::{
    Error, Result,
    device::{ComputeDevice, read},
    ops::{
        Activation, Addends, Arithmetic, Finish, Kernel, Variant, dry_run,
        gated_product::{gated_matmul, gated_matvec},
        matvec::MAX_TOKENS,
        product::{matmul, matvec},
    },
    tensor_types::TensorType,
};

mod attended;
mod inputs;
mod mixture;

use attended::Attended;
use inputs::{matrix, rows, vector};
use mixture::mixture;

/// Rows that fill no workgroup.
const ROWS: usize = 37;

/// Tensor types and numbers of tokens to compare products of.
fn cases(types: &[TensorType]) -> Vec<(TensorType, usize)> {
    // Several tokens are compared for one type only, because what differs then does not depend on the type.
    let mut cases: Vec<_> = types.iter().map(|&ty| (ty, 1)).collect();
    if let Some(&first) = types.first() {
        cases.extend([(first, MAX_TOKENS), (first, 2 * ROWS)]);
    }
    cases
}

/// Same as [`cases`], for mixtures of experts; they unpack weights with the same shader modules.
fn expert_cases(needs: Needs) -> impl Iterator<Item = (TensorType, usize)> {
    let first = needs.types.iter().take(usize::from(needs.experts));
    first.flat_map(|&ty| [3, 2 * ROWS].map(|tokens| (ty, tokens)))
}

/// The attention that a model computes.
fn attention_cases(needs: Needs, variant: Variant) -> &'static [Attended] {
    match needs.whole_attention {
        true => Attended::whole(),
        false => Attended::causal(variant),
    }
}

/// The kernels that [`validate`] launches.
pub(super) fn kernels(device: &Device, variant: Variant, needs: Needs) -> Vec<Kernel> {
    let Needs {
        types, kv_format, ..
    } = needs;
    let run = dry_run(|| {
        for (ty, tokens) in cases(types) {
            products(device, ty, tokens, variant);
        }
        if let Some(&first) = types.first() {
            products(device, first, MAX_TOKENS + 1, variant);
        }
        for case in attention_cases(needs, variant) {
            case.compute(device, kv_format, variant);
        }
        for (ty, tokens) in expert_cases(needs) {
            mixture(device, ty, tokens, variant);
        }
    });
    run.kernels
}

/// Compares the variant's kernels with the reference.
///
/// # Errors
/// [`Error::Internal`] with the first output that is wrong; when the device fails.
pub(super) async fn validate(
    device: &ComputeDevice,
    variant: Variant,
    needs: Needs<'_>,
) -> Result<()> {
    let Needs {
        types, kv_format, ..
    } = needs;
    for (ty, tokens) in cases(types) {
        validate_products(device, variant, ty, tokens).await?;
    }
    if let Some(&first) = types.first() {
        any_tile(device, first, variant).await?;
    }
    for case in attention_cases(needs, variant) {
        let computed = floats(case.compute(device.tensors(), kv_format, variant)).await;
        let expected = floats(case.compute(&Device::flex(), kv_format, variant)).await?;
        let computed = computed.map_err(|e| device.failure(e))?;
        let what = format!("{} to {} keys", case.name(), kv_format.name());
        compare(&what, &computed, &expected, kv_format.tolerance())?;
    }
    for (ty, tokens) in expert_cases(needs) {
        let computed = floats(mixture(device.tensors(), ty, tokens, variant)).await;
        let expected = floats(mixture(&Device::flex(), ty, tokens, variant)).await?;
        let computed = computed.map_err(|e| device.failure(e))?;
        let what = format!("experts in {} for {tokens} tokens", ty.name());
        compare(&what, &computed, &expected, 1e-3)?;
    }
    Ok(())
}

/// Compares only the products for a few or for `many` tokens with the reference, in types for which
/// the variant's arithmetic differs from f32. The rest of the variant was validated before.
///
/// # Errors
/// Fails when an output is wrong, or the device fails.
pub(super) async fn agrees(
    device: &ComputeDevice,
    variant: Variant,
    types: &[TensorType],
    many: bool,
) -> Result<()> {
    let (arithmetic, tokens) = if many {
        (variant.matmul, [MAX_TOKENS + 1, 2 * ROWS])
    } else {
        (variant.matvec, [1, MAX_TOKENS])
    };
    let types = types
        .iter()
        .filter(|ty| arithmetic.on(&[**ty]) == arithmetic);
    for (i, &ty) in types.enumerate() {
        // Several tokens once, as in `validate`.
        let tokens = if i == 0 { &tokens[..] } else { &tokens[..1] };
        for &tokens in tokens {
            validate_products(device, variant, ty, tokens).await?;
        }
        if many && i == 0 {
            any_tile(device, ty, variant).await?;
        }
    }
    Ok(())
}

async fn validate_products(
    device: &ComputeDevice,
    variant: Variant,
    ty: TensorType,
    tokens: usize,
) -> Result<()> {
    let arithmetic = if tokens <= MAX_TOKENS {
        variant.matvec
    } else {
        variant.matmul
    };
    let computed = all_floats(products(device.tensors(), ty, tokens, variant)).await;
    let expected = all_floats(products(&Device::flex(), ty, tokens, variant)).await?;
    let what = format!("{} of {tokens} tokens", ty.name());
    let computed = computed.map_err(|e| device.failure(e))?;
    let tolerance = match arithmetic {
        Arithmetic::F32 => 1e-3,
        Arithmetic::F16 | Arithmetic::I8 => 5e-2,
    };
    compare(&what, &computed, &expected, tolerance)
}

/// Small and large tiles must give the same result for a token, to the last bit. A compiler that
/// reorders sums would break that.
async fn any_tile(device: &ComputeDevice, ty: TensorType, variant: Variant) -> Result<()> {
    let (few, many) = (MAX_TOKENS + 1, 2 * ROWS);
    let small = all_floats(products(device.tensors(), ty, few, variant)).await;
    let large = all_floats(products(device.tensors(), ty, many, variant)).await;
    let [small, large] = [small, large].map(|of| of.map_err(|e| device.failure(e)));
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

fn compare(what: &str, computed: &[f32], expected: &[f32], tolerance: f32) -> Result<()> {
    for (i, (a, b)) in computed.iter().zip(expected).enumerate() {
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

async fn floats(tensor: Tensor<2>) -> Result<Vec<f32>> {
    let values = read(tensor.into_dispatch()).await;
    values.map_err(Error::Internal)
}

async fn all_floats(tensors: [Tensor<2>; 2]) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for tensor in tensors {
        values.extend(floats(tensor).await?);
    }
    Ok(values)
}

/// Plain and gated products of `tokens` inputs, by the kernels for this number.
fn products(device: &Device, ty: TensorType, tokens: usize, variant: Variant) -> [Tensor<2>; 2] {
    // Columns that leave some lanes of a row idle.
    let cols = 160usize.next_multiple_of(ty.row_multiple());
    let (x, norm) = (rows(tokens, cols, 0.3, device), vector(cols, 0.7, device));
    let addends = Addends {
        bias: Some(vector(ROWS, 1.1, device)),
        delta: None,
        residual: Some(rows(tokens, ROWS, 1.3, device)),
    };
    let matrix = || matrix(device, ty, ROWS, cols);
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
