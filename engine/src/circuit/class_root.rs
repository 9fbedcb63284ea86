//! The class root: from the tops of the trees to log P(x_o|y), and down again.
//!
//! Where class rows mix, the tops of all trees stand side by side in one row and meet one more matrix. Where they are
//! the identity, a class is a channel of the top product and shares nothing with the others: likelihoods may lie
//! hundreds of nats apart, too far for the mantissas of one row, so that product is taken class by class:
//!
//! ```text
//! mixing     P(x|y) = Σ_a W[y,a] φ(a)                       dφ(a) = Σ_y W[y,a] seed(y) / ψ(y)
//! identity   log P(x|y) = Σ_j (log ψ_j(y) + log_scale_j)    dψ_j(y) = seed(y) / ψ_j(y)
//! ```

use crate::arithmetic::matmul::{arch, padded};
use crate::arithmetic::tasks::{for_each_task, in_pool};
use crate::circuit::activations::{Activations, Buffers, Keep, Root, fit};
use crate::layers::mixing_gradient::{Scratch, Segment, with_mixed};
use crate::layers::product::TINY;
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::{Dropped, Rows};
use crate::rows::batch::{Batch, CHUNK, bits};
use crate::structure::{ClassRows, Structure, Tree};

/// One chunk of samples at the root.
struct Chunk<'a> {
    word: usize,
    psi: &'a mut [f32],
    lost: &'a mut [f32],
    doubt: &'a mut [f32],
    scores: &'a mut [f64],
}

impl Activations {
    /// Goes up, leaving out what is missing or dropped (`dropped[tree][layer]`).
    pub fn forward(
        &mut self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
        dropped: &[Vec<Dropped>],
        keep: Keep,
    ) {
        self.rows.resize_with(s.trees.len(), Rows::default);
        in_pool(batch.rows * s.multiply_adds(), || {
            for (t, tree) in s.trees.iter().enumerate() {
                self.rows[t].needed(tree, batch, dropped.get(t).map_or(&[][..], Vec::as_slice));
            }
            self.forward_trees(s, prepared, batch, keep);
            self.root_forward(s, prepared);
        });
    }

    /// Goes up through every node, also where all is missing, and keeps everything.
    pub fn forward_dense(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch) {
        self.rows.resize_with(s.trees.len(), Rows::default);
        self.rows
            .iter_mut()
            .zip(&s.trees)
            .for_each(|(rows, tree)| rows.dense(tree, batch.rows));
        self.forward_trees(s, prepared, batch, Keep::Everything);
        self.root_forward(s, prepared);
    }

    /// log P(x_o | y) of the last upward pass, (B, K).
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
            self.root.lost[b],
        )
    }

    /// The part of P(x_o|y) of sample b that underflow may have taken, at most, (K); infinite where nothing is known.
    pub fn class_underflow_bounds(&self, classes: usize, b: usize) -> &[f32] {
        &self.root.doubt[b * classes..(b + 1) * classes]
    }

    /// Class scores from the tops of the trees.
    fn root_forward(&mut self, s: &Structure, prepared: &Prepared) {
        let (b_count, k) = (self.samples, s.classes);
        let (wide, k_wide, trees) = (padded(s.root_channels()), padded(k), s.trees.len());
        let Root {
            phi,
            factor,
            psi,
            lost,
            doubt,
            log_likelihood,
            ..
        } = &mut self.root;
        fit(phi, b_count * wide);
        fit(factor, b_count * trees);
        fit(psi, b_count * k_wide);
        lost.resize(b_count, 0.0);
        doubt.resize(b_count * k, 0.0);
        log_likelihood.resize(b_count * k, 0.0);
        let (rows, layers) = (&self.rows, &self.layers);
        let scores = log_likelihood
            .chunks_mut(CHUNK * k)
            .zip(lost.chunks_mut(CHUNK));
        let scores = scores
            .zip(doubt.chunks_mut(CHUNK * k))
            .zip(psi.chunks_mut(CHUNK * k_wide));
        let chunks = scores
            .enumerate()
            .map(|(word, (((scores, lost), doubt), psi))| Chunk {
                word,
                psi,
                lost,
                doubt,
                scores,
            });
        let tops = phi
            .chunks_mut(CHUNK * wide)
            .zip(factor.chunks_mut(CHUNK * trees));
        const LOG: usize = 1024; // what a logarithm costs, in multiply-adds
        let work = b_count * (wide * k_wide + k * LOG);
        for_each_task(
            work,
            chunks.zip(tops).collect(),
            |(chunk, (phi, factor))| match s.class_rows {
                ClassRows::Mixing => mix_tops(s, prepared, rows, layers, chunk, phi, factor),
                ClassRows::Identity => {
                    factor.fill(1.0);
                    multiply_classes(&s.trees[0], &rows[0], &layers[0], chunk, k);
                }
            },
        );
    }

    /// dψ of the classes, and dφ of the tops of the trees.
    pub fn root_backward(&mut self, s: &Structure, prepared: &Prepared, seeds: &[f32]) {
        match s.class_rows {
            ClassRows::Mixing => self.mixing_backward(s, prepared, seeds),
            ClassRows::Identity => self.identity_backward(&s.trees[0], seeds),
        }
    }

    fn mixing_backward(&mut self, s: &Structure, prepared: &Prepared, seeds: &[f32]) {
        let (b_count, k) = (self.samples, s.classes);
        let (wide, k_wide) = (padded(s.root_channels()), padded(k));
        let Root {
            psi,
            dpsi,
            dphi,
            factor,
            ..
        } = &mut self.root;
        fit(dpsi, b_count * k_wide);
        fit(dphi, b_count * wide);
        for b in 0..b_count {
            let row = &mut dpsi[b * k_wide..(b + 1) * k_wide];
            row.fill(0.0);
            for y in 0..k {
                let (psi, seed) = (psi[b * k_wide + y], seeds[b * k + y]);
                row[y] = if psi > TINY { seed / psi } else { 0.0 };
            }
        }
        prepared.classes.downward(arch(), 0, b_count, dpsi, dphi);
        let mut left = 0;
        for (t, tree) in s.trees.iter().enumerate() {
            let (channels, width) = (tree.top_channels(), padded(tree.top_channels()));
            let top = &self.rows[t].layers[tree.levels.len()];
            let buffers = &mut self.layers[t][tree.levels.len()];
            fit(&mut buffers.dphi, top.rows() * width);
            for word in 0..self.rows[t].words {
                for (row, bit) in bits(top.mask[word]).enumerate() {
                    let b = word * CHUNK + bit;
                    let factor = factor[b * s.trees.len() + t];
                    let from = &dphi[b * wide + left..][..channels];
                    let to = &mut buffers.dphi[(top.first[word] + row) * width..][..width];
                    to.fill(0.0);
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(to, from)| *to = from * factor);
                }
            }
            left += channels;
        }
    }

    /// Sets φ of the top to one and dφ to the seeds: their product is all that the classes' own products read.
    fn identity_backward(&mut self, tree: &Tree, seeds: &[f32]) {
        let (k, width) = (tree.top_channels(), padded(tree.top_channels()));
        let top = &self.rows[0].layers[tree.levels.len()];
        let Buffers { phi, dphi, .. } = &mut self.layers[0][tree.levels.len()];
        fit(dphi, top.rows() * width);
        for word in 0..self.rows[0].words {
            for (row, bit) in bits(top.mask[word]).enumerate() {
                let place = (top.first[word] + row) * width;
                phi[place..place + width].fill(1.0);
                dphi[place..place + width].fill(0.0);
                dphi[place..place + k].copy_from_slice(&seeds[(word * CHUNK + bit) * k..][..k]);
            }
        }
    }

    /// dW of one panel of the class rows.
    pub fn class_gradient(&self, scratch: &mut Scratch, s: &Structure, (c, wide): (usize, usize)) {
        let all = Segment {
            count: self.samples,
            phi: &self.root.phi,
            dpsi: &self.root.dpsi,
        };
        with_mixed(
            (s.root_channels(), padded(s.classes)),
            std::iter::once(all),
            |mixed| {
                mixed.gradient(arch(), (c, wide), scratch, [&[], &[]]);
            },
        );
    }
}

/// The tops side by side, mixed into classes.
fn mix_tops(
    s: &Structure,
    prepared: &Prepared,
    rows: &[Rows],
    layers: &[Vec<Buffers>],
    chunk: Chunk<'_>,
    phi: &mut [f32],
    factor: &mut [f32],
) {
    let Chunk {
        word,
        psi,
        lost,
        doubt,
        scores,
    } = chunk;
    let (count, k, trees) = (lost.len(), s.classes, s.trees.len());
    let (wide, k_wide) = (padded(s.root_channels()), padded(k));
    let mut scale = [0.0; CHUNK];
    for b in 0..count {
        let tops = tops_of(s, rows, layers, word, b);
        scale[b] = tops
            .iter()
            .map(|top| top.log_scale)
            .fold(f64::NEG_INFINITY, f64::max);
        lost[b] = if trees > 1 { TINY } else { 0.0 };
        let mut rest = &mut phi[b * wide..(b + 1) * wide];
        for (t, top) in tops.iter().enumerate() {
            let (part, after) = rest.split_at_mut(s.trees[t].top_channels());
            let by = (top.log_scale - scale[b]).exp() as f32;
            factor[b * trees + t] = by;
            lost[b] += top.lost * by;
            match top.phi {
                Some(values) => part
                    .iter_mut()
                    .zip(values)
                    .for_each(|(to, value)| *to = value * by),
                None => part.fill(by),
            }
            rest = after;
        }
        rest.fill(0.0);
    }
    prepared.classes.upward(arch(), 0, count, phi, psi);
    for b in 0..count {
        let seen = (0..trees).any(|t| {
            rows[t]
                .layers
                .last()
                .is_some_and(|l| l.mask[word] >> b & 1 == 1)
        });
        for y in 0..k {
            let psi = psi[b * k_wide + y];
            doubt[b * k + y] = if psi > TINY {
                lost[b] / psi
            } else {
                f32::INFINITY
            };
            scores[b * k + y] = if seen {
                f64::from(psi).ln() + scale[b]
            } else {
                0.0
            };
        }
    }
}

/// The product of the top's children, class by class. Eight factors, none below 10⁻³⁸, are within the reach of f64.
fn multiply_classes(tree: &Tree, rows: &Rows, layers: &[Buffers], chunk: Chunk<'_>, k: usize) {
    let Chunk {
        word,
        psi,
        lost,
        doubt,
        scores,
    } = chunk;
    let (l, k_wide) = (tree.levels.len(), padded(k));
    let (layer, buffers) = (&rows.layers[l - 1], &layers[l - 1]);
    scores.fill(0.0);
    doubt.fill(0.0);
    let mut products = vec![1.0f64; scores.len()];
    for children in tree.levels[l - 1].children[0].chunks(8) {
        for &j in children {
            let key = j as usize * rows.words + word;
            for (row, b) in (layer.first[key]..).zip(bits(layer.mask[key])) {
                for (y, &factor) in buffers.psi[row * k_wide..][..k].iter().enumerate() {
                    products[b * k + y] *= f64::from(factor);
                    doubt[b * k + y] += if factor > TINY {
                        buffers.lost[row] / factor
                    } else {
                        f32::INFINITY
                    };
                    scores[b * k + y] += buffers.log_scale[row];
                }
            }
        }
        scores
            .iter_mut()
            .zip(&products)
            .for_each(|(score, product)| *score += product.ln());
        products.fill(1.0);
    }
    for (b, lost) in lost.iter_mut().enumerate() {
        let (scores, psi) = (
            &scores[b * k..(b + 1) * k],
            &mut psi[b * k_wide..(b + 1) * k_wide],
        );
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        psi.fill(0.0);
        psi.iter_mut()
            .zip(scores)
            .for_each(|(psi, score)| *psi = (score - top).exp() as f32);
        let parts = psi
            .iter()
            .zip(&doubt[b * k..])
            .filter(|(psi, _)| **psi > 0.0);
        *lost = parts.map(|(psi, doubt)| psi * doubt).sum::<f32>() + TINY;
    }
}

/// The top of one tree for one sample; no φ where all of it is summed out: then it is one in every channel.
struct Top<'a> {
    phi: Option<&'a [f32]>,
    log_scale: f64,
    lost: f32,
}

fn tops_of<'a>(
    s: &Structure,
    rows: &[Rows],
    layers: &'a [Vec<Buffers>],
    word: usize,
    bit: usize,
) -> Vec<Top<'a>> {
    let top = |(t, tree): (usize, &Tree)| {
        let (layer, buffers) = (
            &rows[t].layers[tree.levels.len()],
            &layers[t][tree.levels.len()],
        );
        if layer.mask[word] >> bit & 1 == 0 {
            return Top {
                phi: None,
                log_scale: 0.0,
                lost: 0.0,
            };
        }
        let row = layer.first[word] + (layer.mask[word] & ((1 << bit) - 1)).count_ones() as usize;
        let (channels, wide) = (tree.top_channels(), padded(tree.top_channels()));
        let phi = Some(&buffers.phi[row * wide..][..channels]);
        Top {
            phi,
            log_scale: buffers.log_scale[row],
            lost: buffers.lost[row],
        }
    };
    s.trees.iter().enumerate().map(top).collect()
}
