//! The forward pass in f64, for rows whose classes lie further apart than the mantissas of f32 reach.
//!
//! The same scaled numbers as in `scaled_rows.rs`, with mantissas down to 10⁻²⁹⁰ instead of 10⁻³⁴: on clean digits a few rows
//! in a hundred need them, because the scores of *all* classes are to be right. Four rows are computed together, so that a
//! weight is read once for all of them. What even f64 cannot hold is left to `log_space.rs`.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::PANEL;
use crate::layers::leaf::{Family, log_leaf};
use crate::layers::leaf_table::LeafTable;
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};
use crate::rows::batch::Batch;
use crate::structure::{ClassRows, Level, Position, Structure, Tree};
use rayon::prelude::*;

/// Rows that are computed together.
const ROWS: usize = 4;

/// Mantissas below this are not trusted.
const TINY: f64 = 1e-290;

/// Underflow may cost a class this much, relative.
const TOLERANCE: f64 = 1e-9;

/// One channel of a node, for all rows.
type Lane = [f64; ROWS];

/// A node: mantissas of every channel, their log-scale, and a bound on what underflow may have taken from any of them.
#[derive(Clone, Debug)]
struct NodeF64 {
    phi: Vec<Lane>,
    log_scale: Lane,
    underflow_bound: Lane,
}

/// All weights in f64.
#[derive(Clone, Debug)]
pub struct ScaledF64 {
    trees: Vec<Vec<MatricesF64>>,
    joint: Vec<Vec<Option<LeafTable>>>, // by tree, family: those with factors
    classes: Vec<f64>,                  // (K, tops of all trees)
}

/// W of one level, (matrices, panels, A, [`PANEL`]); rows that fill a panel up are zero.
#[derive(Clone, Debug)]
struct MatricesF64 {
    columns: usize,
    length: usize, // of one matrix
    weights: Vec<f64>,
}

impl MatricesF64 {
    fn new(mixing: &Mixing) -> Self {
        let columns = mixing.columns;
        let length = columns * mixing.rows.next_multiple_of(PANEL);
        let mut weights = vec![0.0; mixing.matrices * length];
        let matrices = weights.par_chunks_mut(length).enumerate();
        matrices.for_each(|(matrix, weights)| fill_matrix(mixing, matrix, weights));
        Self {
            columns,
            length,
            weights,
        }
    }

    fn panels(&self, matrix: usize) -> std::slice::ChunksExact<'_, f64> {
        self.weights[matrix * self.length..][..self.length].chunks_exact(self.columns * PANEL)
    }
}

fn exponentials(logs: Vec<f64>) -> Vec<f64> {
    logs.into_iter().map(f64::exp).collect()
}

impl ScaledF64 {
    /// Normalises all logits.
    pub fn new(s: &Structure, weights: &Weights) -> Self {
        let row = |y: usize| match s.class_rows {
            ClassRows::Mixing => exponentials(weights.classes.log_row(0, y)),
            ClassRows::Identity => (0..s.classes).map(|a| f64::from(a == y)).collect(),
        };
        let levels = |tree: &TreeWeights| tree.levels.iter().map(MatricesF64::new).collect();
        let table = |family: &Family| family.factors.as_ref().map(|_| LeafTable::new(family));
        let joint = |tree: &TreeWeights| tree.families.iter().map(table).collect();
        Self {
            trees: weights.trees.iter().map(levels).collect(),
            joint: weights.trees.iter().map(joint).collect(),
            classes: (0..s.classes).flat_map(row).collect(),
        }
    }

    /// log P(x_o|y), (K), of some samples; `None` where even f64 may have underflown.
    pub fn scores(
        &self,
        s: &Structure,
        weights: &Weights,
        batch: &Batch,
        samples: &[usize],
    ) -> Vec<Option<Vec<f64>>> {
        let chunks = samples.par_chunks(ROWS);
        let scores = |samples: &[usize]| self.chunk_scores(s, weights, batch, samples);
        chunks.flat_map_iter(scores).collect()
    }

    /// The same for at most [`ROWS`] samples; the last stands in for those that are not there.
    fn chunk_scores(
        &self,
        s: &Structure,
        weights: &Weights,
        batch: &Batch,
        samples: &[usize],
    ) -> Vec<Option<Vec<f64>>> {
        let last = samples.len() - 1;
        let frames: [&[f32]; ROWS] = std::array::from_fn(|r| batch.row(samples[r.min(last)]));
        let mut tops = Vec::with_capacity(s.trees.len());
        for (t, tree) in s.trees.iter().enumerate() {
            let families = (&weights.trees[t].families[..], &self.joint[t][..]);
            tops.push(forward_tree(tree, families, &self.trees[t], &frames));
        }
        let rows = 0..samples.len();
        rows.map(|r| self.root(s.classes, &tops, r)).collect()
    }

    /// Class scores of row r from the tops of all trees.
    fn root(&self, classes: usize, tops: &[NodeF64], r: usize) -> Option<Vec<f64>> {
        let scale = tops
            .iter()
            .map(|top| top.log_scale[r])
            .fold(f64::NEG_INFINITY, f64::max);
        let factor = |top: &NodeF64| (top.log_scale[r] - scale).exp();
        let phi: Vec<f64> = tops
            .iter()
            .flat_map(|top| top.phi.iter().map(move |phi| phi[r] * factor(top)))
            .collect();
        let underflow_bound = tops
            .iter()
            .map(|top| top.underflow_bound[r] * factor(top))
            .sum::<f64>()
            + TINY;
        let rows = self.classes.chunks_exact(self.classes.len() / classes);
        let psi: Vec<f64> = rows
            .map(|row| row.iter().zip(&phi).map(|(w, phi)| w * phi).sum())
            .collect();
        let trusted = psi.iter().all(|&psi| underflow_bound <= TOLERANCE * psi); // not if NaN
        trusted.then(|| psi.iter().map(|psi| psi.ln() + scale).collect())
    }
}

/// W of one matrix, into panels.
fn fill_matrix(mixing: &Mixing, matrix: usize, weights: &mut [f64]) {
    for c in 0..mixing.rows {
        let place = c / PANEL * PANEL * mixing.columns + c % PANEL;
        let to = weights[place..].iter_mut().step_by(PANEL);
        to.zip(mixing.log_row(matrix, c))
            .for_each(|(to, log)| *to = log.exp());
    }
}

/// The top of one tree.
fn forward_tree(
    tree: &Tree,
    (families, joint): (&[Family], &[Option<LeafTable>]),
    levels: &[MatricesF64],
    frames: &[&[f32]; ROWS],
) -> NodeF64 {
    let leaf = |position: &Position| {
        let f = position.family as usize;
        let logs = log_densities((&families[f], joint[f].as_ref()), &position.inputs, frames);
        leaf(logs)
    };
    let mut below: Vec<NodeF64> = tree.positions.iter().map(leaf).collect();
    for (level, matrices) in tree.levels.iter().zip(levels) {
        let windows = level.children.iter();
        below = windows
            .map(|own| join(level, matrices, own, &below))
            .collect();
    }
    below.swap_remove(0)
}

/// φ of a window: the product of its children, each mixed.
fn join(level: &Level, matrices: &MatricesF64, children: &[u32], below: &[NodeF64]) -> NodeF64 {
    let mut node = NodeF64 {
        phi: vec![[1.0; ROWS]; level.channels],
        log_scale: [0.0; ROWS],
        underflow_bound: [0.0; ROWS],
    };
    for j in children.iter().map(|&j| j as usize) {
        let (child, panels) = (&below[j], matrices.panels(level.weight_of[j] as usize));
        let psi = mix(panels, &child.phi, level.channels);
        for (phi, psi) in node.phi.iter_mut().zip(&psi) {
            (0..ROWS).for_each(|r| phi[r] *= psi[r]);
        }
        for r in 0..ROWS {
            node.log_scale[r] += child.log_scale[r];
            node.underflow_bound[r] += child.underflow_bound[r] + TINY;
        }
        node.rescale();
    }
    node
}

impl NodeF64 {
    /// Divides every row by its largest mantissa.
    fn rescale(&mut self) {
        for r in 0..ROWS {
            let top = self.phi.iter().fold(0.0f64, |top, phi| top.max(phi[r]));
            if top < f64::MIN_POSITIVE {
                self.underflow_bound[r] = f64::INFINITY;
                continue;
            }
            self.phi.iter_mut().for_each(|phi| phi[r] /= top);
            self.log_scale[r] += top.ln();
            self.underflow_bound[r] /= top;
        }
    }
}

/// log p(x_o|d) of all components, (M).
fn log_densities(
    (family, joint): (&Family, Option<&LeafTable>),
    inputs: &[u32],
    frames: &[&[f32]; ROWS],
) -> Vec<Lane> {
    let m = family.components;
    let Some(table) = joint else {
        let log = |d: usize| frames.map(|frame| log_leaf(family, inputs, frame, d));
        return (0..m).map(log).collect();
    };
    let mut logs = [(); ROWS].map(|()| vec![0.0; m]);
    let rows = frames.iter().zip(&mut logs);
    rows.for_each(|(frame, to)| table.log_densities(inputs, frame, |_| false, to));
    (0..m)
        .map(|d| std::array::from_fn(|r| logs[r][d]))
        .collect()
}

/// φ of a leaf from its log-densities, (M).
fn leaf(mut phi: Vec<Lane>) -> NodeF64 {
    let top: Lane = std::array::from_fn(|r| {
        phi.iter()
            .fold(f64::NEG_INFINITY, |top, log| top.max(log[r]))
    });
    phi.iter_mut()
        .for_each(|log| *log = std::array::from_fn(|r| (log[r] - top[r]).exp()));
    let underflow_bound = top.map(|top| if top.is_finite() { TINY } else { f64::INFINITY });
    NodeF64 {
        phi,
        log_scale: top,
        underflow_bound,
    }
}

/// ψ = W φ, for a matrix in panels.
fn mix<'a>(panels: impl Iterator<Item = &'a [f64]>, phi: &[Lane], channels: usize) -> Vec<Lane> {
    let mut psi = Vec::with_capacity(channels + PANEL);
    for panel in panels {
        let sums = arch().dispatch(|| mix_panel(panel, phi));
        psi.extend((0..PANEL).map(|c| std::array::from_fn::<f64, ROWS, _>(|r| sums[r][c])));
    }
    psi.truncate(channels);
    psi
}

#[inline(always)]
fn mix_panel(panel: &[f64], phi: &[Lane]) -> [[f64; PANEL]; ROWS] {
    let mut sums = [[0.0; PANEL]; ROWS];
    for (line, phi) in panel.as_chunks::<PANEL>().0.iter().zip(phi) {
        for (sums, x) in sums.iter_mut().zip(phi) {
            sums.iter_mut().zip(line).for_each(|(sum, w)| *sum += w * x);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Kind;

    /// A tree that is far less likely than the others loses as much less.
    #[test]
    fn trees_lose_by_their_share() {
        let classes = vec![0.5, 0.5, 0.75, 0.25];
        let wide = ScaledF64 {
            trees: Vec::new(),
            joint: Vec::new(),
            classes,
        };
        let top = |log_scale, underflow_bound| NodeF64 {
            phi: vec![[1.0; ROWS]],
            log_scale: [log_scale; ROWS],
            underflow_bound: [underflow_bound; ROWS],
        };
        let small = (-20.0f64).exp();
        let scores = wide
            .root(2, &[top(-5.0, 1e-12), top(-25.0, 1e-3)], 3)
            .unwrap();
        let exact = [0.5 + 0.5 * small, 0.75 + 0.25 * small].map(|sum| sum.ln() - 5.0);
        let close = |(ours, exact): (&f64, &f64)| (ours - exact).abs() < 1e-12;
        assert!(scores.iter().zip(&exact).all(close), "{scores:?} {exact:?}");
        assert!(
            wide.root(2, &[top(-5.0, 1e-3), top(-25.0, 1e-12)], 3)
                .is_none()
        );
        assert!(
            wide.root(2, &[top(-5.0, 1e-12), top(-5.0, 1e-8)], 3)
                .is_none()
        );
        // Of one, of a half, and of next to nothing.
        let share = |weight, bound| {
            let classes = vec![1.0, weight];
            let wide = ScaledF64 {
                classes,
                ..wide.clone()
            };
            wide.root(2, &[top(-5.0, bound)], 3).is_some()
        };
        assert!(share(1.0, 9e-10) && !share(1.0, 1.1e-9));
        assert!(share(0.5, 4e-10) && !share(0.5, 6e-10));
        assert!(share(1e-280, 0.0) && !share(1e-285, 0.0));
    }

    /// φ, scale and bound of a window, from the definitions.
    #[test]
    fn a_window_is_the_product_of_its_children() {
        let table = Structure::table(&[Kind::Gaussian; 3])
            .components(2)
            .window(3);
        let structure = table.channels([3]).build().unwrap();
        let weights = Weights::random(&structure, 2.0, 4);
        let (tree, own) = (&structure.trees[0], &weights.trees[0]);
        let levels = [MatricesF64::new(&own.levels[0])];
        let frame = [0.5f32, -2.0, 1.5];
        let joint: Vec<_> = own.families.iter().map(|_| None).collect();
        let families = (&own.families[..], &joint[..]);
        let node = forward_tree(tree, families, &levels, &[&frame; ROWS]);
        let (mut phi, mut log_scale, mut bound) = ([1.0f64; 3], 0.0, 0.0);
        for (j, position) in tree.positions.iter().enumerate() {
            let family = &own.families[position.family as usize];
            let logs = [0, 1].map(|d| log_leaf(family, &position.inputs, &frame, d));
            let matrix = tree.levels[0].weight_of[j] as usize;
            let largest = logs[0].max(logs[1]);
            for (c, phi) in phi.iter_mut().enumerate() {
                let row = own.levels[0].log_row(matrix, c);
                let both = row.iter().zip(&logs);
                *phi *= both.map(|(w, log)| (w + log - largest).exp()).sum::<f64>();
            }
            let top = phi.iter().copied().fold(0.0, f64::max);
            phi.iter_mut().for_each(|phi| *phi /= top);
            log_scale += largest + top.ln();
            bound = (bound + TINY + TINY) / top;
        }
        for r in 0..ROWS {
            let close = |(c, exact): (usize, &f64)| (node.phi[c][r] - exact).abs() < 1e-12;
            assert!(phi.iter().enumerate().all(close), "{phi:?}");
            assert!((node.log_scale[r] - log_scale).abs() < 1e-12);
            assert!((node.underflow_bound[r] / bound - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn classes_that_share_nothing_read_their_own_channel() {
        let table = Structure::table(&[Kind::Gaussian; 2])
            .components(2)
            .window(2);
        let table = table.channels([2]).classes(2).build().unwrap();
        let structure = table.with_identity_classes().unwrap();
        let weights = Weights::random(&structure, 1.0, 4);
        let wide = ScaledF64::new(&structure, &weights);
        assert_eq!(wide.classes, [1.0, 0.0, 0.0, 1.0]);
    }
}
