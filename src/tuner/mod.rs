//! Chooses the form of the kernels for a device: measures what barriers cost, validates candidates
//! against the reference, and times the arithmetic. Models and weights belong to the modules above.
//!
//! | file | part |
//! |---|---|
//! | `choose` | the candidates of a device, and the first that computes correctly |
//! | `self_test/` | validation of a variant's kernels against the reference |
//! | `barrier_cost` | what a workgroup barrier costs |
//! | `quickest` | arithmetic and tile sizes by measurement |
//! | `needs` | what a model requires of its kernels |
//!
//! Kernel variants are validated at start-up, because drivers have bugs. Reductions use subgroup shuffles where the
//! device has them and workgroup memory otherwise. Where a barrier is measured to cost more than 0.2 us, as on software
//! adapters, tiles and attention run without barriers. Each candidate is compared with the CPU twins in the model's
//! tensor types, kind of attention and KV format; the first that agrees is used and reported. Where barriers are cheap,
//! products in f16 and on bytes are then timed against f32 on one matrix; what takes at most 85 % of the time and
//! validates is used.

mod barrier_cost;
mod choose;
mod needs;
mod quickest;
mod self_test;

pub use barrier_cost::barrier_us;
pub use choose::{best_variant, best_variant_with, candidates, choose};
pub use needs::{Needs, Precision};
pub use quickest::quickest;
