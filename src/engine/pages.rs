//! The KV pages: which are free, who holds the others, what is kept for prompts to come, and the
//! rule that keeps sequences from blocking each other for good. Knows no model.

use std::collections::BTreeMap;

use super::prefix_cache::PrefixCache;

/// The pages, and how many block tables hold each. A page that nobody holds and that is kept for
/// its tokens counts as free: it goes when it is needed.
#[derive(Debug)]
pub(super) struct PagePool {
    /// Handed out from the end, so that pages used last are used first again.
    free: Vec<u32>,
    /// Block tables that list the page; 0 for those in `free` and for kept ones that nobody uses.
    holders: Vec<u32>,
    page_tokens: usize,
    kept: PrefixCache,
    /// Kept pages that nobody holds, and how many there may be.
    idle: usize,
    max_idle: usize,
}

impl PagePool {
    /// `max_idle` pages are kept at most when nobody holds them.
    pub(super) fn new(page_count: usize, page_tokens: usize, max_idle: usize) -> Self {
        let page_tokens = page_tokens.max(1);
        Self {
            free: (0..page_count as u32).rev().collect(),
            holders: vec![0; page_count],
            page_tokens,
            kept: PrefixCache::new(page_count, page_tokens),
            idle: 0,
            max_idle,
        }
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len() + self.idle
    }

    /// Pages there are.
    pub(super) fn count(&self) -> usize {
        self.holders.len()
    }

    /// Pages that `tokens` need.
    pub(super) fn pages_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.page_tokens)
    }

    /// Lengthens a block table to `count` pages, or leaves it and says no if too few are free.
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

    /// Adds the kept pages of the longest prefix of `tokens` to an empty table.
    pub(super) fn adopt(&mut self, table: &mut Vec<u32>, tokens: &[u32]) {
        for page in self.kept.find(tokens) {
            self.share(table, page);
        }
    }

    /// Keeps the first whole pages of `tokens`, which `table` holds, for others; nobody may write
    /// them any more.
    pub(super) fn keep(&mut self, table: &[u32], tokens: &[u32]) {
        self.kept.insert(tokens, table);
    }

    /// Shortens a block table to `count` pages; those that nobody else holds are free.
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
                self.free.push(page);
            }
        }
        while self.idle > self.max_idle {
            self.evict();
        }
    }

    /// Takes all pages of a block table back.
    pub(super) fn release(&mut self, table: &mut Vec<u32>) {
        self.shrink(table, 0);
    }

    /// Keeps no page any more that nobody holds.
    pub(super) fn forget(&mut self) {
        while self.idle > 0 {
            self.evict();
        }
    }

    /// Frees the kept page that nobody holds and that was used longest ago.
    fn evict(&mut self) {
        let is_idle = |page: u32| self.holders[page as usize] == 0;
        let gone = self.kept.evict(is_idle);
        debug_assert!(!gone.is_empty(), "an idle page is kept");
        for page in gone {
            // What others hold they hold on; it is only not to be found any more.
            if self.holders[page as usize] == 0 {
                self.idle -= 1;
                self.free.push(page);
            }
        }
    }
}

/// What one sequence holds for itself and the most it can come to hold, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) held: usize,
    pub(super) most: usize,
}

impl Claim {
    fn need(self) -> usize {
        self.most.saturating_sub(self.held)
    }
}

/// The sequences of one prompt, and the pages that they have in common, with each other and with
/// those of other prompts that begin alike: free when the last that lists them has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupClaim {
    pub(super) shared: Vec<u32>,
    /// At least one.
    pub(super) members: Vec<Claim>,
}

/// Whether all claims can still be met one after another, each sequence giving its own pages back
/// at its end and the last of those that have them in common the shared ones (Dijkstra's banker). A
/// state where they cannot might block all of them for good, as no sequence ever loses pages; a
/// step that leads there has to wait.
pub(super) fn is_safe(free: usize, groups: &[GroupClaim]) -> bool {
    let members = |(index, group): (usize, &GroupClaim)| {
        let claims = group.members.clone();
        claims.into_iter().map(move |claim| (index, claim))
    };
    let mut claims: Vec<(usize, Claim)> = groups.iter().enumerate().flat_map(members).collect();
    let mut unfinished: Vec<usize> = groups.iter().map(|group| group.members.len()).collect();
    let mut users = users(groups);
    // Whoever needs least goes first; if even that one cannot end, nobody can. An end never takes
    // pages away, so the order stays right.
    claims.sort_unstable_by_key(|(_, claim)| claim.need());
    let mut free = free;
    claims.into_iter().all(|(group, claim)| {
        let ends = claim.need() <= free;
        free += claim.held;
        unfinished[group] -= 1;
        if unfinished[group] == 0 {
            for page in &groups[group].shared {
                let left = users.entry(*page).or_default();
                *left -= 1;
                free += usize::from(*left == 0);
            }
        }
        ends
    })
}

/// Pages that the groups hold, those they have in common once.
pub(super) fn held(groups: &[GroupClaim]) -> usize {
    let own = groups.iter().flat_map(|group| &group.members);
    own.map(|claim| claim.held).sum::<usize>() + users(groups).len()
}

/// How many groups share each of their pages.
fn users(groups: &[GroupClaim]) -> BTreeMap<u32, usize> {
    let mut users = BTreeMap::new();
    for page in groups.iter().flat_map(|group| &group.shared) {
        *users.entry(*page).or_default() += 1;
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grow_is_all_or_nothing_and_release_returns_all() {
        let mut pool = PagePool::new(4, 16, 4);
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
    fn a_shared_page_is_free_once_nobody_holds_it() {
        let mut pool = PagePool::new(3, 16, 3);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 2));
        pool.share(&mut b, a[0]);
        assert_eq!([0, 1].map(|at| pool.is_shared(a[at])), [true, false]);
        assert!(pool.grow(&mut b, 2));
        pool.release(&mut a);
        assert_eq!((pool.free_count(), pool.is_shared(b[0])), (1, false));
        pool.shrink(&mut b, 1);
        assert_eq!((b.len(), pool.free_count()), (1, 2));
        pool.release(&mut b);
        assert_eq!(pool.free_count(), 3);
    }

    #[test]
    fn kept_pages_are_free_until_they_are_needed() {
        let mut pool = PagePool::new(4, 2, 4);
        let (mut a, mut b) = (vec![], vec![]);
        assert!(pool.grow(&mut a, 3));
        pool.keep(&a, &[1, 2, 3, 4]);
        assert_eq!(pool.free_count(), 1);
        pool.release(&mut a);
        assert_eq!(pool.free_count(), 4);
        pool.adopt(&mut b, &[1, 2, 3, 5]);
        assert_eq!((&b[..], pool.free_count()), (&[0][..], 3));
        assert!(pool.grow(&mut b, 3), "without the kept one");
        pool.adopt(&mut a, &[1, 2, 3, 4]);
        assert_eq!((&a[..], pool.is_shared(0)), (&[0, 1][..], true));
        pool.release(&mut a);
        assert!(pool.grow(&mut b, 4), "with it");
        pool.adopt(&mut a, &[1, 2, 3, 4]);
        assert_eq!(a, [0]);
        pool.release(&mut a);
        pool.release(&mut b);
        assert_eq!(pool.free_count(), 4);
    }

    #[test]
    fn no_more_pages_are_kept_than_allowed() {
        for (max_idle, found) in [(0, 0), (1, 1), (2, 2), (9, 3)] {
            let mut pool = PagePool::new(4, 1, max_idle);
            let mut table = vec![];
            assert!(pool.grow(&mut table, 4));
            pool.keep(&table, &[5, 6, 7]);
            pool.release(&mut table);
            assert_eq!(pool.free_count(), 4);
            pool.adopt(&mut table, &[5, 6, 7, 8]);
            assert_eq!(table.len(), found);
        }
    }

    fn group(shared: impl IntoIterator<Item = u32>, members: &[(usize, usize)]) -> GroupClaim {
        let claim = |&(held, most): &(usize, usize)| Claim { held, most };
        GroupClaim {
            shared: shared.into_iter().collect(),
            members: members.iter().map(claim).collect(),
        }
    }

    #[test]
    fn safety() {
        let alone = |held, most| group([], &[(held, most)]);
        assert!(is_safe(0, &[]));
        assert!(is_safe(4, &[alone(0, 4), alone(0, 4)]));
        // Either may end first; then its pages serve the other.
        assert!(is_safe(2, &[alone(1, 3), alone(1, 4)]));
        // One page free, both need two more: neither can end.
        assert!(!is_safe(1, &[alone(1, 3), alone(2, 4)]));
        assert!(!is_safe(3, &[alone(1, 5)]));
        // The shared pages serve another only after both have ended.
        assert!(is_safe(1, &[group(0..3, &[(1, 2), (1, 2)]), alone(0, 6)]));
        assert!(!is_safe(1, &[group(0..3, &[(1, 2), (0, 4)]), alone(0, 6)]));
        // The same where they belong to two prompts; page 2 is the second one's alone.
        let alike = [group(0..2, &[(1, 2)]), group(0..3, &[(0, 2)])];
        assert_eq!(held(&alike), 4);
        let [first, second] = alike;
        assert!(is_safe(1, &[first.clone(), second.clone(), alone(0, 5)]));
        assert!(!is_safe(1, &[first, second, alone(0, 6)]));
    }

    /// Whether some order of all sequences lets each of them end.
    fn some_order_ends(free: usize, groups: &[GroupClaim]) -> bool {
        if groups.iter().all(|group| group.members.is_empty()) {
            return true;
        }
        let places = groups.iter().enumerate();
        let mut places =
            places.flat_map(|(at, group)| (0..group.members.len()).map(move |member| (at, member)));
        places.any(|(at, member)| {
            let mut rest = groups.to_vec();
            let claim = rest[at].members.remove(member);
            let is_used = |page: &u32| {
                let mut users = rest.iter().filter(|group| !group.members.is_empty());
                users.any(|group| group.shared.contains(page))
            };
            let shared = match rest[at].members.is_empty() {
                true => rest[at].shared.iter().filter(|page| !is_used(page)).count(),
                false => 0,
            };
            claim.need() <= free && some_order_ends(free + claim.held + shared, &rest)
        })
    }

    proptest! {
        #[test]
        fn safe_is_what_some_order_proves(
            free in 0usize..5,
            groups in prop::collection::vec(
                (0u32..3, 0u32..4, prop::collection::vec((0usize..4, 0usize..8), 1..4)), 0..3),
        ) {
            // Shared runs of pages that overlap more or less.
            let groups = groups.iter().map(|(first, count, members)| group(*first..first + count, members));
            let groups: Vec<_> = groups.collect();
            prop_assert_eq!(is_safe(free, &groups), some_order_ends(free, &groups));
        }
    }
}
