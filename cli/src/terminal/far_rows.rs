//! A warning about rows that are too unlike the training data.

use crate::terminal::user_error::warn;
use sumout_data::model_files::{TOO_FAR, is_too_far};

/// Counts rows that are too unlike the training data to be classified.
#[derive(Clone, Debug, Default)]
pub struct FarRows {
    first: Option<usize>, // counted from 1
    rows: usize,
}

impl FarRows {
    /// Counts the rows that are too unlike the training data. `first` is the number of the first
    /// row, from 0; `width` is that of all.
    pub fn count(&mut self, first: usize, log_marginals: &[f64], width: usize) {
        for (row, log) in log_marginals.iter().enumerate() {
            if is_too_far(*log, width) {
                self.first.get_or_insert(first + row + 1);
                self.rows += 1;
            }
        }
    }

    /// Prints a warning if there was such a row.
    pub fn warn(&self) {
        if let Some(warning) = self.warning() {
            warn(&warning);
        }
    }

    fn warning(&self) -> Option<String> {
        let first = self.first?;
        let rows = if self.rows == 1 {
            String::new()
        } else {
            format!(" (the first of {})", self.rows)
        };
        Some(format!("row {first}{rows} is {TOO_FAR}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_named_and_all_are_counted() {
        let mut far = FarRows::default();
        far.count(0, &[-3.0, -9e3, 1e11], 10);
        assert_eq!(far.warning(), None);
        far.count(1024, &[-3.0, -1.1e4, f64::NEG_INFINITY], 10);
        let warning = far.warning().unwrap();
        assert!(
            warning.starts_with("row 1026 (the first of 2) is "),
            "{warning}"
        );
    }
}
