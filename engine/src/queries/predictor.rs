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

use crate::arithmetic::matmul::padded;
use crate::circuit::activations::{Activations, Keep};
use crate::circuit::log_space::LogCircuit;
use crate::circuit::outputs::Outputs;
use crate::circuit::underflow::UnderflowFallback;
use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::gpu::{Returning, Scoring};
use crate::layers::leaf::values_of;
use crate::layers::leaf_table::LeafTable;
use crate::layers::weights::Prepared;
use crate::matrix::Rows;
use crate::model::column_range::{MeanVariance, check_inside};
use crate::model::{Model, check_rows};
use crate::rows::batch::Batch;
use crate::structure::{Kind, OUTSIDE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

/// Activations of one piece of rows, at most about this many numbers.
const PIECE_NUMBERS: usize = 1 << 24;

/// Rows of a piece, at most.
const PIECE_ROWS: usize = 512;

/// The same on a GPU that is asked for scores only.
const GPU_PIECE_NUMBERS: usize = 1 << 27;
const GPU_PIECE_ROWS: usize = 4096;

/// Underflow may cost this much of an answer before the row is answered in f64 log space.
pub(crate) const TOLERANCE: f64 = 1e-6;

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

/// Mean and variance of components in the units of the data, by tree, position and coordinate.
pub(crate) type BentMoments = BTreeMap<LeafPlace, (usize, OnceLock<Vec<MeanVariance>>)>;

/// A tree, a position in it, a coordinate of the leaf there.
pub(crate) type LeafPlace = (usize, usize, usize);

/// A model with the buffers to ask it questions.
pub struct Predictor {
    pub(crate) model: Model,
    pub(crate) prepared: Prepared,
    pub(crate) leaves: Vec<Vec<LeafTable>>, // by tree, family
    pub(crate) fallback: UnderflowFallback,
    pub(crate) columns: Columns,
    pub(crate) activations: Activations,
    pub(crate) batch: Batch,
    pub(crate) recomputed: usize,
    pub(crate) bent_moments: OnceLock<BentMoments>,
    ahead: Batch, // rows that are computed next, on a GPU
    gpu: Option<Scoring>,
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

/// Lays rows of data in the frame.
fn lay(model: &Model, rows: &[f32], shift: (isize, isize), batch: &mut Batch) {
    match model.scaling.bent(rows, model.structure.width()) {
        Some(rows) => model.fill(&rows, shift, batch),
        None => model.fill(rows, shift, batch),
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
            recomputed: 0,
            bent_moments: OnceLock::new(),
            ahead: Batch::default(),
            gpu: None,
            model,
        })
    }

    /// Lets a device answer. On a GPU, rows that need a recheck are still computed again on the CPU, in f64, and so are modes
    /// and the draws of samples.
    pub fn use_device(&mut self, device: Device, precision: Precision) -> Result<()> {
        let (model, samples) = (&self.model, self.gpu_piece());
        self.gpu = match device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => {
                model.weights.check_for_gpu(ordinal)?;
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

    /// Goes forward with the rows that are loaded.
    pub(crate) fn forward(&mut self, pass: Pass) -> Result<()> {
        let Self {
            model,
            prepared,
            activations,
            batch,
            ..
        } = self;
        let Some(gpu) = &mut self.gpu else {
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
        gpu.load(batch)?;
        gpu.queue(match pass {
            Pass::Scores => Outputs::Scores,
            Pass::Everything => Outputs::Activations,
            Pass::Dense => Outputs::Flows,
        })?;
        let phi = if pass == Pass::Everything {
            gpu.activations()?
        } else {
            Vec::new()
        };
        let returning = gpu.send_back()?;
        activations.adopt(&model.structure, gpu.scores(returning)?, phi);
        Ok(())
    }

    /// Scores pieces of rows, and calls `each` after each piece with where it lies among the rows. A GPU computes the next
    /// piece meanwhile.
    pub(crate) fn score_pieces(
        &mut self,
        rows: &[f32],
        shift: (isize, isize),
        mut each: impl FnMut(&mut Self, Range<usize>),
    ) -> Result<()> {
        let width = self.model.structure.width();
        let (count, piece) = (rows.len() / width, self.score_piece());
        let part = |first: usize| first..count.min(first + piece);
        let numbers = |part: Range<usize>| &rows[part.start * width..part.end * width];
        let mut returning = self.queue_ahead(numbers(part(0)), shift)?;
        for first in (0..count).step_by(piece) {
            if let Some(scores) = returning.take() {
                std::mem::swap(&mut self.batch, &mut self.ahead);
                let next = part(first + piece.min(count - first));
                returning = self.queue_ahead(numbers(next), shift)?;
                self.adopt(scores)?;
            } else {
                self.load(numbers(part(first)), shift);
                self.forward(Pass::Scores)?;
            }
            each(self, part(first));
        }
        Ok(())
    }

    /// Lets a GPU score rows, if there is one and there are any. What it computes already goes on.
    fn queue_ahead(&mut self, rows: &[f32], shift: (isize, isize)) -> Result<Option<Returning>> {
        let Some(gpu) = self.gpu.as_mut().filter(|_| !rows.is_empty()) else {
            return Ok(None);
        };
        lay(&self.model, rows, shift, &mut self.ahead);
        gpu.load(&self.ahead)?;
        gpu.queue(Outputs::Scores)?;
        gpu.send_back().map(Some)
    }

    /// Takes the scores that come back from a GPU.
    fn adopt(&mut self, returning: Returning) -> Result<()> {
        if let Some(gpu) = &self.gpu {
            let scores = gpu.scores(returning)?;
            let structure = &self.model.structure;
            self.activations.adopt(structure, scores, Vec::new());
        }
        Ok(())
    }

    /// Sends gradients (B, K) back to the leaves, after a dense pass.
    pub(crate) fn backward(&mut self, gradients: &[f32]) -> Result<()> {
        match &self.gpu {
            None => {
                self.activations
                    .backward(&self.model.structure, &self.prepared, gradients, true)
            }
            Some(gpu) => self.activations.adopt_flows(gpu.flows(gradients)?),
        }
        Ok(())
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Scores of rows so far that were computed again in f64, because f32 may have underflown.
    pub fn recomputed(&self) -> usize {
        self.recomputed
    }

    /// How many rows there are, or what is wrong with them.
    pub(crate) fn check_rows(&self, rows: Rows<'_>) -> Result<usize> {
        let count = check_rows(&self.model.structure, rows)?;
        check_inside(&self.model.scaling.ranges, rows.as_slice())?;
        Ok(count)
    }

    /// A number of the model, before it is scaled back, in the units of a column.
    pub(crate) fn to_data(&self, column: usize, z: f64) -> f32 {
        let (offset, factor) = self.units(column);
        let w = z * factor + offset;
        match values_of(self.columns.kinds[column]) {
            Some(_) => w as f32,
            None => self.model.scaling.to_data(column, w),
        }
    }

    /// Rows of one piece: some hundreds, fewer where one row needs much memory; whole words of samples.
    pub(crate) fn piece(&self) -> usize {
        (PIECE_NUMBERS / self.row_numbers()).clamp(64, PIECE_ROWS) / 64 * 64
    }

    /// Rows of one piece where only scores are asked for: more on a GPU, so that it is busy.
    pub(crate) fn score_piece(&self) -> usize {
        if self.gpu.is_some() {
            self.gpu_piece()
        } else {
            self.piece()
        }
    }

    fn gpu_piece(&self) -> usize {
        (GPU_PIECE_NUMBERS / self.row_numbers()).clamp(64, GPU_PIECE_ROWS) / 64 * 64
    }

    /// Numbers that a row needs in all layers.
    fn row_numbers(&self) -> usize {
        let s = &self.model.structure;
        let layers = s
            .trees
            .iter()
            .flat_map(|tree| (0..=tree.levels.len()).map(move |l| (tree, l)));
        let numbers = layers.map(|(tree, l)| tree.nodes(l) * padded(tree.channels(l)));
        numbers.sum::<usize>() + s.frame_len()
    }

    /// Lays rows in the frame.
    pub(crate) fn load(&mut self, rows: &[f32], shift: (isize, isize)) {
        lay(&self.model, rows, shift, &mut self.batch);
    }

    /// What a downward question starts from after an upward pass, (B, K): P(y|x_o), or one class.
    pub(crate) fn output_gradients(&self, class: Option<usize>) -> Vec<f64> {
        let k = self.model.structure.classes;
        match class {
            Some(class) => (0..self.batch.rows * k)
                .map(|i| f64::from(i % k == class))
                .collect(),
            None => self.posteriors(),
        }
    }

    /// Whether underflow may have spoilt each row of the last pass for the classes that its gradients name. At worst all of
    /// a class is lost, so what is nearly impossible does no harm.
    pub(crate) fn rows_to_recheck(&self, gradients: &[f64]) -> Vec<bool> {
        let rows = gradients.chunks_exact(self.model.structure.classes);
        rows.enumerate()
            .map(|(b, gradients)| self.is_doubtful(b, gradients))
            .collect()
    }

    fn is_doubtful(&self, b: usize, gradients: &[f64]) -> bool {
        let bounds = self.activations.class_underflow_bounds(gradients.len(), b);
        let both = gradients.iter().zip(bounds);
        let harm: f64 = both
            .map(|(gradient, &bound)| gradient * f64::from(bound).min(1.0))
            .sum();
        harm.is_nan() || harm > TOLERANCE
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::layers::leaf::Coordinate;
    use crate::layers::mixing::Mixing;
    use crate::structure::Structure;

    /// Two classes in two columns or places, of which each has a component of its own, 40 standard deviations apart.
    pub fn classes_far_apart(structure: Structure) -> Predictor {
        let mut model = Model::random(structure, 1.0, 3);
        let tree = &mut model.weights.trees[0];
        let families = tree.families.iter_mut();
        for coordinate in families.flat_map(|family| &mut family.coordinates) {
            *coordinate = Coordinate::Gaussian {
                mean: vec![0.0, 40.0],
                log_sigma: vec![0.0; 2],
            };
        }
        let (matrices, identity) = (tree.levels[0].matrices, [1.0, 0.0, 0.0, 1.0]);
        tree.levels[0] = Mixing::from_weights(matrices, 2, 2, &identity.repeat(matrices));
        model.weights.classes = Mixing::from_weights(1, 2, 2, &identity);
        Predictor::new(model).unwrap()
    }

    /// The same in a table of two columns.
    pub fn far_apart() -> Predictor {
        let table = Structure::table(&[Kind::Gaussian; 2]).components(2);
        let structure = table.window(2).channels([2]).classes(2).build();
        classes_far_apart(structure.unwrap())
    }
}
