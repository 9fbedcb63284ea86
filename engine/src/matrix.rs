//! Numbers that know their shape: [`Rows`] go in, a [`Matrix`] comes out.
//!
//! ```
//! use sumout::Rows;
//! let rows = Rows::new(&[1.0, f32::NAN, 3.0, 4.0], 2)?; // 2 rows of 2 numbers; NaN is missing
//! assert_eq!((rows.len(), rows.row(1)), (2, &[3.0, 4.0][..]));
//! assert!(Rows::new(&[1.0, 2.0, 3.0], 2).is_err());
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use std::ops::Index;

/// A view of n rows of `width` numbers each, row after row. NaN is a missing number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `width` numbers; an error where the last row is not whole, or where `width` is 0.
    pub fn new(values: &'a [f32], width: usize) -> Result<Self> {
        if width == 0 {
            return Err(Error::shape("numbers in a row", "at least 1", width));
        }
        if !values.len().is_multiple_of(width) {
            let expected = format!("rows of {width}");
            return Err(Error::shape("numbers", expected, values.len()));
        }
        Ok(Self { values, width })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One row, counted from 0.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.width..][..self.width]
    }

    /// Row after row.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f32]> + use<'a> {
        self.values.chunks_exact(self.width)
    }

    /// All numbers, row after row.
    pub fn as_slice(&self) -> &'a [f32] {
        self.values
    }
}

/// A view of an array in standard layout; an error for any other layout, or for no columns.
#[cfg(feature = "ndarray")]
impl<'a> TryFrom<ndarray::ArrayView2<'a, f32>> for Rows<'a> {
    type Error = Error;

    fn try_from(array: ndarray::ArrayView2<'a, f32>) -> Result<Self> {
        let width = array.ncols();
        let values = array.to_slice().ok_or_else(|| {
            Error::shape("array", "row after row in memory", "another memory layout")
        })?;
        Self::new(values, width)
    }
}

/// Rows of numbers of one kind: what a model answers. `matrix[(row, column)]` is one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<T> {
    values: Vec<T>,
    columns: usize,
}

impl<T> Matrix<T> {
    /// Rows of `columns` numbers, of which there are enough.
    pub(crate) fn new(values: Vec<T>, columns: usize) -> Self {
        debug_assert!(values.len().is_multiple_of(columns.max(1)));
        Self { values, columns }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row, counted from 0.
    pub fn row(&self, index: usize) -> &[T] {
        &self.values[index * self.columns..][..self.columns]
    }

    /// Row after row.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, T> {
        self.values.chunks_exact(self.columns.max(1))
    }

    /// All numbers, row after row.
    pub fn as_slice(&self) -> &[T] {
        &self.values
    }

    /// All numbers, row after row.
    pub fn into_vec(self) -> Vec<T> {
        self.values
    }
}

impl<T: PartialOrd> Matrix<T> {
    /// The column of the largest number of each row, the first where several are.
    pub fn argmax(&self) -> Vec<usize> {
        let best = |row: &[T]| {
            (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
        };
        self.iter().map(best).collect()
    }
}

impl Matrix<f32> {
    /// The same numbers as a view that a model can be asked about.
    pub fn as_rows(&self) -> Result<Rows<'_>> {
        Rows::new(&self.values, self.columns)
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.row(row)[column]
    }
}

impl<'a, T> IntoIterator for &'a Matrix<T> {
    type Item = &'a [T];
    type IntoIter = std::slice::ChunksExact<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(feature = "ndarray")]
impl<T> From<Matrix<T>> for ndarray::Array2<T> {
    fn from(matrix: Matrix<T>) -> Self {
        let shape = (matrix.rows(), matrix.columns);
        Self::from_shape_vec(shape, matrix.values).expect("whole rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_be_whole() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let rows = Rows::new(&values, 3).unwrap();
        assert_eq!((rows.len(), rows.width(), rows.is_empty()), (2, 3, false));
        assert_eq!(
            rows.iter().collect::<Vec<_>>(),
            [&values[..3], &values[3..]]
        );
        assert!(Rows::new(&[], 3).unwrap().is_empty());
        let error = Rows::new(&values, 4).unwrap_err();
        assert_eq!(error.to_string(), "numbers: expected rows of 4, got 6");
        let error = Rows::new(&[], 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "numbers in a row: expected at least 1, got 0"
        );
    }

    #[test]
    fn a_matrix_knows_its_shape() {
        let matrix = Matrix::new(vec![1, 2, 3, 5, 5, 4], 3);
        assert_eq!((matrix.rows(), matrix.columns()), (2, 3));
        assert_eq!((matrix[(1, 2)], matrix.row(0)), (4, &[1, 2, 3][..]));
        assert_eq!(matrix.argmax(), [2, 0]);
        assert_eq!(matrix.iter().map(<[i32]>::len).sum::<usize>(), 6);
        assert_eq!(matrix.into_vec(), [1, 2, 3, 5, 5, 4]);
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn arrays_come_and_go() {
        let array = ndarray::arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let rows = Rows::try_from(array.view()).unwrap();
        assert_eq!((rows.len(), rows.row(1)), (2, &[4.0, 5.0, 6.0][..]));
        let error = Rows::try_from(array.t()).unwrap_err().to_string();
        assert_eq!(
            error,
            "array: expected row after row in memory, got another memory layout"
        );
        let back = ndarray::Array2::from(Matrix::new(rows.as_slice().to_vec(), 3));
        assert_eq!(back, array);
    }
}
