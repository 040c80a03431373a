//! GGUF v2 and v3: the header that describes a model file, read and written. Tensor data is only written
//! here, never read.

mod contents;
mod header;
mod metadata;
pub mod split;
mod writer;

pub use contents::Gguf;
pub use metadata::{Metadata, MetadataArray, MetadataValue};
pub use writer::{GgufWriter, TensorDataWriter};

#[cfg(test)]
mod hostile_tests;
