//! The sources of the bytes of model files. The containers decide on the meaning of the bytes.

mod byte_source;
mod bytes;
#[cfg(not(target_arch = "wasm32"))]
mod file;
mod joined;

pub use byte_source::{ByteSource, check_range};
pub use bytes::BytesSource;
#[cfg(not(target_arch = "wasm32"))]
pub use file::FileSource;
pub use joined::JoinedSource;
