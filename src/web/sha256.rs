//! SHA-256 of a file that arrives in pieces: the Web Cryptography API takes the whole file at once.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use wasm_bindgen::prelude::*;

/// The hash of the bytes so far.
#[wasm_bindgen(js_name = FileHasher)]
#[derive(Default)]
pub struct FileHasher {
    state: Sha256,
}

#[wasm_bindgen(js_class = FileHasher)]
impl FileHasher {
    /// Adds the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The hash in lower-case hexadecimal digits. Frees the hasher.
    pub fn finish(self) -> String {
        let mut digits = String::with_capacity(64);
        for byte in self.state.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }
}
