//! Thin glue: arrays in, arrays out, errors as Python's exceptions. Everything scikit-learn is in `sumout/*.py`.

mod threads;
mod device;
mod rows;
mod model;
mod numbers;
mod training;
mod rounds;

use pyo3::exceptions::{PyFloatingPointError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// What the engine says, as the exception that Python programmers expect.
fn exception(error: sumout::Error) -> PyErr {
    match error {
        sumout::Error::Diverged { .. } => PyFloatingPointError::new_err(error.to_string()),
        sumout::Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        sumout::Error::Device(_) => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<model::Model>()?;
    module.add_class::<rounds::Rounds>()?;
    module.add_function(wrap_pyfunction!(device::check_device, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::distribution, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::sample_column, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::impute_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::impute_probabilities, module)?)?;
    module.add_function(wrap_pyfunction!(rounds::contribution, module)?)?;
    module.add_function(wrap_pyfunction!(rounds::add_contributions, module)?)?;
    module.add_function(wrap_pyfunction!(rows::distinct_rows, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(training::go_on, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
