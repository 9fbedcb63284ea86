//! More rows than memory should hold: all of them in a scratch file, and a sample of them in memory.
//!
//! The sample is drawn while rows go by, every row with the same chance; a class that it lacks gets its first rows. It
//! depends on nothing but the rows and their order.

use crate::error::{Error, Result};
use crate::files::unfinished_files::ScratchFolder;
use crate::rows::layout::{Chunk, Layout, RowStream, Table};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use sumout::random::{Purpose, Stream};

/// Rows of a sample.
pub const SAMPLE_ROWS: usize = 50_000;

/// Rows of a piece of the scratch file.
const PIECE_ROWS: usize = 4_096;

/// Rows of every class that a sample has at least, where there are so many.
const MIN_OF_CLASS: usize = 10;

/// Rows to learn from.
pub enum Gathered {
    /// All of them.
    Table(Table),
    /// A sample, and the place of all.
    Sample(Table, Spool),
}

/// Rows in a scratch file, which goes away with this value.
pub struct Spool {
    file: File,
    _folder: ScratchFolder,
    width: usize,
    rows: usize,
    class_counts: Vec<u64>,
}

/// Some rows of the scratch file.
pub struct Piece {
    /// (rows, width); NaN is missing.
    pub values: Vec<f32>,
    /// (rows); −1 is missing.
    pub labels: Vec<i64>,
}

/// Reads all rows into memory, or, where they would take more than `limit` bytes, into a scratch file.
pub fn gather(stream: RowStream, limit: u64) -> Result<Gathered> {
    let mut table = Table {
        layout: stream.layout.clone(),
        values: Vec::new(),
        labels: None,
    };
    let mut writer: Option<Writer> = None;
    for chunk in stream {
        let chunk = chunk?;
        table.layout.findings.extend(chunk.findings.iter().cloned());
        if let Some(writer) = &mut writer {
            writer.add(&chunk.values, chunk.labels.as_deref())?;
            continue;
        }
        add(&mut table, chunk);
        let labels = table.labels.as_deref();
        let bytes = 4 * table.values.len() + 8 * labels.map_or(0, <[i64]>::len);
        if bytes as u64 > limit {
            let mut new = Writer::new(table.layout.width)?;
            new.add(&table.values, labels)?;
            (table.values, table.labels) = (Vec::new(), None);
            writer = Some(new);
        }
    }
    match writer {
        None => Ok(Gathered::Table(table)),
        Some(writer) => writer.finish(table.layout),
    }
}

fn add(table: &mut Table, chunk: Chunk) {
    table.values.extend_from_slice(&chunk.values);
    if let Some(labels) = chunk.labels {
        table.labels.get_or_insert_default().extend(labels);
    }
}

/// A scratch file on its way, with the sample so far.
struct Writer {
    file: BufWriter<File>,
    folder: ScratchFolder,
    width: usize,
    rows: usize,
    has_labels: bool,
    class_counts: Vec<u64>,
    random: Stream,
    sample: Piece,
    first_of_class: BTreeMap<i64, Vec<f32>>, // the values of its first rows
}

fn wrong(error: std::io::Error) -> Error {
    Error::io(
        "write",
        "a scratch file in the folder for temporary files",
        error,
    )
}

impl Writer {
    fn new(width: usize) -> Result<Self> {
        let folder = ScratchFolder::new().map_err(wrong)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let path = folder.path().join("rows");
        let file = options.open(&path).map_err(wrong)?;
        let _ = std::fs::remove_file(path); // on Unix it stays until it is closed, also by a kill
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
            folder,
            width,
            rows: 0,
            has_labels: false,
            class_counts: Vec::new(),
            random: Stream::new(0, Purpose::Sampling, 0, 0),
            sample: Piece {
                values: Vec::new(),
                labels: Vec::new(),
            },
            first_of_class: BTreeMap::new(),
        })
    }

    fn add(&mut self, values: &[f32], labels: Option<&[i64]>) -> Result<()> {
        self.has_labels |= labels.is_some();
        for (row, numbers) in values.chunks_exact(self.width).enumerate() {
            let label = labels.map_or(-1, |labels| labels[row]);
            self.add_row(numbers, label).map_err(wrong)?;
        }
        Ok(())
    }

    fn add_row(&mut self, numbers: &[f32], label: i64) -> std::io::Result<()> {
        for number in numbers {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.write_all(&label.to_le_bytes())?;
        self.rows += 1;
        self.draw(numbers, label);
        let Ok(class) = usize::try_from(label) else {
            return Ok(());
        };
        if self.class_counts.len() <= class {
            self.class_counts.resize(class + 1, 0);
        }
        self.class_counts[class] += 1;
        if self.class_counts[class] <= MIN_OF_CLASS as u64 {
            let first = self.first_of_class.entry(label).or_default();
            first.extend_from_slice(numbers);
        }
        Ok(())
    }

    /// Perhaps takes a row into the sample.
    fn draw(&mut self, numbers: &[f32], label: i64) {
        let Piece { values, labels } = &mut self.sample;
        if labels.len() < SAMPLE_ROWS {
            values.extend_from_slice(numbers);
            labels.push(label);
            return;
        }
        let place = self.random.below(self.rows);
        if place < SAMPLE_ROWS {
            values[place * self.width..][..self.width].copy_from_slice(numbers);
            labels[place] = label;
        }
    }

    fn finish(mut self, layout: Layout) -> Result<Gathered> {
        for (label, first) in std::mem::take(&mut self.first_of_class) {
            if !self.sample.labels.contains(&label) {
                let rows = first.len() / self.width;
                self.sample.values.extend(first);
                self.sample.labels.extend(vec![label; rows]);
            }
        }
        let table = Table {
            layout,
            values: self.sample.values,
            labels: self.has_labels.then_some(self.sample.labels),
        };
        let file = self
            .file
            .into_inner()
            .map_err(|error| wrong(error.into_error()))?;
        let spool = Spool {
            file,
            _folder: self.folder,
            width: self.width,
            rows: self.rows,
            class_counts: self.class_counts,
        };
        Ok(Gathered::Sample(table, spool))
    }
}

impl Spool {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many rows have each label.
    pub fn class_counts(&self) -> &[u64] {
        &self.class_counts
    }

    /// The rows of every piece.
    pub fn sizes(&self) -> Vec<u64> {
        let starts = (0..self.rows).step_by(PIECE_ROWS);
        starts
            .map(|start| (self.rows - start).min(PIECE_ROWS) as u64)
            .collect()
    }

    /// The rows of one piece.
    pub fn piece(&self, number: usize) -> Result<Piece> {
        let row_bytes = 4 * self.width + 8;
        let first = number * PIECE_ROWS;
        let rows = self.rows.saturating_sub(first).min(PIECE_ROWS);
        let mut bytes = vec![0; rows * row_bytes];
        let mut file = &self.file;
        file.seek(SeekFrom::Start((first * row_bytes) as u64))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| Error::io("read", "a scratch file", error))?;
        let mut piece = Piece {
            values: Vec::with_capacity(rows * self.width),
            labels: Vec::with_capacity(rows),
        };
        for row in bytes.chunks_exact(row_bytes) {
            let (numbers, label) = row.split_at(4 * self.width);
            let numbers = numbers.as_chunks().0.iter();
            piece
                .values
                .extend(numbers.map(|&number| f32::from_le_bytes(number)));
            piece.labels.extend(
                label
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&label| i64::from_le_bytes(label)),
            );
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows (i, hole) in chunks of 1,000; every 20,000th is of class 1.
    fn stream(rows: usize) -> RowStream {
        let mut first = 0;
        let layout = Layout::unnamed(2, None);
        RowStream::new("rows", layout, move || {
            let chunk = first..(first + 1_000).min(rows);
            first = chunk.end;
            let values = chunk.clone().flat_map(|row| [row as f32, f32::NAN]);
            let label = |row: usize| i64::from(row % 20_000 == 19_999);
            Ok((!chunk.is_empty()).then(|| Chunk {
                first: chunk.start,
                values: values.collect(),
                labels: Some(chunk.map(label).collect()),
                ..Chunk::default()
            }))
        })
    }

    #[test]
    fn few_rows_stay_in_memory() {
        let Gathered::Table(table) = gather(stream(2_500), 1 << 20).unwrap() else {
            panic!("expected a table")
        };
        assert_eq!((table.rows(), table.labels.unwrap().len()), (2_500, 2_500));
    }

    #[test]
    fn many_rows_are_all_there_and_sampled_evenly() {
        let rows = 120_001;
        let Gathered::Sample(sample, spool) = gather(stream(rows), 1 << 20).unwrap() else {
            panic!("expected a sample")
        };
        assert_eq!(
            (spool.rows(), spool.class_counts()),
            (rows, &[119_995, 6][..])
        );
        let sizes = spool.sizes();
        assert_eq!((sizes.len(), sizes.iter().sum::<u64>()), (30, rows as u64));
        let mut next = 0;
        for (number, &size) in sizes.iter().enumerate() {
            let piece = spool.piece(number).unwrap();
            assert_eq!(
                (piece.labels.len() as u64, piece.values[1].is_nan()),
                (size, true)
            );
            for (row, &label) in piece.values.chunks_exact(2).zip(&piece.labels) {
                assert_eq!(
                    (row[0] as usize, label),
                    (next, i64::from(next % 20_000 == 19_999))
                );
                next += 1;
            }
        }
        let labels = sample.labels.as_ref().unwrap();
        assert!(labels.contains(&1) && (SAMPLE_ROWS..SAMPLE_ROWS + 7).contains(&sample.rows()));
        let late = sample
            .values
            .iter()
            .step_by(2)
            .filter(|&&x| x >= 60_000.0)
            .count();
        assert!((24_000..26_000).contains(&late), "{late}");
        let Gathered::Sample(again, _) = gather(stream(rows), 0).unwrap() else {
            panic!("expected a sample")
        };
        assert_eq!(again.values.len(), sample.values.len());
        let bits = |table: &Table| table.values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&again), bits(&sample)); // when the file begins does not matter
    }
}
