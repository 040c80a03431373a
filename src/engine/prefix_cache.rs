//! The content of cached KV pages: a tree of whole pages, for prompts with the same beginning. The
//! content of a page is known by its key ([`Prompt::page_keys`](super::prompt::Prompt)).
//!
//! The prefix cache is a tree of whole pages keyed by their exact content, without hashes. Pages that no sequence holds
//! count as free; the least recently used are evicted first. Generated tokens are not cached: they were computed by
//! other kernels than a prompt is, and would differ in the last bits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Pages by their keys.
type Pages = BTreeMap<Rc<[u32]>, u32>;

/// A page's place in the tree: the path from the root spells all content up to its end, so that
/// equal paths are equal prefixes, compared id by id.
#[derive(Debug)]
struct Node {
    parent: Option<u32>,
    key: Rc<[u32]>,
    children: Pages,
    /// The time of the last use, which is later than that of every descendant.
    last_used: u64,
}

/// The pages whose content is known.
#[derive(Debug)]
pub(super) struct PrefixCache {
    /// Pages that begin a sequence.
    roots: Pages,
    /// The nodes by page id.
    nodes: Vec<Option<Node>>,
    clock: u64,
}

impl PrefixCache {
    pub(super) fn new(page_count: usize) -> Self {
        Self {
            roots: Pages::new(),
            nodes: (0..page_count).map(|_| None).collect(),
            clock: 0,
        }
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        self.nodes[page as usize].is_some()
    }

    /// The pages of the longest known prefix.
    pub(super) fn find<'a>(&mut self, keys: impl Iterator<Item = Cow<'a, [u32]>>) -> Vec<u32> {
        let mut path = Vec::new();
        for key in keys {
            let Some(&page) = self.children(path.last().copied()).get(&*key) else {
                break;
            };
            path.push(page);
        }
        self.touch(&path);
        path
    }

    /// Adds the content of the first of `pages`; returns the pages that hold it. Where a key is
    /// known already, the known page stays.
    pub(super) fn insert<'a>(
        &mut self,
        keys: impl Iterator<Item = Cow<'a, [u32]>>,
        pages: &[u32],
    ) -> Vec<u32> {
        let mut path = Vec::with_capacity(pages.len());
        for (key, &page) in keys.zip(pages) {
            let parent = path.last().copied();
            let known = self.children(parent).get(&*key).copied();
            path.push(known.unwrap_or_else(|| self.add(parent, &key, page)));
        }
        self.touch(&path);
        path
    }

    /// Removes the least recently used page among those that `may_go` accepts, and its descendants,
    /// which could not be found any more. Returns the removed pages.
    pub(super) fn evict(&mut self, may_go: impl Fn(u32) -> bool) -> Vec<u32> {
        let pages = self.nodes.iter().zip(0..);
        let candidates = pages.filter_map(|(node, page)| Some((node.as_ref()?.last_used, page)));
        let oldest = candidates.filter(|&(_, page)| may_go(page)).min();
        let Some((_, oldest)) = oldest else {
            return Vec::new();
        };
        let mut gone = vec![oldest];
        let mut at = 0;
        while let Some(&page) = gone.get(at) {
            if let Some(node) = self.nodes[page as usize].take() {
                gone.extend(node.children.values());
                if at == 0 {
                    self.children_mut(node.parent).remove(&node.key);
                }
            }
            at += 1;
        }
        gone
    }

    fn add(&mut self, parent: Option<u32>, key: &[u32], page: u32) -> u32 {
        let key: Rc<[u32]> = key.into();
        self.children_mut(parent).insert(key.clone(), page);
        self.nodes[page as usize] = Some(Node {
            parent,
            key,
            children: Pages::new(),
            last_used: 0,
        });
        page
    }

    /// Starts at the last page: a page is never older than its descendants.
    fn touch(&mut self, path: &[u32]) {
        for &page in path.iter().rev() {
            self.clock += 1;
            if let Some(node) = &mut self.nodes[page as usize] {
                node.last_used = self.clock;
            }
        }
    }

    fn children(&self, parent: Option<u32>) -> &Pages {
        let node = parent.and_then(|page| self.nodes[page as usize].as_ref());
        node.map_or(&self.roots, |node| &node.children)
    }

    fn children_mut(&mut self, parent: Option<u32>) -> &mut Pages {
        let node = parent.and_then(|page| self.nodes[page as usize].as_mut());
        node.map_or(&mut self.roots, |node| &mut node.children)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of two tokens.
    fn keys(tokens: &[u32]) -> impl Iterator<Item = Cow<'_, [u32]>> {
        tokens.chunks_exact(2).map(Cow::Borrowed)
    }

    fn cache() -> PrefixCache {
        let mut cache = PrefixCache::new(8);
        cache.insert(keys(&[1, 2, 3, 4, 5, 6]), &[7, 0, 3]);
        cache.insert(keys(&[1, 2, 3, 5]), &[6, 1]);
        cache
    }

    #[test]
    fn the_longest_prefix_of_whole_pages_is_found() {
        let mut cache = cache();
        assert_eq!(cache.find(keys(&[1, 2, 3, 4, 5, 6, 7, 8])), [7, 0, 3]);
        assert_eq!(cache.find(keys(&[1, 2, 3, 4, 5])), [7, 0]);
        assert_eq!(cache.find(keys(&[1, 2, 3, 5, 9, 9])), [7, 1]);
        assert!(
            cache.find(keys(&[3, 4])).is_empty(),
            "not what it begins with"
        );
        assert!(cache.find(keys(&[1])).is_empty());
    }

    #[test]
    fn a_page_whose_tokens_are_known_is_not_needed() {
        let cache = cache();
        assert_eq!([6, 7].map(|page| cache.contains(page)), [false, true]);
    }

    #[test]
    fn the_least_recently_used_page_is_evicted_first() {
        let mut cache = cache();
        cache.find(keys(&[1, 2, 3, 4]));
        let mut order = vec![];
        while let [page] = cache.evict(|_| true)[..] {
            order.push(page);
        }
        assert_eq!(order, [3, 1, 0, 7]);
        assert!(cache.evict(|_| true).is_empty());
    }

    #[test]
    fn descendants_are_evicted_with_their_page() {
        let mut cache = cache();
        let mut gone = cache.evict(|page| page == 0);
        gone.sort_unstable();
        assert_eq!(gone, [0, 3]);
        assert_eq!(cache.find(keys(&[1, 2, 3, 4, 5, 6])), [7]);
        assert_eq!(cache.find(keys(&[1, 2, 3, 5])), [7, 1]);
        cache.insert(keys(&[1, 2, 3, 4]), &[7, 5]);
        assert_eq!(cache.find(keys(&[1, 2, 3, 4, 5, 6])), [7, 5]);
    }
}
