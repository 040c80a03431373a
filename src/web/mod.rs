//! The wasm edge: bytes of requests in, bytes of responses out. The only code that uses JavaScript;
//! requests are interpreted by `api`, and models are loaded by `runtime`.
//!
//! | file | part |
//! |---|---|
//! | `start` | what runs once: constructors, the panic hook |
//! | `engine`, `response` | the exported classes |
//! | `options`, `json_value` | the options object; JSON values between JavaScript and serde |
//! | `inspect` | what a model is and whether it runs, without a GPU |
//! | `source`, `adapters` | the model's bytes; low-rank adapters |
//! | `sha256` | the hash of a downloaded file |
//! | `webgpu` | the GPU device in a browser |
//! | `measure` | the CPU time of a decode step; only with the feature `replay-bench` |
//! | `image`, `remote_image`, `attachments` | decodes images; fetches them; those beside the body of a request |
//! | `host`, `clock`, `errors` | what the endpoint needs of the browser; time; errors as JavaScript sees them |

mod adapters;
mod attachments;
mod clock;
mod cpu_kernels;
mod engine;
mod errors;
mod host;
mod image;
mod inspect;
mod json_value;
#[cfg(feature = "replay-bench")]
mod measure;
mod options;
mod remote_image;
mod response;
mod sha256;
mod source;
mod start;
mod webgpu;

pub use engine::InpageEngine;
pub use inspect::inspect_model;
#[cfg(feature = "replay-bench")]
pub use measure::measure_replay;
pub use options::EngineStart;
pub use response::InpageResponse;
pub use sha256::FileHasher;
pub use source::ModelSource;
