//! The factors of leaves in a model file: (coordinates, R, M) for each family that has them.

use crate::error::Result;
use crate::layers::leaf::{Factors, Family};
use crate::layers::weights::TreeWeights;
use crate::model::tensor_file::{Tensor, Tensors};
use std::collections::BTreeMap;

fn name_of(t: usize, f: usize) -> String {
    format!("tree{t}.leaves{f}.loadings")
}

/// Adds those of tree t.
pub(super) fn insert_factors(t: usize, tree: &TreeWeights, tensors: &mut BTreeMap<String, Tensor>) {
    for (f, family) in tree.families.iter().enumerate() {
        if let Some(Factors { rank, loadings }) = &family.factors {
            let shape = [family.coordinates.len(), *rank, family.components];
            let tensor = Tensor::floats(&shape, loadings.iter().copied());
            tensors.insert(name_of(t, f), tensor);
        }
    }
}

/// Those of family f of tree t, if it has any; the model's `check` says whether the numbers can be used.
pub(super) fn take_factors(
    tensors: &mut Tensors<'_>,
    (t, f): (usize, usize),
    family: &Family,
) -> Result<Option<Factors>> {
    let name = name_of(t, f);
    let Some(shape) = tensors.shape_of(&name) else {
        return Ok(None);
    };
    let rank = shape.get(1).copied().unwrap_or(0);
    let shape = [family.coordinates.len(), rank, family.components];
    let loadings = tensors.floats(&name, Some(&shape))?;
    Ok(Some(Factors { rank, loadings }))
}
