//! The experiments that are compared with each other, in tables and in curves.

use crate::results::Record;
use crate::summary::cross_trained::{is_cross_trained, tested_on_own};
use crate::summary::paired_seeds::is_paired;

/// The records of the tables and curves with 16 columns, of one data set.
pub fn compared(records: &[Record], set: &str) -> Vec<Record> {
    let of_set = records.iter().filter(|record| record.is_on(set));
    let whole: Vec<&Record> = of_set.filter(|record| record.is_whole()).collect();
    let alone = |record: &&&Record| !is_cross_trained(record) && !is_paired(record);
    let others = whole.iter().filter(alone).map(|&record| record.clone());
    others.chain(tested_on_own(&whole)).collect()
}
