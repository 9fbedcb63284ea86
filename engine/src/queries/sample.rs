//! Samples, top down: the class, then the tree and its top channel, then every child's channel given its parent's, then
//! the numbers.
//!
//! ```text
//! class     y  ~ P(y|x_o)
//! top    (t,a) ~ W_top[y,(t,a)] φ_t(a)
//! child     a  ~ W_j[c,a] φ_j(a)                  the parent's channel is c
//! leaf      x  ~ p(x|d), where it is missing
//! ```
//!
//! φ is what the upward pass found for the observed part, and 1 where nothing is observed; so the samples are exact,
//! from P(X), P(X|y) or P(x_m|x_o) alike. Sample b has its own stream of draws, whatever the batch and the threads.
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! use sumout::{Model, Predictor, Rows};
//! let sequence = Structure::sequence(4).components(3).classes(3);
//! let structure = sequence.level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 7))?;
//! let samples = predictor.sample(10, Some(2), 1)?;
//! assert_eq!((samples.rows.rows(), samples.rows.columns(), samples.classes[9]), (10, 4, 2));
//! let completed = predictor.sample_given(Rows::new(&[0.5, f32::NAN, -1.0, 2.0], 4)?, None, 1)?;
//! assert!(completed[(0, 0)] == 0.5 && completed[(0, 1)].is_finite());
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::math::log_sum_exp;
use crate::circuit::activations::Activations;
use crate::circuit::log_space::{
    ChildOfState, Join, LogCircuit, LogValues, NodeState, trace_states,
};
use crate::error::Result;
use crate::matrix::{Matrix, Rows};
use crate::queries::correlated::Filling;
use crate::queries::distinct_rows::DistinctRows;
use crate::queries::predictor::{Pass, Predictor};
use crate::random::{Purpose, Stream};
use rayon::prelude::*;

/// Rows drawn from a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// (count, width), in the units of the data.
    pub rows: Matrix<f32>,
    /// The class that each was drawn from, (count).
    pub classes: Vec<usize>,
}

/// What a sampler knows of one row.
#[derive(Clone, Copy)]
pub(super) enum Evidence<'a> {
    /// Nothing is observed.
    Nothing,
    /// Sample b of the last upward pass.
    Scaled(&'a Activations, usize),
    /// The same in log space.
    Logs(&'a LogCircuit, &'a LogValues),
}

/// Equal rows, each with its place in the piece.
type EqualRows<'a> = Vec<(usize, &'a mut [f32])>;

/// exp of logs, less a constant, in place.
fn exponentiate(logs: &mut [f64]) {
    let whole = log_sum_exp(logs);
    logs.iter_mut().for_each(|log| *log = (*log - whole).exp());
}

impl Predictor {
    /// Draws `count` rows from P(X), or from P(X|y) for a class.
    pub fn sample(&mut self, count: usize, class: Option<usize>, seed: u64) -> Result<Samples> {
        self.check_class(class)?;
        let (width, this) = (self.model.structure.width(), &*self);
        let prior: Vec<f64> = this.model.log_prior.iter().map(|log| log.exp()).collect();
        let (mut values, mut classes) = (vec![f32::NAN; count * width], vec![0; count]);
        let rows = values.par_chunks_mut(width).zip(&mut classes).enumerate();
        rows.for_each_init(Vec::new, |weights, (b, (row, y))| {
            let mut stream = Stream::new(seed, Purpose::Sampling, 0, b as u32);
            *y = class.unwrap_or_else(|| stream.pick(prior.iter().copied()));
            this.draw(Evidence::Nothing, *y, &mut stream, weights, row);
        });
        let rows = Matrix::new(values, width);
        Ok(Samples { rows, classes })
    }

    /// Fills the holes of each row with one draw from P(x_m|x_o), or from P(x_m|x_o,y) for a class. What is observed
    /// is kept as it is.
    pub fn sample_given(
        &mut self,
        rows: Rows<'_>,
        class: Option<usize>,
        seed: u64,
    ) -> Result<Matrix<f32>> {
        self.check_rows(rows)?;
        self.check_class(class)?;
        let width = self.model.structure.width();
        let mut all = rows.as_slice().to_vec();
        let piece = self.piece();
        for (index, rows) in all.chunks_mut(piece * width).enumerate() {
            let distinct = DistinctRows::new(rows, width);
            self.load(&distinct.values, (0, 0));
            self.forward(Pass::Everything)?;
            let gradients = self.output_gradients(class);
            let recheck = self.rows_to_recheck(&gradients);
            let (this, first) = (&*self, index * piece);
            let stream = |b: usize| Stream::new(seed, Purpose::Sampling, 0, (first + b) as u32);
            let run = |values: &mut LogValues, (u, rows): (usize, &mut EqualRows<'_>)| {
                this.draw_equal(u, rows, (&gradients, recheck[u]), stream, values);
            };
            let mut groups = distinct.groups(rows, width);
            groups
                .par_iter_mut()
                .enumerate()
                .for_each_init(LogValues::default, run);
        }
        Ok(Matrix::new(all, width))
    }

    /// Fills the holes of rows that are all equal to row u of the last upward pass. The gradients (U, K) are the
    /// probabilities of the classes; `stream(b)` gives the draws of row b of the piece; `values` is scratch.
    fn draw_equal(
        &self,
        u: usize,
        rows: &mut EqualRows<'_>,
        (gradients, recheck): (&[f64], bool),
        stream: impl Fn(usize) -> Stream + Sync,
        values: &mut LogValues,
    ) {
        let k = self.model.structure.classes;
        let draw = |weights: &mut Vec<f64>, evidence, (b, row): &mut (usize, &mut [f32])| {
            let mut stream = stream(*b);
            let y = stream.pick(gradients[u * k..(u + 1) * k].iter().copied());
            self.draw(evidence, y, &mut stream, weights, row)
        };
        // A path into numbers that have underflown is as unlikely as they are; it is drawn again in log space.
        let fast = Evidence::Scaled(&self.activations, u);
        let is_left = |weights: &mut Vec<f64>, row: &mut (usize, &mut [f32])| {
            recheck || !draw(weights, fast, row)
        };
        let left = rows.par_iter_mut().map_init(Vec::new, is_left);
        let left: Vec<bool> = left.collect();
        if !left.contains(&true) {
            return;
        }
        let logs = self.logs();
        logs.forward(&self.model.structure, self.batch.row(u), Join::Sum, values);
        let exact = Evidence::Logs(logs, values);
        let left = rows.par_iter_mut().zip(left).filter(|(_, left)| *left);
        left.for_each_init(Vec::new, |weights, (row, _)| {
            draw(weights, exact, row);
        });
    }

    /// Fills the holes of a row by one draw given class y; false where all that could be drawn had underflown.
    fn draw(
        &self,
        evidence: Evidence,
        y: usize,
        stream: &mut Stream,
        weights: &mut Vec<f64>,
        row: &mut [f32],
    ) -> bool {
        self.weigh_tops(evidence, y, weights);
        let mut possible = weights.iter().any(|&w| w > 0.0);
        let (t, top) = self.tree_of(stream.pick(weights.iter().copied()));
        let tree = &self.model.structure.trees[t];
        let choose = |of| {
            self.weigh(evidence, t, of, weights);
            possible &= weights.iter().any(|&w| w > 0.0);
            stream.pick(weights.iter().copied())
        };
        let from = NodeState {
            layer: tree.levels.len(),
            node: 0,
            state: top,
        };
        let states = trace_states(tree, from, choose);
        if possible {
            self.fill_holes(t, &states, row, Filling::Sample(stream));
        }
        possible
    }

    /// `W_top[y,(t,a)] φ_t(a)` for all trees side by side, but for a constant.
    fn weigh_tops(&self, evidence: Evidence, y: usize, to: &mut Vec<f64>) {
        let s = &self.model.structure;
        if let Evidence::Logs(logs, values) = evidence {
            logs.root(s, values, y, to);
            return exponentiate(to);
        }
        to.clear();
        for (t, tree) in s.trees.iter().enumerate() {
            let (phi, factor) = match evidence {
                Evidence::Scaled(all, b) => (
                    all.phi(t, tree, tree.levels.len(), 0, b),
                    all.root_factors(s.trees.len(), b)[t].into(),
                ),
                _ => (None, 1.0),
            };
            for a in 0..tree.top_channels() {
                let weight = f64::from(self.prepared.classes.weight(0, y, to.len()));
                to.push(weight * factor * phi.map_or(1.0, |phi| phi[a].into()));
            }
        }
    }

    /// `W[c,a] φ_j(a)` for all a, but for a constant: child j of a node of tree t that is in state c.
    pub(super) fn weigh(&self, evidence: Evidence, t: usize, of: ChildOfState, to: &mut Vec<f64>) {
        let s = &self.model.structure;
        if let Evidence::Logs(logs, values) = evidence {
            logs.states(s, values, t, of, to);
            return exponentiate(to);
        }
        let (tree, l, j, c) = (&s.trees[t], of.layer, of.child, of.state);
        let (matrix, simplex) = (
            tree.levels[l - 1].weight_of[j] as usize,
            &self.prepared.levels[t][l - 1],
        );
        let phi = match evidence {
            Evidence::Scaled(all, b) => all.phi(t, tree, l - 1, j, b),
            _ => None,
        };
        let weight =
            |a| f64::from(simplex.weight(matrix, c, a)) * phi.map_or(1.0, |phi| phi[a].into());
        to.clear();
        to.extend((0..tree.channels(l - 1)).map(weight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::queries::predictor::tests::far_apart;
    use crate::structure::{Kind, Structure};

    /// Where all that could be drawn has underflown, at the top or below it, nothing is drawn.
    #[test]
    fn what_has_underflown_is_not_drawn() {
        let mut predictor = far_apart();
        predictor.load(&[0.0, f32::NAN], (0, 0));
        predictor.forward(Pass::Everything).unwrap();
        let mut stream = Stream::new(1, Purpose::Sampling, 0, 0);
        let mut drawn = |y| {
            let (mut row, weights) = ([0.0, f32::NAN], &mut Vec::new());
            let evidence = Evidence::Scaled(&predictor.activations, 0);
            let possible = predictor.draw(evidence, y, &mut stream, weights, &mut row);
            assert_eq!(row[1].is_nan(), !possible);
            (possible, row[0])
        };
        assert_eq!(drawn(0), (true, 0.0));
        assert_eq!(drawn(1), (false, 0.0));
    }

    /// Draws of a row are those of its number, in every piece of a long batch.
    #[test]
    fn rows_draw_by_their_number() {
        let table = Structure::table(&[Kind::Gaussian; 2])
            .components(2)
            .window(2);
        let structure = table.channels([2]).classes(2).build().unwrap();
        let mut predictor = Predictor::new(Model::random(structure, 1.0, 3)).unwrap();
        let count = 2 * predictor.piece() + 7;
        let nothing = vec![f32::NAN; 2 * count];
        let given = predictor
            .sample_given(Rows::new(&nothing, 2).unwrap(), None, 5)
            .unwrap();
        let free = predictor.sample(count, None, 5).unwrap();
        assert_eq!(given.as_slice(), free.rows.as_slice());
    }

    #[test]
    fn weights_of_any_size_become_probabilities() {
        let mut logs = [-3000.0, -3000.0 + 3f64.ln(), f64::NEG_INFINITY];
        exponentiate(&mut logs);
        assert!((logs[0] - 0.25).abs() < 1e-9 && (logs[1] - 0.75).abs() < 1e-9);
        assert_eq!(logs[2], 0.0);
    }
}
