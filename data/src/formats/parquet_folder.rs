//! A folder of Parquet files with the same columns, one after the other in the order of their names: one table.

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::files::source::Origin;
use crate::formats::parquet::ParquetRecords;
use crate::rows::cells::{EachRow, Field, Records};
use crate::rows::layout::some_of;
use std::fs;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

/// The Parquet files of a folder, in the order of their names; hidden ones and those that begin with `_` are not data.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let fails = |error| file_error("read", folder, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_hidden = name.starts_with(['.', '_']);
        if name.to_ascii_lowercase().ends_with(".parquet") && !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The files of a folder being read.
pub struct ParquetFolder {
    now: ParquetRecords,
    left: IntoIter<PathBuf>,
    header: Vec<String>,
    names: Vec<String>, // what was selected
    kept: Vec<usize>,
}

impl ParquetFolder {
    /// Opens the first file.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut left = files(folder)?.into_iter();
        let Some(first) = left.next() else {
            let error = Error::expected(ErrorKind::Empty, "Parquet files", "none");
            return Err(error.in_file(&folder.display().to_string()));
        };
        let now = ParquetRecords::open(&Origin::File(first))?;
        Ok(Self {
            header: now.header().unwrap_or_default().to_vec(),
            now,
            left,
            names: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// Goes on to the next file, which must have the same columns; false where there is none.
    fn open_next(&mut self) -> Result<bool> {
        let Some(path) = self.left.next() else {
            return Ok(false);
        };
        let name = path.display().to_string();
        let mut next = ParquetRecords::open(&Origin::File(path))?;
        if next.header() != Some(&self.header) {
            let expected = format!("the columns of the first file, {}", some_of(&self.header));
            let got = some_of(next.header().unwrap_or_default());
            let error = Error::expected(ErrorKind::MissingColumn, expected, got);
            return Err(error.in_file(&name));
        }
        next.keepable()?;
        next.select(&self.names, &self.kept);
        self.now = next;
        Ok(true)
    }
}

impl Records for ParquetFolder {
    fn header(&self) -> Option<&[String]> {
        Some(&self.header)
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        self.now.keepable()
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        (self.names, self.kept) = (names.to_vec(), kept.to_vec());
        self.now.select(names, kept);
    }

    fn fill(&mut self, max_rows: usize, each: &mut EachRow<'_>) -> Result<usize> {
        loop {
            let rows = self.now.fill(max_rows, each)?;
            if rows > 0 || !self.open_next()? {
                return Ok(rows);
            }
        }
    }
}

#[cfg(feature = "parquet")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Output, OutputFormat};
    use crate::rows::cells::{FieldKind, Value};
    use crate::rows::layout::{ColumnKind, ReadOptions};

    fn write(path: &Path, names: [&str; 2], rows: &[(f64, &str)]) {
        let kinds = [FieldKind::Double, FieldKind::Text];
        let fields = names
            .iter()
            .zip(kinds)
            .map(|(name, kind)| Field::new(*name, kind));
        let path = path.display().to_string();
        let out = Output::create(&path, OutputFormat::Parquet, fields.collect(), None);
        let mut out = out.unwrap();
        for (x, word) in rows {
            out.row(&[Value::Double(*x), Value::Text(word)]).unwrap();
        }
        out.finish().unwrap();
    }

    #[test]
    fn files_of_a_folder_are_one_table() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(&at("b.parquet"), ["x", "w"], &[(3.0, "red"), (4.0, "blue")]);
        write(
            &at("a.parquet"),
            ["x", "w"],
            &[(1.0, "red"), (2.0, "green")],
        );
        write(&at("_old.parquet"), ["z", "w"], &[(9.0, "red")]);
        fs::write(at("_SUCCESS"), "").unwrap();
        let name = folder.path().display().to_string();
        let table = crate::read(&name, &ReadOptions::default()).unwrap();
        assert_eq!(table.values, [1.0, 2.0, 2.0, 1.0, 3.0, 2.0, 4.0, 0.0]);
        let words = ["blue", "green", "red"].map(str::to_owned).to_vec();
        assert_eq!(table.layout.columns[1].kind, ColumnKind::Categorical(words));
        write(&at("c.parquet"), ["y", "w"], &[(9.0, "red")]);
        let error = crate::read(&name, &ReadOptions::default())
            .unwrap_err()
            .to_string();
        let expected = "c.parquet: expected the columns of the first file, x, w, got y, w";
        assert!(error.ends_with(expected), "{error}");
    }
}
