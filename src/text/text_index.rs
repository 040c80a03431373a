//! A compact map from the strings of tokens to their ids.

use std::hash::{BuildHasher, RandomState};

/// Maps a token's text to its id with one copy of the strings and an open-addressed table. It takes a third
/// of the memory of a map of strings, which matters in a browser.
#[derive(Debug)]
pub struct TextIndex {
    bytes: Vec<u8>,
    /// Token `id` is `ends[id - 1]..ends[id]` of `bytes`.
    ends: Vec<usize>,
    /// Ids, or [`FREE`]; the length is a power of two, at least 4/3 of the number of tokens.
    slots: Vec<u32>,
    hasher: RandomState,
}

const FREE: u32 = u32::MAX;

impl TextIndex {
    /// Indexes at most `u32::MAX` strings. Of equal strings the first one is found.
    pub fn new(strings: &[String]) -> TextIndex {
        let mut index = TextIndex {
            bytes: Vec::with_capacity(strings.iter().map(String::len).sum()),
            ends: Vec::with_capacity(strings.len()),
            slots: vec![FREE; (strings.len() * 4 / 3 + 1).next_power_of_two()],
            hasher: RandomState::new(),
        };
        for (id, text) in strings.iter().enumerate() {
            index.bytes.extend_from_slice(text.as_bytes());
            index.ends.push(index.bytes.len());
            let slot = index.slot_of(text.as_bytes());
            if index.slots[slot] == FREE {
                index.slots[slot] = id as u32;
            }
        }
        index
    }

    /// The id of this text.
    pub fn get(&self, text: &[u8]) -> Option<u32> {
        Some(self.slots[self.slot_of(text)]).filter(|&id| id != FREE)
    }

    /// The slot that holds `text`, or the free one where it belongs.
    fn slot_of(&self, text: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while self.slots[slot] != FREE && self.text(self.slots[slot]) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn text(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start..self.ends[id]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_text_and_no_other() {
        let strings: Vec<String> = (0..1000).map(|n| format!("{:x}", n * n)).collect();
        let index = TextIndex::new(&strings);
        for (id, text) in strings.iter().enumerate() {
            assert_eq!(index.get(text.as_bytes()), Some(id as u32));
        }
        assert_eq!(index.get(b"zzz"), None);
        assert_eq!(index.get(b""), None);
    }

    #[test]
    fn the_first_of_equal_strings_keeps_its_id() {
        let index = TextIndex::new(&["a", "", "a", ""].map(str::to_owned));
        assert_eq!(index.get(b"a"), Some(0));
        assert_eq!(index.get(b""), Some(1));
        assert_eq!(TextIndex::new(&[]).get(b"a"), None);
    }
}
