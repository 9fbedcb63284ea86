//! The way back from the classes to the tops of the trees, and the gradient of the class rows.
//! The equations are those of `class_root`.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::{Panel, padded};
use crate::circuit::activations::{Activations, Buffers, Root, fit};
use crate::layers::mixing_gradient::{MatrixShape, Scratch, Segment, with_mixed};
use crate::layers::scaled_rows::TINY;
use crate::layers::weights::Prepared;
use crate::rows::batch::{CHUNK, bits};
use crate::structure::{ClassRows, Structure, Tree};

impl Activations {
    /// dψ of the classes, and dφ of the tops of the trees.
    pub fn root_backward(&mut self, s: &Structure, prepared: &Prepared, output_gradients: &[f32]) {
        match s.class_rows {
            ClassRows::Mixing => self.mixing_backward(s, prepared, output_gradients),
            ClassRows::Identity => self.identity_backward(&s.trees[0], output_gradients),
        }
    }

    fn mixing_backward(&mut self, s: &Structure, prepared: &Prepared, output_gradients: &[f32]) {
        let (b_count, k) = (self.samples, s.classes);
        let (tops_padded, k_padded) = (padded(s.root_channels()), padded(k));
        let Root {
            psi,
            dpsi,
            dphi,
            factor,
            ..
        } = &mut self.root;
        fit(dpsi, b_count * k_padded);
        fit(dphi, b_count * tops_padded);
        for b in 0..b_count {
            let row = &mut dpsi[b * k_padded..(b + 1) * k_padded];
            row.fill(0.0);
            for y in 0..k {
                let (psi, gradient) = (psi[b * k_padded + y], output_gradients[b * k + y]);
                row[y] = if psi > TINY { gradient / psi } else { 0.0 };
            }
        }
        prepared.classes.backward(arch(), 0, b_count, dpsi, dphi);
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
                    let from = &dphi[b * tops_padded + left..][..channels];
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

    /// Sets φ of the top to one and dφ to the output gradients: their product is all that the classes' own products read.
    fn identity_backward(&mut self, tree: &Tree, output_gradients: &[f32]) {
        let (k, width) = (tree.top_channels(), padded(tree.top_channels()));
        let top = &self.rows[0].layers[tree.levels.len()];
        let Buffers { phi, dphi, .. } = &mut self.layers[0][tree.levels.len()];
        fit(dphi, top.rows() * width);
        for word in 0..self.rows[0].words {
            for (row, bit) in bits(top.mask[word]).enumerate() {
                let place = (top.first[word] + row) * width;
                phi[place..place + width].fill(1.0);
                dphi[place..place + width].fill(0.0);
                dphi[place..place + k]
                    .copy_from_slice(&output_gradients[(word * CHUNK + bit) * k..][..k]);
            }
        }
    }

    /// dW of one panel of the class rows.
    pub fn class_gradient(&self, scratch: &mut Scratch, s: &Structure, panel: Panel) {
        let all = Segment {
            count: self.samples,
            phi: &self.root.phi,
            dpsi: &self.root.dpsi,
        };
        let shape = MatrixShape {
            columns: s.root_channels(),
            padded_rows: padded(s.classes),
        };
        with_mixed(shape, std::iter::once(all), |mixed| {
            mixed.gradient(arch(), panel, scratch, [&[], &[]]);
        });
    }
}
