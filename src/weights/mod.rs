//! Model files: byte sources, the containers GGUF and safetensors, quantized blocks. Knows nothing of layers or of
//! the GPU.

pub mod blocks;
pub mod converted;
pub mod files;
pub mod gguf;
pub mod packed;
pub mod safetensors;
pub mod source;

pub use blocks::{TensorType, dequantize, quantize, split_blocks};
pub use converted::ConvertedSource;
#[cfg(not(target_arch = "wasm32"))]
pub use files::LocalFiles;
pub use files::ModelFiles;
pub use gguf::{Gguf, GgufWriter, Metadata, MetadataArray, MetadataValue, TensorInfo};
#[cfg(not(target_arch = "wasm32"))]
pub use source::FileSource;
pub use source::{ByteSource, BytesSource, JoinedSource};

#[cfg(test)]
mod shared_models_tests;
