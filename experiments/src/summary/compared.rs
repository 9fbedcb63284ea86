//! The experiments that are compared with each other, in tables and in curves.

use crate::results::Record;
use crate::summary::cross_trained::{is_cross_trained, tested_on_own};
use crate::summary::paired_seeds::is_paired;

/// The records of the tables and curves with 16 columns.
pub fn compared(records: &[Record]) -> Vec<Record> {
    let alone =
        |record: &&Record| record.is_whole() && !is_cross_trained(record) && !is_paired(record);
    let whole = records.iter().filter(alone).cloned();
    whole.chain(tested_on_own(records)).collect()
}
