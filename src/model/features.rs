//! The rows that a vision tower has made of images, kept under the keys of their content, so that the next question
//! about an image does not encode it again.

use std::rc::Rc;

/// The maximum number of bytes that are kept: 256 tiles of a model of 1024 columns and 64 rows per tile.
const MAX_BYTES: usize = 64 << 20;

/// The rows of recently used images.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// The most recently used one last.
    entries: Vec<(u128, Rc<[f32]>)>,
    bytes: usize,
}

impl Features {
    /// The rows of an image.
    pub(super) fn get(&mut self, key: u128) -> Option<Rc<[f32]>> {
        let at = self.entries.iter().position(|(known, _)| *known == key)?;
        let entry = self.entries.remove(at);
        let rows = entry.1.clone();
        self.entries.push(entry);
        Some(rows)
    }

    /// Keeps rows, in place of those that were not used for the longest time.
    pub(super) fn put(&mut self, key: u128, rows: Rc<[f32]>) {
        self.bytes += size_of_val(&*rows);
        self.entries.push((key, rows));
        while self.bytes > MAX_BYTES && self.entries.len() > 1 {
            let (_, oldest) = self.entries.remove(0);
            self.bytes -= size_of_val(&*oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut features = Features::default();
        let third: Rc<[f32]> = vec![0.0; MAX_BYTES / 3 / 4].into();
        for key in [1, 2, 3] {
            features.put(key, third.clone());
        }
        assert!(features.get(1).is_some());
        features.put(4, third.clone());
        let held = [1, 2, 3, 4].map(|key| features.get(key).is_some());
        assert_eq!(held, [true, false, true, true]);
        // One that exceeds the limit alone is kept until the next.
        features.put(5, vec![0.0; MAX_BYTES].into());
        assert!(features.get(5).is_some() && features.get(4).is_none());
    }
}
