//! A training set as a set: the same rows become one with the sum of their weights, in an order that depends on nothing
//! but the rows. So a row of weight 2 is the row twice, a row of weight 0 is no row, and the order in which rows come
//! does not matter.

use crate::threads::pool;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::slice::ParallelSliceMut;

type Distinct<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// The first place of every distinct row (values and label) of positive weight, sorted by content, and its weight.
#[pyfunction]
pub fn distinct_rows<'py>(
    py: Python<'py>,
    values: PyReadonlyArray2<'py, f32>,
    labels: PyReadonlyArray1<'py, i64>,
    weights: PyReadonlyArray1<'py, f64>,
    threads: usize,
) -> PyResult<Distinct<'py>> {
    let (width, pool) = (values.shape()[1], pool(threads)?);
    let (values, labels, weights) = (values.as_slice()?, labels.as_slice()?, weights.as_slice()?);
    let (places, sums) = py.detach(|| pool.install(|| distinct(values, width, labels, weights)));
    Ok((places.into_pyarray(py), sums.into_pyarray(py)))
}

/// Bits by which numbers are compared: all NaNs are one hole, and −0 is 0.
fn comparable(x: &f32) -> u32 {
    if x.is_nan() {
        u32::MAX
    } else {
        (x + 0.0).to_bits()
    }
}

fn distinct(values: &[f32], width: usize, labels: &[i64], weights: &[f64]) -> (Vec<i64>, Vec<f64>) {
    let content = |&row: &usize| {
        let numbers = values[row * width..(row + 1) * width].iter();
        numbers.map(comparable).chain([labels[row] as u32])
    };
    let mut rows: Vec<usize> = (0..labels.len())
        .filter(|&row| weights[row] > 0.0)
        .collect();
    rows.par_sort_by(|a, b| content(a).cmp(content(b)));
    let mut sums: Vec<f64> = Vec::new();
    let mut places: Vec<i64> = Vec::new();
    for row in rows {
        match places.last() {
            Some(&last) if content(&(last as usize)).eq(content(&row)) => {
                sums[places.len() - 1] += weights[row]
            }
            _ => {
                places.push(row as i64);
                sums.push(weights[row]);
            }
        }
    }
    (places, sums)
}
