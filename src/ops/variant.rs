//! The variant of the kernels that a device runs.

use serde::{Deserialize, Serialize};

use super::arithmetic::Arithmetic;
use crate::kernel::Kernel;

/// The variant of the kernels that a device runs. `self_test` selects and validates it at start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// Whether lanes reduce with subgroup operations instead of workgroup memory.
    pub subgroups: bool,
    /// Whether the WGSL compiler requires `enable subgroups;` (browsers do; naga rejects it).
    pub enable_directives: bool,
    /// Lanes that share the rows of a matvec. With subgroups, at most the smallest subgroup size.
    pub lanes_per_row: u32,
    /// Rows that one group of lanes computes in a matvec.
    pub rows_per_group: u32,
    /// Lanes of a matvec's workgroup.
    pub workgroup: u32,
    /// Whether four lanes share a block of a matvec in f32, so that neighbours read neighbouring words. Up to four groups of
    /// `lanes_per_row` lanes share a row then, and `rows_per_group` and `workgroup` have no effect (see `matvec`). Requires
    /// subgroups of four lanes or more.
    pub quarters: bool,
    /// Whether kernels avoid barriers: a tile of a matmul is in the registers of a single lane, and the lanes of a
    /// subgroup share a query head of attention. Requires subgroups.
    pub barrier_free: bool,
    /// Minimum number of large tiles of a product; products of fewer use small ones. A device that runs many
    /// workgroups in parallel would be idle with a few large ones.
    pub large_tiles_from: u32,
    /// Arithmetic for a few tokens: F32 or I8.
    pub matvec: Arithmetic,
    /// Arithmetic for many tokens; F32 if kernels avoid barriers.
    pub matmul: Arithmetic,
    /// Whether the kernels of the CPU device run, none of a GPU. The other fields have no effect then.
    pub cpu: bool,
}

impl Variant {
    /// Works on every WebGPU device.
    pub const PORTABLE: Variant = Variant {
        subgroups: false,
        enable_directives: false,
        lanes_per_row: 8,
        rows_per_group: 2,
        workgroup: 64,
        quarters: false,
        barrier_free: false,
        large_tiles_from: 1,
        matvec: Arithmetic::F32,
        matmul: Arithmetic::F32,
        cpu: false,
    };

    /// The kernels of the CPU device.
    pub const CPU: Variant = Variant {
        barrier_free: true,
        cpu: true,
        ..Variant::PORTABLE
    };

    /// A short description for reports.
    pub fn name(&self) -> String {
        if self.cpu {
            return format!("CPU, {}", inpage_cpu::product::instruction_set());
        }
        let reductions = match self.subgroups {
            true => format!("subgroups of {}", self.lanes_per_row),
            false => "portable".into(),
        };
        let mut name = reductions;
        if self.quarters {
            name.push_str(", quarters of blocks");
        }
        if self.barrier_free {
            name.push_str(", no barriers");
        }
        for (op, arithmetic) in [("matvec", self.matvec), ("matmul", self.matmul)] {
            if arithmetic != Arithmetic::F32 {
                name.push_str(&format!(", {op} in {}", arithmetic.name()));
            }
        }
        name
    }

    /// Adds the directive that the variant's modules need.
    pub(super) fn enable(self, kernel: Kernel) -> Kernel {
        match self.subgroups && self.enable_directives {
            true => kernel.directive("enable subgroups;\n"),
            false => kernel,
        }
    }
}
