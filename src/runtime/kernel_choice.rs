//! The results of a load about the kernels on a device, as a string that a later load gets: the form that was chosen, and
//! that it computes correctly. A string of other conditions is ignored. Where strings are kept is the caller's concern.
//!
//! A self-test is kept for the next visit. A load yields a string: the form of the kernels, what the validation of the
//! sampling kernels found, and the conditions under which that is true: the build, the device with its limits, and what
//! the model needs. The worker keeps it beside the model's first file (`model_source/store/kernel_note.ts`) with a hash, the
//! browser's full version and the time, because drivers change unseen: after 30 days the kernels are tested again. A
//! load under the same conditions skips validation and measurement, and records the steps of a single token only. The
//! kernels of prompts compile once the model is ready; a prompt that comes earlier waits for its own. A load that loses
//! the device drops the string. An engine that takes over from a lost one validates again.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Tuning;
use crate::{
    device::ComputeDevice,
    model::Transformer,
    ops::{Variant, sample::SamplerVerdict},
    tuner::Needs,
};

/// The kernels that are known before a load: a string of [`super::RunningModel::kernels`].
#[derive(Debug, Clone, Copy)]
pub enum KnownKernels<'t> {
    /// Nothing is known: the kernels are validated and measured.
    None,
    /// The form of an engine that was lost. It is validated again, because the device may be why it was lost, but not
    /// measured: another form rounds differently, and the answers of the lost engine are continued.
    OfLostEngine(&'t str),
    /// The form that an earlier load validated. It is used as it is.
    Kept(&'t str),
}

/// The results of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelChoice {
    conditions: String,
    variant: Variant,
    sampler: Option<SamplerVerdict>,
}

/// The conditions of the self-test and of the measurements: this build, the device and the needs of the model.
pub(super) fn conditions(device: &ComputeDevice, needs: Needs<'_>) -> String {
    let types: Vec<_> = needs.types.iter().map(|ty| ty.name()).collect();
    let conditions = json!({
        "version": env!("CARGO_PKG_VERSION"),
        // Set by scripts/build.mjs: a digest of the sources.
        "build": option_env!("INPAGE_BUILD"),
        "device": device.report(),
        "types": types,
        "experts": needs.experts,
        "wholeAttention": needs.whole_attention,
        "kvFormat": needs.kv_format.name(),
        "precision": format!("{:?}", needs.precision),
    });
    conditions.to_string()
}

impl KernelChoice {
    pub(super) fn of(conditions: String, model: &Transformer) -> KernelChoice {
        KernelChoice {
            conditions,
            variant: model.variant(),
            sampler: model.sampler_verdict(),
        }
    }

    /// The choice as an opaque string.
    pub(super) fn text(&self) -> String {
        // Strings, numbers and booleans always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The way to tune a device under `conditions`, and the known facts about its sampling kernels.
    pub(super) fn tuning(
        known: KnownKernels<'_>,
        conditions: &str,
    ) -> (Tuning, Option<SamplerVerdict>) {
        let parse = |text| {
            let choice = serde_json::from_str::<KernelChoice>(text).ok();
            choice.filter(|choice| choice.conditions == conditions)
        };
        let (choice, tuning): (_, fn(Variant) -> Tuning) = match known {
            KnownKernels::None => (None, Tuning::Prefer),
            KnownKernels::OfLostEngine(text) => (parse(text), Tuning::Prefer),
            KnownKernels::Kept(text) => (parse(text), Tuning::Kept),
        };
        match choice {
            Some(choice) => (tuning(choice.variant), choice.sampler),
            None => (Tuning::Best, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ops::{kv_memory::KvFormat, sample::SamplerShape},
        tensor_types::TensorType,
        tuner::Precision,
    };

    const NEEDS: Needs<'static> = Needs {
        types: &[TensorType::Q4_0],
        experts: false,
        whole_attention: false,
        kv_format: KvFormat::F16,
        precision: Precision::Auto,
    };

    fn choice() -> KernelChoice {
        let shape = SamplerShape {
            slots: 8,
            vocab: 300,
            history_tokens: 65,
        };
        KernelChoice {
            conditions: conditions(&ComputeDevice::reference(), NEEDS),
            variant: Variant {
                rows_per_group: 16,
                ..Variant::PORTABLE
            },
            sampler: Some(SamplerVerdict {
                shape,
                is_right: true,
            }),
        }
    }

    #[test]
    fn a_choice_is_used_under_its_own_conditions_only() {
        let choice = choice();
        let here = &choice.conditions;
        let tuning = |known| KernelChoice::tuning(known, here);
        let text = choice.text();
        let kept = (Tuning::Kept(choice.variant), choice.sampler);
        assert_eq!(tuning(KnownKernels::Kept(&text)), kept);
        let lost = tuning(KnownKernels::OfLostEngine(&text)).0;
        assert_eq!(lost, Tuning::Prefer(choice.variant));

        let nothing = (Tuning::Best, None);
        assert_eq!(tuning(KnownKernels::None), nothing);
        for text in ["", "{}", "null", &text[1..], &text.replace("0.", "9.")] {
            assert_eq!(tuning(KnownKernels::Kept(text)), nothing, "{text}");
            assert_eq!(tuning(KnownKernels::OfLostEngine(text)), nothing, "{text}");
        }
    }

    #[test]
    fn everything_that_a_self_test_covers_is_a_condition() {
        let device = ComputeDevice::reference();
        let others = [
            Needs {
                types: &[TensorType::Q4_0, TensorType::Q6_K],
                ..NEEDS
            },
            Needs {
                experts: true,
                ..NEEDS
            },
            Needs {
                whole_attention: true,
                ..NEEDS
            },
            Needs {
                kv_format: KvFormat::F32,
                ..NEEDS
            },
            Needs {
                precision: Precision::F32,
                ..NEEDS
            },
        ];
        for other in others {
            assert_ne!(conditions(&device, NEEDS), conditions(&device, other));
        }
    }
}
