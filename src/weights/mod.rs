//! Model files: byte sources and the containers GGUF and safetensors. What tensors and metadata mean to a
//! model is decided in `model`.

pub mod converted;
mod encode;
pub mod files;
pub mod gguf;
pub mod nvfp4;
pub mod packed;
pub(crate) mod quoted;
pub mod safetensors;
pub mod scaled;
pub mod source;
mod tensor;
pub mod ternary;

pub use converted::ConvertedSource;
#[cfg(not(target_arch = "wasm32"))]
pub use files::LocalFiles;
pub use files::ModelFiles;
pub use gguf::{Gguf, GgufWriter, Metadata, MetadataArray, MetadataValue};
#[cfg(not(target_arch = "wasm32"))]
pub use source::FileSource;
pub use source::{ByteSource, BytesSource, JoinedSource};
pub use tensor::TensorInfo;

#[cfg(test)]
mod shared_models_tests;
