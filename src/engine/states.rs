//! The state slots of a model with recurrent layers: which are free, and which hold snapshots. A
//! model without such layers has none.
//!
//! Unlike KV pages, a state cannot be rolled back. So a state that is continued twice is copied first: a
//! snapshot is the state after the last token of a KV page, and it is dropped when that page is free. A
//! snapshot counts as free: no sequence computes on it, and its slot is taken when one is needed.
//!
//! After wrong guesses, the copy from before the step passes through the right tokens once more. A candidate starts from a copy
//! of its prompt's state. Run-ahead needs no snapshot: tokens are discarded only where a sequence ends, and its state is not
//! read after that. After a failed step the states are undefined, so the sequences of the step fail.

use std::collections::BTreeMap;

/// The state slots of a model, which are free, hold a snapshot, or belong to a sequence.
#[derive(Debug)]
pub(super) struct StatePool {
    free: Vec<u32>,
    /// The snapshots by the page that ends where each was taken.
    snapshots: BTreeMap<u32, Snapshot>,
    count: usize,
    clock: u64,
}

#[derive(Debug)]
struct Snapshot {
    slot: u32,
    last_used: u64,
}

impl StatePool {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: (0..count as u32).rev().collect(),
            snapshots: BTreeMap::new(),
            count,
            clock: 0,
        }
    }

    /// Number of slots; 0 for a model without states.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Slots that no sequence holds.
    pub(super) fn free_count(&self) -> usize {
        self.free.len() + self.snapshots.len()
    }

    /// A slot for a sequence: a free one, or that of the snapshot used longest ago.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let snapshots = self.snapshots.iter();
        let (&oldest, _) = snapshots.min_by_key(|(_, snapshot)| snapshot.last_used)?;
        self.snapshots.remove(&oldest).map(|it| it.slot)
    }

    pub(super) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Whether there is a snapshot of the state at the end of a page.
    pub(super) fn has_snapshot(&self, page: u32) -> bool {
        self.snapshots.contains_key(&page)
    }

    /// The slot of the snapshot at the end of a page, which is marked as used.
    pub(super) fn snapshot(&mut self, page: u32) -> Option<u32> {
        let snapshot = self.snapshots.get_mut(&page)?;
        self.clock += 1;
        snapshot.last_used = self.clock;
        Some(snapshot.slot)
    }

    /// The slot to copy the state at the end of a page to; `None` if there is a snapshot, or no slot.
    pub(super) fn reserve_snapshot(&mut self, page: u32) -> Option<u32> {
        if self.has_snapshot(page) {
            return None;
        }
        let slot = self.take()?;
        self.clock += 1;
        let last_used = self.clock;
        self.snapshots.insert(page, Snapshot { slot, last_used });
        Some(slot)
    }

    /// Moves the snapshot of one page to another page with the same content, unless that has one.
    pub(super) fn move_snapshot(&mut self, from: u32, to: u32) {
        if self.has_snapshot(to) {
            return;
        }
        if let Some(snapshot) = self.snapshots.remove(&from) {
            self.snapshots.insert(to, snapshot);
        }
    }

    /// Frees the snapshot of a page that is free.
    pub(super) fn forget(&mut self, page: u32) {
        if let Some(snapshot) = self.snapshots.remove(&page) {
            self.free.push(snapshot.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StatePool;

    #[test]
    fn snapshots_are_free_until_their_slots_are_needed() {
        let mut pool = StatePool::new(3);
        assert_eq!(pool.take(), Some(0));
        let slots = [5, 9].map(|page| pool.reserve_snapshot(page));
        assert_eq!(slots, [Some(1), Some(2)]);
        assert_eq!(pool.reserve_snapshot(5), None, "already there");
        assert_eq!((pool.free_count(), pool.snapshot(5)), (2, Some(1)));
        assert_eq!(pool.take(), Some(2), "the one used longest ago");
        assert_eq!([5, 9].map(|page| pool.has_snapshot(page)), [true, false]);
        assert_eq!((pool.take(), pool.take()), (Some(1), None));
        for slot in 0..3 {
            pool.give_back(slot);
        }
        assert_eq!(pool.free_count(), 3);
    }

    #[test]
    fn snapshots_move_and_go_with_their_pages() {
        let mut pool = StatePool::new(2);
        let slot = pool.reserve_snapshot(5);
        pool.move_snapshot(5, 6);
        assert_eq!((pool.snapshot(5), pool.snapshot(6)), (None, slot));
        pool.reserve_snapshot(7);
        pool.move_snapshot(7, 6);
        assert_eq!(pool.snapshot(6), slot, "the one there stays");
        for page in [5, 6, 7] {
            pool.forget(page);
        }
        assert_eq!((pool.free_count(), pool.has_snapshot(6)), (2, false));
    }

    #[test]
    fn a_model_without_states_has_none() {
        let mut pool = StatePool::new(0);
        assert_eq!((pool.take(), pool.reserve_snapshot(1)), (None, None));
    }
}
