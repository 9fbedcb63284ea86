//! The weights of mixing as the kernel reads them: W itself, in panels, and ψ = W φ.

use crate::arithmetic::amx::{self, Left, Parts, Right, RightSide, Target};
use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::{PANEL, Panel, Product, Then, padded, panels};
use crate::layers::mixing::{Mixing, panel_place};
use crate::layers::softmax::Softmax;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// W itself, for the kernel.
#[derive(Clone, Debug, Default)]
pub struct Simplex {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    weights: Vec<f32>, // in panels of c: (matrices, A · padded C)
    least: Vec<f32>,   // by panel: its least number
}

impl Simplex {
    /// Computes W.
    pub fn new(mixing: &Mixing) -> Self {
        let (rows, columns) = (mixing.rows, mixing.columns);
        let mut simplex = Self {
            rows,
            columns,
            weights: vec![0.0; mixing.logits.len()],
            least: Vec::new(),
        };
        simplex.least = vec![0.0; simplex.panels().count()];
        simplex.update(mixing);
        simplex
    }

    /// The same after the logits have changed.
    pub fn update(&mut self, mixing: &Mixing) {
        let arch = arch();
        let logits = cut_panels(
            &mixing.logits,
            &self.panels().collect::<Vec<_>>(),
            self.columns,
        );
        let panels = self.panels_mut().into_par_iter().zip(logits);
        panels.for_each(|(panel, logits)| panel.normalise(arch, logits));
    }

    /// W as logits, log W: the free parameters of the same model.
    pub fn to_mixing(&self) -> Mixing {
        let matrices = self.weights.len() / (self.columns * padded(self.rows));
        Mixing::from_logits(matrices, self.rows, self.columns, |matrix, c, a| {
            self.weight(matrix, c, a).ln()
        })
    }

    /// W in panels, as training left it.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Sets W in panels.
    pub(crate) fn set_weights(&mut self, weights: &[f32]) {
        self.weights.copy_from_slice(weights);
        self.panels_mut().iter_mut().for_each(PanelMut::finish);
    }

    /// The least number of a matrix: no ψ of a φ whose largest is 1 is less.
    pub fn least(&self, matrix: usize) -> f32 {
        let panels = panels(padded(self.rows)).count();
        let own = &self.least[matrix * panels..(matrix + 1) * panels];
        own.iter().copied().fold(f32::INFINITY, f32::min)
    }

    /// The least number of every matrix.
    #[cfg(feature = "cuda")]
    pub(crate) fn least_of_all(&self) -> impl Iterator<Item = f32> {
        let matrices = self.weights.len() / (self.columns * padded(self.rows));
        (0..matrices).map(|matrix| self.least(matrix))
    }

    /// The panels of all matrices, in the order in which they lie.
    pub fn panels(&self) -> impl Iterator<Item = MatrixPanel> + use<> {
        let width = padded(self.rows);
        let matrices = self.weights.len() / (self.columns * width);
        let of_matrix = move |matrix| panels(width).map(move |rows| MatrixPanel { matrix, rows });
        (0..matrices).flat_map(of_matrix)
    }

    /// A: channels in.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All panels of all matrices.
    pub(crate) fn panels_mut(&mut self) -> Vec<PanelMut<'_>> {
        let shapes: Vec<_> = self.panels().collect();
        let (rows, columns) = (self.rows, self.columns);
        let panels = cut_panels_mut(&mut self.weights, &shapes, columns);
        let panel = |((weights, shape), least): ((_, MatrixPanel), _)| PanelMut {
            matrix: shape.matrix,
            rows: shape.rows,
            real: shape.rows.width.min(rows - shape.rows.first),
            weights,
            least,
        };
        let panels = panels.into_iter().zip(shapes).zip(&mut self.least);
        panels.map(panel).collect()
    }

    /// `W[c,a]` of a matrix.
    pub fn weight(&self, matrix: usize, c: usize, a: usize) -> f32 {
        self.weights
            [matrix * self.columns * padded(self.rows) + panel_place(self.rows, self.columns, c, a)]
    }

    /// ψ = W φ for `count` rows: φ is (count, padded A) and at most about one, ψ is (count, padded C).
    pub fn forward(&self, arch: Arch, matrix: usize, count: usize, phi: &[f32], psi: &mut [f32]) {
        let parts = &mut [ForwardRows { count, phi, psi }];
        self.forward_into(arch, matrix, parts, Then::Replace);
    }

    /// The same for all rows of one matrix, replacing or multiplying what is there.
    pub(crate) fn forward_into(
        &self,
        arch: Arch,
        matrix: usize,
        parts: &mut [ForwardRows<'_>],
        then: Then,
    ) {
        let (depth, width) = (self.columns, padded(self.rows));
        let weights = &self.weights[matrix * depth * width..][..depth * width];
        let done = self.forward_on_tiles(weights, parts, then);
        for panel in panels(width).filter(|panel| panel.first >= done) {
            let (left, columns) = (panel.first, panel.width);
            for part in parts.iter_mut().filter(|part| part.count > 0) {
                arch.dispatch(Product {
                    rows: part.count,
                    depth,
                    a: part.phi,
                    a_row: padded(depth),
                    a_step: 1,
                    b: &weights[left * depth..(left + columns) * depth],
                    b_step: columns,
                    out: &mut part.psi[left..],
                    out_row: width,
                    columns,
                    then,
                    next: &weights[(left + columns) * depth
                        ..((left + columns + PANEL) * depth).min(weights.len())],
                });
            }
        }
    }

    /// Whether rows are mixed on tiles: the more of them at a time, the better.
    pub(crate) fn on_tiles(&self) -> bool {
        amx::suits(self.columns, padded(self.rows))
    }

    /// The panels that tiles multiply, if there are tiles; returns how many columns those are.
    fn forward_on_tiles(
        &self,
        weights: &[f32],
        parts: &mut [ForwardRows<'_>],
        then: Then,
    ) -> usize {
        if !self.on_tiles() {
            return 0;
        }
        amx::with_left(|left| self.multiply_on_tiles(left, weights, parts, then));
        padded(self.rows) / PANEL * PANEL
    }

    /// Those panels, with a left side whose memory is used again.
    fn multiply_on_tiles(
        &self,
        left: &mut Left,
        weights: &[f32],
        parts: &mut [ForwardRows<'_>],
        then: Then,
    ) {
        // φ and W are at most one: scaled so far up that no part of theirs is too small for a tile.
        const SCALE: f32 = (1u64 << 60) as f32;
        let (depth, a_padded, width) = (self.columns, padded(self.columns), padded(self.rows));
        let phi: Vec<_> = parts
            .iter()
            .flat_map(|part| part.phi.chunks_exact(a_padded).take(part.count))
            .collect();
        left.rows(Parts::Three, a_padded, &phi, SCALE);
        let psi = parts
            .iter_mut()
            .flat_map(|part| part.psi.chunks_exact_mut(width).take(part.count));
        let right = RightSide {
            panels: width / PANEL,
            numbers: Right::Panels {
                depth,
                numbers: weights,
            },
            scale: SCALE,
            next: [&[], &[]],
        };
        let rows = &mut psi.collect::<Vec<_>>();
        amx::multiply(left, right, Target { rows, then });
    }

    /// The panels of one matrix.
    pub(crate) fn matrix_panels(&self, matrix: usize) -> Vec<&[f32]> {
        let (width, columns) = (padded(self.rows), self.columns);
        let weights = &self.weights[matrix * columns * width..];
        panels(width)
            .map(|panel| &weights[panel.first * columns..(panel.first + panel.width) * columns])
            .collect()
    }
}

/// Rows that one matrix mixes: φ is (count, padded A) and ψ is (count, padded C).
pub(crate) struct ForwardRows<'a> {
    pub count: usize,
    pub phi: &'a [f32],
    pub psi: &'a mut [f32],
}

/// One panel of W.
pub(crate) struct PanelMut<'a> {
    /// Its matrix.
    pub matrix: usize,
    /// Its rows c.
    pub rows: Panel,
    real: usize, // rows that are not padding
    /// (A, width).
    pub weights: &'a mut [f32],
    least: &'a mut f32,
}

impl PanelMut<'_> {
    /// New weights from their logits.
    fn normalise(mut self, arch: Arch, logits: &[f32]) {
        arch.dispatch(Softmax {
            logits,
            weights: self.weights,
            width: self.rows.width,
        });
        self.finish();
    }

    /// After new weights: notes the least, and zeroes the rows that only fill the panel up.
    pub fn finish(&mut self) {
        let mut least = [f32::INFINITY; PANEL];
        arch().dispatch(LeastOfRows {
            weights: self.weights,
            least: &mut least[..self.rows.width],
        });
        *self.least = least[..self.real]
            .iter()
            .copied()
            .fold(f32::INFINITY, f32::min);
        if self.real < self.rows.width {
            self.weights
                .chunks_exact_mut(self.rows.width)
                .for_each(|line| line[self.real..].fill(0.0));
        }
    }
}

/// The least number of every row c of a panel.
struct LeastOfRows<'a> {
    weights: &'a [f32],   // (A, width)
    least: &'a mut [f32], // (width)
}

impl WithSimd for LeastOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (weights, least) = (
            S::as_simd_f32s(self.weights).0,
            S::as_mut_simd_f32s(self.least).0,
        );
        for line in weights.chunks_exact(least.len()) {
            let both = least.iter_mut().zip(line);
            both.for_each(|(least, &w)| *least = simd.min_f32s(*least, w));
        }
    }
}

/// Where a panel lies.
#[derive(Clone, Copy, Debug)]
pub struct MatrixPanel {
    /// Its matrix.
    pub matrix: usize,
    /// Its rows c.
    pub rows: Panel,
}

/// Cuts numbers that lie in panels into one slice per panel.
pub(crate) fn cut_panels<'a>(
    mut numbers: &'a [f32],
    panels: &[MatrixPanel],
    columns: usize,
) -> Vec<&'a [f32]> {
    let mut all = Vec::new();
    for shape in panels {
        let panel;
        (panel, numbers) = numbers.split_at(shape.rows.width * columns);
        all.push(panel);
    }
    all
}

/// The same for numbers to be changed.
pub(crate) fn cut_panels_mut<'a>(
    mut numbers: &'a mut [f32],
    panels: &[MatrixPanel],
    columns: usize,
) -> Vec<&'a mut [f32]> {
    let mut all = Vec::new();
    for shape in panels {
        let panel;
        (panel, numbers) = numbers.split_at_mut(shape.rows.width * columns);
        all.push(panel);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::instructions::arch;
    use crate::layers::mixing_gradient::{MatrixShape, Scratch, Segment, with_mixed};
    use crate::random::{Purpose, Stream};

    fn random(seed: u64, n: usize) -> Vec<f32> {
        let mut stream = Stream::new(seed, Purpose::Weights, 0, 0);
        (0..n).map(|_| stream.uniform() as f32).collect()
    }

    #[test]
    fn all_three_products_equal_the_plain_sums() {
        for (rows, columns) in [
            (5, 3),
            (16, 16),
            (40, 17),
            (70, 33),
            (128, 64),
            (112, 150),
            (304, 80),
        ] {
            let mixing = Mixing::random(2, rows, columns, 2.0, (4, 0));
            let simplex = Simplex::new(&mixing);
            let (count, a_padded, c_padded) = (13, padded(columns), padded(rows));
            let phi = random(1, count * a_padded);
            let mut psi = vec![f32::NAN; count * c_padded];
            simplex.forward(arch(), 1, count, &phi, &mut psi);
            let dpsi = random(2, count * c_padded);
            let mut dphi = vec![f32::NAN; count * a_padded];
            simplex.backward(arch(), 1, count, &dpsi, &mut dphi);
            let w: Vec<Vec<f64>> = (0..rows)
                .map(|c| mixing.log_row(1, c).iter().map(|log| log.exp()).collect())
                .collect();
            let close = |ours: f32, exact: f64| {
                assert!(
                    (f64::from(ours) - exact).abs() < 1e-5 * exact.max(1.0),
                    "{ours} {exact}"
                )
            };
            for b in 0..count {
                for c in 0..rows {
                    close(
                        psi[b * c_padded + c],
                        (0..columns)
                            .map(|a| w[c][a] * f64::from(phi[b * a_padded + a]))
                            .sum(),
                    );
                }
                assert!(
                    psi[b * c_padded + rows..(b + 1) * c_padded]
                        .iter()
                        .all(|&x| x == 0.0),
                    "padding stays zero"
                );
                for a in 0..columns {
                    close(
                        dphi[b * a_padded + a],
                        (0..rows)
                            .map(|c| w[c][a] * f64::from(dpsi[b * c_padded + c]))
                            .sum(),
                    );
                }
            }
            let mut gradient = vec![f32::NAN; mixing.matrix_len()];
            let halves = [(0, 6), (6, 7)].map(|(first, count)| Segment {
                count,
                phi: &phi[first * a_padded..],
                dpsi: &dpsi[first * c_padded..],
            });
            let shape = MatrixShape {
                columns,
                padded_rows: c_padded,
            };
            with_mixed(shape, halves.into_iter(), |mixed| {
                for panel in panels(c_padded) {
                    let mut scratch = Scratch::default();
                    mixed.gradient(arch(), panel, &mut scratch, [&[], &[]]);
                    let end = panel.first + panel.width;
                    gradient[panel.first * columns..end * columns]
                        .copy_from_slice(&scratch.gradient);
                }
            });
            for (c, a) in (0..rows).flat_map(|c| (0..columns).map(move |a| (c, a))) {
                let exact = (0..count)
                    .map(|b| f64::from(phi[b * a_padded + a]) * f64::from(dpsi[b * c_padded + c]))
                    .sum();
                close(gradient[mixing.place(0, c, a)], exact);
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        let simplex = Simplex::new(&Mixing::from_weights(
            1,
            2,
            3,
            &[0.0, 0.5, 0.5, 1.0, 0.0, 0.0],
        ));
        let rows = [0, 1].map(|c| [0, 1, 2].map(|a| simplex.weight(0, c, a)));
        assert_eq!(rows, [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]);
    }

    #[test]
    fn the_least_is_that_of_a_matrix() {
        let mixing = Mixing::random(3, 70, 5, 2.0, (4, 0));
        let simplex = Simplex::new(&mixing);
        for matrix in 0..3 {
            let places = (0..70).flat_map(|c| (0..5).map(move |a| (c, a)));
            let all = places.map(|(c, a)| simplex.weight(matrix, c, a));
            assert_eq!(simplex.least(matrix), all.fold(f32::INFINITY, f32::min));
        }
    }
}
