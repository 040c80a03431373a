//! The KV pages: a free list, and the rule that keeps sequences from blocking each other for good.
//! Knows nothing of what a page holds.

/// The pages no sequence holds.
#[derive(Debug)]
pub(super) struct PagePool {
    /// Handed out from the end, so that pages used last are used first again.
    free: Vec<u32>,
    page_tokens: usize,
}

/// What one sequence holds and the most it can come to hold, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) held: usize,
    pub(super) most: usize,
}

impl PagePool {
    pub(super) fn new(page_count: usize, page_tokens: usize) -> Self {
        Self {
            free: (0..page_count as u32).rev().collect(),
            page_tokens: page_tokens.max(1),
        }
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Pages that `tokens` need.
    pub(super) fn pages_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.page_tokens)
    }

    /// Lengthens a block table to `count` pages, or leaves it and says no if too few are free.
    pub(super) fn grow(&mut self, table: &mut Vec<u32>, count: usize) -> bool {
        let more = count.saturating_sub(table.len());
        if more > self.free.len() {
            return false;
        }
        table.extend(self.free.drain(self.free.len() - more..).rev());
        true
    }

    /// Takes all pages of a block table back.
    pub(super) fn release(&mut self, table: &mut Vec<u32>) {
        self.free.extend(table.drain(..).rev());
    }
}

/// Whether all claims can still be met one after another, each sequence giving its pages back at
/// its end (Dijkstra's banker). A state where they cannot might block all of them for good, as no
/// sequence ever loses pages; a step that leads there has to wait.
pub(super) fn is_safe(free: usize, claims: impl IntoIterator<Item = Claim>) -> bool {
    let mut claims: Vec<Claim> = claims.into_iter().collect();
    // Whoever needs least goes first; if even that one cannot end, nobody can.
    claims.sort_unstable_by_key(|claim| claim.most.saturating_sub(claim.held));
    let mut free = free;
    claims.into_iter().all(|claim| {
        let ends = claim.most.saturating_sub(claim.held) <= free;
        free += claim.held;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grow_is_all_or_nothing_and_release_returns_all() {
        let mut pool = PagePool::new(4, 16);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 3));
        assert_eq!(a, [0, 1, 2]);
        assert!(!pool.grow(&mut b, 2));
        assert!(b.is_empty());
        assert!(pool.grow(&mut b, 1));
        assert!(pool.grow(&mut a, 2), "already there");
        assert_eq!((a.len(), pool.free_count()), (3, 0));
        pool.release(&mut a);
        pool.release(&mut b);
        assert_eq!(pool.free_count(), 4);
        assert_eq!(
            [0, 1, 16, 17].map(|tokens| pool.pages_for(tokens)),
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn safety() {
        let claim = |held, most| Claim { held, most };
        assert!(is_safe(0, []));
        assert!(is_safe(4, [claim(0, 4), claim(0, 4)]));
        // Either may end first; then its pages serve the other.
        assert!(is_safe(2, [claim(1, 3), claim(1, 4)]));
        // One page free, both need two more: neither can end.
        assert!(!is_safe(1, [claim(1, 3), claim(2, 4)]));
        assert!(!is_safe(3, [claim(1, 5)]));
    }
}
