//! A softmax over the columns of a matrix in panels.

use crate::arithmetic::math::exp;
use pulp::{Simd, WithSimd};

/// A softmax over a for every row c of one panel.
pub(crate) struct Softmax<'a> {
    pub logits: &'a [f32],
    pub weights: &'a mut [f32],
    pub width: usize,
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let vectors = self.width / S::F32_LANES;
        let (logits, _) = S::as_simd_f32s(self.logits);
        let (weights, _) = S::as_mut_simd_f32s(self.weights);
        for v in 0..vectors {
            let mut top = simd.splat_f32s(f32::NEG_INFINITY);
            for line in logits.chunks_exact(vectors) {
                top = simd.max_f32s(top, line[v]);
            }
            for (to, logits) in weights
                .chunks_exact_mut(vectors)
                .zip(logits.chunks_exact(vectors))
            {
                to[v] = exp(simd, simd.sub_f32s(logits[v], top));
            }
            normalise(simd, v, vectors, weights);
        }
    }
}

/// Divides every row of vector v by its sum.
#[inline(always)]
pub(crate) fn normalise<S: Simd>(simd: S, v: usize, vectors: usize, weights: &mut [S::f32s]) {
    let mut sum = simd.splat_f32s(0.0);
    for line in weights.chunks_exact(vectors) {
        sum = simd.add_f32s(sum, line[v]);
    }
    let scale = simd.div_f32s(simd.splat_f32s(1.0), sum);
    for to in weights.chunks_exact_mut(vectors) {
        to[v] = simd.mul_f32s(to[v], scale);
    }
}
