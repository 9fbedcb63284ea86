//! Rows of CSV with a line of names: as numbers, and as they were written.

use csv::StringRecord;
use std::io::BufRead;
use sumout_data::Error;
use sumout_data::cells::Cell;
use sumout_data::encode::Encoder;
use sumout_data::error::{At, Place};
use sumout_data::formats::csv::CsvReader;
use sumout_data::layout::Absent;

/// Some rows of a request.
#[derive(Debug, Default)]
pub struct Piece {
    /// (rows, width); NaN is missing.
    pub values: Vec<f32>,
    /// The cells of a CSV file as they were written, for an answer in CSV; else empty.
    pub texts: Vec<StringRecord>,
}

/// A CSV file that comes back with its holes filled.
#[derive(Clone, Debug)]
pub struct CsvTable {
    /// The names of all columns, those that the model does not know too, then those of the model that are absent.
    pub header: Vec<String>,
    /// For every column of the model, its place in the header.
    pub places: Vec<usize>,
}

/// CSV being read.
pub struct CsvRows<R> {
    rows: CsvReader<R>,
    /// Its columns.
    pub table: CsvTable,
    /// Columns that the file has; those after them are absent.
    stored: usize,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the line of names. How long a row may be is the reader's affair.
    pub fn new(reader: R, encoder: &Encoder, absent: Absent) -> Result<Self, Error> {
        let mut rows = CsvReader::new(reader, u64::MAX)?;
        let mut header = rows.first_line()?;
        let stored = header.len();
        let first = Place {
            file: "",
            at: At::Line(1),
        };
        let places = encoder.places(&header, absent);
        let found = places.map_err(|error| error.at(first))?;
        let mut places = Vec::with_capacity(found.len());
        for (column, place) in found.into_iter().enumerate() {
            places.push(place.unwrap_or(header.len()));
            if place.is_none() {
                header.push(encoder.name(column).to_owned());
            }
        }
        Ok(Self {
            rows,
            table: CsvTable { header, places },
            stored,
        })
    }

    /// Adds the next row to a piece; false at the end.
    pub fn read(&mut self, encoder: &Encoder, piece: &mut Piece) -> Result<bool, Error> {
        if !self.rows.next_record()? {
            return Ok(false);
        }
        for (column, &place) in self.table.places.iter().enumerate() {
            let cell = Cell::Text(self.cell(place)?);
            let value = encoder.written_value(column, cell);
            let value = value.map_err(|error| error.at(self.rows.place()))?;
            piece.values.push(value);
        }
        let cells = (0..self.table.header.len()).map(|column| self.cell(column));
        let cells: Result<StringRecord, _> = cells.collect();
        piece.texts.push(cells?);
        Ok(true)
    }

    /// The text of a cell; nothing where the column is absent.
    fn cell(&self, place: usize) -> Result<&str, Error> {
        if place < self.stored {
            self.rows.cell(place)
        } else {
            Ok("")
        }
    }
}
