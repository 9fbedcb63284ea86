//! Rows that come as text: JSON lines and CSV, a few at a time.

use crate::bodies::incoming::{Held, Incoming};
use crate::formats::csv_rows::{CsvRows, CsvTable, Piece};
use crate::formats::json::NumberRows;
use crate::problem::Problem;
use std::io::BufReader;
use sumout_data::encode::Encoder;
use sumout_data::formats::json_lines::JsonLines;
use sumout_data::formats::json_row::read_row;
use sumout_data::layout::Absent;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// A request that is read a few rows at a time.
pub trait Decode {
    /// The next rows, at most `max_rows`; none at the end.
    fn next(&mut self, encoder: &Encoder, max_rows: usize) -> Result<Piece, Problem>;

    /// The columns of a CSV file.
    fn table(&self) -> Option<&CsvTable> {
        None
    }
}

/// A JSON document, which was read whole.
pub struct WholeDecoder {
    /// (rows, width).
    pub values: Vec<f32>,
    /// Numbers handed over.
    pub used: usize,
}

impl Decode for WholeDecoder {
    fn next(&mut self, encoder: &Encoder, max_rows: usize) -> Result<Piece, Problem> {
        let end = self.used + max_rows * encoder.width();
        let end = end.min(self.values.len());
        let values = self.values[self.used..end].to_vec();
        self.used = end;
        Ok(Piece {
            values,
            texts: Vec::new(),
        })
    }
}

/// JSON lines.
pub struct LinesDecoder {
    lines: JsonLines<BufReader<Incoming>>,
    held: Held,
}

impl LinesDecoder {
    /// Nothing is read yet.
    pub fn new((incoming, held): (Incoming, Held)) -> Self {
        let reader = BufReader::with_capacity(BUFFER, incoming);
        Self {
            lines: JsonLines::new(reader, u64::MAX), // what is held is counted as it comes in
            held,
        }
    }
}

impl Decode for LinesDecoder {
    fn next(&mut self, encoder: &Encoder, max_rows: usize) -> Result<Piece, Problem> {
        let mut rows = NumberRows::new(encoder);
        while rows.values.len() < max_rows * encoder.width() && self.lines.next_line()? {
            self.held.release();
            rows.begin();
            let read = read_row(self.lines.text(), &mut rows);
            read.map_err(|error| error.at(self.lines.place()))?;
        }
        Ok(Piece {
            values: rows.values,
            texts: Vec::new(),
        })
    }
}

/// CSV with a line of names.
pub struct CsvDecoder {
    rows: CsvRows<BufReader<Incoming>>,
    held: Held,
}

impl CsvDecoder {
    /// Reads the line of names.
    pub fn new(
        (incoming, held): (Incoming, Held),
        encoder: &Encoder,
        absent: Absent,
    ) -> Result<Self, Problem> {
        let reader = BufReader::with_capacity(BUFFER, incoming);
        let rows = CsvRows::new(reader, encoder, absent)?;
        Ok(Self { rows, held })
    }
}

impl Decode for CsvDecoder {
    fn next(&mut self, encoder: &Encoder, max_rows: usize) -> Result<Piece, Problem> {
        let mut piece = Piece::default();
        while piece.texts.len() < max_rows && self.rows.read(encoder, &mut piece)? {
            self.held.release();
        }
        Ok(piece)
    }

    fn table(&self) -> Option<&CsvTable> {
        Some(&self.rows.table)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixtures::encoder;
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
                .next(&encoder(), 2)
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
        let mut decoder = CsvDecoder::new(arrived(text.as_bytes(), 100), &encoder(), Absent::Error)
            .map_err(|problem| problem.message)?;
        rows(&mut decoder)
    }

    #[test]
    fn csv_in_any_order_with_extra_encoder() {
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
            "line 2: expected rows or batches of at most 100 bytes, got more"
        );
        let mut decoder = CsvDecoder::new(
            arrived(b"age,sex,coin,kind\n1,\xff,0,0\n", 100),
            &encoder(),
            Absent::Error,
        )
        .unwrap();
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "line 2: expected text in UTF-8, got other bytes in cell 2"
        );
    }

    #[test]
    fn a_line_is_a_row() {
        let says = |line: &str| {
            let mut decoder = LinesDecoder::new(arrived(line.as_bytes(), 100));
            rows(&mut decoder).unwrap_err()
        };
        assert_eq!(
            says("{}\n[1, \"q\", 0, 0]"),
            "line 2, column 'sex': expected f, m, got 'q'"
        );
        assert_eq!(says("[1, \"f\""), "line 1: the JSON ends too early");
    }

    #[test]
    fn lines_one_by_one() {
        let text = b"{\"age\": 1}\n\n[2, \"f\", null, 1]\n{}";
        let mut decoder = LinesDecoder::new(arrived(text, 20));
        assert_eq!(
            rows(&mut decoder).unwrap(),
            [1., -9., -9., -9., 2., 0., -9., 1., -9., -9., -9., -9.]
        );
        let mut decoder = LinesDecoder::new(arrived(b"{}\n{\"age\": \"x\"}\n", 20));
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "line 2, column 'age': expected a number or null, got 'x'"
        );
        let mut decoder = LinesDecoder::new(arrived(
            b"{}\n{\"age\":                              1}",
            20,
        ));
        assert_eq!(
            rows(&mut decoder).unwrap_err(),
            "line 2: expected rows or batches of at most 20 bytes, got more"
        );
    }
}
