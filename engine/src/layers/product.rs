//! The product of a window's children, the paper's product pooling, in scaled numbers.
//!
//! A row of activations is `m · exp(log_scale)`: mantissas m in f32 whose largest lies in [½, 1), and one log-scale in
//! f64. Multiplying rows multiplies mantissas and adds log-scales; then the row is divided by a power of two, which
//! rounds nothing:
//!
//! ```text
//! φ(c) = 2⁻ᵉ Π_j ψ_j(c),     log_scale = Σ_j log_scale_j + e ln 2
//! ```
//!
//! Going back, the scale is a constant: `dψ_j(c) = dφ(c) 2⁻ᵉ Π_{k≠j} ψ_k(c)`; with many children the same as
//! `dφ(c) φ(c) / ψ_j(c)`.

use crate::layers::scaled_rows::{Scaled, Scales, TINY, UnderflowBound, rescale};
use crate::rows::batch::bits;
use pulp::{Simd, WithSimd};

/// Children whose raw product cannot underflow unseen before it is rescaled, and whose derivative needs no division.
pub const GROUP: usize = 4;

/// A child of a window, for the samples of one word.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// The samples that have it.
    pub mask: u64,
    /// Its first row in the window's stretch.
    pub first: usize,
}

/// The rows of a window, sample after sample.
struct WindowRows<'a> {
    children: &'a [Child],
    next: Vec<usize>, // each child's next row
    rows: Vec<usize>, // rows that hold the sample, in the order of the children
    whole: bool,      // every child has every sample
}

impl<'a> WindowRows<'a> {
    fn new(children: &'a [Child], mask: u64) -> Self {
        let next: Vec<usize> = children.iter().map(|child| child.first).collect();
        Self {
            children,
            rows: next.clone(),
            next,
            whole: children.iter().all(|child| child.mask == mask),
        }
    }

    /// Rows of the next sample; samples must be asked for in order.
    #[inline(always)]
    fn rows(&mut self, bit: usize) -> &[usize] {
        if self.whole {
            self.rows.copy_from_slice(&self.next);
            self.next.iter_mut().for_each(|next| *next += 1);
            return &self.rows;
        }
        self.rows.clear();
        for (child, next) in self.children.iter().zip(&mut self.next) {
            if child.mask >> bit & 1 == 1 {
                self.rows.push(*next);
                *next += 1;
            }
        }
        &self.rows
    }
}

/// φ of one window.
pub struct ProductForward<'a> {
    /// Padded channels.
    pub width: usize,
    /// The window's children.
    pub children: &'a [Child],
    /// The samples that have the window.
    pub mask: u64,
    /// ψ of all children, row after row.
    pub psi: &'a [f32],
    /// Log-scales of those rows.
    pub log_scale: &'a [f64],
    /// Their bounds.
    pub underflow_bound: &'a [UnderflowBound],
    /// The window's rows.
    pub phi: &'a mut [f32],
    /// Their scales.
    pub scales: Scales<'a>,
}

impl WithSimd for ProductForward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (psi, _) = S::as_simd_f32s(self.psi);
        let (phi, _) = S::as_mut_simd_f32s(self.phi);
        let vectors = self.width / S::F32_LANES;
        let mut window = WindowRows::new(self.children, self.mask);
        for (row, bit) in bits(self.mask).enumerate() {
            let rows = window.rows(bit);
            let out = &mut phi[row * vectors..(row + 1) * vectors];
            let mut so_far = Scaled {
                exponent: 0,
                underflow_bound: UnderflowBound::default(),
                inverse: 1.0,
            };
            for (index, group) in rows.chunks(GROUP).enumerate() {
                let top = multiply_rows(simd, out, psi, group, index == 0);
                let underflow_bound = group.iter().fold(so_far.underflow_bound, |sum, &row| {
                    sum.times(self.underflow_bound[row])
                });
                so_far = rescale(
                    simd,
                    out,
                    top,
                    Scaled {
                        underflow_bound,
                        ..so_far
                    },
                );
            }
            self.scales
                .put(row, so_far, rows.iter().map(|&row| self.log_scale[row]));
        }
    }
}

/// Rescales rows that already are the products of a window's children (at most [`GROUP`]), each child with all rows.
pub struct Rescale<'a> {
    /// Padded channels.
    pub width: usize,
    /// The window's children.
    pub children: &'a [Child],
    /// Log-scales of the children's rows.
    pub log_scale: &'a [f64],
    /// Their bounds.
    pub underflow_bound: &'a [UnderflowBound],
    /// The window's rows.
    pub phi: &'a mut [f32],
    /// Their scales.
    pub scales: Scales<'a>,
}

impl WithSimd for Rescale<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (phi, _) = S::as_mut_simd_f32s(self.phi);
        for (row, values) in phi.chunks_exact_mut(self.width / S::F32_LANES).enumerate() {
            let mut top = simd.splat_f32s(0.0);
            values
                .iter()
                .for_each(|&value| top = simd.max_f32s(top, value));
            let nothing = UnderflowBound::default();
            let underflow_bound = self.children.iter().fold(nothing, |sum, child| {
                sum.times(self.underflow_bound[child.first + row])
            });
            let before = Scaled {
                exponent: 0,
                underflow_bound,
                inverse: 1.0,
            };
            let scaled = rescale(simd, values, simd.reduce_max_f32s(top), before);
            self.scales.put(
                row,
                scaled,
                self.children
                    .iter()
                    .map(|child| self.log_scale[child.first + row]),
            );
        }
    }
}

/// Writes (or multiplies by) the product of up to four rows, from the left; returns the largest number of the result.
#[inline(always)]
fn multiply_rows<S: Simd>(
    simd: S,
    out: &mut [S::f32s],
    psi: &[S::f32s],
    group: &[usize],
    fresh: bool,
) -> f32 {
    let n = out.len();
    let row = |row: usize| &psi[row * n..(row + 1) * n];
    let mut top = simd.splat_f32s(0.0);
    match (group, fresh) {
        (&[a, b, c, d], true) => {
            let (a, b, c, d) = (row(a), row(b), row(c), row(d));
            for v in 0..n {
                out[v] = simd.mul_f32s(simd.mul_f32s(simd.mul_f32s(a[v], b[v]), c[v]), d[v]);
                top = simd.max_f32s(top, out[v]);
            }
        }
        (&[a, b], true) => {
            let (a, b) = (row(a), row(b));
            for v in 0..n {
                out[v] = simd.mul_f32s(a[v], b[v]);
                top = simd.max_f32s(top, out[v]);
            }
        }
        _ => {
            if fresh {
                out.fill(simd.splat_f32s(1.0));
            }
            for &child in group {
                out.iter_mut()
                    .zip(row(child))
                    .for_each(|(out, &value)| *out = simd.mul_f32s(*out, value));
            }
            out.iter()
                .for_each(|&value| top = simd.max_f32s(top, value));
        }
    }
    simd.reduce_max_f32s(top)
}

/// Turns ψ of one window's children into dψ.
pub struct ProductBackward<'a> {
    /// Padded channels.
    pub width: usize,
    /// The window's children.
    pub children: &'a [Child],
    /// The samples that have the window.
    pub mask: u64,
    /// φ of the window.
    pub phi: &'a [f32],
    /// dφ of the window.
    pub dphi: &'a [f32],
    /// 2⁻ᵉ of the window's rows.
    pub inverse: &'a [f32],
    /// ψ of all children before, dψ after.
    pub psi: &'a mut [f32],
    /// φ is not the product of ψ, only `φ dφ` is to be trusted.
    pub divide: bool,
}

impl WithSimd for ProductBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (phi, _) = S::as_simd_f32s(self.phi);
        let (dphi, _) = S::as_simd_f32s(self.dphi);
        let (psi, _) = S::as_mut_simd_f32s(self.psi);
        let n = self.width / S::F32_LANES;
        let mut window = WindowRows::new(self.children, self.mask);
        for (row, bit) in bits(self.mask).enumerate() {
            let rows = window.rows(bit);
            let (phi, dphi) = (&phi[row * n..(row + 1) * n], &dphi[row * n..(row + 1) * n]);
            let scale = simd.splat_f32s(self.inverse[row]);
            match *rows {
                _ if self.divide => divide_rows(simd, phi, dphi, psi, rows),
                [a, b, c, d] => {
                    let [a, b, c, d] = four_rows(psi, [a, b, c, d], n);
                    for v in 0..n {
                        let (x, y, z, w) = (a[v], b[v], c[v], d[v]);
                        let d_out = simd.mul_f32s(dphi[v], scale);
                        let left = simd.mul_f32s(d_out, simd.mul_f32s(z, w));
                        let right = simd.mul_f32s(d_out, simd.mul_f32s(x, y));
                        a[v] = simd.mul_f32s(left, y);
                        b[v] = simd.mul_f32s(left, x);
                        c[v] = simd.mul_f32s(right, w);
                        d[v] = simd.mul_f32s(right, z);
                    }
                }
                [a, b] => {
                    for v in 0..n {
                        let (x, y) = (psi[a * n + v], psi[b * n + v]);
                        let d_out = simd.mul_f32s(dphi[v], scale);
                        psi[a * n + v] = simd.mul_f32s(d_out, y);
                        psi[b * n + v] = simd.mul_f32s(d_out, x);
                    }
                }
                [a] => {
                    for v in 0..n {
                        psi[a * n + v] = simd.mul_f32s(dphi[v], scale);
                    }
                }
                _ => divide_rows(simd, phi, dphi, psi, rows),
            }
        }
    }
}

/// Four rows to be written at once; their numbers rise, as those of a window's children do.
#[inline(always)]
fn four_rows<T>(values: &mut [T], rows: [usize; 4], n: usize) -> [&mut [T]; 4] {
    let (head, d) = values.split_at_mut(rows[3] * n);
    let (head, c) = head.split_at_mut(rows[2] * n);
    let (head, b) = head.split_at_mut(rows[1] * n);
    [
        &mut head[rows[0] * n..(rows[0] + 1) * n],
        &mut b[..n],
        &mut c[..n],
        &mut d[..n],
    ]
}

/// `dψ_j = φ dφ / ψ_j`, and 0 where ψ_j is not trusted.
#[inline(always)]
fn divide_rows<S: Simd>(
    simd: S,
    phi: &[S::f32s],
    dphi: &[S::f32s],
    psi: &mut [S::f32s],
    rows: &[usize],
) {
    let tiny = simd.splat_f32s(TINY);
    let zero = simd.splat_f32s(0.0);
    for &row in rows {
        for v in 0..phi.len() {
            let value = &mut psi[row * phi.len() + v];
            let flow = simd.mul_f32s(phi[v], dphi[v]);
            let safe = simd.max_f32s(*value, tiny);
            let trusted = simd.greater_than_f32s(*value, tiny);
            *value = simd.select_f32s(trusted, simd.div_f32s(flow, safe), zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::instructions::arch;

    /// Samples 1, 3 and 4 have the window, and its second child only the last two of them.
    #[test]
    fn a_sample_has_the_rows_of_its_children() {
        let child = |mask, first| Child { mask, first };
        let children = [child(0b11010, 10), child(0b11000, 20), child(0b00010, 30)];
        let mut window = WindowRows::new(&children, 0b11010);
        assert_eq!(window.rows(1), [10, 30]);
        assert_eq!(window.rows(3), [11, 20]);
        assert_eq!(window.rows(4), [12, 21]);
        let mut whole = WindowRows::new(&children[..1], 0b11010);
        assert_eq!([1, 3, 4].map(|bit| whole.rows(bit)[0]), [10, 11, 12]);
    }

    /// Products of 1 to 9 children, and their derivatives, the naive way in f64.
    #[test]
    fn product_and_derivative() {
        for count in 1..=9usize {
            let width = 16;
            let value = |row: usize, c: usize| 0.01 + ((row * 7 + c * 3) % 11) as f64 / 11.0;
            let psi: Vec<f32> = (0..count * width)
                .map(|i| value(i / width, i % width) as f32)
                .collect();
            let children: Vec<Child> = (0..count)
                .map(|first| Child {
                    mask: 1 << 5,
                    first,
                })
                .collect();
            let (mut phi, mut log_scale, mut underflow_bound, mut inverse) =
                (vec![0.0; width], [0.0], [UnderflowBound::default()], [0.0]);
            arch().dispatch(ProductForward {
                width,
                children: &children,
                mask: 1 << 5,
                psi: &psi,
                log_scale: &vec![0.5; count],
                underflow_bound: &vec![UnderflowBound::default(); count],
                phi: &mut phi,
                scales: Scales {
                    log_scale: &mut log_scale,
                    underflow_bound: &mut underflow_bound,
                    inverse: &mut inverse,
                },
            });
            let exact = |c: usize| (0..count).map(|row| value(row, c)).product::<f64>();
            let shift = (log_scale[0] - 0.5 * count as f64).exp();
            for c in 0..width {
                assert!((f64::from(phi[c]) * shift / exact(c) - 1.0).abs() < 1e-5);
            }
            assert!(phi.iter().any(|&m| (0.5..1.0).contains(&m)));
            let dphi: Vec<f32> = (0..width).map(|c| 1.0 - c as f32 / 8.0).collect();
            let mut dpsi = psi.clone();
            let mask = 1 << 5;
            let (phi, dphi) = (&phi, &dphi);
            arch().dispatch(ProductBackward {
                width,
                children: &children,
                mask,
                phi,
                dphi,
                inverse: &inverse,
                psi: &mut dpsi,
                divide: false,
            });
            for (row, c) in (0..count).flat_map(|row| (0..width).map(move |c| (row, c))) {
                let naive = f64::from(dphi[c]) * exact(c) / value(row, c) / shift;
                assert!(
                    (f64::from(dpsi[row * width + c]) - naive).abs() < 1e-4 * naive.abs().max(1e-3)
                );
            }
        }
    }
}
