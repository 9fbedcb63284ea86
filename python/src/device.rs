//! What computes: `device="cuda"` where the feature `cuda` is built in.

use crate::exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sumout::Device;

/// The device of that name, or what is wrong with it.
pub fn ready(name: &str) -> PyResult<Device> {
    let device: Device = name.parse().map_err(exception)?;
    let Device::Cuda(ordinal) = device else {
        return Ok(device);
    };
    if !cfg!(feature = "cuda") {
        let message =
            format!("device='{name}': this package was built without CUDA; use device='cpu'");
        return Err(PyRuntimeError::new_err(message));
    }
    match sumout::internals::count().map_err(exception)? {
        count if ordinal < count => Ok(device),
        count => Err(PyRuntimeError::new_err(format!(
            "device='{name}': there are {count} GPUs, counted from 0"
        ))),
    }
}

/// Says what is wrong with a device before work starts.
#[pyfunction]
pub fn check_device(name: &str) -> PyResult<()> {
    ready(name).map(drop)
}
