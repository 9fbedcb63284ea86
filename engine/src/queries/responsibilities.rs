//! Responsibilities: how probable each component of each position is, given what is observed. Means, quantiles and
//! mixtures of what is missing come from them.

use crate::circuit::log_space::{Join, LogValues};
use crate::error::Result;
use crate::layers::leaf_factors::Conditionals;
use crate::matrix::{Matrix, Rows};
use crate::model::column_range::MeanVariance;
use crate::queries::beliefs::{Beliefs, Place};
use crate::queries::predictor::{Pass, Predictor};
use crate::structure::{OUTSIDE, Tree};
use rayon::prelude::*;

/// The responsibilities of one piece of rows.
pub(super) struct Flows<'a> {
    predictor: &'a Predictor,
    exact: Vec<Option<Vec<Vec<f64>>>>, // (B), by tree: (N, M), for rows that underflow spoilt
}

impl Flows<'_> {
    /// P(d_i = d | x_o) for sample b, into `to`, (M).
    pub(super) fn of(&self, t: usize, i: usize, b: usize, to: &mut Vec<f64>) {
        let tree = &self.predictor.model.structure.trees[t];
        to.clear();
        match &self.exact[b] {
            Some(exact) => {
                to.extend_from_slice(&exact[t][i * tree.components..][..tree.components])
            }
            None => to.extend(
                self.predictor
                    .activations
                    .leaf_flow(t, tree, i, b)
                    .into_iter()
                    .flatten()
                    .map(f64::from),
            ),
        }
    }

    /// The same for all positions of tree t, into `to`, (N, M); `flow` is scratch.
    fn all_of(&self, t: usize, b: usize, flow: &mut Vec<f64>, to: &mut [f32]) {
        let components = self.predictor.model.structure.trees[t].components;
        for (i, to) in to.chunks_exact_mut(components).enumerate() {
            self.of(t, i, b, flow);
            let both = to.iter_mut().zip(&*flow);
            both.for_each(|(to, flow)| *to = *flow as f32);
        }
    }

    /// What sample b says about its missing numbers; `flow` is scratch.
    pub(super) fn beliefs(
        &self,
        b: usize,
        row: &[f32],
        first: &[usize],
        beliefs: &mut Beliefs,
        flow: &mut Vec<f64>,
    ) {
        beliefs.clear(first);
        let Predictor {
            model,
            leaves,
            columns,
            ..
        } = self.predictor;
        for (t, tree) in model.structure.trees.iter().enumerate() {
            for (i, position) in tree.positions.iter().enumerate() {
                flow.clear();
                let mut given = None; // what is observed in the same leaf, where that matters
                for (s, &input) in position
                    .inputs
                    .iter()
                    .enumerate()
                    .filter(|(_, input)| **input != OUTSIDE)
                {
                    let column = columns.of_place[input as usize];
                    if column == OUTSIDE || !row[column as usize].is_nan() {
                        continue;
                    }
                    if flow.is_empty() {
                        self.of(t, i, b, flow);
                        given = self.predictor.conditionals(t, i, b, None);
                    }
                    let density = &leaves[t][position.family as usize].densities[s];
                    let column = column as usize;
                    let place = Place {
                        column,
                        first: first[column],
                    };
                    let in_row = given
                        .as_ref()
                        .map(|given| self.moments_in_row(given, s, column, flow));
                    let bent = || self.predictor.bent_moments((t, i, s));
                    beliefs.add(place, density, flow, in_row.as_deref().or_else(bent));
                }
            }
        }
    }
}

impl Flows<'_> {
    /// Mean and variance of a missing number in every component, given what is observed in the same leaf; zeros where a
    /// component has so little flow that they change no digit.
    fn moments_in_row(
        &self,
        given: &Conditionals,
        s: usize,
        column: usize,
        flow: &[f64],
    ) -> Vec<MeanVariance> {
        const NOTHING: f64 = 1e-15;
        let least = NOTHING * flow.iter().sum::<f64>();
        let moments = |((mean, sigma), &flow): ((f64, f64), &f64)| match flow > least {
            true => self.predictor.moments_of(column, mean, sigma),
            false => MeanVariance::default(),
        };
        given.of(s).zip(flow).map(moments).collect()
    }

    /// M of a tree.
    pub(super) fn components(&self, t: usize) -> usize {
        self.predictor.model.structure.trees[t].components
    }

    /// Mean and deviation of a missing number in every component given what is observed in the same leaf; nothing where
    /// the leaf has no factors.
    pub(super) fn conditionals(
        &self,
        (t, i, s): (usize, usize, usize),
        b: usize,
    ) -> Option<Conditionals> {
        self.predictor.conditionals(t, i, b, Some(s))
    }
}

impl Predictor {
    /// Goes up and down with checked rows.
    pub(super) fn flows(&mut self, rows: &[f32], class: Option<usize>) -> Result<Flows<'_>> {
        self.load(rows, (0, 0));
        self.forward(Pass::Dense)?;
        let k = self.model.structure.classes;
        let gradients = self.output_gradients(class);
        let recheck = self.rows_to_recheck(&gradients);
        let fast = gradients
            .iter()
            .enumerate()
            .map(|(i, &gradient)| if recheck[i / k] { 0.0 } else { gradient as f32 });
        let fast: Vec<f32> = fast.collect();
        self.backward(&fast)?;
        let this = &*self;
        let exact = recheck
            .par_iter()
            .zip(gradients.par_chunks(k))
            .enumerate()
            .map_init(LogValues::default, |values, (b, (&recheck, gradients))| {
                recheck.then(|| this.exact_flows(b, gradients, values))
            })
            .collect();
        Ok(Flows {
            predictor: this,
            exact,
        })
    }

    /// The responsibilities of sample b in log space, by tree: (N, M); `values` is scratch.
    fn exact_flows(&self, b: usize, gradients: &[f64], values: &mut LogValues) -> Vec<Vec<f64>> {
        let (structure, logs) = (&self.model.structure, self.logs());
        logs.forward(structure, self.batch.row(b), Join::Sum, values);
        logs.leaf_flows(structure, values, gradients)
    }

    /// P(d_i = d | x_o) for every position and component, by tree: (n, N · M). Those of one tree sum to its posterior
    /// weight, which is one if it stands alone.
    pub fn responsibilities(
        &mut self,
        rows: Rows<'_>,
        class: Option<usize>,
    ) -> Result<Vec<Matrix<f32>>> {
        self.check_rows(rows)?;
        self.check_class(class)?;
        let piece = self.piece() * self.model.structure.width();
        let mut all = vec![Vec::new(); self.model.structure.trees.len()];
        for rows in rows.as_slice().chunks(piece) {
            let flows = self.flows(rows, class)?;
            for (t, tree) in flows.predictor.model.structure.trees.iter().enumerate() {
                let start = all[t].len();
                let row = tree.positions.len() * tree.components;
                all[t].resize(start + flows.exact.len() * row, 0.0);
                all[t][start..]
                    .par_chunks_mut(row)
                    .enumerate()
                    .for_each_init(Vec::new, |flow, (b, to)| flows.all_of(t, b, flow, to));
            }
        }
        let shaped = |(all, tree): (Vec<f32>, &Tree)| {
            Matrix::new(all, tree.positions.len() * tree.components)
        };
        let trees = &self.model.structure.trees;
        Ok(all.into_iter().zip(trees).map(shaped).collect())
    }
}
