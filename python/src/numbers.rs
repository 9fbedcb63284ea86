//! Questions about the distribution of a missing number.

use crate::model::{Array, Model, Table, table, view};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use sumout::queries::Mixture;
use sumout::random::{Purpose, Stream};
use sumout::{Predictor, Rows};

/// Rows that are asked about at once, so that their mixtures need little memory.
const PIECE: usize = 4096;

/// Mean, standard deviation and these quantiles of a column given all other columns, (n, 2 + quantiles).
#[pyfunction]
pub fn distribution<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Array<'py>,
    column: usize,
    quantiles: Vec<f64>,
    threads: usize,
) -> PyResult<Table<'py, f64>> {
    let rows = view(&rows)?;
    let describe = |_: usize, mixture: Mixture<'_>, to: &mut [f64]| {
        (to[0], to[1]) = (mixture.mean(), mixture.variance().sqrt());
        let numbers = to[2..].iter_mut().zip(&quantiles);
        numbers.for_each(|(to, &p)| *to = mixture.quantile(p));
    };
    let columns = 2 + quantiles.len();
    let question = |p: &mut Predictor| ask(p, rows, (column, columns), describe);
    let numbers = model.ask(py, threads, question)?;
    numbers.into_pyarray(py).reshape([rows.len(), columns])
}

/// Samples of a column given all other columns, (n, count).
#[pyfunction]
pub fn sample_column<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Array<'py>,
    column: usize,
    count: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Table<'py, f64>> {
    let rows = view(&rows)?;
    let draw = |row: usize, mixture: Mixture<'_>, to: &mut [f64]| {
        let mut stream = Stream::new(seed, Purpose::Sampling, 0, row as u32);
        to.fill_with(|| mixture.sample(&mut stream));
    };
    let question = |p: &mut Predictor| ask(p, rows, (column, count), draw);
    let numbers = model.ask(py, threads, question)?;
    numbers.into_pyarray(py).reshape([rows.len(), count])
}

/// The rows with quantiles in place of missing numbers, and the most probable category: (quantiles, n, width).
#[pyfunction]
#[pyo3(signature = (model, rows, quantiles, class_index, threads))]
pub fn impute_quantiles<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Array<'py>,
    quantiles: Vec<f64>,
    class_index: Option<usize>,
    threads: usize,
) -> PyResult<Vec<Table<'py, f32>>> {
    let rows = view(&rows)?;
    let question = |p: &mut Predictor| p.impute_quantiles(rows, &quantiles, class_index);
    let all = model.ask(py, threads, question)?;
    all.into_iter().map(|one| table(py, one)).collect()
}

/// P(x_m = v|x_o) of the categories of a column, (n, V).
#[pyfunction]
#[pyo3(signature = (model, rows, column, class_index, threads))]
pub fn impute_probabilities<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Array<'py>,
    column: usize,
    class_index: Option<usize>,
    threads: usize,
) -> PyResult<Table<'py, f32>> {
    let rows = view(&rows)?;
    let question = |p: &mut Predictor| p.impute_probabilities(rows, &[column], class_index);
    let mut all = model.ask(py, threads, question)?;
    table(py, all.swap_remove(0))
}

/// Some numbers of the distribution of a column in every row, piece by piece.
fn ask(
    predictor: &mut Predictor,
    rows: Rows<'_>,
    (column, columns): (usize, usize),
    report: impl Fn(usize, Mixture<'_>, &mut [f64]) + Sync,
) -> sumout::Result<Vec<f64>> {
    let width = rows.width();
    let mut all = Vec::with_capacity(rows.len() * columns);
    for (index, part) in rows.as_slice().chunks(PIECE * width).enumerate() {
        let mixtures = predictor.mixtures(Rows::new(part, width)?, column, None)?;
        let numbers = mixtures.map(columns, |row, mixture, to| {
            report(index * PIECE + row, mixture, to);
        });
        all.extend(numbers.into_vec());
    }
    Ok(all)
}
