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
