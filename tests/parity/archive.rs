//! Archives of the files of one model, as `scripts/references/archive.py` writes them.

use std::{collections::BTreeMap, ops::Range};

/// The files in a tar archive: headers and files fill blocks of 512 bytes.
pub fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut rest = archive;
    while rest[0] != 0 {
        let text = |range: Range<usize>| {
            let field = rest[range].split(|byte| *byte == 0).next().unwrap();
            std::str::from_utf8(field).unwrap().to_owned()
        };
        let size = usize::from_str_radix(text(124..136).trim(), 8).unwrap();
        found.insert(text(0..100), rest[512..512 + size].to_vec());
        rest = &rest[512 + size.next_multiple_of(512)..];
    }
    found
}
