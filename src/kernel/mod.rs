//! Composes WGSL modules of `shaders/` into kernels and launches them. What a kernel computes is the
//! concern of `ops`.

mod compose;
mod dry_run;
mod launch;
mod unroll;

#[cfg(test)]
pub(crate) mod validation;

pub use compose::Kernel;
pub(crate) use dry_run::allocate;
pub use dry_run::{DryRun, dry_run};
pub use launch::{grid, launches};

/// The text of a file in `shaders/`, by its path without the extension: `wgsl!("shared/step")`.
macro_rules! wgsl {
    ($path:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/shaders/",
            $path,
            ".wgsl"
        ))
    };
}
pub(crate) use wgsl;
