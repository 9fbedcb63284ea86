//! The class root: from the tops of the trees to log P(x_o|y), and back.
//!
//! Where class rows mix, the tops of all trees stand side by side in one row and meet one more matrix. Where they are
//! the identity, a class is a channel of the top product and shares nothing with the others: likelihoods may lie
//! hundreds of nats apart, too far for the mantissas of one row, so that product is taken class by class:
//!
//! ```text
//! mixing     P(x|y) = Σ_a W[y,a] φ(a)                       dφ(a) = Σ_y W[y,a] g(y) / ψ(y)
//! identity   log P(x|y) = Σ_j (log ψ_j(y) + log_scale_j)    dψ_j(y) = g(y) / ψ_j(y)
//! ```
//!
//! where g(y) = ∂ objective / ∂ log P(x|y) are the output gradients.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::padded;
use crate::arithmetic::tasks::{for_each_task, in_pool};
use crate::circuit::activations::{Activations, Buffers, Keep, Root, fit};
use crate::layers::scaled_rows::{TINY, UnderflowBound};
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::{ActiveNodes, Dropped};
use crate::rows::batch::{Batch, CHUNK, bits};
use crate::structure::{ClassRows, Structure, Tree};

/// One chunk of samples at the root; fields as in [`Root`].
struct Chunk<'a> {
    word: usize,
    phi: &'a mut [f32],
    factor: &'a mut [f32],
    psi: &'a mut [f32],
    underflow_bound: &'a mut [f32],
    relative_bound: &'a mut [f32],
    scores: &'a mut [f64],
}

impl Root {
    /// Makes the buffers of a forward pass as long as this many samples need.
    fn fit(&mut self, s: &Structure, samples: usize) {
        fit(&mut self.phi, samples * padded(s.root_channels()));
        fit(&mut self.factor, samples * s.trees.len());
        fit(&mut self.psi, samples * padded(s.classes));
        self.underflow_bound.resize(samples, 0.0);
        self.relative_bound.resize(samples * s.classes, 0.0);
        self.log_likelihood.resize(samples * s.classes, 0.0);
    }

    /// Cuts them into chunks of samples.
    fn chunks(&mut self, s: &Structure) -> Vec<Chunk<'_>> {
        let k = s.classes;
        let phi = self.phi.chunks_mut(CHUNK * padded(s.root_channels()));
        let factor = self.factor.chunks_mut(CHUNK * s.trees.len());
        let psi = self.psi.chunks_mut(CHUNK * padded(k));
        let bound = self.underflow_bound.chunks_mut(CHUNK);
        let relative = self.relative_bound.chunks_mut(CHUNK * k);
        let scores = self.log_likelihood.chunks_mut(CHUNK * k);
        let outputs = bound.zip(relative).zip(scores);
        let all = phi.zip(factor).zip(psi).zip(outputs);
        let mut chunks = Vec::new();
        for (word, (((phi, factor), psi), outputs)) in all.enumerate() {
            let ((underflow_bound, relative_bound), scores) = outputs;
            chunks.push(Chunk {
                word,
                phi,
                factor,
                psi,
                underflow_bound,
                relative_bound,
                scores,
            });
        }
        chunks
    }
}

impl Activations {
    /// The forward pass without what is missing or dropped (`dropped[tree][layer]`).
    pub fn forward(
        &mut self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
        dropped: &[Vec<Dropped>],
        keep: Keep,
    ) {
        in_pool(batch.rows * s.multiply_adds(), || {
            self.find_needed(s, batch, dropped);
            self.forward_trees(s, prepared, batch, keep);
            self.root_forward(s, prepared);
        });
    }

    /// Which nodes each sample needs.
    fn find_needed(&mut self, s: &Structure, batch: &Batch, dropped: &[Vec<Dropped>]) {
        self.rows.resize_with(s.trees.len(), ActiveNodes::default);
        for (t, (rows, tree)) in self.rows.iter_mut().zip(&s.trees).enumerate() {
            rows.needed(tree, batch, dropped.get(t).map_or(&[][..], Vec::as_slice));
        }
    }

    /// The forward pass through every node, also where all is missing. Keeps everything.
    pub fn forward_dense(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch) {
        self.rows.resize_with(s.trees.len(), ActiveNodes::default);
        self.rows
            .iter_mut()
            .zip(&s.trees)
            .for_each(|(rows, tree)| rows.dense(tree, batch.rows));
        self.forward_trees(s, prepared, batch, Keep::Everything);
        self.root_forward(s, prepared);
    }

    /// log P(x_o | y) of the last forward pass, (B, K).
    pub fn log_likelihood(&self) -> &[f64] {
        &self.root.log_likelihood
    }

    /// How far apart the log-scales of the trees are for sample b: factors of their tops under the root.
    pub fn root_factors(&self, trees: usize, b: usize) -> &[f32] {
        &self.root.factor[b * trees..(b + 1) * trees]
    }

    /// P(x_o|y) of sample b but for a constant, (K), and a bound on what underflow may have taken from each.
    pub fn class_mantissas(&self, classes: usize, b: usize) -> (&[f32], f32) {
        (
            &self.root.psi[b * padded(classes)..][..classes],
            self.root.underflow_bound[b],
        )
    }

    /// The part of P(x_o|y) of sample b that underflow may have taken, at most, (K); infinite where nothing is known.
    pub fn class_underflow_bounds(&self, classes: usize, b: usize) -> &[f32] {
        &self.root.relative_bound[b * classes..(b + 1) * classes]
    }

    /// Class scores from the tops of the trees.
    fn root_forward(&mut self, s: &Structure, prepared: &Prepared) {
        let (b_count, k) = (self.samples, s.classes);
        let (padded_tops, k_padded) = (padded(s.root_channels()), padded(k));
        self.root.fit(s, b_count);
        let pass = RootPass {
            s,
            prepared,
            rows: &self.rows,
            layers: &self.layers,
        };
        const LOG: usize = 1024; // what a logarithm costs, in multiply-adds
        let work = b_count * (padded_tops * k_padded + k * LOG);
        for_each_task(work, self.root.chunks(s), |chunk| match s.class_rows {
            ClassRows::Mixing => pass.mix_tops(chunk),
            ClassRows::Identity => {
                chunk.factor.fill(1.0);
                multiply_classes(&s.trees[0], &pass.rows[0], &pass.layers[0], chunk, k);
            }
        });
    }
}

/// A forward pass at a root that mixes.
struct RootPass<'a> {
    s: &'a Structure,
    prepared: &'a Prepared,
    rows: &'a [ActiveNodes],
    layers: &'a [Vec<Buffers>],
}

impl<'a> RootPass<'a> {
    /// The tops side by side, mixed into classes.
    fn mix_tops(&self, mut chunk: Chunk<'_>) {
        let count = chunk.underflow_bound.len();
        let tops: Vec<JoinedTops> = (0..count).map(|b| self.join_tops(&mut chunk, b)).collect();
        let classes = &self.prepared.classes;
        classes.forward(arch(), 0, count, chunk.phi, chunk.psi);
        for (b, tops) in tops.iter().enumerate() {
            self.score(&mut chunk, b, tops);
        }
    }

    /// Puts the tops of one sample side by side.
    fn join_tops(&self, chunk: &mut Chunk<'_>, b: usize) -> JoinedTops {
        let trees = self.s.trees.len();
        let padded_tops = padded(self.s.root_channels());
        let tops = self.tops_of(chunk.word, b);
        let scales = tops.iter().map(|top| top.log_scale);
        let scale = scales.fold(f64::NEG_INFINITY, f64::max);
        let mut bound = UnderflowBound {
            absolute: if trees > 1 { TINY } else { 0.0 },
            relative: 0.0,
        };
        let mut rest = &mut chunk.phi[b * padded_tops..(b + 1) * padded_tops];
        for (t, top) in tops.iter().enumerate() {
            let (part, after) = rest.split_at_mut(self.s.trees[t].top_channels());
            let by = (top.log_scale - scale).exp() as f32;
            chunk.factor[b * trees + t] = by;
            bound.absolute += top.underflow_bound.absolute * by;
            bound.relative = bound.relative.max(top.underflow_bound.relative);
            match top.phi {
                Some(values) => {
                    let both = part.iter_mut().zip(values);
                    both.for_each(|(to, value)| *to = value * by);
                }
                None => part.fill(by),
            }
            rest = after;
        }
        rest.fill(0.0);
        JoinedTops {
            log_scale: scale,
            underflow_bound: bound,
        }
    }

    /// Scores of one sample, and what underflow may have taken from each.
    fn score(&self, chunk: &mut Chunk<'_>, b: usize, tops: &JoinedTops) {
        let (k, k_padded) = (self.s.classes, padded(self.s.classes));
        let is_seen = |rows: &ActiveNodes| {
            let top = rows.layers.last();
            top.is_some_and(|top| top.mask[chunk.word] >> b & 1 == 1)
        };
        let seen = self.rows[..self.s.trees.len()].iter().any(is_seen);
        let bound = tops.underflow_bound;
        let mut largest = 0.0f32;
        for y in 0..k {
            let psi = chunk.psi[b * k_padded + y];
            largest = largest.max(psi);
            chunk.relative_bound[b * k + y] = if psi > 0.0 {
                bound.relative + bound.absolute / psi
            } else {
                f32::INFINITY
            };
            chunk.scores[b * k + y] = if seen {
                f64::from(psi).ln() + tops.log_scale
            } else {
                0.0
            };
        }
        chunk.underflow_bound[b] = bound.of_number(largest);
    }

    /// The tops of all trees for one sample.
    fn tops_of(&self, word: usize, bit: usize) -> Vec<Top<'a>> {
        let trees = self.s.trees.iter().enumerate();
        trees
            .map(|(t, tree)| self.top_of(t, tree, word, bit))
            .collect()
    }

    fn top_of(&self, t: usize, tree: &Tree, word: usize, bit: usize) -> Top<'a> {
        let layer = &self.rows[t].layers[tree.levels.len()];
        let buffers = &self.layers[t][tree.levels.len()];
        if layer.mask[word] >> bit & 1 == 0 {
            return Top {
                phi: None,
                log_scale: 0.0,
                underflow_bound: UnderflowBound::default(),
            };
        }
        let before = layer.mask[word] & ((1 << bit) - 1);
        let row = layer.first[word] + before.count_ones() as usize;
        let (channels, width) = (tree.top_channels(), padded(tree.top_channels()));
        Top {
            phi: Some(&buffers.phi[row * width..][..channels]),
            log_scale: buffers.log_scale[row],
            underflow_bound: buffers.underflow_bound[row],
        }
    }
}

/// The top of one tree for one sample; no φ where all of it is summed out: then it is one in every channel.
struct Top<'a> {
    phi: Option<&'a [f32]>,
    log_scale: f64,
    underflow_bound: UnderflowBound,
}

/// What the tops of all trees have in common, for one sample.
struct JoinedTops {
    log_scale: f64,
    underflow_bound: UnderflowBound,
}

/// The product of the top's children, class by class. Eight factors, none below 10⁻³⁸, are within the reach of f64.
fn multiply_classes(
    tree: &Tree,
    rows: &ActiveNodes,
    layers: &[Buffers],
    chunk: Chunk<'_>,
    k: usize,
) {
    let (l, k_padded) = (tree.levels.len(), padded(k));
    let (layer, buffers) = (&rows.layers[l - 1], &layers[l - 1]);
    chunk.scores.fill(0.0);
    chunk.relative_bound.fill(0.0);
    let mut products = vec![1.0f64; chunk.scores.len()];
    for children in tree.levels[l - 1].children[0].chunks(8) {
        for &j in children {
            let key = j as usize * rows.words + chunk.word;
            for (row, b) in (layer.first[key]..).zip(bits(layer.mask[key])) {
                for (y, &factor) in buffers.psi[row * k_padded..][..k].iter().enumerate() {
                    products[b * k + y] *= f64::from(factor);
                    let UnderflowBound { absolute, relative } = buffers.underflow_bound[row];
                    chunk.relative_bound[b * k + y] += if factor > TINY {
                        relative + absolute / factor
                    } else {
                        f32::INFINITY
                    };
                    chunk.scores[b * k + y] += buffers.log_scale[row];
                }
            }
        }
        let both = chunk.scores.iter_mut().zip(&products);
        both.for_each(|(score, product)| *score += product.ln());
        products.fill(1.0);
    }
    for (b, bound) in chunk.underflow_bound.iter_mut().enumerate() {
        let psi = &mut chunk.psi[b * k_padded..(b + 1) * k_padded];
        let relative = &chunk.relative_bound[b * k..];
        *bound = scale_classes(&chunk.scores[b * k..(b + 1) * k], relative, psi);
    }
}

/// P(x|y) of one sample, divided by its largest; returns a bound on what underflow may have taken from any of them.
fn scale_classes(scores: &[f64], relative_bound: &[f32], psi: &mut [f32]) -> f32 {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    psi.fill(0.0);
    let both = psi.iter_mut().zip(scores);
    both.for_each(|(psi, score)| *psi = (score - top).exp() as f32);
    let parts = psi.iter().zip(relative_bound);
    let parts = parts.filter(|(psi, _)| **psi > 0.0);
    parts.map(|(psi, bound)| psi * bound).sum::<f32>() + TINY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::mixing::Mixing;
    use crate::model::Model;
    use crate::structure::Kind;

    #[test]
    fn classes_are_divided_by_the_likeliest() {
        let (scores, bounds) = ([-700.0, -702.0, -1400.0], [0.25, 0.5, f32::INFINITY]);
        let mut psi = [f32::NAN; 4];
        let bound = scale_classes(&scores, &bounds, &mut psi);
        let second = (-2.0f64).exp() as f32;
        assert_eq!(psi, [1.0, second, 0.0, 0.0]); // a class that is nothing bounds nothing
        assert!((bound - (0.25 + 0.5 * second)).abs() < 1e-7, "{bound}");
        assert_eq!(scale_classes(&scores, &[0.0; 3], &mut psi), TINY);
    }

    /// Where class rows are the identity, mantissas are those of the scores, for every sample.
    #[test]
    fn mantissas_of_classes_are_those_of_their_scores() {
        let table = Structure::table(&[Kind::Gaussian; 3]).components(4);
        let table = table.window(3).channels([3]).classes(3).build().unwrap();
        let structure = table.with_identity_classes().unwrap();
        let mut model = Model::random(structure, 2.0, 9);
        // Weights next to nothing, so that what is lost is not known relative to ψ.
        let logit = |j: usize, c: usize, a: usize| match (j + c + a) % 2 {
            0 => 0.1 * a as f32,
            _ => -70.0,
        };
        model.weights.trees[0].levels[0] = Mixing::from_logits(3, 3, 4, logit);
        let values: Vec<f32> = (0..3 * 70).map(|i| (i as f32).sin()).collect();
        let (batch, mut activations) = (Batch::of_rows(3, &values), Activations::new());
        let prepared = Prepared::new(&model.weights);
        activations.forward(&model.structure, &prepared, &batch, &[], Keep::Scores);
        for (b, scores) in activations.log_likelihood().chunks(3).enumerate() {
            let (psi, lost) = activations.class_mantissas(3, b);
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (psi, score) in psi.iter().zip(scores) {
                assert!(
                    (f64::from(*psi) - (score - top).exp()).abs() < 1e-6,
                    "row {b}"
                );
            }
            assert!((TINY..1e-6).contains(&lost), "{lost}");
            let mut alone = Activations::new();
            let row = Batch::of_rows(3, batch.row(b));
            alone.forward(&model.structure, &prepared, &row, &[], Keep::Scores);
            assert_eq!(alone.class_mantissas(3, 0), (psi, lost), "row {b}");
            let bounds = activations.class_underflow_bounds(3, b);
            assert_eq!(alone.class_underflow_bounds(3, 0), bounds, "row {b}");
            let below = &alone.layers[0][0];
            for (y, &bound) in bounds.iter().enumerate() {
                let of_child = |j: usize| {
                    let UnderflowBound { absolute, relative } = below.underflow_bound[j];
                    assert!(absolute > 0.0);
                    relative + absolute / below.psi[j * padded(3) + y]
                };
                let sum: f32 = (0..3).map(of_child).sum();
                assert!(
                    sum > 0.0 && (bound / sum - 1.0).abs() < 1e-5,
                    "{bound:e} {sum:e}"
                );
            }
        }
    }

    /// At a root that mixes, what is lost is what the tops have lost, each by its share.
    #[test]
    fn the_root_loses_what_the_tops_have_lost() {
        for trees in [1, 2] {
            let groups = [vec![vec![0, 1], vec![2]], vec![vec![2, 1], vec![0]]];
            let table = Structure::table(&[Kind::Gaussian; 3]).components(4);
            let table = table.trees(groups[..trees].to_vec()).channels([3]);
            let structure = table.classes(3).build().unwrap();
            let mut model = Model::random(structure, 2.0, 9);
            for (t, tree) in model.weights.trees.iter_mut().enumerate() {
                let all = tree
                    .families
                    .iter_mut()
                    .flat_map(|family| &mut family.coordinates);
                all.for_each(|coordinate| {
                    coordinate
                        .free_mut()
                        .into_iter()
                        .for_each(|x| *x += t as f32)
                });
            }
            let values: Vec<f32> = (0..3 * 20).map(|i| 3.0 * (i as f32).sin()).collect();
            let (batch, mut activations) = (Batch::of_rows(3, &values), Activations::new());
            let prepared = Prepared::new(&model.weights);
            activations.forward(&model.structure, &prepared, &batch, &[], Keep::Scores);
            for b in 0..batch.rows {
                let tops = activations.layers.iter().map(|layers| &layers[1]);
                let scale = tops
                    .clone()
                    .map(|top| top.log_scale[b])
                    .fold(f64::MIN, f64::max);
                let (mut absolute, mut relative) = (f64::from(TINY) * (trees - 1) as f64, 0.0f32);
                for top in tops {
                    let bound = top.underflow_bound[b];
                    absolute += f64::from(bound.absolute) * (top.log_scale[b] - scale).exp();
                    relative = relative.max(bound.relative);
                }
                let (psi, lost) = activations.class_mantissas(3, b);
                let largest = psi.iter().copied().fold(0.0, f32::max);
                let close = |ours: f32, exact: f64| {
                    assert!(
                        (f64::from(ours) / exact - 1.0).abs() < 1e-5,
                        "{ours:e} {exact:e}"
                    )
                };
                close(lost, absolute + f64::from(relative * largest));
                let bounds = activations.class_underflow_bounds(3, b);
                for (psi, &bound) in psi.iter().zip(bounds) {
                    close(bound, f64::from(relative) + absolute / f64::from(*psi));
                }
            }
        }
    }
}
