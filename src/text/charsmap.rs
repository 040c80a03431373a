//! SentencePiece's `precompiled_charsmap`: strings and their replacements, in a double array.

use std::ops::Range;

use crate::{Error, Result};

/// A compiled map from strings to strings.
///
/// Format: `src/normalizer.cc` and the Darts-clone double array of google/sentencepiece. A
/// little-endian u32 with the size of the trie in bytes, the units of the trie, and the replacements,
/// each terminated by a zero byte.
#[derive(Debug)]
pub struct Charsmap {
    units: Vec<u32>,
    replacements: Box<str>,
}

impl Charsmap {
    /// Reads a map. The trie's offsets are checked when they are used.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if the bytes are not such a map.
    pub fn new(bytes: &[u8]) -> Result<Charsmap> {
        let invalid = |fault| Error::InvalidModelFile(format!("precompiled_charsmap: {fault}"));
        let (size, rest) = bytes
            .split_first_chunk::<4>()
            .ok_or_else(|| invalid("shorter than its header"))?;
        let size = u32::from_le_bytes(*size) as usize;
        if !size.is_multiple_of(4) || size == 0 {
            return Err(invalid("the size of its trie is not a multiple of 4"));
        }
        let (trie, replacements) = rest
            .split_at_checked(size)
            .ok_or_else(|| invalid("shorter than its trie"))?;
        let replacements =
            std::str::from_utf8(replacements).map_err(|_| invalid("its strings are not UTF-8"))?;
        Ok(Charsmap {
            units: trie
                .chunks_exact(4)
                .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))
                .collect(),
            replacements: replacements.into(),
        })
    }

    /// The parts of `text` that are replaced and their replacements: leftmost first, the longest
    /// where several start.
    pub fn replacements<'s>(
        &'s self,
        text: &'s str,
    ) -> impl Iterator<Item = (Range<usize>, &'s str)> + 's {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < text.len() {
                if let Some((bytes, by)) = self.longest(&text[at..]) {
                    at += bytes;
                    return Some((at - bytes..at, by));
                }
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
            None
        })
    }

    /// The longest text in the map that `text` begins with: its length in bytes and its replacement.
    fn longest(&self, text: &str) -> Option<(usize, &str)> {
        let unit = |index: u32| self.units.get(index as usize).copied();
        let offset = |unit: u32| (unit >> 10) << ((unit & (1 << 9)) >> 6);
        let mut longest = None;
        let mut node = offset(unit(0)?);
        for (index, &byte) in text.as_bytes().iter().enumerate() {
            node ^= u32::from(byte);
            // A unit's label, and the bit that marks a value rather than a child.
            let Some(child) = unit(node).filter(|unit| unit & (1 << 31 | 0xFF) == u32::from(byte))
            else {
                break;
            };
            if byte == 0 {
                break;
            }
            node ^= offset(child);
            if child & (1 << 8) != 0 && text.is_char_boundary(index + 1) {
                let value = unit(node).map(|unit| (unit & 0x7FFF_FFFF) as usize);
                longest = value
                    .and_then(|start| self.replacements.get(start..))
                    .and_then(|by| by.split_once('\0'))
                    .map(|(by, _)| (index + 1, by))
                    .or(longest);
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trie of the strings "a" and "ab", built by hand. A node's children are at its offset xor their
    /// byte; its value, if it is a leaf, is at its offset.
    fn map() -> Vec<u8> {
        let mut units = vec![0u32; 1024];
        let offset = |offset: u32| offset << 10;
        let leaf = 1u32 << 8;
        units[0] = offset(256);
        units[256 ^ 0x61] = offset(512 ^ 256 ^ 0x61) | leaf | 0x61;
        units[512] = 1 << 31;
        units[512 ^ 0x62] = offset(768 ^ 512 ^ 0x62) | leaf | 0x62;
        units[768] = 1 << 31 | 2;
        let mut bytes = (4 * units.len() as u32).to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend_from_slice("x\0yz\0".as_bytes());
        bytes
    }

    fn replaced(map: &[u8], text: &str) -> Vec<(Range<usize>, String)> {
        Charsmap::new(map)
            .unwrap()
            .replacements(text)
            .map(|(part, by)| (part, by.to_owned()))
            .collect()
    }

    #[test]
    fn the_longest_match_is_replaced() {
        assert_eq!(
            replaced(&map(), "éaab"),
            [(2..3, "x".to_owned()), (3..5, "yz".to_owned())]
        );
        assert_eq!(replaced(&map(), "b\0"), []);
    }

    #[test]
    fn damaged_maps_are_refused_or_harmless() {
        let map = map();
        for cut in [0, 3, 4, 100] {
            assert!(Charsmap::new(&map[..cut]).is_err(), "{cut}");
        }
        assert!(Charsmap::new(&[2, 0, 0, 0, 1, 1]).is_err());
        assert!(Charsmap::new(&[4, 0, 0, 0, 1, 1, 1, 1, 0xFF]).is_err());
        // The last text is not terminated, and units point anywhere.
        assert_eq!(
            replaced(&map[..map.len() - 1], "ab"),
            [(0..1, "x".to_owned())]
        );
        for byte in 4..map.len() - 5 {
            if map[byte] == 0 {
                continue;
            }
            let mut damaged = map.clone();
            damaged[byte] ^= 0xFF;
            replaced(&damaged, "abab é");
        }
    }
}
