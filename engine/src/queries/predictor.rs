//! The questions that one pass up answers: scores, posteriors, predictions, conditionals.
//!
//! ```text
//! score             P(y|x_o) and log P(x_o)
//! log_likelihood    log P(x_o|y)                        o: what is observed in a row; NaN is missing
//! log_marginal      log P(x_o)  = log Σ_y P(y) P(x_o|y)
//! posterior         P(y|x_o)    = P(y) P(x_o|y) / P(x_o)
//! log_joint         log P(y) + Σ_shifts log P(x_o shifted|y)
//! log_conditional   log P(x_q|x_o) = log P(x_q, x_o) − log P(x_o)
//! ```
//!
//! Rows are (n, width) in the units of the data, checked once; densities are in those units too. Work goes in pieces,
//! so memory does not grow with n, and an answer depends on its row alone: not on its neighbours, nor on the threads.
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! use sumout::{Model, Predictor, Rows};
//! let sequence = Structure::sequence(4).components(3).classes(3);
//! let structure = sequence.level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).build()?;
//! let mut model = Model::random(structure, 1.0, 7);
//! model.set_prior(&[0.5, 0.25, 0.25])?;
//! let mut predictor = Predictor::new(model)?;
//! let hole = f32::NAN;
//! let posterior = predictor.posterior(Rows::new(&[0.5, hole, -1.0, 2.0, hole, hole, hole, hole], 4)?)?;
//! assert!((posterior.row(0).iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! assert_eq!(posterior.row(1), [0.5, 0.25, 0.25]); // nothing observed: the prior
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::math::{argmax, log_sum_exp};
use crate::arithmetic::matmul::padded;
use crate::circuit::activations::{Activations, Keep};
use crate::circuit::log_space::{Join, LogCircuit, LogValues};
use crate::circuit::outputs::Outputs;
use crate::circuit::underflow::UnderflowFallback;
use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::gpu::Scoring;
use crate::layers::leaf::values_of;
use crate::layers::leaf_table::LeafTable;
use crate::layers::weights::Prepared;
use crate::matrix::{Matrix, Rows};
use crate::model::{Model, check_rows};
use crate::rows::batch::Batch;
use crate::structure::{Kind, OUTSIDE};
use rayon::prelude::*;

/// Activations of one piece of rows, at most about this many numbers.
const PIECE_NUMBERS: usize = 1 << 24;

/// Underflow may cost this much of an answer before the row is answered in f64 log space.
const TOLERANCE: f64 = 1e-6;

/// How the numbers of a row lie in the frame.
pub(crate) struct Columns {
    /// (width): what each may be.
    pub kinds: Vec<Kind>,
    /// (D): for every place of the frame its column, [`OUTSIDE`] for a border.
    pub of_place: Vec<u32>,
    /// (width): what an observed number adds to a log-density in the units of the data.
    pub log_scale: Vec<f64>,
}

impl Columns {
    fn new(model: &Model) -> Self {
        let s = &model.structure;
        let mut of_place = vec![OUTSIDE; s.frame_len()];
        for (column, place) in s.placement((0, 0)).into_iter().enumerate() {
            of_place[place as usize] = column as u32;
        }
        let kinds = s.row_kinds();
        let log_scale = |(column, &kind): (usize, &Kind)| match values_of(kind) {
            None => f64::from(model.scaling.scale_of(column)).ln(),
            Some(_) => 0.0,
        };
        Self {
            log_scale: kinds.iter().enumerate().map(log_scale).collect(),
            kinds,
            of_place,
        }
    }
}

/// A model with the buffers to ask it questions.
pub struct Predictor {
    pub(crate) model: Model,
    pub(crate) prepared: Prepared,
    pub(crate) leaves: Vec<Vec<LeafTable>>, // by tree, family
    fallback: UnderflowFallback,
    pub(crate) columns: Columns,
    pub(crate) activations: Activations,
    pub(crate) batch: Batch,
    card: Option<Scoring>,
}

/// What a pass up is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Class scores only.
    Scores,
    /// Every φ too.
    Everything,
    /// Every node, also where all is missing; then down to the leaves.
    Dense,
}

/// All shifts by at most `radius` rows and columns, (2·radius + 1)² of them.
pub fn shifts(radius: usize) -> Vec<(isize, isize)> {
    let radius = radius as isize;
    (-radius..=radius)
        .flat_map(|down| (-radius..=radius).map(move |right| (down, right)))
        .collect()
}

/// Turns rows of log P(x,y) (n, K), as [`Predictor::log_joint`] gives them, into P(y|x). A row that no class can have
/// made gets the prior.
pub(crate) fn softmax_rows(log_joint: &mut [f64], log_prior: &[f64]) {
    for row in log_joint.chunks_exact_mut(log_prior.len()) {
        if row.iter().all(|&log| log == f64::NEG_INFINITY) {
            row.copy_from_slice(log_prior);
        }
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|log| *log = (*log - top).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= total);
    }
}

/// What is given must be in the rows too.
fn check_given(rows: Rows<'_>, given: Rows<'_>) -> Result<()> {
    let (all, part) = (rows.as_slice(), given.as_slice());
    if all.len() != part.len() {
        let expected = format!("{} numbers as in the rows", all.len());
        return Err(Error::shape("what is given", expected, part.len()));
    }
    match (0..all.len()).find(|&i| !part[i].is_nan() && part[i] != all[i]) {
        Some(place) => {
            let (row, column) = (place / rows.width(), place % rows.width());
            let what = format!("what is given, row {row}, column {column}");
            let expected = format!("{} as in the rows, or NaN", all[place]);
            Err(Error::shape(what, expected, part[place]))
        }
        None => Ok(()),
    }
}

impl Predictor {
    /// Prepares a model, which is checked first.
    pub fn new(model: Model) -> Result<Self> {
        model.check()?;
        let families = model.weights.trees.iter().map(|tree| tree.families.iter());
        Ok(Self {
            prepared: Prepared::new(&model.weights),
            leaves: families
                .map(|all| all.map(LeafTable::new).collect())
                .collect(),
            fallback: UnderflowFallback::default(),
            columns: Columns::new(&model),
            activations: Activations::new(),
            batch: Batch::default(),
            card: None,
            model,
        })
    }

    /// Lets a device answer. On a GPU what is doubtful is still computed again on the processor, in f64, and so are modes
    /// and the draws of samples.
    pub fn use_device(&mut self, device: Device, precision: Precision) -> Result<()> {
        let (model, samples) = (&self.model, self.piece());
        self.card = match device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => {
                let on = (ordinal, precision);
                Some(Scoring::new(
                    on,
                    &model.structure,
                    &model.weights,
                    &self.prepared,
                    samples,
                    true,
                )?)
            }
        };
        Ok(())
    }

    /// Goes up with the rows that are laid in the frame.
    pub(crate) fn climb(&mut self, pass: Pass) -> Result<()> {
        let Self {
            model,
            prepared,
            activations,
            batch,
            ..
        } = self;
        let Some(card) = &mut self.card else {
            match pass {
                Pass::Scores => {
                    activations.forward(&model.structure, prepared, batch, &[], Keep::Scores)
                }
                Pass::Everything => {
                    activations.forward(&model.structure, prepared, batch, &[], Keep::Everything)
                }
                Pass::Dense => activations.forward_dense(&model.structure, prepared, batch),
            }
            return Ok(());
        };
        card.load(batch)?;
        card.queue(match pass {
            Pass::Scores => Outputs::Scores,
            Pass::Everything => Outputs::Activations,
            Pass::Dense => Outputs::Flows,
        })?;
        let phi = if pass == Pass::Everything {
            card.activations()?
        } else {
            Vec::new()
        };
        activations.adopt(&model.structure, card.scores()?, phi);
        Ok(())
    }

    /// Sends seeds (B, K) down to the leaves, after a dense pass.
    pub(crate) fn descend(&mut self, seeds: &[f32]) -> Result<()> {
        match &self.card {
            None => self
                .activations
                .backward(&self.model.structure, &self.prepared, seeds, true),
            Some(card) => self.activations.adopt_flows(card.flows(seeds)?),
        }
        Ok(())
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// log P(x_o|y) of n rows, as (n, K).
    pub fn log_likelihood(&mut self, rows: Rows<'_>) -> Result<Matrix<f64>> {
        self.check_rows(rows)?;
        let scores = self.scores(rows.as_slice(), (0, 0))?;
        Ok(Matrix::new(scores, self.model.structure.classes))
    }

    /// log P(x_o) of n rows, as (n).
    pub fn log_marginal(&mut self, rows: Rows<'_>) -> Result<Vec<f64>> {
        let log_joint = self.log_joint(rows, &[(0, 0)])?;
        Ok(log_joint.iter().map(log_sum_exp).collect())
    }

    /// P(y|x_o) of n rows, as (n, K), to an absolute error of about 10⁻⁶. A row with everything missing gets the prior
    /// itself. [`Predictor::score`] takes longer where classes are far apart, and gets small probabilities right too.
    pub fn posterior(&mut self, rows: Rows<'_>) -> Result<Matrix<f64>> {
        let n = self.check_rows(rows)?;
        let (k, width) = (self.model.structure.classes, self.model.structure.width());
        let mut all = Vec::with_capacity(n * k);
        for piece in rows.as_slice().chunks(self.piece() * width) {
            self.lay(piece, (0, 0));
            self.climb(Pass::Scores)?;
            all.extend(self.posteriors());
        }
        self.keep_priors(rows, &mut all);
        Ok(Matrix::new(all, k))
    }

    /// Gives rows with everything missing the prior itself, in posteriors (n, K).
    pub(crate) fn keep_priors(&self, rows: Rows<'_>, posteriors: &mut [f64]) {
        let k = self.model.structure.classes;
        for (to, row) in posteriors.chunks_exact_mut(k).zip(rows.iter()) {
            if row.iter().all(|x| x.is_nan()) {
                to.iter_mut()
                    .zip(&self.model.log_prior)
                    .for_each(|(to, log)| *to = log.exp());
            }
        }
    }

    /// The most probable class of each row, the first where several are, as (n).
    pub fn predict(&mut self, rows: Rows<'_>) -> Result<Vec<usize>> {
        Ok(self.posterior(rows)?.argmax())
    }

    /// `log P(y) + Σ_shifts log P(x_o shifted|y)`, as (n, K): the paper's score at test time. What a shift moves out of
    /// the frame is missing. With the one shift (0, 0) it is log P(x_o, y).
    pub fn log_joint(&mut self, rows: Rows<'_>, shifts: &[(isize, isize)]) -> Result<Matrix<f64>> {
        let n = self.check_rows(rows)?;
        if shifts.is_empty() {
            return Err(Error::Empty { what: "shift" });
        }
        let mut sums = self.model.log_prior.repeat(n);
        for &shift in shifts {
            let scores = self.scores(rows.as_slice(), shift)?;
            sums.iter_mut()
                .zip(scores)
                .for_each(|(sum, score)| *sum += score);
        }
        Ok(Matrix::new(sums, self.model.structure.classes))
    }

    /// How many rows there are, or what is wrong with them.
    pub(crate) fn check_rows(&self, rows: Rows<'_>) -> Result<usize> {
        check_rows(&self.model.structure, rows)
    }

    /// Adds the log P(y) of n rows and their scores of all shifts to sums (n, K): to one the least that they can be, to
    /// the other the most.
    pub(crate) fn add_bounds(
        &mut self,
        rows: &[f32],
        shifts: &[(isize, isize)],
        low: &mut [f64],
        high: &mut [f64],
    ) -> Result<()> {
        let (k, width) = (self.model.structure.classes, self.model.structure.width());
        let (piece, prior) = (self.piece(), self.model.log_prior.clone());
        for ((rows, low), high) in rows
            .chunks(piece * width)
            .zip(low.chunks_mut(piece * k))
            .zip(high.chunks_mut(piece * k))
        {
            for sums in [&mut *low, &mut *high] {
                sums.iter_mut()
                    .zip(prior.iter().cycle())
                    .for_each(|(sum, log)| *sum += log);
            }
            for &shift in shifts {
                self.lay(rows, shift);
                self.climb(Pass::Scores)?;
                low.iter_mut()
                    .zip(self.activations.log_likelihood())
                    .for_each(|(sum, score)| *sum += score);
                high.chunks_exact_mut(k)
                    .enumerate()
                    .for_each(|(b, sums)| self.add_most(b, sums));
            }
        }
        Ok(())
    }

    /// Adds the most that each score of row b of the last pass can be, had underflow not taken anything.
    fn add_most(&self, b: usize, sums: &mut [f64]) {
        let k = sums.len();
        let scores = &self.activations.log_likelihood()[b * k..(b + 1) * k];
        let (psi, lost) = self.activations.class_mantissas(k, b);
        let best = argmax(psi);
        let log_scale = scores[best] - f64::from(psi[best]).ln(); // NaN where nothing is known: never decided
        let doubts = self.activations.class_underflow_bounds(k, b);
        for y in 0..k {
            let certain = doubts[y] <= TOLERANCE as f32;
            sums[y] += if certain {
                scores[y]
            } else {
                (f64::from(psi[y]) + f64::from(lost)).ln() + log_scale
            };
        }
    }

    /// log P(x_q|x_o), as (n): `rows` holds x_q and x_o, `given` holds x_o alone.
    pub fn log_conditional(&mut self, rows: Rows<'_>, given: Rows<'_>) -> Result<Vec<f64>> {
        check_given(rows, given)?;
        let mut logs = self.log_marginal(rows)?;
        let conditions = self.log_marginal(given)?;
        let divide = |(log, condition): (&mut f64, f64)| *log -= condition.max(f64::MIN);
        logs.iter_mut().zip(conditions).for_each(divide);
        Ok(logs)
    }

    /// Rows of one piece: some hundreds, fewer where one row needs much memory; whole words of samples.
    pub(crate) fn piece(&self) -> usize {
        let s = &self.model.structure;
        let layers = s
            .trees
            .iter()
            .flat_map(|tree| (0..=tree.levels.len()).map(move |l| (tree, l)));
        let row = layers
            .map(|(tree, l)| tree.nodes(l) * padded(tree.channels(l)))
            .sum::<usize>()
            + s.frame_len();
        (PIECE_NUMBERS / row).clamp(64, 512) / 64 * 64
    }

    /// Lays rows in the frame.
    pub(crate) fn lay(&mut self, rows: &[f32], shift: (isize, isize)) {
        self.model.fill(rows, shift, &mut self.batch);
    }

    /// log P(x_o|y) of checked rows, in the units of the data, as (n, K).
    fn scores(&mut self, rows: &[f32], shift: (isize, isize)) -> Result<Vec<f64>> {
        let (width, k) = (self.model.structure.width(), self.model.structure.classes);
        let mut all = Vec::with_capacity(rows.len() / width * k);
        for piece in rows.chunks(self.piece() * width) {
            self.lay(piece, shift);
            self.climb(Pass::Scores)?;
            self.add_scores(&self.activations.scores_to_recheck(k), &mut all);
        }
        self.add_units(rows, shift, &mut all);
        Ok(all)
    }

    /// Appends log P(x_o|y) of the rows of the last pass, (B, K), in the units of the model.
    pub(crate) fn add_scores(&self, recheck: &[usize], all: &mut Vec<f64>) {
        let (first, k) = (all.len(), self.model.structure.classes);
        all.extend_from_slice(self.activations.log_likelihood());
        let Self { model, batch, .. } = self;
        let exact = self
            .fallback
            .scores(&model.structure, &model.weights, batch, recheck);
        for (&b, exact) in recheck.iter().zip(exact) {
            all[first + b * k..][..k].copy_from_slice(&exact);
        }
    }

    /// Adds the logarithm of the scale of every observed number, which turns densities of the model into those of data.
    pub(crate) fn add_units(&self, rows: &[f32], shift: (isize, isize), scores: &mut [f64]) {
        if self.columns.log_scale.iter().all(|&log| log == 0.0) {
            return;
        }
        let places = self.model.structure.placement(shift);
        let scales = places
            .iter()
            .zip(&self.columns.log_scale)
            .map(|(&p, &log)| if p == OUTSIDE { 0.0 } else { log });
        let scales: Vec<f64> = scales.collect();
        let by_row = scores
            .par_chunks_mut(self.model.structure.classes)
            .zip(rows.par_chunks(scales.len()));
        by_row.for_each(|(scores, row)| {
            let seen = row.iter().zip(&scales).filter(|(x, _)| !x.is_nan());
            let sum: f64 = seen.map(|(_, log)| log).sum();
            scores.iter_mut().for_each(|score| *score += sum);
        });
    }

    /// P(y|x_o) of the rows of the last pass, (B, K), from mantissas, not from log-likelihoods: beside an outlier's
    /// −10²⁰ those have lost what tells the classes apart.
    fn posteriors(&self) -> Vec<f64> {
        let k = self.model.structure.classes;
        let prior: Vec<f64> = self.model.log_prior.iter().map(|log| log.exp()).collect();
        let mut all = vec![0.0; self.batch.rows * k];
        let run = |(values, tops): &mut (LogValues, Vec<f64>), (b, to): (usize, &mut [f64])| {
            let (psi, lost) = self.activations.class_mantissas(k, b);
            to.iter_mut()
                .zip(psi)
                .zip(&prior)
                .for_each(|((to, &psi), prior)| *to = f64::from(psi) * prior);
            let total: f64 = to.iter().sum();
            if f64::from(lost) <= TOLERANCE * total {
                return to.iter_mut().for_each(|p| *p /= total);
            }
            self.posterior_in_logs(b, to, (values, tops));
        };
        all.par_chunks_mut(k)
            .enumerate()
            .for_each_init(Default::default, run);
        all
    }

    /// P(y|x_o) of row b of the last pass, (K), in log space, from what the classes have beyond the row's scale: exact
    /// however unlikely the row is. `values` and `tops` are scratch.
    pub(crate) fn posterior_in_logs(
        &self,
        b: usize,
        to: &mut [f64],
        (values, tops): (&mut LogValues, &mut Vec<f64>),
    ) {
        let s = &self.model.structure;
        self.logs().forward(s, self.batch.row(b), Join::Sum, values);
        for (y, to) in to.iter_mut().enumerate() {
            self.logs().root(s, values, y, tops);
            *to = log_sum_exp(tops) + self.model.log_prior[y];
        }
        softmax_rows(to, &self.model.log_prior);
    }

    /// What a downward question starts from after an upward pass, (B, K): P(y|x_o), or one class.
    pub(crate) fn seeds(&self, class: Option<usize>) -> Vec<f64> {
        let k = self.model.structure.classes;
        match class {
            Some(class) => (0..self.batch.rows * k)
                .map(|i| f64::from(i % k == class))
                .collect(),
            None => self.posteriors(),
        }
    }

    /// Whether underflow may have spoilt each row of the last pass for the classes that its seeds name. At worst all of
    /// a class is lost, so what is nearly impossible does no harm.
    pub(crate) fn doubtful(&self, seeds: &[f64]) -> Vec<bool> {
        let k = self.model.structure.classes;
        let doubtful = |(b, seeds): (usize, &[f64])| {
            let doubts = self.activations.class_underflow_bounds(k, b);
            let harm: f64 = seeds
                .iter()
                .zip(doubts)
                .map(|(seed, &doubt)| seed * f64::from(doubt).min(1.0))
                .sum();
            harm.is_nan() || harm > TOLERANCE
        };
        seeds.chunks_exact(k).enumerate().map(doubtful).collect()
    }

    /// Says so if there is no such class.
    pub(crate) fn check_class(&self, class: Option<usize>) -> Result<()> {
        let last = self.model.structure.classes - 1;
        match class {
            Some(class) if class > last => Err(Error::shape(
                "class",
                format!("a number from 0 to {last}"),
                class,
            )),
            _ => Ok(()),
        }
    }

    /// The same weights in log space, made at the first call.
    pub(crate) fn logs(&self) -> &LogCircuit {
        self.fallback
            .log_circuit(&self.model.structure, &self.model.weights)
    }
}
