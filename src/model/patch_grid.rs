//! The patches of an image of any size, in the order of towers that merge squares of patches: window by window from the
//! top left, within a window square by square, and within a square patch by patch.
//!
//! A window of an image is a sequence. Towers that attend within windows compute patches window by window. Their
//! layers use one of two step states over the same keys and values: of a single sequence, or of a sequence per window,
//! which may begin within a page (`ops/attention.rs`). Rows get the order of the image when they are read.

use std::ops::Range;

use super::vision::LearnedPositions;
use crate::ops::step::PARTS;

/// Patches of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchGrid {
    /// Patches above each other; a multiple of `merge`.
    pub(super) rows: usize,
    /// Patches beside each other; a multiple of `merge`.
    pub(super) columns: usize,
    /// Patches on each side of a square.
    pub(super) merge: usize,
    /// Squares on each side of a window. Those at the right and at the lower edge may be smaller. `None` if the image is
    /// one window.
    pub(super) window: Option<usize>,
}

impl PatchGrid {
    /// Patches.
    pub(super) fn count(self) -> usize {
        self.rows * self.columns
    }

    /// The rows and columns of squares of each window.
    fn window_squares(self) -> impl Iterator<Item = [Range<usize>; 2]> {
        let [rows, columns] = [self.rows, self.columns].map(|patches| patches / self.merge);
        let side = self.window.unwrap_or(rows.max(columns));
        let ranges = move |count: usize| {
            let begins = (0..count).step_by(side.max(1));
            begins.map(move |begin| begin..(begin + side).min(count))
        };
        ranges(rows).flat_map(move |row| ranges(columns).map(move |column| [row.clone(), column]))
    }

    /// Row and column of each square.
    fn squares(self) -> impl Iterator<Item = [usize; 2]> {
        self.window_squares().flat_map(|[rows, columns]| {
            rows.flat_map(move |row| columns.clone().map(move |column| [row, column]))
        })
    }

    /// Patches of each window.
    pub(super) fn windows(self) -> impl Iterator<Item = usize> {
        let square = self.merge.pow(2);
        let squares = self.window_squares();
        squares.map(move |[rows, columns]| rows.len() * columns.len() * square)
    }

    /// The place of each square in the order of towers, from the top left of the image row by row.
    pub(super) fn square_places(self) -> Vec<usize> {
        let columns = self.columns / self.merge;
        let mut places = vec![0; self.count() / self.merge.pow(2)];
        for (at, [row, column]) in self.squares().enumerate() {
            places[row * columns + column] = at;
        }
        places
    }

    /// Row and column of each patch.
    pub(super) fn places(self) -> impl Iterator<Item = [usize; 2]> {
        let merge = self.merge;
        self.squares().flat_map(move |[row, column]| {
            let patches = 0..merge * merge;
            patches.map(move |at| [row * merge + at / merge, column * merge + at % merge])
        })
    }

    /// The rotary positions of the patches: their row and column.
    pub(super) fn rotary(self) -> Vec<[u32; PARTS]> {
        let places = self.places();
        places.map(|[y, x]| [0, y as u32, x as u32]).collect()
    }

    /// The patches of `pixels` `[3, height, width]`, `size` pixels wide and high: `[patches, 3 * size * size]`.
    pub(super) fn patches(self, pixels: &[f32], size: usize) -> Vec<f32> {
        let width = self.columns * size;
        let mut values = Vec::with_capacity(pixels.len());
        for [row, column] in self.places() {
            for channel in pixels.chunks_exact(self.count() * size * size) {
                for y in row * size..(row + 1) * size {
                    let start = y * width + column * size;
                    values.extend_from_slice(&channel[start..start + size]);
                }
            }
        }
        values
    }

    /// A learned position for each patch, `[patches, dim]`, from `table` `[side * side, dim]`, which covers the whole image.
    pub(super) fn positions(self, table: &[f32], side: usize, kind: LearnedPositions) -> Vec<f32> {
        if kind == LearnedPositions::PerAxis {
            return self.positions_per_axis(table, side);
        }
        let dim = table.len() / (side * side);
        let along = |count| match kind {
            LearnedPositions::Resized => resized(count, side),
            _ => stretched(count, side),
        };
        let (rows, columns) = (along(self.rows), along(self.columns));
        let mut values = vec![0.0; self.count() * dim];
        for ([y, x], sum) in self.places().zip(values.chunks_exact_mut(dim)) {
            for (row, of_row) in &rows[y] {
                for (column, of_column) in &columns[x] {
                    let entry = &table[(row * side + column) * dim..][..dim];
                    let weight = of_row * of_column;
                    sum.iter_mut()
                        .zip(entry)
                        .for_each(|(sum, it)| *sum += it * weight);
                }
            }
        }
        values
    }

    /// The sum of an entry for the column and one for the row, of `table` `[2, side, dim]`.
    fn positions_per_axis(self, table: &[f32], side: usize) -> Vec<f32> {
        let (columns, rows) = table.split_at(table.len() / 2);
        let dim = columns.len() / side;
        let entry = |axis: &[f32], at: usize| axis[at * dim..(at + 1) * dim].to_vec();
        let positions = self.places().flat_map(|[y, x]| {
            let sums = entry(columns, x).into_iter().zip(entry(rows, y));
            sums.map(|(column, row)| column + row)
        });
        positions.collect()
    }
}

/// For each of `count` places that cover `side` entries from the first to the last: the entries around it and their weights.
fn stretched(count: usize, side: usize) -> Vec<Vec<(usize, f32)>> {
    let last = side - 1;
    let step = last as f32 / (count.max(2) - 1) as f32;
    let place = |at: usize| {
        // The second half is counted from the end, so that the last place is the last entry.
        let exact = match at < count / 2 || count == 1 {
            true => at as f32 * step,
            false => last as f32 - (count - 1 - at) as f32 * step,
        };
        let floor = (exact as usize).min(last);
        let after = exact - floor as f32;
        vec![(floor, 1.0 - after), ((floor + 1).min(last), after)]
    };
    (0..count).map(place).collect()
}

/// For each of `count` places as wide as `side` entries together: the entries within a triangle around its middle, whose
/// half is as wide as a place or as an entry, whichever is wider, and their weights.
fn resized(count: usize, side: usize) -> Vec<Vec<(usize, f32)>> {
    let scale = side as f32 / count as f32;
    let reach = scale.max(1.0);
    let place = |at: usize| {
        let middle = scale * (at as f32 + 0.5);
        let first = (middle - reach + 0.5).max(0.0) as usize;
        let end = ((middle + reach + 0.5) as usize).min(side);
        let weight = |entry: usize| (1.0 - (entry as f32 - middle + 0.5).abs() / reach).max(0.0);
        let total: f32 = (first..end).map(weight).sum();
        (first..end)
            .map(|entry| (entry, weight(entry) / total))
            .collect()
    };
    (0..count).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: PatchGrid = PatchGrid {
        rows: 2,
        columns: 4,
        merge: 2,
        window: None,
    };

    #[test]
    fn the_patches_of_a_square_come_one_after_another() {
        let places: Vec<[usize; 2]> = GRID.places().collect();
        let expected = [
            [0, 0],
            [0, 1],
            [1, 0],
            [1, 1],
            [0, 2],
            [0, 3],
            [1, 2],
            [1, 3],
        ];
        assert_eq!(places, expected);
        assert_eq!(GRID.rotary()[5], [0, 0, 3]);
    }

    #[test]
    fn the_squares_of_a_window_come_one_after_another() {
        // Squares: 3 rows of 5.
        let grid = PatchGrid {
            rows: 6,
            columns: 10,
            merge: 2,
            window: Some(2),
        };
        assert_eq!(grid.windows().collect::<Vec<_>>(), [16, 16, 8, 8, 8, 4]);
        assert_eq!(
            grid.square_places(),
            [0, 1, 4, 5, 8, 2, 3, 6, 7, 9, 10, 11, 12, 13, 14]
        );
        let places: Vec<[usize; 2]> = grid.places().collect();
        // The first square of the second row, and the first of the second window.
        assert_eq!(places[8..12], [[2, 0], [2, 1], [3, 0], [3, 1]]);
        assert_eq!(places[16], [0, 4]);
        // A larger window than the image is none.
        let whole = PatchGrid {
            window: Some(9),
            ..grid
        };
        assert_eq!(whole.windows().collect::<Vec<_>>(), [60]);
        let none = PatchGrid {
            window: None,
            ..grid
        };
        assert!(whole.places().eq(none.places()));
    }

    #[test]
    fn patches_hold_their_pixels_channel_by_channel() {
        // Two channels would do as well: the function does not count them.
        let pixels: Vec<f32> = (0..64).map(|x| x as f32).collect();
        let cut = GRID.patches(&pixels, 2);
        assert_eq!(cut[..8], [0.0, 1.0, 8.0, 9.0, 32.0, 33.0, 40.0, 41.0]);
        assert_eq!(cut[8..12], [2.0, 3.0, 10.0, 11.0]);
        assert_eq!(cut[16..20], [16.0, 17.0, 24.0, 25.0]);
    }

    #[test]
    fn positions_are_interpolated_from_corner_to_corner() {
        // Entry (y, x) of 3 by 3 is 10 y + x.
        let table: Vec<f32> = (0..9).map(|at| (at / 3 * 10 + at % 3) as f32).collect();
        let positions = GRID.positions(&table, 3, LearnedPositions::Corners);
        let expected = [
            0.0,
            2.0 / 3.0,
            20.0,
            20.0 + 2.0 / 3.0,
            4.0 / 3.0,
            2.0,
            20.0 + 4.0 / 3.0,
            22.0,
        ];
        for (found, expected) in positions.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{positions:?}");
        }
    }
}
