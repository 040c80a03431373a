//! The codes of errors outside of HTTP: those that a load or an aborted call ends with.

use crate::Error;

/// The `code` of an error in JavaScript and in an inspection's refusal.
pub fn error_code(error: &Error) -> &'static str {
    match error {
        Error::NoDevice(_) => "no_webgpu_device",
        Error::InvalidModelFile(_) => "invalid_model_file",
        Error::UnsupportedModel(_) => "unsupported_model",
        Error::Read(_) => "model_not_readable",
        Error::OutOfMemory(_) => "out_of_memory",
        Error::DeviceLost(_) => "device_lost",
        Error::Aborted => "aborted",
        _ => "internal_error",
    }
}
