//! Rows that come as text: JSON lines and CSV, a few at a time.

use crate::columns::Columns;
use crate::formats::json;
use crate::problem::Problem;
use crate::spool::{Held, Incoming, unreadable};
use csv::StringRecord;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex};
use sumout_data::cells::Cell;
use sumout_data::formats::csv::{LineStarts, Noting, delimiter, line_of};

/// Some rows of a request.
#[derive(Debug, Default)]
pub struct Piece {
    /// (rows, width); NaN is missing.
    pub values: Vec<f32>,
    /// The cells of a CSV file as they were written, for an answer in CSV; else empty.
    pub texts: Vec<StringRecord>,
}

/// A request that is read a few rows at a time.
pub trait Decode {
    /// The next rows, at most `most`; none at the end.
    fn next(&mut self, columns: &Columns, most: usize) -> Result<Piece, Problem>;

    /// The names of all columns of a CSV file, those that the model does not know too.
    fn header(&self) -> Option<&[String]> {
        None
    }

    /// For every column of the model, its place in that header.
    fn places(&self) -> &[usize] {
        &[]
    }
}

/// A JSON body, which was read whole.
pub struct Whole {
    /// (rows, width).
    pub values: Vec<f32>,
    /// Numbers handed over.
    pub used: usize,
}

impl Decode for Whole {
    fn next(&mut self, columns: &Columns, most: usize) -> Result<Piece, Problem> {
        let end = self.values.len().min(self.used + most * columns.width());
        let values = self.values[self.used..end].to_vec();
        self.used = end;
        Ok(Piece {
            values,
            texts: Vec::new(),
        })
    }
}

/// JSON lines.
pub struct Lines {
    reader: BufReader<Incoming>,
    held: Held,
    line: usize,
    buffer: Vec<u8>,
}

impl Lines {
    /// Nothing is read yet.
    pub fn new((incoming, held): (Incoming, Held)) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 16, incoming),
            held,
            line: 0,
            buffer: Vec::new(),
        }
    }
}

impl Decode for Lines {
    fn next(&mut self, columns: &Columns, most: usize) -> Result<Piece, Problem> {
        let mut piece = Piece::default();
        while piece.values.len() < most * columns.width() {
            self.buffer.clear();
            if self
                .reader
                .read_until(b'\n', &mut self.buffer)
                .map_err(|error| unreadable(&error))?
                == 0
            {
                break;
            }
            self.held.release();
            self.line += 1;
            if !self.buffer.trim_ascii().is_empty() {
                json::line(&self.buffer, columns, self.line, &mut piece.values)?;
            }
        }
        Ok(piece)
    }
}

/// CSV with a line of names.
pub struct Csv {
    reader: csv::Reader<Noting<BufReader<Incoming>>>,
    lines: Arc<Mutex<LineStarts>>,
    held: Held,
    header: Vec<String>,
    /// For every column of the model, its place.
    places: Vec<usize>,
}

impl Csv {
    /// Reads the line of names.
    pub fn new((incoming, held): (Incoming, Held), columns: &Columns) -> Result<Self, Problem> {
        let mut reader = BufReader::with_capacity(1 << 16, incoming);
        let start = reader.fill_buf().map_err(|error| unreadable(&error))?;
        let mut builder = csv::ReaderBuilder::new();
        builder
            .has_headers(true)
            .flexible(true)
            .delimiter(delimiter(start));
        let (noting, lines) = Noting::new(reader, u64::MAX); // what is held is counted as it comes in
        let mut reader = builder.from_reader(noting);
        let names = reader.headers().map_err(|error| wrong(&error, &lines))?;
        let header: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
        if header.is_empty() {
            return Err(Problem::bad(
                "expected a line with the names of the columns, got nothing",
            ));
        }
        let places = columns
            .places(&header)
            .map_err(|what| Problem::bad(format!("line 1: {what}")))?;
        Ok(Self {
            reader,
            lines,
            held,
            header,
            places,
        })
    }
}

/// What the csv crate says, with the line.
fn wrong(error: &csv::Error, lines: &Mutex<LineStarts>) -> Problem {
    match error.kind() {
        csv::ErrorKind::Io(error) => unreadable(error),
        csv::ErrorKind::Utf8 { pos, .. } => {
            let line = line_of(lines, pos.as_ref());
            Problem::bad(format!(
                "line {line}: expected text in UTF-8, got other bytes"
            ))
        }
        _ => Problem::bad(error.to_string()),
    }
}

impl Decode for Csv {
    fn next(&mut self, columns: &Columns, most: usize) -> Result<Piece, Problem> {
        let mut piece = Piece::default();
        while piece.texts.len() < most {
            let mut record = StringRecord::new();
            if !self
                .reader
                .read_record(&mut record)
                .map_err(|error| wrong(&error, &self.lines))?
            {
                break;
            }
            self.held.release();
            let line = line_of(&self.lines, record.position());
            if record.len() != self.header.len() {
                let (expected, got) = (self.header.len(), record.len());
                let message = format!(
                    "line {line}: expected {expected} cells, as in the first line, got {got}"
                );
                return Err(Problem::bad(message));
            }
            for (column, &place) in self.places.iter().enumerate() {
                let value = columns.value(column, Cell::Text(&record[place]));
                let wrong = |what| {
                    Problem::bad(format!(
                        "line {line}, column '{}': {what}",
                        self.header[place]
                    ))
                };
                piece.values.push(value.map_err(wrong)?);
            }
            piece.texts.push(record);
        }
        Ok(piece)
    }

    fn header(&self) -> Option<&[String]> {
        Some(&self.header)
    }

    fn places(&self) -> &[usize] {
        &self.places
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::columns::tests::columns;
    use axum::body::Bytes;

    /// A body that has arrived, in small pieces.
    pub fn arrived(bytes: &[u8], most: usize) -> (Incoming, Held) {
        let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
        let (sender, receiver) = tokio::sync::mpsc::channel(pieces.len().max(1));
        pieces
            .iter()
            .for_each(|piece| sender.blocking_send(Bytes::copy_from_slice(piece)).unwrap());
        Incoming::new(receiver, most)
    }

    /// All rows, holes as −9.
    pub fn rows(decoder: &mut dyn Decode) -> Result<Vec<f32>, String> {
        let mut all = Vec::new();
        loop {
            let piece = decoder
                .next(&columns(), 2)
                .map_err(|problem| problem.message)?;
            if piece.values.is_empty() {
                return Ok(all);
            }
            all.extend(
                piece
                    .values
                    .iter()
                    .map(|x| if x.is_nan() { -9.0 } else { *x }),
            );
        }
    }

    fn csv(text: &str) -> Result<Vec<f32>, String> {
        let mut decoder = Csv::new(arrived(text.as_bytes(), 100), &columns())
            .map_err(|problem| problem.message)?;
        rows(&mut decoder)
    }

    #[test]
    fn csv_in_any_order_with_extra_columns() {
        let text = "id,kind,coin,sex,age\na,2,1,m,3.5\n\"b\nc\",,NA,,\nd,0,0,f,-1\n";
        assert_eq!(
            csv(text).unwrap(),
            [3.5, 1., 1., 2., -9., -9., -9., -9., -1., 0., 0., 0.]
        );
        assert_eq!(csv(&text.replace(',', ";")).unwrap().len(), 12);
        assert_eq!(csv("age,sex,coin,kind\n").unwrap(), [0.0; 0]);
    }

    #[test]
    fn nonsense_is_placed() {
        let says = |text: &str| csv(text).unwrap_err();
        assert_eq!(
            says("age,sex,coin,kind\n1,f,0,0\n1,x,0,0\n"),
            "line 3, column 'sex': expected f, m, got 'x'"
        );
        for text in [
            "age,sex,coin,kind\n1,f,0,0\n1,f,0,0\n1,x,0,0\n",
            "age,sex,coin,kind\n\n\n1,x,0,0\n",
        ] {
            for end in ["\n", "\r\n", "\r"] {
                assert_eq!(
                    says(&text.replace('\n', end)),
                    "line 4, column 'sex': expected f, m, got 'x'"
                );
            }
        }
        assert_eq!(
            says("age,sex,coin,kind\n1,f\n"),
            "line 2: expected 4 cells, as in the first line, got 2"
        );
        assert_eq!(
            says("age,sex,coin,kind\ninf,f,0,0\n"),
            "line 2, column 'age': expected a finite number of 32 bits, got 'inf'"
        );
        assert_eq!(
            says("age,sex\n1,f\n"),
            "line 1: expected a column 'coin', as the model has, got age, sex"
        );
        assert_eq!(
            says(""),
            "expected a line with the names of the columns, got nothing"
        );
        assert_eq!(
            says(&format!("age,sex,coin,kind\n{},", "9".repeat(200))),
            "expected rows or batches of at most 100 bytes, got more"
        );
        let mut decoder =
            Csv::new(arrived(b"age,sex,coin,kind\n1,\xff,0,0\n", 100), &columns()).unwrap();
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "line 2: expected text in UTF-8, got other bytes"
        );
    }

    #[test]
    fn lines_one_by_one() {
        let text = b"{\"age\": 1}\n\n[2, \"f\", null, 1]\n{}";
        let mut decoder = Lines::new(arrived(text, 20));
        assert_eq!(
            rows(&mut decoder).unwrap(),
            [1., -9., -9., -9., 2., 0., -9., 1., -9., -9., -9., -9.]
        );
        let mut decoder = Lines::new(arrived(b"{}\n{\"age\": \"x\"}\n", 20));
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "line 2, column 'age': expected a number or null, got the text 'x'"
        );
        let mut decoder = Lines::new(arrived(
            b"{}\n{\"age\":                              1}",
            20,
        ));
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "expected rows or batches of at most 20 bytes, got more"
        );
    }
}
