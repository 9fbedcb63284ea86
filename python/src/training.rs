//! Training without the interpreter's lock, which is taken a few times a second, to report progress and to notice Ctrl-C.

use crate::device::ready;
use crate::exception;
use crate::model::Model;
use crate::threads::pool;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::ThreadPool;
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use sumout::model::{About, ColumnRange};
use sumout::recipes::images::ImageShape;
use sumout::recipes::sequences::{self, SequenceShape};
use sumout::recipes::{Fit, FitProgress, Fitting, Preset};
use sumout::training::{Data, Stop, labels};
use sumout::{Device, Kind, Precision, Rows};

/// Python waits for at most this long.
const PATIENCE: Duration = Duration::from_millis(50);

/// Learns a model from rows (n, width), labels (n; −1 is missing) and weights (n, or none).
///
/// `categories` says of each column how many there are, 0 for a number; `prior` is P(y), up to a factor, and `target` a
/// column that is to be predicted in place of classes. `plan` and
/// `settings` are JSON objects laid over what suits the data, `about` is the JSON of names.
/// `on_progress(step, steps, objective)` is called now and then.
#[pyfunction]
#[pyo3(signature = (values, labels, weights, categories, image_shape, prior, target, plan, settings, about, device, threads, on_progress))]
pub fn train(
    py: Python<'_>,
    values: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    categories: Vec<u32>,
    image_shape: Option<(usize, usize, usize)>,
    prior: Vec<f64>,
    target: Option<usize>,
    plan: &str,
    settings: &str,
    about: &str,
    device: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let work = Work::new(device, threads)?;
    let data = data(&values, &labels, &weights)?.stopped_by(&work.stop);
    let mut fit = Fit::new()
        .prior(&prior)
        .about(with_program(parse(about)?))
        .device(work.device, Precision::Tf32)
        .settings(parse::<Value>(settings)?)
        .map_err(exception)?;
    let plan = parse(plan)?;
    fit = match (image_shape, size(&plan, "sequence_length")?) {
        (Some((height, width, channels)), _) => fit.images(ImageShape {
            height,
            width,
            channels,
        }),
        (None, Some(length)) => fit.preset(sequence(
            values.as_slice()?,
            categories.len(),
            length,
            prior.len(),
            &plan,
        )?),
        (None, None) => fit.kinds(&categories.into_iter().map(kind).collect::<Vec<_>>()),
    };
    fit = target.into_iter().fold(fit, Fit::target);
    fit = with_sizes(fit, &plan)?;
    let fitting = work.attended(py, || fit.start(data))?;
    let model = learn(py, fitting, &work, on_progress)?;
    Model::new(model)?.on(work.device)
}

/// Teaches a model more rows; it is not changed, a new one comes back. P(y) becomes `prior`.
#[pyfunction]
#[pyo3(signature = (model, values, labels, weights, prior, settings, device, threads, on_progress))]
pub fn go_on(
    py: Python<'_>,
    model: &Model,
    values: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    prior: Vec<f64>,
    settings: &str,
    device: &str,
    threads: usize,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let work = Work::new(device, threads)?;
    let data = data(&values, &labels, &weights)?.stopped_by(&work.stop);
    let mut model = model.look(Clone::clone);
    model.set_prior(&prior).map_err(exception)?;
    model.about.training.remove("data"); // it has seen more since
    let changes: Value = parse(settings)?;
    let fit = Fit::new()
        .device(work.device, Precision::Tf32)
        .settings(changes)
        .map_err(exception)?;
    let fitting = work.attended(py, || fit.go_on(model, data))?;
    let model = learn(py, fitting, &work, on_progress)?;
    Model::new(model)?.on(work.device)
}

/// Where a fit is computed, and how it is stopped.
struct Work {
    device: Device,
    pool: Arc<ThreadPool>,
    stop: Stop,
}

impl Work {
    fn new(device: &str, threads: usize) -> PyResult<Self> {
        let (pool, device, stop) = (pool(threads)?, ready(device)?, Stop::default());
        Ok(Self { device, pool, stop })
    }

    /// Does what takes long before the first step. Signals are for this thread, which looks for them meanwhile; the work
    /// is done on the pool, and is asked to stop when Python has an exception, as it has after Ctrl-C.
    fn attended<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> sumout::Result<T> + Send,
    ) -> PyResult<T> {
        let (sender, mut done) = mpsc::channel();
        self.pool.in_place_scope(|scope| {
            scope.spawn(move |_| drop(sender.send(work())));
            self.wait(py, &mut done)
        })
    }

    /// What the work sends at its end, or the exception that Python has before.
    fn wait<T: Send>(&self, py: Python<'_>, done: &mut Receiver<sumout::Result<T>>) -> PyResult<T> {
        let mut exception_of_python = Ok(());
        loop {
            let done = &mut *done;
            match py.detach(move || done.recv_timeout(PATIENCE)) {
                Ok(result) => return exception_of_python.and(result.map_err(exception)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the work ended without a result"));
                }
                Err(RecvTimeoutError::Timeout) if exception_of_python.is_ok() => {
                    exception_of_python = py.check_signals();
                    if exception_of_python.is_err() {
                        self.stop.request();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {} // it is about to stop
            }
        }
    }
}

pub fn data<'a>(
    values: &'a PyReadonlyArray2<'_, f32>,
    numbers: &PyReadonlyArray1<'_, i64>,
    weights: &'a PyReadonlyArray1<'_, f32>,
) -> PyResult<Data<'a>> {
    let rows = Rows::new(values.as_slice()?, values.shape()[1]).map_err(exception)?;
    let data = Data::new(rows, &labels(numbers.as_slice()?));
    Ok(data.weighted(weights.as_slice()?))
}

/// A column of this many categories, 0 for a number.
fn kind(categories: u32) -> Kind {
    if categories == 0 {
        Kind::Gaussian
    } else {
        Kind::Categorical(categories)
    }
}

fn with_program(mut about: About) -> About {
    let program = concat!("sumout ", env!("CARGO_PKG_VERSION"), " (Python)");
    about.training.set("program", program);
    about
}

/// What suits sequences of this length in rows of this width.
fn sequence(
    values: &[f32],
    width: usize,
    length: usize,
    classes: usize,
    plan: &Value,
) -> PyResult<Preset> {
    let shape = SequenceShape {
        length,
        channels: width / length,
    };
    let mut spec = sequences::spec(shape);
    spec.components = size(plan, "components")?.unwrap_or(spec.components);
    if let Some(channels) = size(plan, "channels")? {
        spec.levels
            .iter_mut()
            .for_each(|level| level.channels = channels);
    }
    sequences::preset(spec, values, classes).map_err(exception)
}

/// The sizes, and the bounds of columns, that `plan` gives.
fn with_sizes(mut fit: Fit, plan: &Value) -> PyResult<Fit> {
    if let Some(trees) = size(plan, "trees")? {
        fit = fit.trees(trees);
    }
    if let Some(ranges) = plan.get("ranges") {
        fit = fit.ranges(&parse::<Vec<ColumnRange>>(&ranges.to_string())?);
    }
    if let Some(components) = size(plan, "components")? {
        fit = fit.components(components);
    }
    if let Some(channels) = size(plan, "channels")? {
        fit = fit.channels(channels);
    }
    Ok(fit)
}

/// Fits to the end, and reports now and then.
fn learn(
    py: Python<'_>,
    mut fitting: Fitting<'_>,
    work: &Work,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<sumout::Model> {
    let report = |py: Python<'_>, progress: &FitProgress| {
        py.check_signals()?;
        tell(py, on_progress.as_ref(), progress)
    };
    while !fitting.is_done() {
        let fitting = &mut fitting;
        work.attended(py, || fitting.prepare())?;
        py.check_signals()?;
        if work.device != Device::Cpu {
            part_on_gpu(py, fitting, &report)?;
        } else if let Some(progress) = py
            .detach(|| work.pool.install(|| some_steps(fitting)))
            .map_err(exception)?
        {
            report(py, &progress)?;
        }
    }
    py.detach(|| work.pool.install(|| fitting.into_model()))
        .map_err(exception)
}

/// Calls what the caller wants to be called.
fn tell(py: Python<'_>, on_progress: Option<&Py<PyAny>>, progress: &FitProgress) -> PyResult<()> {
    let at = (progress.step, progress.steps, progress.objective);
    match on_progress {
        Some(on_progress) => on_progress.call1(py, at).map(drop),
        None => Ok(()),
    }
}

/// Steps for a moment; how far they came.
fn some_steps(fitting: &mut Fitting<'_>) -> sumout::Result<Option<FitProgress>> {
    let (started, mut last) = (Instant::now(), None);
    fitting.run_part_with(|progress| {
        last = Some(*progress);
        go_on_if(started.elapsed() <= PATIENCE)
    })?;
    Ok(last)
}

fn go_on_if(condition: bool) -> ControlFlow<()> {
    if condition {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// A whole part on a GPU, which is given the data once; signals are for this thread, so it is not one of the pool.
fn part_on_gpu(
    py: Python<'_>,
    fitting: &mut Fitting<'_>,
    report: &(impl Fn(Python<'_>, &FitProgress) -> PyResult<()> + Sync),
) -> PyResult<()> {
    let mut reports = Reports {
        reported: Instant::now(),
        last: None,
        outcome: Ok(()),
    };
    let done = py.detach(|| fitting.run_part_with(|progress| reports.pass_on(progress, report)));
    reports.outcome?;
    done.map_err(exception)?;
    let last = reports.last;
    last.map_or(Ok(()), |progress| report(py, &progress))
}

/// What of a run on a GPU Python has been told.
struct Reports {
    reported: Instant,
    last: Option<FitProgress>,
    outcome: PyResult<()>,
}

impl Reports {
    /// Tells Python now and then; an exception ends the run.
    fn pass_on(
        &mut self,
        progress: &FitProgress,
        report: &impl Fn(Python<'_>, &FitProgress) -> PyResult<()>,
    ) -> ControlFlow<()> {
        self.last = Some(*progress);
        if self.outcome.is_ok() && self.reported.elapsed() > PATIENCE {
            self.outcome = Python::attach(|py| report(py, progress));
            self.reported = Instant::now();
        }
        go_on_if(self.outcome.is_ok())
    }
}

/// A size that `plan` gives, if it does.
fn size(plan: &Value, name: &str) -> PyResult<Option<usize>> {
    let Some(given) = plan.get(name) else {
        return Ok(None);
    };
    let size = given
        .as_u64()
        .filter(|&size| size > 0)
        .and_then(|size| usize::try_from(size).ok());
    let wrong = || {
        PyValueError::new_err(format!(
            "{name}: expected a whole number from 1, got {given}"
        ))
    };
    size.map(Some).ok_or_else(wrong)
}

pub fn parse<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}
