//! The candidates of a device, and the first of them that computes correctly.

use futures_util::future::join;

use super::{
    barrier_cost::barrier_us,
    needs::{Needs, Precision},
    quickest::quickest,
    self_test::{kernels, validate},
};
use crate::{
    Error, Result,
    device::ComputeDevice,
    ops::{Kernel, Variant},
};

/// A barrier that costs more than this selects kernels without barriers. On a GPU one costs some
/// nanoseconds.
const EXPENSIVE_BARRIER_US: f64 = 0.2;
/// The name of the backend in a page.
const BROWSER: &str = "BrowserWebGpu";

/// The best variant that computes correctly on the device.
///
/// # Errors
/// [`Error::NoDevice`] if none does.
pub async fn best_variant(device: &ComputeDevice, needs: Needs<'_>) -> Result<Variant> {
    best_variant_with(device, needs, None, |_| Vec::new()).await
}

/// Same as [`best_variant`], or `preferred` if it computes correctly; also compiles the kernels that the model will launch
/// with a variant, given by `own`, while the variant's kernels are validated.
///
/// # Errors
/// Same as [`best_variant`].
pub async fn best_variant_with(
    device: &ComputeDevice,
    needs: Needs<'_>,
    preferred: Option<Variant>,
    own: impl Fn(Variant) -> Vec<Kernel>,
) -> Result<Variant> {
    if device.is_cpu() {
        return Ok(Variant::CPU);
    }
    if device.is_reference() {
        // The reference needs no validation, because other devices are compared with it.
        return Ok(Variant::PORTABLE);
    }
    if let Some(preferred) = preferred
        && let Ok(variant) = choose_with(device, &[preferred], needs, &own).await
    {
        return Ok(variant);
    }
    let barriers_are_expensive = are_barriers_expensive(device).await?;
    let candidates = candidates(device, barriers_are_expensive);
    let variant = choose_with(device, &candidates, needs, &own).await?;
    if barriers_are_expensive || needs.precision == Precision::F32 {
        return Ok(variant);
    }
    let quickest = quickest(device, variant, needs.types).await?;
    if quickest != variant {
        device.compile_ahead(sources(&own(quickest))).await;
    }
    Ok(quickest)
}

/// Whether lanes are emulated. A browser's software adapter is known to do so. There, a measurement that another program disturbs
/// would choose kernels that are ten times slower, for all visits.
async fn are_barriers_expensive(device: &ComputeDevice) -> Result<bool> {
    let report = device.report();
    if report.software_adapter && report.backend == BROWSER {
        return Ok(true);
    }
    Ok(barrier_us(device).await? > EXPENSIVE_BARRIER_US)
}

/// The variants worth trying on a device, best first; the last works everywhere.
pub fn candidates(device: &ComputeDevice, barriers_are_expensive: bool) -> Vec<Variant> {
    let report = device.report();
    let portable = Variant::PORTABLE;
    let mut candidates = Vec::new();
    if report.subgroups && report.subgroup_min_lanes.is_power_of_two() {
        let with_subgroups = Variant {
            subgroups: true,
            enable_directives: report.backend == BROWSER,
            lanes_per_row: report.subgroup_min_lanes.min(32),
            rows_per_group: 4,
            quarters: !barriers_are_expensive && report.subgroup_min_lanes >= 4,
            ..portable
        };
        // Emulated lanes are few and each load is expensive: one load of inputs serves more rows.
        if barriers_are_expensive && report.subgroup_min_lanes >= 4 {
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

/// The first candidate whose kernels agree with the reference.
///
/// # Errors
/// [`Error::NoDevice`] if none does, with the first wrong output of each.
pub async fn choose(
    device: &ComputeDevice,
    candidates: &[Variant],
    needs: Needs<'_>,
) -> Result<Variant> {
    choose_with(device, candidates, needs, &|_| Vec::new()).await
}

async fn choose_with(
    device: &ComputeDevice,
    candidates: &[Variant],
    needs: Needs<'_>,
    own: &impl Fn(Variant) -> Vec<Kernel>,
) -> Result<Variant> {
    let mut faults = Vec::new();
    for &variant in candidates {
        // The validation's kernels come first: it runs while the others are compiled.
        let tested = device.compile_ahead(sources(&kernels(device.tensors(), variant, needs)));
        let own_compiled = device.compile_ahead(sources(&own(variant)));
        let validated = async {
            tested.await;
            validate(device, variant, needs).await
        };
        match join(validated, own_compiled).await.0 {
            Ok(()) => return Ok(variant),
            Err(Error::DeviceLost(why)) => return Err(Error::DeviceLost(why)),
            Err(fault) => faults.push(format!("{}: {fault}", variant.name())),
        }
    }
    Err(Error::NoDevice(format!(
        "no kernel variant computes correctly: {}",
        faults.join("; ")
    )))
}

fn sources(kernels: &[Kernel]) -> Vec<String> {
    kernels.iter().map(Kernel::wgsl).collect()
}
