//! Without the feature `parquet`: an error that says so.

use crate::error::{Error, ErrorKind, Result};
use crate::files::atomic_file::Staged;
use crate::files::source::Origin;
use crate::rows::cells::{EachRow, Field, Records, Value};

fn absent(file: &str) -> Error {
    Error::new(ErrorKind::FormatOff, "this build has no Parquet").in_file(file)
}

/// Cannot be made.
pub enum ParquetRecords {}

impl ParquetRecords {
    /// Always an error.
    pub fn open(origin: &Origin) -> Result<Self> {
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
    /// Always an error.
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
