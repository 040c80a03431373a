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

mod barrier_cost;
mod choose;
mod needs;
mod quickest;
mod self_test;

pub use barrier_cost::barrier_us;
pub use choose::{best_variant, best_variant_with, candidates, choose};
pub use needs::{Needs, Precision};
pub use quickest::quickest;
