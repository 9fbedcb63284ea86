//! Replaces LeNet in a build without the feature `networks`.

use crate::experiment::Experiment;
use crate::inputs::mnist::Mnist;
use crate::results::ResultFile;
use anyhow::{Result, bail};

/// Says what to build.
pub fn run(experiment: &Experiment, _: u64, _: &Mnist, _: &ResultFile, _: usize) -> Result<()> {
    bail!(
        "{} needs networks: build with --features networks",
        experiment.name
    )
}
