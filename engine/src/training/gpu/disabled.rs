//! Stands in for training on a GPU where the feature `cuda` is not built in.

use crate::device::Precision;
use crate::error::{Error, Result};
use crate::layers::weights::{Prepared, Weights};
use crate::model::Model;
use crate::training::data::Data;
use crate::training::loss::Loss;
use crate::training::memory::Moments;
use crate::training::settings::Settings;

fn none<T>() -> Result<T> {
    Err(Error::Device(
        "this program was built without the feature `cuda`".into(),
    ))
}

/// Is never made.
pub struct GpuTraining(());

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
impl GpuTraining {
    pub fn new(
        _: (usize, Precision),
        _: &Model,
        _: &Prepared,
        _: &Settings,
        _: &Placing<'_>,
    ) -> Result<Self> {
        none()
    }

    pub fn set_memory<'a>(
        &self,
        _: &Weights,
        _: impl Fn(Option<(usize, usize)>) -> &'a Moments,
    ) -> Result<()> {
        none()
    }

    pub fn learn_leaves(&mut self, _: &Weights, _: &[Vec<Vec<Moments>>]) -> Result<()> {
        none()
    }

    pub fn fetch_leaves(&self, _: &mut Weights, _: &mut [Vec<Vec<Moments>>]) -> Result<()> {
        none()
    }

    pub fn fetch(
        &self,
        _: &Weights,
        _: impl FnMut(Option<(usize, usize)>, usize, [f32; 3]),
    ) -> Result<()> {
        none()
    }

    pub fn activation_bytes(&self) -> (usize, usize) {
        (0, 0)
    }

    pub fn keep_data(&mut self, _: &Data<'_>, _: usize) -> Result<()> {
        none()
    }

    pub fn forget_data(&mut self) {}

    pub fn max_steps(&self) -> usize {
        1
    }

    pub fn advance(&mut self, _: &Data<'_>, _: usize, _: &[u32]) -> Result<()> {
        none()
    }

    pub fn losses(&self) -> Result<Vec<(Loss, usize)>> {
        none()
    }
}
