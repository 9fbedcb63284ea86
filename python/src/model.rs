//! A model as Python sees it: questions about rows of float32, answered without the lock of the interpreter.

use crate::exception;
use crate::threads::pool;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use sumout::queries::{Neuron, View};
use sumout::{Device, Kind, Matrix, Precision, Predictor, Rows};

pub type Array<'py> = PyReadonlyArray2<'py, f32>;
pub type Table<'py, T> = Bound<'py, PyArray2<T>>;

/// A trained model. Rows are C-contiguous float32 arrays (n, width), NaN is missing; `threads` 0 is one a core.
#[pyclass(frozen, module = "sumout._engine")]
pub struct Model {
    predictor: Mutex<Predictor>,
}

impl Model {
    /// Prepares a model in a pool of ours: the one that rayon has for all would be dead after a fork.
    pub fn new(model: sumout::Model) -> PyResult<Self> {
        let predictor = pool(1)?
            .install(|| Predictor::new(model))
            .map_err(exception)?;
        Ok(Self {
            predictor: Mutex::new(predictor),
        })
    }

    /// Lets a device answer.
    pub fn on(self, device: Device) -> PyResult<Self> {
        let mut predictor = self
            .predictor
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        predictor
            .use_device(device, Precision::F32)
            .map_err(exception)?;
        Ok(Self {
            predictor: Mutex::new(predictor),
        })
    }

    /// Looks at the model.
    pub fn look<T>(&self, see: impl FnOnce(&sumout::Model) -> T) -> T {
        see(self.predictor().model())
    }

    fn predictor(&self) -> MutexGuard<'_, Predictor> {
        let predictor = self.predictor.lock();
        predictor.unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks without the interpreter's lock.
    pub fn ask<T: Send>(
        &self,
        py: Python<'_>,
        threads: usize,
        question: impl FnOnce(&mut Predictor) -> sumout::Result<T> + Send,
    ) -> PyResult<T> {
        let pool = pool(threads)?;
        let answer = py.detach(|| {
            // Locked here, not in the pool: a thread of it that waits may take up another question to this model.
            let predictor = &mut *self.predictor();
            pool.install(|| question(predictor))
        });
        answer.map_err(exception)
    }
}

/// A view of an array's rows; their number of columns is checked by the engine.
pub fn view<'a>(rows: &'a Array<'_>) -> PyResult<Rows<'a>> {
    if !rows.is_c_contiguous() {
        return Err(PyValueError::new_err("rows: expected a C-contiguous array"));
    }
    Rows::new(rows.as_slice()?, rows.shape()[1]).map_err(exception)
}

pub fn table<T: numpy::Element>(py: Python<'_>, matrix: Matrix<T>) -> PyResult<Table<'_, T>> {
    let shape = [matrix.rows(), matrix.columns()];
    matrix.into_vec().into_pyarray(py).reshape(shape)
}

#[pymethods]
impl Model {
    /// The model of a file's bytes.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Self::new(
            pool(1)?
                .install(|| sumout::Model::from_bytes(bytes))
                .map_err(exception)?,
        )
    }

    /// The bytes of a model file; a note becomes a part of what the file says about the model.
    #[pyo3(signature = (note = None))]
    fn to_bytes<'py>(&self, py: Python<'py>, note: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = match note {
            None => self.look(sumout::Model::to_bytes),
            Some(note) => {
                let mut model = self.look(Clone::clone);
                model.about.training.set("note", note);
                model.to_bytes()
            }
        };
        Ok(PyBytes::new(py, &bytes.map_err(exception)?))
    }

    /// Pickled as a model file: nothing is executed when it is opened.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((
            py.get_type::<Self>().getattr("from_bytes")?,
            (self.to_bytes(py, None)?,),
        ))
    }

    /// K.
    #[getter]
    fn classes(&self) -> usize {
        self.look(|model| model.structure.classes)
    }

    /// Of each column how many categories it has, 0 for a number.
    #[getter]
    fn categories(&self) -> Vec<usize> {
        let kinds = self.look(|model| model.structure.row_kinds());
        let categories = |kind| match kind {
            Kind::Gaussian => 0,
            Kind::Bernoulli => 2,
            Kind::Categorical(count) => count as usize,
        };
        kinds.into_iter().map(categories).collect()
    }

    /// (height, width, channels) of an image, None for a table.
    #[getter]
    fn image_shape(&self) -> Option<(usize, usize, usize)> {
        let frame = self.look(|model| model.structure.frame);
        frame.map(|frame| (frame.height, frame.width, frame.channels))
    }

    /// The column that the model was trained to predict, None where there is none.
    #[getter]
    fn target(&self) -> Option<usize> {
        self.look(sumout::Model::target)
    }

    /// log P(y).
    #[getter]
    fn log_prior<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.look(|model| model.log_prior.clone()).into_pyarray(py)
    }

    /// Names of classes, columns and categories, and how the model was trained, as JSON.
    #[getter]
    fn about(&self) -> PyResult<String> {
        let text = self.look(|model| serde_json::to_string(&model.about));
        text.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Trees, levels, channels and weights, for people.
    fn describe(&self) -> String {
        self.look(|model| model.structure.inspect())
    }

    /// log P(x_o|y), (n, K).
    fn log_likelihood<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        threads: usize,
    ) -> PyResult<Table<'py, f64>> {
        let rows = view(&rows)?;
        table(py, self.ask(py, threads, |p| p.log_likelihood(rows))?)
    }

    /// P(y|x_o), (n, K).
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        threads: usize,
    ) -> PyResult<Table<'py, f64>> {
        let rows = view(&rows)?;
        table(py, self.ask(py, threads, |p| p.posterior(rows))?)
    }

    /// log P(x_o), (n).
    fn log_marginal<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = view(&rows)?;
        let logs = self.ask(py, threads, |p| p.log_marginal(rows))?;
        Ok(logs.into_pyarray(py))
    }

    /// log P(x_q|x_o), (n): `rows` holds x_q and x_o, `given` x_o alone.
    fn log_conditional<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        given: Array<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (rows, given) = (view(&rows)?, view(&given)?);
        let logs = self.ask(py, threads, |p| p.log_conditional(rows, given))?;
        Ok(logs.into_pyarray(py))
    }

    /// E[x_m|x_o] and its variance, both (n, width).
    #[pyo3(signature = (rows, class_index, threads))]
    fn impute_mean<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        class_index: Option<usize>,
        threads: usize,
    ) -> PyResult<(Table<'py, f32>, Table<'py, f32>)> {
        let rows = view(&rows)?;
        let imputed = self.ask(py, threads, |p| p.impute_mean(rows, class_index))?;
        Ok((table(py, imputed.mean)?, table(py, imputed.variance)?))
    }

    /// The values in the most likely joint assignment of hidden variables and missing numbers, (n, width).
    #[pyo3(signature = (rows, class_index, threads))]
    fn impute_mode<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        class_index: Option<usize>,
        threads: usize,
    ) -> PyResult<Table<'py, f32>> {
        let rows = view(&rows)?;
        table(
            py,
            self.ask(py, threads, |p| p.impute_mode(rows, class_index))?,
        )
    }

    /// One sample of P(x_m|x_o) for every row, (n, width).
    #[pyo3(signature = (rows, class_index, seed, threads))]
    fn impute_sample<'py>(
        &self,
        py: Python<'py>,
        rows: Array<'py>,
        class_index: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> PyResult<Table<'py, f32>> {
        let rows = view(&rows)?;
        let question = |p: &mut Predictor| p.sample_given(rows, class_index, seed);
        table(py, self.ask(py, threads, question)?)
    }

    /// Samples of P(X) or P(X|y): rows (count, width) and their classes (count).
    #[pyo3(signature = (count, class_index, seed, threads))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        class_index: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> PyResult<(Table<'py, f32>, Bound<'py, PyArray1<i64>>)> {
        let samples = self.ask(py, threads, |p| p.sample(count, class_index, seed))?;
        let classes: Vec<i64> = samples.classes.iter().map(|&class| class as i64).collect();
        Ok((table(py, samples.rows)?, classes.into_pyarray(py)))
    }

    /// What one neuron stands for: `count` samples of what is below it, or its mode where `count` is None.
    #[pyo3(signature = (tree, level, node, channel, count, seed, threads))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        tree: usize,
        level: usize,
        node: usize,
        channel: usize,
        count: Option<usize>,
        seed: u64,
        threads: usize,
    ) -> PyResult<Table<'py, f32>> {
        let view = count.map_or(View::Mode, |count| View::Samples { count, seed });
        let neuron = Neuron {
            tree,
            layer: level,
            node,
            channel,
        };
        table(py, self.ask(py, threads, |p| p.explain(neuron, view))?)
    }
}
