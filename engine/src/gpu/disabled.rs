//! Stands in for the GPU where the feature `cuda` is not built in: there is none.

use crate::circuit::outputs::{GpuScores, Outputs};
use crate::device::Precision;
use crate::error::{Error, Result};
use crate::layers::weights::{Prepared, Weights};
use crate::rows::batch::Batch;
use crate::structure::Structure;

fn none<T>() -> Result<T> {
    Err(Error::Device(
        "this program was built without the feature `cuda`".into(),
    ))
}

/// No GPUs.
pub fn count() -> Result<usize> {
    none()
}

/// None.
pub fn first_usable() -> Option<usize> {
    None
}

/// Is never made.
pub struct Returning(());

/// Is never made.
pub struct Scoring(());
#[allow(missing_docs)]
impl Scoring {
    pub fn new(
        _: (usize, Precision),
        _: &Structure,
        _: &Weights,
        _: &Prepared,
        _: usize,
        _: bool,
    ) -> Result<Self> {
        none()
    }

    pub fn load(&mut self, _: &Batch) -> Result<()> {
        none()
    }

    pub fn queue(&mut self, _: Outputs) -> Result<()> {
        none()
    }

    pub fn wait(&self) -> Result<()> {
        none()
    }

    pub fn send_back(&mut self) -> Result<Returning> {
        none()
    }

    pub fn scores(&self, _: Returning) -> Result<GpuScores> {
        none()
    }

    pub fn flows(&self, _: &[f32]) -> Result<Vec<Vec<f32>>> {
        none()
    }

    pub fn activations(&self) -> Result<Vec<Vec<Vec<f32>>>> {
        none()
    }
}
