//! Strongly connected components of a graph: sets of nodes that reach each other (Tarjan 1972).

use std::collections::{BTreeMap, BTreeSet};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every set of two or more nodes that reach each other, largest first. Each set is sorted by name.
pub fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let mut search = Search {
        graph,
        visits: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in graph.keys() {
        if !search.visits.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    found
}

struct Visit {
    index: usize,
    /// Smallest index on the stack that the node reaches.
    low: usize,
    is_on_stack: bool,
}

struct Search<'a> {
    graph: &'a Graph,
    visits: BTreeMap<&'a str, Visit>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, node: &'a str) {
        let index = self.visits.len();
        let visit = Visit {
            index,
            low: index,
            is_on_stack: true,
        };
        self.visits.insert(node, visit);
        self.stack.push(node);
        let graph = self.graph;
        for next in graph.get(node).into_iter().flatten() {
            let reached = match self.visits.get(next.as_str()) {
                None => {
                    self.visit(next);
                    self.visits[next.as_str()].low
                }
                Some(visit) if visit.is_on_stack => visit.index,
                Some(_) => continue,
            };
            let low = &mut self.visits.get_mut(node).expect("visited").low;
            *low = reached.min(*low);
        }
        if self.visits[node].low == index {
            self.pop_component(node);
        }
    }

    fn pop_component(&mut self, root: &str) {
        let mut component = Vec::new();
        while let Some(node) = self.stack.pop() {
            self.visits.get_mut(node).expect("visited").is_on_stack = false;
            component.push(node.to_owned());
            if node == root {
                break;
            }
        }
        if component.len() > 1 {
            component.sort();
            self.found.push(component);
        }
    }
}

#[test]
fn cycles_are_found() {
    let graph = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("e", "e")];
    let mut edges = Graph::new();
    for (from, to) in graph {
        edges.entry(from.into()).or_default().insert(to.into());
    }
    assert_eq!(cycles(&edges), [["b", "c"]]);
}
