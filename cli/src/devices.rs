//! What computes: `--device` and `--precision`, and kernels kept from run to run.

use crate::mistake::mistake;
#[cfg(feature = "cuda")]
use crate::models;
use anyhow::Result;
#[cfg(feature = "cuda")]
use std::path::PathBuf;
use sumout::Model;
use sumout::device::{Device, Precision};
use sumout::queries::predictor::Predictor;

/// What computes.
#[derive(Clone, Debug, clap::Args)]
pub struct Chosen {
    /// What computes: cpu, cuda, cuda:1 (the second GPU), or auto (the first GPU that can be used, else the processor)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// How a GPU multiplies: f32, or tf32 on its tensor cores [default: tf32 to train, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<String>,
}

impl Chosen {
    /// What was asked for, where it is not the usual.
    pub fn words(&self) -> (Option<String>, Option<String>) {
        (
            Some(self.device.clone()).filter(|device| device != "cpu"),
            self.precision.clone(),
        )
    }

    /// The device, ready to be used; `usual` is the precision where none is asked for.
    pub fn ready(&self, usual: Precision) -> Result<(Device, Precision)> {
        let device = match self.device.as_str() {
            "auto" => sumout::gpu::first_usable().map_or(Device::Cpu, Device::Cuda),
            name => name
                .parse()
                .map_err(|error: sumout::Error| mistake(error.to_string()))?,
        };
        let precision = match &self.precision {
            Some(name) => name
                .parse()
                .map_err(|error: sumout::Error| mistake(error.to_string()))?,
            None => usual,
        };
        if let Device::Cuda(ordinal) = device {
            keep_kernels(ordinal, precision)?;
        }
        Ok((device, precision))
    }
}

impl Chosen {
    /// A model that the device answers for.
    pub fn predictor(&self, model: Model) -> Result<Predictor> {
        let (device, precision) = self.ready(Precision::F32)?;
        let mut predictor = Predictor::new(model);
        predictor.use_device(device, precision)?;
        Ok(predictor)
    }
}

/// Compiles the kernels of a GPU, or takes those that an earlier run has left in the user's cache.
#[cfg(feature = "cuda")]
fn keep_kernels(ordinal: usize, precision: Precision) -> Result<()> {
    let name = sumout::gpu::kernels_name(ordinal, precision)?;
    let Some(path) = cache().map(|folder| folder.join(format!("{name}.cubin"))) else {
        return Ok(());
    };
    if let Ok(image) = std::fs::read(&path) {
        sumout::gpu::offer_kernels(&name, image);
        return Ok(());
    }
    let image = sumout::gpu::compile_kernels(ordinal, precision)?;
    if path
        .parent()
        .is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    {
        let _ = models::save(&path, &image); // a cache that cannot be written to costs seconds, no more
    }
    Ok(())
}

#[cfg(not(feature = "cuda"))]
fn keep_kernels(_: usize, _: Precision) -> Result<()> {
    Ok(sumout::gpu::count().map(drop)?)
}

/// The user's cache folder for kernels.
#[cfg(feature = "cuda")]
fn cache() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        own.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(cache.join("sumout").join("kernels"))
}
