//! Training on partitions: what the holder of the model and the holders of rows say to each other, as bytes.

use crate::exception;
use crate::model::Model;
use crate::threads::pool;
use crate::training::{data, parse};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use sumout::recipes;
use sumout::training::{Checkpoint, Contribution, Round};

/// A fit by rounds, where the model is held.
#[pyclass(frozen, module = "sumout._engine")]
pub struct Rounds {
    rounds: Mutex<recipes::Rounds>,
}

impl Rounds {
    fn look(&self) -> MutexGuard<'_, recipes::Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Rounds {
    /// Teaches a model the rows of partitions of these sizes. `options` is a JSON object: em_passes, rounds, rows, rate.
    #[new]
    fn new(model: &Model, sizes: Vec<u64>, prior: Vec<f64>, options: &str) -> PyResult<Self> {
        let (model, options) = (model.look(Clone::clone), parse(options)?);
        let rounds = pool(1)?
            .install(|| recipes::Rounds::start(model, &sizes, &prior, &options))
            .map_err(exception)?;
        Ok(Self {
            rounds: Mutex::new(rounds),
        })
    }

    /// Goes on where a checkpoint stopped.
    #[staticmethod]
    fn resume(checkpoint: &[u8]) -> PyResult<Self> {
        let rounds = pool(1)?
            .install(|| recipes::Rounds::resume(Checkpoint::from_bytes(checkpoint)?))
            .map_err(exception)?;
        Ok(Self {
            rounds: Mutex::new(rounds),
        })
    }

    /// Steps in all.
    #[getter]
    fn steps(&self) -> usize {
        self.look().steps()
    }

    /// Steps done.
    #[getter]
    fn steps_done(&self) -> usize {
        self.look().steps_done()
    }

    /// The step that comes, for `contribution`.
    fn round<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let pool = pool(1)?;
        let bytes = py.detach(|| pool.install(|| self.look().round()));
        Ok(PyBytes::new(py, &bytes.map_err(exception)?))
    }

    /// One step by the sum of all contributions; the mean objective of its rows.
    fn apply(&self, py: Python<'_>, sum: &[u8], threads: usize) -> PyResult<f64> {
        let pool = pool(threads)?;
        let step = || -> sumout::Result<f64> {
            let mut rounds = self.look();
            let loss = rounds.apply(&Contribution::from_bytes(sum)?)?;
            Ok(rounds.objective(&loss))
        };
        py.detach(|| pool.install(step)).map_err(exception)
    }

    /// The model as it stands.
    fn model(&self) -> PyResult<Model> {
        Model::new(self.look().model())
    }

    /// The fit as it stands, for `resume`.
    fn checkpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.look().checkpoint().map_err(exception)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// What a partition's rows add to a step: values (n, width), labels (n) and weights (n, or none).
#[pyfunction]
pub fn contribution<'py>(
    py: Python<'py>,
    round: &[u8],
    partition: usize,
    values: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let (data, pool) = (data(&values, &labels, &weights)?, pool(threads)?);
    let contribute = || {
        Round::from_bytes(round)?
            .contribution(partition, data)?
            .to_bytes()
    };
    let bytes = py.detach(|| pool.install(contribute)).map_err(exception)?;
    Ok(PyBytes::new(py, &bytes))
}

/// The sum of contributions; neither their order nor their grouping changes a bit of the whole.
#[pyfunction]
pub fn add_contributions<'py>(
    py: Python<'py>,
    parts: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut sum: Option<Contribution> = None;
    for part in parts {
        let part = Contribution::from_bytes(part.as_bytes()).map_err(exception)?;
        match &mut sum {
            Some(sum) => sum.add(part).map_err(exception)?,
            none => *none = Some(part),
        }
    }
    let empty = sumout::Error::Empty {
        what: "contribution",
    };
    let sum = sum.ok_or_else(|| exception(empty))?;
    Ok(PyBytes::new(py, &sum.to_bytes().map_err(exception)?))
}
