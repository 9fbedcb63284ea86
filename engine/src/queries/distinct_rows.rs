//! Equal rows of a piece, found once: the circuit is computed for the first of them only. An answer depends on its row
//! alone, so nothing else changes. Several samples given one row are asked for as so many equal rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The distinct rows of a piece.
pub(super) struct DistinctRows {
    /// (U, width), in the order in which they come first.
    pub values: Vec<f32>,
    /// (n): for each row, which of the distinct rows it is.
    pub of_row: Vec<usize>,
}

impl DistinctRows {
    /// Rows are equal where all of their bits are.
    pub fn new(rows: &[f32], width: usize) -> Self {
        let mut index_of: HashMap<Vec<u32>, usize> = HashMap::new();
        let (mut values, mut of_row) = (Vec::new(), Vec::new());
        for row in rows.chunks_exact(width) {
            let next = index_of.len();
            match index_of.entry(row.iter().map(|x| x.to_bits()).collect()) {
                Entry::Occupied(known) => of_row.push(*known.get()),
                Entry::Vacant(new) => {
                    new.insert(next);
                    values.extend_from_slice(row);
                    of_row.push(next);
                }
            }
        }
        Self { values, of_row }
    }

    /// For each distinct row, the rows of the piece that are equal to it, with their places.
    pub fn groups<'a>(
        &self,
        rows: &'a mut [f32],
        width: usize,
    ) -> Vec<Vec<(usize, &'a mut [f32])>> {
        let mut groups = Vec::new();
        groups.resize_with(self.values.len() / width, Vec::new);
        for (b, row) in rows.chunks_exact_mut(width).enumerate() {
            groups[self.of_row[b]].push((b, row));
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_found_holes_included() {
        let hole = f32::NAN;
        let mut rows = [1.0, hole, 2.0, 3.0, 1.0, hole, 1.0, 0.0, 2.0, 3.0];
        let distinct = DistinctRows::new(&rows, 2);
        assert_eq!(distinct.of_row, [0, 1, 0, 2, 1]);
        assert_eq!(distinct.values[2..], [2.0, 3.0, 1.0, 0.0]);
        let groups = distinct.groups(&mut rows, 2);
        let places: Vec<Vec<usize>> = groups
            .iter()
            .map(|group| group.iter().map(|(b, _)| *b).collect())
            .collect();
        assert_eq!(places, [vec![0, 2], vec![1, 4], vec![3]]);
    }
}
