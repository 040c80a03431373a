//! Makes a running engine of options: the one place that joins files, tokenizer, device, model, engine
//! and endpoint. The page's worker, the native server, the command-line tools and the tests use the
//! same stages, with byte sources and devices of their own.
//!
//! | file | stage |
//! |---|---|
//! | `open` | files -> checkpoint, tokenizer, adapters; headers only |
//! | `start` | plan, device, kernels and weights -> a model |
//! | `load` | all of it, with a report -> a model with its tokenizer |
//! | `projector` | the file of a vision tower |
//! | `draft_model` | the smaller model that guesses tokens |
//! | `serve` | engine, endpoint -> a model that answers, and changes to it |
//! | `device_choice` | the GPU or the CPU |
//! | `kernel_choice` | what a load found out about the kernels, to be used by a later one |
//! | `seam` | where test hooks attach |
//! | `adapters`, `report`, `fingerprint`, `error_code` | low-rank adapters; reports on a load |
//! | `inspect` | `open` and the plan alone: whether a model runs, without a device |
//!
//! One loader. The page's worker, `examples/serve`, `logits`, `bench` and the native tests run the same stages in
//! `src/runtime` and differ only in byte source and device. Test hooks attach in `runtime/seam.rs` and nowhere else.

mod adapters;
mod device_choice;
mod draft_model;
mod error_code;
mod fingerprint;
mod inspect;
mod kernel_choice;
mod load;
mod open;
mod projector;
mod report;
mod seam;
mod serve;
mod start;

#[cfg(test)]
mod tests;

pub use adapters::{AdapterFiles, Adapters, LoraReport};
pub use device_choice::{ChosenDevice, DeviceChoice};
pub use draft_model::DraftModelReport;
pub use error_code::error_code;
pub use inspect::{ContainerReport, Inspection, InspectionOptions, LimitReport, Refusal, inspect};
pub use kernel_choice::KnownKernels;
pub use load::{LoadRequest, Loaded, load, reload};
pub use open::{Opened, open};
pub use projector::ProjectorReport;
pub use report::{EngineInfo, LoadReport, LoadTimes};
pub use seam::{ServedHandler, ServedModel};
pub use serve::{RunningModel, Served, ServedEngine, serve};
pub use start::{StartTimes, Tuning, start, start_vision};

/// Visits the types of options and reports, to be declared in TypeScript.
#[cfg(test)]
pub(crate) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<EngineInfo<'static>>();
    visitor.visit::<LoadReport>();
    visitor.visit::<Inspection>();
    visitor.visit::<InspectionOptions>();
    visitor.visit::<DeviceChoice>();
}

/// The facts about the options that TypeScript knows besides their types.
#[cfg(test)]
pub(crate) fn constants() -> Vec<crate::typescript::Constant> {
    use crate::{ops::kv_memory::KvFormat, typescript::Constant};

    vec![
        Constant::names::<crate::model::LoadOptions>(
            "The names of the options of a load.",
            "LOAD_OPTIONS",
            "Readonly<Record<keyof LoadOptions, true>>",
            &[],
        ),
        Constant {
            docs: "The formats of a KV cache.",
            name: "KV_FORMATS",
            declared_type: "readonly KvFormat[]",
            value: KvFormat::NAMES.to_vec().into(),
        },
    ]
}
