//! The memory of a model: which KV pages and state slots are free, who holds the others, and what
//! is cached for later prompts.
//!
//! A page is written by one sequence. Full pages of a prompt are shared, with reference counts, by its candidates and by other
//! requests whose prompts begin with the same content. A partly filled page is given to one candidate and copied for the
//! others. Lowering a sequence's length rolls its KV cache back.

use std::borrow::Cow;

use super::banker::Amount;
use super::model::{ModelLimits, SequenceMemory};
use super::prefix_cache::PrefixCache;
use super::states::StatePool;

/// The pages with the number of block tables that hold each, and the states. A cached page that no
/// table holds counts as free: it is evicted when a page is needed.
#[derive(Debug)]
pub(super) struct MemoryPool {
    /// The free pages. They are taken from the end, so that the most recently freed pages are used first.
    free: Vec<u32>,
    /// Block tables that list the page; 0 for those in `free` and for kept ones that no sequence uses.
    holders: Vec<u32>,
    page_tokens: usize,
    kept: PrefixCache,
    /// Cached pages that no table holds, and their limit.
    idle: usize,
    max_idle: usize,
    pub(super) states: StatePool,
}

impl MemoryPool {
    /// At most `max_idle` pages stay cached while no table holds them.
    pub(super) fn new(model: &ModelLimits, max_idle: usize) -> Self {
        let (page_count, page_tokens) = (model.page_count, model.page_tokens.max(1));
        Self {
            free: (0..page_count as u32).rev().collect(),
            holders: vec![0; page_count],
            page_tokens,
            kept: PrefixCache::new(page_count),
            idle: 0,
            max_idle,
            states: StatePool::new(model.state_slots),
        }
    }

    /// The number of pages that no sequence holds.
    pub(super) fn free_count(&self) -> usize {
        self.free.len() + self.idle
    }

    /// All memory that no sequence holds.
    pub(super) fn free(&self) -> Amount {
        Amount {
            pages: self.free_count(),
            states: self.states.free_count(),
        }
    }

    /// All memory of the model.
    pub(super) fn total(&self) -> Amount {
        Amount {
            pages: self.holders.len(),
            states: self.states.count(),
        }
    }

    /// Pages that `tokens` need.
    pub(super) fn pages_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.page_tokens)
    }

    /// Extends a block table to `count` pages. Changes nothing and returns false if too few are
    /// free.
    pub(super) fn grow(&mut self, table: &mut Vec<u32>, count: usize) -> bool {
        let more = count.saturating_sub(table.len());
        if more > self.free_count() {
            return false;
        }
        while self.free.len() < more {
            self.evict();
        }
        for page in self.free.drain(self.free.len() - more..).rev() {
            self.holders[page as usize] = 1;
            table.push(page);
        }
        true
    }

    /// Adds a page that another table holds or that is kept.
    pub(super) fn share(&mut self, table: &mut Vec<u32>, page: u32) {
        let holders = &mut self.holders[page as usize];
        self.idle -= usize::from(*holders == 0);
        *holders += 1;
        table.push(page);
    }

    /// Whether several tables hold the page.
    pub(super) fn is_shared(&self, page: u32) -> bool {
        self.holders[page as usize] > 1
    }

    /// Adds the cached pages of the longest prefix of `keys` to an empty table. Where the model has
    /// states, the prefix ends at a snapshot.
    pub(super) fn adopt<'a>(
        &mut self,
        table: &mut Vec<u32>,
        keys: impl Iterator<Item = Cow<'a, [u32]>>,
    ) {
        for page in self.find(keys) {
            self.share(table, page);
        }
    }

    /// The number of pages that [`adopt`](Self::adopt) would add.
    pub(super) fn cached<'a>(&mut self, keys: impl Iterator<Item = Cow<'a, [u32]>>) -> usize {
        self.find(keys).len()
    }

    fn find<'a>(&mut self, keys: impl Iterator<Item = Cow<'a, [u32]>>) -> Vec<u32> {
        let mut pages = self.kept.find(keys);
        if self.states.count() > 0 {
            while pages
                .pop_if(|page| !self.states.has_snapshot(*page))
                .is_some()
            {}
        }
        pages
    }

    /// Caches the first pages of `table`, whose keys these are. No sequence may write to them after
    /// that.
    pub(super) fn keep<'a>(&mut self, table: &[u32], keys: impl Iterator<Item = Cow<'a, [u32]>>) {
        let known = self.kept.insert(keys, table);
        for (&page, known) in table.iter().zip(known) {
            if page != known {
                self.states.move_snapshot(page, known);
            }
        }
    }

    /// Extends the memory of a sequence to `count` pages, and a state if the model has states.
    /// Changes nothing and returns false if too little is free.
    pub(super) fn extend(&mut self, memory: &mut SequenceMemory, count: usize) -> bool {
        let before = memory.pages.len();
        if !self.grow(&mut memory.pages, count) {
            return false;
        }
        if self.states.count() > 0 && memory.state.is_none() {
            memory.state = self.states.take();
            if memory.state.is_none() {
                self.shrink(&mut memory.pages, before);
                return false;
            }
        }
        true
    }

    /// Shortens a block table to `count` pages; those that no other table holds are free.
    pub(super) fn shrink(&mut self, table: &mut Vec<u32>, count: usize) {
        for page in table.drain(count.min(table.len())..).rev() {
            let holders = &mut self.holders[page as usize];
            *holders -= 1;
            if *holders > 0 {
                continue;
            }
            if self.kept.contains(page) {
                self.idle += 1;
            } else {
                self.free_page(page);
            }
        }
        while self.idle > self.max_idle {
            self.evict();
        }
    }

    /// Releases all memory of a sequence.
    pub(super) fn release(&mut self, memory: &mut SequenceMemory) {
        self.shrink(&mut memory.pages, 0);
        self.release_state(memory);
        memory.len_tokens = 0;
    }

    /// Releases the state of a sequence.
    pub(super) fn release_state(&mut self, memory: &mut SequenceMemory) {
        if let Some(slot) = memory.state.take() {
            self.states.give_back(slot);
        }
    }

    /// Evicts all cached pages that no table holds.
    pub(super) fn forget(&mut self) {
        while self.idle > 0 {
            self.evict();
        }
    }

    /// Frees the least recently used of the cached pages that no table holds.
    fn evict(&mut self) {
        let is_idle = |page: u32| self.holders[page as usize] == 0;
        let gone = self.kept.evict(is_idle);
        debug_assert!(!gone.is_empty(), "an idle page is kept");
        for page in gone {
            // A page that a table still holds is not freed; it only leaves the cache.
            if self.holders[page as usize] == 0 {
                self.idle -= 1;
                self.free_page(page);
            }
        }
    }

    fn free_page(&mut self, page: u32) {
        self.states.forget(page);
        self.free.push(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(page_count: usize, page_tokens: usize, max_idle: usize) -> MemoryPool {
        let limits = ModelLimits {
            page_count,
            page_tokens,
            vocab_size: 1,
            context_tokens: page_count * page_tokens,
            max_batch: 1,
            few_tokens: 0,
            state_slots: 0,
            embedding_width: None,
            whole_images: false,
        };
        MemoryPool::new(&limits, max_idle)
    }

    fn keys(tokens: &[u32], page_tokens: usize) -> impl Iterator<Item = Cow<'_, [u32]>> {
        tokens.chunks_exact(page_tokens).map(Cow::Borrowed)
    }

    #[test]
    fn grow_is_all_or_nothing_and_release_returns_all() {
        let mut pool = pool(4, 16, 4);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 3));
        assert_eq!(a, [0, 1, 2]);
        assert!(!pool.grow(&mut b, 2));
        assert!(b.is_empty());
        assert!(pool.grow(&mut b, 1));
        assert!(pool.grow(&mut a, 2), "already there");
        assert_eq!((a.len(), pool.free_count()), (3, 0));
        pool.shrink(&mut a, 0);
        pool.shrink(&mut b, 0);
        assert_eq!(pool.free_count(), 4);
        assert_eq!(
            [0, 1, 16, 17].map(|tokens| pool.pages_for(tokens)),
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn a_shared_page_is_free_once_nobody_holds_it() {
        let mut pool = pool(3, 16, 3);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 2));
        pool.share(&mut b, a[0]);
        assert_eq!([0, 1].map(|at| pool.is_shared(a[at])), [true, false]);
        assert!(pool.grow(&mut b, 2));
        pool.shrink(&mut a, 0);
        assert_eq!((pool.free_count(), pool.is_shared(b[0])), (1, false));
        pool.shrink(&mut b, 1);
        assert_eq!((b.len(), pool.free_count()), (1, 2));
        pool.shrink(&mut b, 0);
        assert_eq!(pool.free_count(), 3);
    }

    #[test]
    fn kept_pages_are_free_until_they_are_needed() {
        let mut pool = pool(4, 2, 4);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 3));
        pool.keep(&a, keys(&[1, 2, 3, 4], 2));
        assert_eq!(pool.free_count(), 1);
        pool.shrink(&mut a, 0);
        assert_eq!(pool.free_count(), 4);
        pool.adopt(&mut b, keys(&[1, 2, 3, 5], 2));
        assert_eq!((&b[..], pool.free_count()), (&[0][..], 3));
        assert!(pool.grow(&mut b, 3), "without the kept one");
        pool.adopt(&mut a, keys(&[1, 2, 3, 4], 2));
        assert_eq!((&a[..], pool.is_shared(0)), (&[0, 1][..], true));
        pool.shrink(&mut a, 0);
        assert!(pool.grow(&mut b, 4), "with it");
        pool.adopt(&mut a, keys(&[1, 2, 3, 4], 2));
        assert_eq!(a, [0]);
        pool.shrink(&mut a, 0);
        pool.shrink(&mut b, 0);
        assert_eq!(pool.free_count(), 4);
    }

    #[test]
    fn no_more_pages_are_kept_than_allowed() {
        for (max_idle, found) in [(0, 0), (1, 1), (2, 2), (9, 3)] {
            let mut pool = pool(4, 1, max_idle);
            let mut table = vec![];
            assert!(pool.grow(&mut table, 4));
            pool.keep(&table, keys(&[5, 6, 7], 1));
            pool.shrink(&mut table, 0);
            assert_eq!(pool.free_count(), 4);
            pool.adopt(&mut table, keys(&[5, 6, 7, 8], 1));
            assert_eq!(table.len(), found);
        }
    }
}
