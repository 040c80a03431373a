//! Where the bytes of model files come from. What the bytes mean is decided by the containers.

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
