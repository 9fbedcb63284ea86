//! Values of a batch on their way into rows of numbers.

use crate::formats::arrow::values::{ColumnValues, bit};
use crate::problem::Problem;
use sumout_data::cells::Cell;
use sumout_data::encode::Encoder;
use sumout_data::error::{At, Place};

/// From (width, rows) to (rows, width), in tiles that stay in the cache.
pub(super) fn transposed(by_column: &[f32], rows: usize, width: usize) -> Vec<f32> {
    const TILE: usize = 32;
    let mut by_row = vec![0.0; rows * width];
    for first_row in (0..rows).step_by(TILE) {
        for first in (0..width).step_by(TILE) {
            for row in first_row..rows.min(first_row + TILE) {
                for column in first..width.min(first + TILE) {
                    by_row[row * width + column] = by_column[column * rows + row];
                }
            }
        }
    }
    by_row
}

/// The values of a column of a batch on their way into rows.
pub(super) struct Cursor<'a> {
    pub encoder: &'a Encoder,
    /// Rows of the batches before.
    pub first_row: usize,
    /// A bit for every value that is there; empty if all are.
    pub valid: &'a [u8],
    pub values: &'a ColumnValues,
    /// What the values stand for, if they are numbers of its entries.
    pub dictionary: Option<&'a ColumnValues>,
}

impl Cursor<'_> {
    /// Whether a value is there.
    fn is_there(&self, at: usize) -> bool {
        self.valid.is_empty() || bit(self.valid, at)
    }

    /// All numbers, if none of them has to be looked at by itself.
    fn plain(&self) -> Option<&[f32]> {
        match self.values {
            ColumnValues::Singles(all) if self.valid.is_empty() && self.dictionary.is_none() => {
                Some(all.as_slice()).filter(|all| all.iter().all(|x| !x.is_infinite()))
            }
            _ => None,
        }
    }

    /// Puts the values of a column into their rows.
    pub fn put(&self, column: usize, to: &mut [f32]) -> Result<(), Problem> {
        if let (Some(all), true) = (self.plain(), self.encoder.takes_any_number(column)) {
            to.copy_from_slice(all);
            return Ok(());
        }
        for (row, to) in to
            .iter_mut()
            .enumerate()
            .filter(|(row, _)| self.is_there(*row))
        {
            *to = self.number(column, row, row)?;
        }
        Ok(())
    }

    /// Rows of lists, one for each row; `lists` has a bit for every one that is there.
    pub fn lists(&self, lists: &[u8], rows: usize) -> Result<Vec<f32>, Problem> {
        let width = self.encoder.width();
        let numbers = (0..width).all(|column| self.encoder.takes_any_number(column));
        if let (Some(all), true, true) = (self.plain(), lists.is_empty(), numbers) {
            return Ok(all.to_vec());
        }
        let mut to = vec![f32::NAN; rows * width];
        for (at, to) in to.iter_mut().enumerate() {
            let row = at / width;
            if (lists.is_empty() || bit(lists, row)) && self.is_there(at) {
                *to = self.number(at % width, row, at)?;
            }
        }
        Ok(to)
    }

    /// The number of the value at `at`, which is in this row and column.
    fn number(&self, column: usize, row: usize, at: usize) -> Result<f32, Problem> {
        let place = Place {
            file: "",
            at: At::Row((self.first_row + row) as u64 + 1),
        };
        let cell = match (self.dictionary, self.values.cell(at)) {
            (Some(names), Cell::Number(index)) => {
                if index < 0.0 || index >= names.len() as f64 {
                    let (place, name) = (place.at, self.encoder.name(column));
                    let message =
                        format!("{place}, column '{name}': its dictionary has no entry {index}");
                    return Err(Problem::bad(message));
                }
                names.cell(index as usize)
            }
            (_, cell) => cell,
        };
        let known = self.encoder.known_beside_null(cell); // NA is a word
        let value = self.encoder.value(column, known);
        Ok(value.map_err(|error| error.at(place))?)
    }
}
