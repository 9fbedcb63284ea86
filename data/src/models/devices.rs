//! Devices by name, and GPU kernels that are kept from run to run.

use crate::error::Result;
#[cfg(feature = "cuda")]
use crate::models::model_files;
#[cfg(feature = "cuda")]
use std::path::{Path, PathBuf};
use sumout::Model;
use sumout::Predictor;
use sumout::{Device, Precision};

/// A device and a precision by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceChoice {
    /// cpu, cuda, cuda:1 (the second GPU), or auto (the first GPU that can be used, else the CPU).
    pub device: String,
    /// f32 or tf32.
    pub precision: Option<String>,
}

impl DeviceChoice {
    /// The device, ready to be used; `usual` is the precision where none is given. Kernels that have to be compiled are
    /// compiled meanwhile, and who needs them waits.
    pub fn ready(&self, usual: Precision) -> Result<(Device, Precision)> {
        let device = match self.device.as_str() {
            "auto" => sumout::internals::first_usable().map_or(Device::Cpu, Device::Cuda),
            name => name.parse()?,
        };
        let precision = match &self.precision {
            Some(name) => name.parse()?,
            None => usual,
        };
        if let Device::Cuda(ordinal) = device {
            keep_kernels(ordinal, precision)?;
        }
        Ok((device, precision))
    }

    /// A predictor on that device.
    pub fn predictor(&self, model: Model) -> Result<Predictor> {
        if self.device == "auto" && model.has_factors() {
            return Ok(Predictor::new(model)?); // no GPU can compute it
        }
        let (device, precision) = self.ready(Precision::F32)?;
        let mut predictor = Predictor::new(model)?;
        predictor.use_device(device, precision)?;
        Ok(predictor)
    }
}

/// Takes the kernels of a GPU that an earlier run has left in the user's cache, or begins to compile them for it.
#[cfg(feature = "cuda")]
fn keep_kernels(ordinal: usize, precision: Precision) -> Result<()> {
    let name = sumout::internals::kernels_name(ordinal, precision)?;
    let Some(path) = cache().map(|folder| folder.join(format!("{name}.cubin"))) else {
        return Ok(());
    };
    if let Ok(image) = std::fs::read(&path) {
        sumout::internals::offer_kernels(&name, image);
        return Ok(());
    }
    std::thread::spawn(move || compile_into(&path, ordinal, precision));
    Ok(())
}

/// Compiles kernels and keeps them in a file. If that fails, whoever needs them compiles them again, and says what is wrong.
#[cfg(feature = "cuda")]
fn compile_into(path: &Path, ordinal: usize, precision: Precision) {
    let Ok(image) = sumout::internals::compile_kernels(ordinal, precision) else {
        return;
    };
    let folder = path.parent();
    if folder.is_some_and(|folder| std::fs::create_dir_all(folder).is_ok()) {
        let _ = model_files::save(path, &image); // a cache that cannot be written to costs seconds, no more
    }
}

#[cfg(not(feature = "cuda"))]
fn keep_kernels(_: usize, _: Precision) -> Result<()> {
    Ok(sumout::internals::count().map(drop)?)
}

/// The user's cache folder for kernels.
#[cfg(feature = "cuda")]
fn cache() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        own.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(cache.join("sumout").join("kernels"))
}
