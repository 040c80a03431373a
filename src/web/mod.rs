//! The wasm edge: bytes of requests in, bytes of responses out. The only code that knows
//! JavaScript; what an HTTP request means is `api`'s business.
//!
//! | file | part |
//! |---|---|
//! | `start` | what runs once: constructors, the panic hook |
//! | `engine`, `response` | the exported classes |
//! | `load` | from a model's bytes to a model that answers: the one place that joins all parts |
//! | `inspect` | what a model is and whether it runs, without a GPU |
//! | `source`, `lora` | the model's bytes; low-rank adapters |
//! | `measure` | what a decode step costs the CPU, for benchmarks |
//! | `host`, `errors` | time and log; errors as JavaScript sees them |

mod engine;
mod errors;
mod host;
mod inspect;
mod load;
mod lora;
mod measure;
mod response;
mod source;
mod start;

pub use engine::InpageEngine;
pub use inspect::inspect_model;
pub use measure::measure_replay;
pub use response::InpageResponse;
pub use source::ModelSource;
