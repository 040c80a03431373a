//! The banker's algorithm (Dijkstra): whether all sequences can still end, even if each needs its
//! maximum.
//!
//! No sequence ever loses memory, so a state in which they cannot all end might block all of them
//! forever. A step that leads to such a state has to wait.

use std::collections::BTreeMap;
use std::ops::Add;

/// Memory of a model: KV pages and state slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) pages: usize,
    pub(super) states: usize,
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        Amount {
            pages: self.pages + other.pages,
            states: self.states + other.states,
        }
    }
}

impl Amount {
    fn fits(self, free: Amount) -> bool {
        self.pages <= free.pages && self.states <= free.states
    }
}

/// The memory that one sequence holds for itself, and the most that it may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) held: Amount,
    pub(super) most: Amount,
}

impl Claim {
    fn need(self) -> Amount {
        Amount {
            pages: self.most.pages.saturating_sub(self.held.pages),
            states: self.most.states.saturating_sub(self.held.states),
        }
    }
}

/// The sequences of one prompt, and the pages that they share with each other and with the sequences of
/// other prompts that begin alike. A shared page is free when the last sequence that lists it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupClaim {
    pub(super) shared: Vec<u32>,
    /// The members, at least one.
    pub(super) members: Vec<Claim>,
}

/// Whether all claims can be met one after another. Each sequence returns its own memory at its end, and
/// the last user of a shared page returns the page.
pub(super) fn is_safe(mut free: Amount, groups: &[GroupClaim]) -> bool {
    let members = |(index, group): (usize, &GroupClaim)| {
        let claims = group.members.clone();
        claims.into_iter().map(move |claim| (index, claim))
    };
    let mut claims: Vec<(usize, Claim)> = groups.iter().enumerate().flat_map(members).collect();
    let mut unfinished: Vec<usize> = groups.iter().map(|group| group.members.len()).collect();
    let mut users = users(groups);
    claims.sort_unstable_by_key(|(_, claim)| claim.need().pages);
    // Any sequence that can end may go first, because an end only returns memory. If none can, none ever
    // will. If slots are not scarce, only the first sequence, which needs the fewest pages, has to be
    // tried.
    while !claims.is_empty() {
        let ends = |(_, claim): &(usize, Claim)| claim.need().fits(free);
        let Some(at) = claims.iter().position(ends) else {
            return false;
        };
        let (group, Claim { held, .. }) = claims.remove(at);
        free = free + held;
        unfinished[group] -= 1;
        if unfinished[group] == 0 {
            for page in &groups[group].shared {
                let left = users.entry(*page).or_default();
                *left -= 1;
                free.pages += usize::from(*left == 0);
            }
        }
    }
    true
}

/// The memory that the groups hold. Shared pages count once.
pub(super) fn held(groups: &[GroupClaim]) -> Amount {
    let members = groups.iter().flat_map(|group| &group.members);
    Amount {
        pages: members.clone().map(|it| it.held.pages).sum::<usize>() + users(groups).len(),
        states: members.map(|it| it.held.states).sum(),
    }
}

/// The number of groups that share each of their pages.
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

    fn amount(pages: usize, states: usize) -> Amount {
        Amount { pages, states }
    }

    /// Members given as (pages held, most pages needed).
    fn group(shared: impl IntoIterator<Item = u32>, members: &[(usize, usize)]) -> GroupClaim {
        let claim = |&(held, most): &(usize, usize)| Claim {
            held: amount(held, 0),
            most: amount(most, 0),
        };
        GroupClaim {
            shared: shared.into_iter().collect(),
            members: members.iter().map(claim).collect(),
        }
    }

    fn is_safe(free_pages: usize, groups: &[GroupClaim]) -> bool {
        super::is_safe(amount(free_pages, 0), groups)
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
        // The same if they belong to two prompts. Only the second one lists page 2.
        let alike = [group(0..2, &[(1, 2)]), group(0..3, &[(0, 2)])];
        assert_eq!(held(&alike), amount(4, 0));
        let [first, second] = alike;
        assert!(is_safe(1, &[first.clone(), second.clone(), alone(0, 5)]));
        assert!(!is_safe(1, &[first, second, alone(0, 6)]));
    }

    #[test]
    fn states_can_be_the_scarce_resource() {
        let claim = |held, most| Claim { held, most };
        let alone = |claim| GroupClaim {
            shared: vec![],
            members: vec![claim],
        };
        // Each holds its prompt's state and needs one for a candidate.
        let prompt = alone(claim(amount(1, 1), amount(2, 2)));
        let two = [prompt.clone(), prompt];
        assert!(super::is_safe(amount(9, 1), &two));
        assert!(!super::is_safe(amount(9, 0), &two));
        // The one that needs more pages has to go first, because only it needs no state.
        let running = alone(claim(amount(1, 1), amount(4, 1)));
        assert!(super::is_safe(amount(3, 0), &[two[0].clone(), running]));
    }

    /// Whether there is an order in which every sequence can end.
    fn some_order_ends(free: Amount, groups: &[GroupClaim]) -> bool {
        if groups.iter().all(|group| group.members.is_empty()) {
            return true;
        }
        let members = groups.iter().enumerate();
        let mut members = members
            .flat_map(|(at, group)| (0..group.members.len()).map(move |member| (at, member)));
        members.any(|(at, member)| {
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
            let after = amount(
                free.pages + claim.held.pages + shared,
                free.states + claim.held.states,
            );
            claim.need().fits(free) && some_order_ends(after, &rest)
        })
    }

    proptest! {
        #[test]
        fn a_state_is_safe_if_some_order_ends_all(
            free in (0usize..5, 0usize..3),
            groups in prop::collection::vec(
                (
                    0u32..3,
                    0u32..4,
                    prop::collection::vec((0usize..4, 0usize..8, 0usize..3, 0usize..4), 1..4),
                ),
                0..3,
            ),
        ) {
            // Shared runs of pages that overlap more or less.
            let groups = groups.iter().map(|(first, count, members)| {
                let members = members.iter().map(|&(held, most, held_states, most_states)| Claim {
                    held: amount(held, held_states),
                    most: amount(most, most_states),
                });
                GroupClaim { shared: (*first..first + count).collect(), members: members.collect() }
            });
            let groups: Vec<_> = groups.collect();
            let free = amount(free.0, free.1);
            prop_assert_eq!(super::is_safe(free, &groups), some_order_ends(free, &groups));
        }
    }
}
