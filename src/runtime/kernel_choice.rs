//! The chosen form of the kernels as a text. A load that replaces a lost engine uses the same form, because
//! new measurements may choose another one, which rounds differently.

use serde::{Deserialize, Serialize};

use super::Tuning;
use crate::{device::ComputeDevice, ops::Variant};

/// What was chosen, and for which device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelChoice {
    adapter: String,
    backend: String,
    variant: Variant,
}

impl KernelChoice {
    pub(super) fn of(device: &ComputeDevice, variant: Variant) -> KernelChoice {
        let report = device.report();
        KernelChoice {
            adapter: report.adapter.clone(),
            backend: report.backend.clone(),
            variant,
        }
    }

    /// The choice as an opaque text.
    pub(super) fn text(&self) -> String {
        // Texts, numbers and booleans always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// How to tune `device`. A text of another version or device is ignored.
    pub(super) fn tuning(text: Option<&str>, device: &ComputeDevice) -> Tuning {
        let choice = text.and_then(|text| serde_json::from_str::<KernelChoice>(text).ok());
        match choice {
            Some(choice) if choice == KernelChoice::of(device, choice.variant) => {
                Tuning::Prefer(choice.variant)
            }
            _ => Tuning::Best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_used_on_its_own_device_only() {
        let device = ComputeDevice::reference();
        let variant = Variant {
            rows_per_group: 16,
            ..Variant::PORTABLE
        };
        let choice = KernelChoice::of(&device, variant);
        let tuning = |choice: &KernelChoice| KernelChoice::tuning(Some(&choice.text()), &device);
        assert_eq!(tuning(&choice), Tuning::Prefer(variant));
        let other = KernelChoice {
            adapter: "another".into(),
            ..choice
        };
        assert_eq!(tuning(&other), Tuning::Best);
        assert_eq!(KernelChoice::tuning(Some("{}"), &device), Tuning::Best);
        assert_eq!(KernelChoice::tuning(None, &device), Tuning::Best);
    }
}
