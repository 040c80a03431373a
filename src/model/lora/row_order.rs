//! The order of the rows of queries and keys: rotated pairs are adjacent rows or half a head apart
//! (`RopePairs`). Files of one architecture can differ in this.

/// The reordering of the rows of each head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowOrder {
    /// Rows keep their order.
    Kept,
    /// Reorders halves to adjacent pairs.
    ToAdjacent,
    /// Reorders adjacent pairs to halves.
    ToHalves,
}

impl RowOrder {
    /// The rows `[heads * head_dim, cols]` in their new order.
    pub(super) fn apply(self, rows: Vec<f32>, heads: usize, cols: usize) -> Vec<f32> {
        let head_dim = rows.len() / cols / heads;
        let half = head_dim / 2;
        let from = |row: usize| match self {
            RowOrder::Kept => row,
            RowOrder::ToAdjacent => row % 2 * half + row / 2,
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
    fn halves_become_adjacent_pairs_and_back() {
        let rows: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let adjacent = ToAdjacent.apply(rows.clone(), 2, 2);
        let firsts: Vec<f32> = adjacent.iter().step_by(2).copied().collect();
        assert_eq!(
            firsts,
            [0., 6., 2., 8., 4., 10., 12., 18., 14., 20., 16., 22.]
        );
        assert_eq!(ToHalves.apply(adjacent, 2, 2), rows);
        assert_eq!(Kept.apply(rows.clone(), 2, 2), rows);
    }
}
