//! Model files: byte sources, the GGUF container, quantized blocks. Knows nothing of layers or of
//! the GPU.

pub mod source;
