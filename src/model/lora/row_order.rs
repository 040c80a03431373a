//! The order of the rows of queries and keys: a checkpoint has the two halves of a head's rotated pairs
//! apart, GGUF files of some architectures have them side by side. Knows no names.

/// What becomes of the rows of each head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowOrder {
    /// Nothing.
    Kept,
    /// From halves to neighbours.
    ToNeighbours,
    /// From neighbours to halves.
    ToHalves,
}

impl RowOrder {
    /// The rows `[heads * head_dim, cols]` in their new order.
    pub(super) fn apply(self, rows: Vec<f32>, heads: usize, cols: usize) -> Vec<f32> {
        let head_dim = rows.len() / cols / heads;
        let half = head_dim / 2;
        let from = |row: usize| match self {
            RowOrder::Kept => row,
            RowOrder::ToNeighbours => row % 2 * half + row / 2,
            RowOrder::ToHalves => row % half * 2 + row / half,
        };
        let heads = rows.chunks_exact(head_dim * cols);
        let ordered = heads
            .flat_map(|head| (0..head_dim).flat_map(move |row| &head[from(row) * cols..][..cols]));
        ordered.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::RowOrder::*;

    #[test]
    fn halves_become_neighbours_and_back() {
        let rows: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let neighbours = ToNeighbours.apply(rows.clone(), 2, 2);
        let firsts: Vec<f32> = neighbours.iter().step_by(2).copied().collect();
        assert_eq!(
            firsts,
            [0., 6., 2., 8., 4., 10., 12., 18., 14., 20., 16., 22.]
        );
        assert_eq!(ToHalves.apply(neighbours, 2, 2), rows);
        assert_eq!(Kept.apply(rows.clone(), 2, 2), rows);
    }
}
