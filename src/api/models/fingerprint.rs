//! `system_fingerprint`: a string that differs between answers of different weights or kernels.

use std::cell::RefCell;
use std::rc::Rc;

/// `system_fingerprint`: `fp_` and 10 hex digits of an FNV-1a hash of everything that the output depends
/// on: version of the runtime, weights, quantization, adapters, class of device, version of the
/// sampler. Clones change together.
#[derive(Debug, Clone)]
pub struct Fingerprint(Rc<RefCell<String>>);

impl Fingerprint {
    /// The fingerprint of these parts.
    pub fn of(parts: &[impl AsRef<str>]) -> Fingerprint {
        Fingerprint(Rc::new(RefCell::new(digest(parts))))
    }

    /// Replaces the parts.
    pub fn set(&self, parts: &[impl AsRef<str>]) {
        self.0.replace(digest(parts));
    }

    pub(in crate::api) fn text(&self) -> String {
        self.0.borrow().clone()
    }
}

fn digest(parts: &[impl AsRef<str>]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        part.as_ref().bytes().for_each(&mut mix);
        // A separator: UTF-8 never contains this byte.
        mix(0xff);
    }
    format!("fp_{:010x}", hash >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_differ_by_part() {
        let fingerprint = Fingerprint::of(&["ab", "c"]);
        let first = fingerprint.text();
        assert!(first.len() == 13 && first.starts_with("fp_"));
        assert!(first[3..].bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(first, Fingerprint::of(&["ab", "c"]).text());
        let clone = fingerprint.clone();
        fingerprint.set(&["a", "bc"]);
        assert_ne!(first, fingerprint.text());
        assert_eq!(clone.text(), fingerprint.text());
    }
}
