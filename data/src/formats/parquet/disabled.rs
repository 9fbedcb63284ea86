//! Without the feature `parquet`: messages that say how to get it.

use crate::atomic_file::Staged;
use crate::cells::{EachRow, Field, Holes, Records, Value};
use crate::error::mistake;
use crate::source::Origin;
use anyhow::Result;

fn absent(file: &str) -> anyhow::Error {
    let how =
        "build it with `cargo build --release --features parquet`, which takes a few minutes more";
    mistake(format!(
        "{file}: this build has no Parquet; {how}, or use CSV"
    ))
}

/// Cannot be made.
pub enum ParquetRecords {}

impl ParquetRecords {
    /// Says how to get it.
    pub fn open(origin: &Origin, _: Holes) -> Result<Self> {
        Err(absent(&origin.name()))
    }
}

impl Records for ParquetRecords {
    fn header(&self) -> Option<&[String]> {
        match *self {}
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        match *self {}
    }

    fn select(&mut self, _: &[String], _: &[usize]) {
        match *self {}
    }

    fn fill(&mut self, _: usize, _: &mut EachRow<'_>) -> Result<usize> {
        match *self {}
    }
}

/// Cannot be made.
pub enum ParquetWriter {}

impl ParquetWriter {
    /// Says how to get it.
    pub fn create(file: &str, _: Staged, _: &[Field]) -> Result<Self> {
        Err(absent(file))
    }

    /// Never happens.
    pub fn row(&mut self, _: &[Value<'_>]) -> Result<()> {
        match *self {}
    }

    /// Never happens.
    pub fn finish(self) -> Result<Staged> {
        match self {}
    }
}
