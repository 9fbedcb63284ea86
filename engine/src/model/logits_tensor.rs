//! Mixing weights as a tensor of logits, of 32 bits or of 16.

use crate::layers::mixing::Mixing;
use crate::model::tensor_file::Tensor;

/// How many bits the logits of mixing weights have.
#[derive(Clone, Copy)]
pub(crate) enum Logits {
    /// 32.
    Single,
    /// 16.
    Half,
}

/// (matrices, C, A), without the padding of panels.
///
/// Half precision has 11 bits, so the largest logit of a row, which counts most, is moved to 0: the weights stay the same.
pub(crate) fn logits_in_rows(shape: &[usize], mixing: &Mixing, bits: Logits) -> Tensor {
    let rows = (0..mixing.matrices).flat_map(|matrix| (0..mixing.rows).map(move |c| (matrix, c)));
    let row = |(matrix, c)| (0..mixing.columns).map(move |a| mixing.logit(matrix, c, a));
    match bits {
        Logits::Single => Tensor::floats(shape, rows.flat_map(row)),
        Logits::Half => Tensor::halves(
            shape,
            rows.flat_map(|at| {
                let top = row(at).fold(f32::NEG_INFINITY, f32::max);
                row(at).map(move |logit| logit - top)
            }),
        ),
    }
}

/// Mixing weights from their logits.
pub(crate) fn mixing_from(logits: Vec<f32>, [matrices, rows, columns]: [usize; 3]) -> Mixing {
    let mut logits = logits.into_iter();
    Mixing::from_logits(matrices, rows, columns, |_, _, _| {
        logits.next().unwrap_or(f32::NAN)
    })
}
