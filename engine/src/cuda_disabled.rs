//! Stands in for the GPU where the feature `cuda` is not built in: there is none.

use crate::batch::Batch;
use crate::device::{Precision, Scores, Upward};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::model::Model;
use crate::optim::Moments;
use crate::settings::{Data, Settings};
use crate::structure::Structure;
use crate::weights::{Prepared, Weights};

fn none<T>() -> Result<T> {
    Err(Error::Device("this program was built without the feature `cuda`".into()))
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
pub struct Scoring(());
/// Is never made.
pub struct Training(());

/// Where numbers of a row go, and how they are scaled.
#[allow(dead_code)]
pub struct Placing<'a> {
    /// (shifts, width): places in the frame, −1 outside.
    pub places: &'a [i32],
    /// (width).
    pub offset: &'a [f32],
    /// (width).
    pub scale: &'a [f32],
}

#[allow(missing_docs)]
impl Scoring {
    pub fn new(_: (usize, Precision), _: &Structure, _: &Weights, _: &Prepared, _: usize, _: bool) -> Result<Self> {
        none()
    }

    pub fn lay(&mut self, _: &Batch) -> Result<()> {
        none()
    }

    pub fn queue(&mut self, _: Upward) -> Result<()> {
        none()
    }

    pub fn wait(&self) -> Result<()> {
        none()
    }

    pub fn scores(&self) -> Result<Scores> {
        none()
    }

    pub fn flows(&self, _: &[f32]) -> Result<Vec<Vec<f32>>> {
        none()
    }

    pub fn activations(&self) -> Result<Vec<Vec<Vec<f32>>>> {
        none()
    }
}

#[allow(missing_docs)]
impl Training {
    pub fn new(_: (usize, Precision), _: &Model, _: &Prepared, _: &Settings, _: &Placing<'_>) -> Result<Self> {
        none()
    }

    pub fn set_memory<'a>(&self, _: &Weights, _: impl Fn(Option<(usize, usize)>) -> &'a Moments) -> Result<()> {
        none()
    }

    pub fn learn_leaves(&mut self, _: &Weights, _: &[Vec<Vec<Moments>>]) -> Result<()> {
        none()
    }

    pub fn fetch_leaves(&self, _: &mut Weights, _: &mut [Vec<Vec<Moments>>]) -> Result<()> {
        none()
    }

    pub fn fetch(&self, _: &Weights, _: impl FnMut(Option<(usize, usize)>, usize, [f32; 3])) -> Result<()> {
        none()
    }

    pub fn activation_bytes(&self) -> (usize, usize) {
        (0, 0)
    }

    pub fn keep_data(&mut self, _: &Data<'_>, _: usize) -> Result<()> {
        none()
    }

    pub fn forget_data(&mut self) {}

    pub fn most(&self) -> usize {
        1
    }

    pub fn advance(&mut self, _: &Data<'_>, _: usize, _: &[u32]) -> Result<()> {
        none()
    }

    pub fn losses(&self) -> Result<Vec<(Loss, usize)>> {
        none()
    }
}
