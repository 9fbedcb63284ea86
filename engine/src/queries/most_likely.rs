//! The most likely completion: max-product going up, traced back down.
//!
//! ```text
//! (y, t, all hidden states, x_m)* = argmax P(y, t, hidden states, x_m | x_o)
//! ```
//!
//! It is the mode of the joint with the hidden variables, exactly; not the mode of P(x_m|x_o), which sums them out and
//! which no tree finds in polynomial time. All in f64 logarithms (see `log_space.rs`).
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! use sumout::{Model, Predictor, Rows};
//! let sequence = Structure::sequence(4).components(3).classes(3);
//! let structure = sequence.level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 7))?;
//! let completed = predictor.impute_mode(Rows::new(&[0.5, f32::NAN, -1.0, 2.0], 4)?, None)?;
//! assert_eq!(completed.row(0), [0.5, 0.0, -1.0, 2.0]); // leaves are standard normals
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::math::argmax;
use crate::circuit::log_space::{Join, LogValues, NOWHERE, NodeState, trace_states};
use crate::error::Result;
use crate::matrix::{Matrix, Rows};
use crate::queries::correlated::Filling;
use crate::queries::likelihoods::LogScratch;
use crate::queries::predictor::Predictor;
use rayon::prelude::*;

impl Predictor {
    /// Fills the holes of each row with their values in the most likely joint assignment of class (unless given), tree,
    /// hidden variables and missing numbers. That is exact for the joint with the hidden variables, and not the same as
    /// the most likely missing numbers alone. What is observed is kept as it is. A column with bounds gets the number
    /// whose w is the most likely ([`ColumnRange`](crate::model::ColumnRange)).
    pub fn impute_mode(&mut self, rows: Rows<'_>, class: Option<usize>) -> Result<Matrix<f32>> {
        self.check_rows(rows)?;
        self.check_class(class)?;
        let width = self.model.structure.width();
        let mut all = rows.as_slice().to_vec();
        let piece = self.piece();
        for rows in all.chunks_mut(piece * width) {
            self.load(rows, (0, 0));
            let this = &*self;
            rows.par_chunks_mut(width)
                .enumerate()
                .for_each_init(LogScratch::default, |scratch, (b, row)| {
                    this.fill_with_mode(b, class, scratch, row)
                });
        }
        Ok(Matrix::new(all, width))
    }

    /// The same for row b of the rows that are loaded.
    fn fill_with_mode(
        &self,
        b: usize,
        class: Option<usize>,
        scratch: &mut LogScratch,
        row: &mut [f32],
    ) {
        let (structure, logs) = (&self.model.structure, self.logs());
        let LogScratch { values, tops } = scratch;
        let join = Join::Max {
            columns: &self.columns.of_place,
        };
        logs.forward(structure, self.batch.row(b), join, values);
        let mut best = (f64::NEG_INFINITY, 0);
        for y in (0..structure.classes).filter(|&y| class.is_none_or(|class| class == y)) {
            logs.root(structure, values, y, tops);
            let prior = if class.is_some() {
                0.0
            } else {
                self.model.log_prior[y]
            };
            let column = argmax(tops);
            if tops[column] + prior > best.0 {
                best = (tops[column] + prior, column);
            }
        }
        let (t, channel) = self.tree_of(best.1);
        let from = NodeState {
            layer: structure.trees[t].levels.len(),
            node: 0,
            state: channel,
        };
        self.follow_mode(values, t, from, row);
    }

    /// Walks down from a node of tree t along the best states, and fills holes with the best values.
    pub(crate) fn follow_mode(
        &self,
        values: &LogValues,
        t: usize,
        from: NodeState,
        row: &mut [f32],
    ) {
        let s = &self.model.structure;
        let mut states = Vec::new();
        let components = trace_states(&s.trees[t], from, |of| {
            self.logs().states(s, values, t, of, &mut states);
            argmax(&states)
        });
        self.fill_holes(t, &components, row, Filling::Mode);
    }

    /// The tree and its top channel that a column of the class rows stands for.
    pub(crate) fn tree_of(&self, mut column: usize) -> (usize, usize) {
        let mut t = 0;
        while column >= self.model.structure.trees[t].top_channels() {
            column -= self.model.structure.trees[t].top_channels();
            t += 1;
        }
        (t, column)
    }

    /// Fills every hole of a row below the positions whose component is known.
    pub(crate) fn fill_holes(
        &self,
        t: usize,
        components: &[u32],
        row: &mut [f32],
        mut filling: Filling<'_>,
    ) {
        let positions = &self.model.structure.trees[t].positions;
        let known = positions.iter().zip(components);
        for (position, &d) in known.filter(|(_, d)| **d != NOWHERE) {
            self.fill_position(t, position, d as usize, row, &mut filling);
        }
    }
}
