//! The KV pages: a free list with counted holders, and the rule that keeps sequences from blocking
//! each other for good. Knows nothing of what a page holds.

/// The pages, and how many block tables hold each.
#[derive(Debug)]
pub(super) struct PagePool {
    /// Handed out from the end, so that pages used last are used first again.
    free: Vec<u32>,
    /// Block tables that list the page; 0 exactly for those in `free`.
    holders: Vec<u32>,
    page_tokens: usize,
}

impl PagePool {
    pub(super) fn new(page_count: usize, page_tokens: usize) -> Self {
        Self {
            free: (0..page_count as u32).rev().collect(),
            holders: vec![0; page_count],
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
        for page in self.free.drain(self.free.len() - more..).rev() {
            self.holders[page as usize] = 1;
            table.push(page);
        }
        true
    }

    /// Adds a page that another table holds.
    pub(super) fn share(&mut self, table: &mut Vec<u32>, page: u32) {
        self.holders[page as usize] += 1;
        table.push(page);
    }

    /// Whether several tables hold the page.
    pub(super) fn is_shared(&self, page: u32) -> bool {
        self.holders[page as usize] > 1
    }

    /// Shortens a block table to `count` pages; those that nobody else holds are free.
    pub(super) fn shrink(&mut self, table: &mut Vec<u32>, count: usize) {
        for page in table.drain(count.min(table.len())..).rev() {
            let holders = &mut self.holders[page as usize];
            *holders -= 1;
            if *holders == 0 {
                self.free.push(page);
            }
        }
    }

    /// Takes all pages of a block table back.
    pub(super) fn release(&mut self, table: &mut Vec<u32>) {
        self.shrink(table, 0);
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

/// The sequences of one prompt, and the pages that are theirs in common: free when the last of
/// them has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupClaim {
    pub(super) shared: usize,
    /// At least one.
    pub(super) members: Vec<Claim>,
}

impl GroupClaim {
    fn held(&self) -> usize {
        let own: usize = self.members.iter().map(|claim| claim.held).sum();
        self.shared + own
    }
}

/// Whether all claims can still be met one after another, each sequence giving its own pages back
/// at its end and the last of a group the shared ones (Dijkstra's banker). A state where they
/// cannot might block all of them for good, as no sequence ever loses pages; a step that leads
/// there has to wait.
pub(super) fn is_safe<'a>(free: usize, groups: impl IntoIterator<Item = &'a GroupClaim>) -> bool {
    let groups: Vec<&GroupClaim> = groups.into_iter().collect();
    let members = |(index, group): (usize, &&'a GroupClaim)| {
        let claims: &'a [Claim] = &group.members;
        claims.iter().map(move |&claim| (index, claim))
    };
    let mut claims: Vec<(usize, Claim)> = groups.iter().enumerate().flat_map(members).collect();
    let mut unfinished: Vec<usize> = groups.iter().map(|group| group.members.len()).collect();
    // Whoever needs least goes first; if even that one cannot end, nobody can. An end never takes
    // pages away, so the order stays right.
    claims.sort_unstable_by_key(|(_, claim)| claim.need());
    let mut free = free;
    claims.into_iter().all(|(group, claim)| {
        let ends = claim.need() <= free;
        free += claim.held;
        unfinished[group] -= 1;
        if unfinished[group] == 0 {
            free += groups[group].shared;
        }
        ends
    })
}

/// The pages as one request sees them.
pub(super) struct Grants<'a> {
    pub(super) pool: &'a mut PagePool,
    /// What the other requests hold and can come to hold.
    pub(super) others: Vec<GroupClaim>,
}

impl Grants<'_> {
    /// Whether everyone can still end, this request with `own`.
    pub(super) fn is_safe(&self, own: &[GroupClaim]) -> bool {
        let groups = || self.others.iter().chain(own);
        debug_assert_eq!(
            self.pool.free_count() + groups().map(GroupClaim::held).sum::<usize>(),
            self.pool.holders.len(),
            "every page is free or claimed once"
        );
        is_safe(self.pool.free_count(), groups())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn a_shared_page_is_free_once_nobody_holds_it() {
        let mut pool = PagePool::new(3, 16);
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

    fn group(shared: usize, members: &[(usize, usize)]) -> GroupClaim {
        let claim = |&(held, most): &(usize, usize)| Claim { held, most };
        GroupClaim {
            shared,
            members: members.iter().map(claim).collect(),
        }
    }

    #[test]
    fn safety() {
        let alone = |held, most| group(0, &[(held, most)]);
        assert!(is_safe(0, []));
        assert!(is_safe(4, &[alone(0, 4), alone(0, 4)]));
        // Either may end first; then its pages serve the other.
        assert!(is_safe(2, &[alone(1, 3), alone(1, 4)]));
        // One page free, both need two more: neither can end.
        assert!(!is_safe(1, &[alone(1, 3), alone(2, 4)]));
        assert!(!is_safe(3, &[alone(1, 5)]));
        // The shared pages serve another only after both have ended.
        assert!(is_safe(1, &[group(3, &[(1, 2), (1, 2)]), alone(0, 6)]));
        assert!(!is_safe(1, &[group(3, &[(1, 2), (0, 4)]), alone(0, 6)]));
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
            let last = rest[at].members.is_empty();
            let shared = if last { rest[at].shared } else { 0 };
            claim.need() <= free && some_order_ends(free + claim.held + shared, &rest)
        })
    }

    proptest! {
        #[test]
        fn safe_is_what_some_order_proves(
            free in 0usize..5,
            groups in prop::collection::vec(
                (0usize..4, prop::collection::vec((0usize..4, 0usize..8), 1..4)), 0..3),
        ) {
            let groups: Vec<_> = groups.iter().map(|(shared, members)| group(*shared, members)).collect();
            prop_assert_eq!(is_safe(free, &groups), some_order_ends(free, &groups));
        }
    }
}
