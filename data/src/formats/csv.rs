//! CSV: a line of names, then a line for each row; commas, semicolons or tabs; quotes where text needs them. Lines end
//! with LF, CRLF or, as on old Macs, CR.
//!
//! [`CsvReader`] reads records from anywhere and knows their lines; [`CsvRecords`] is a file of them.

use crate::error::{At, Error, ErrorKind, Place, Result, read_error};
use crate::files::source::{ByteReader, LONGEST_ROW, row_too_long};
use crate::rows::cells::{Cell, EachRow, Field, FieldKind, Records, Written, check_distinct};
use crate::rows::layout::some_of;
use crate::rows::notation::{Notation, Reading};
use csv::ByteRecord;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Read};

/// The first byte of a line that is not empty, and the number of the line.
struct LineStart {
    byte: u64,
    line: u64,
}

/// A reader that notes where lines begin that are not empty, and stops in a row that is too long. A line ends with LF, CR
/// or both, as for the csv crate; that crate counts empty lines before a record as part of it, so its count cannot be used.
struct NotingLines<R> {
    reader: R,
    max_row: u64,
    /// Lines that no record has passed yet.
    begun: VecDeque<LineStart>,
    /// Bytes and ends of lines so far.
    read: u64,
    line: u64,
    inside: bool,
    after_cr: bool,
    /// Where the row begins that is being read.
    row: u64,
}

impl<R> NotingLines<R> {
    fn new(reader: R, max_row: u64) -> Self {
        Self {
            reader,
            max_row,
            begun: VecDeque::new(),
            read: 0,
            line: 0,
            inside: false,
            after_cr: false,
            row: 0,
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\r' || (byte == b'\n' && !self.after_cr) {
                self.line += 1;
                self.inside = false;
            } else if byte != b'\n' && !self.inside {
                self.begun.push_back(LineStart {
                    byte: self.read,
                    line: self.line + 1,
                });
                self.inside = true;
            }
            self.after_cr = byte == b'\r';
            self.read += 1;
        }
    }

    /// The first line that begins at this byte or after it.
    fn line_at(&mut self, byte: u64) -> u64 {
        while self.begun.front().is_some_and(|start| start.byte < byte) {
            self.begun.pop_front();
        }
        let next = self.begun.front();
        next.map_or(self.line + 1, |start| start.line)
    }
}

impl<R: Read> Read for NotingLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if self.read - self.row > self.max_row {
            let error = row_too_long(self.max_row).to_string();
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
        }
        self.note(&buffer[..count]);
        Ok(count)
    }
}

/// A hint where a row goes on over the end of its line.
const QUOTE: &str = "; is a quote left open?";

/// Records of CSV being read, whatever they are used for.
pub struct CsvReader<R> {
    reader: csv::Reader<NotingLines<R>>,
    /// Cells of the first record.
    cells: usize,
    record: ByteRecord,
    /// The line on which it begins.
    line: u64,
}

impl<R: BufRead> CsvReader<R> {
    /// Finds out what separates cells; a row may have at most `max_row` bytes.
    pub fn new(mut reader: R, max_row: u64) -> Result<Self> {
        let start = reader.fill_buf().map_err(too_large)?;
        let mut builder = csv::ReaderBuilder::new();
        // Lengths are compared here, where the line is known for certain.
        builder
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter(start));
        Ok(Self {
            reader: builder.from_reader(NotingLines::new(reader, max_row)),
            cells: 0,
            record: ByteRecord::new(),
            line: 1,
        })
    }

    /// The cells of the first line, which are names, or data if there are no names.
    pub fn first_line(&mut self) -> Result<Vec<String>> {
        if !self.next_record()? {
            let expected = "a line with the names of the columns";
            return Err(Error::expected(ErrorKind::Empty, expected, "nothing"));
        }
        if self.record.as_slice().contains(&0) {
            let got = "bytes that are zero, as in UTF-16";
            return Err(Error::expected(ErrorKind::NotUtf8, "text in UTF-8", got));
        }
        let cell = |i| Ok(self.cell(i)?.trim().to_owned());
        (0..self.cells).map(cell).collect()
    }

    /// Reads the next record; false at the end.
    pub fn next_record(&mut self) -> Result<bool> {
        let read = self.reader.read_byte_record(&mut self.record);
        let start = self.record.position().map_or(0, csv::Position::byte);
        self.line = self.reader.get_mut().line_at(start);
        let more = read.map_err(|error| self.unreadable(error))?;
        self.reader.get_mut().row = self.reader.position().byte();
        if more && self.cells == 0 {
            self.cells = self.record.len();
        }
        if more && self.record.len() != self.cells {
            let expected = format!("{} cells, as in the first line", self.cells);
            let over_lines = self.record.as_slice().iter().any(ends_line);
            let got = format!(
                "{}{}",
                self.record.len(),
                if over_lines { QUOTE } else { "" }
            );
            return Err(Error::expected(ErrorKind::CellCount, expected, got).at(self.place()));
        }
        Ok(more)
    }

    fn unreadable(&self, error: csv::Error) -> Error {
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let over_lines = self.reader.get_ref().line >= self.line;
                let hint = if over_lines { QUOTE } else { "" };
                Error::new(ErrorKind::RowTooLong, format!("{error}{hint}")).at(self.place())
            }
            csv::ErrorKind::Io(error) => read_error("", error),
            other => Error::damaged(format!("{other:?}")),
        }
    }

    /// The line on which the record begins.
    pub fn place(&self) -> Place<'static> {
        Place {
            file: "",
            at: At::Line(self.line),
        }
    }

    /// The record as it was read.
    pub fn record(&self) -> &ByteRecord {
        &self.record
    }

    /// The text of a cell.
    pub fn cell(&self, column: usize) -> Result<&str> {
        std::str::from_utf8(&self.record[column]).map_err(|_| {
            let got = format!("other bytes in cell {}", column + 1);
            Error::expected(ErrorKind::NotUtf8, "text in UTF-8", got).at(self.place())
        })
    }
}

/// An error before the first row.
fn too_large(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Error::new(ErrorKind::RowTooLong, error.to_string()),
        _ => read_error("", error),
    }
}

fn ends_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// How often a byte stands in a line outside of quotes.
fn count_outside_quotes(line: &[u8], wanted: u8) -> usize {
    let mut quoted = false;
    let outside = |byte: &&u8| {
        quoted ^= **byte == b'"';
        !quoted && **byte == wanted
    };
    line.iter().filter(outside).count()
}

/// The separator that is most frequent in the first line, outside of quotes.
pub fn delimiter(start: &[u8]) -> u8 {
    let line = start.split(ends_line).next().unwrap_or_default();
    // The last of equals wins, so the comma does.
    *b";\t,"
        .iter()
        .max_by_key(|&&wanted| count_outside_quotes(line, wanted))
        .unwrap_or(&b',')
}

/// Names must differ, and be names.
fn check_names(names: &[String]) -> Result<()> {
    let first = Place {
        file: "",
        at: At::Line(1),
    };
    check_distinct(names).map_err(|error| error.at(first))?;
    let numbers = names.iter().all(|name| name.parse::<f64>().is_ok());
    let counted = |(i, name): (usize, &String)| *name == i.to_string();
    if numbers && !names.iter().enumerate().all(counted) {
        let got = format!("numbers ({})", some_of(names));
        let error = Error::expected(ErrorKind::NamesAreNumbers, "the names of the columns", got);
        return Err(error.at(first));
    }
    Ok(())
}

/// A CSV file being read.
pub struct CsvRecords {
    name: String,
    rows: CsvReader<Box<dyn BufRead + Send>>,
    header: Vec<String>,
    /// Where the chosen columns are, if they are there, and those that are kept.
    chosen: Vec<Option<usize>>,
    kept: Vec<usize>,
    notation: Notation,
    /// A first line that turned out to be data.
    held: bool,
}

impl CsvRecords {
    /// Reads the line of names, or makes names (x0, x1, …) if the first line is data.
    pub fn open(input: ByteReader, no_header: bool, notation: Notation) -> Result<Self> {
        let name = input.name.clone();
        let named = |error: Error| error.in_file(&name);
        let mut rows = CsvReader::new(input.into_reader(), LONGEST_ROW).map_err(named)?;
        let mut header = rows.first_line().map_err(named)?;
        if no_header {
            header = (0..header.len()).map(|i| format!("x{i}")).collect();
        } else {
            check_names(&header).map_err(named)?;
        }
        Ok(Self {
            name,
            rows,
            header,
            chosen: vec![],
            kept: vec![],
            notation,
            held: no_header,
        })
    }

    /// Hands over the record that was read.
    fn row(&self, each: &mut EachRow<'_>) -> Result<()> {
        let cell = |column: &Option<usize>| column.map_or(Ok(Cell::Missing), |at| self.cell(at));
        let cells: Result<Vec<Cell>> = self.chosen.iter().map(cell).collect();
        let kept = |&column: &usize| self.written(column);
        let kept = self.kept.iter().map(kept).collect::<Result<_>>()?;
        each(self.rows.place(), &cells?, kept)
    }

    fn cell(&self, column: usize) -> Result<Cell<'_>> {
        let text = self.rows.cell(column)?.trim();
        match self.notation.read(text) {
            Reading::AsItIs => Ok(Cell::Text(text)),
            Reading::Number(number) => Ok(number.parse().map_or(Cell::Text(text), Cell::Number)),
            Reading::Other => {
                let expected = format!("a number with '{}'", self.notation.decimal);
                let error = Error::unexpected(ErrorKind::OtherNotation, expected, text);
                let error = error.in_column(&self.header[column]);
                Err(error.at(self.rows.place()))
            }
        }
    }

    /// A cell as it was written, but numbers of the chosen columns with a point, as answers beside them have it.
    fn written(&self, column: usize) -> Result<Written> {
        let text = self.rows.cell(column)?;
        let number = match self.notation.read(text.trim()) {
            Reading::Number(number) if self.chosen.contains(&Some(column)) => Some(number),
            _ => None,
        };
        Ok(Written::Text(number.unwrap_or_else(|| text.to_owned())))
    }
}

impl Records for CsvRecords {
    fn header(&self) -> Option<&[String]> {
        Some(&self.header)
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        let field = |name: &String| Field::new(name, FieldKind::Text);
        Ok(self.header.iter().map(field).collect())
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        let at: HashMap<&String, usize> = self.header.iter().zip(0..).collect();
        self.chosen = names.iter().map(|name| at.get(name).copied()).collect();
        self.kept = kept.to_vec();
    }

    fn fill(&mut self, max_rows: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..max_rows {
            let held = std::mem::take(&mut self.held);
            let named = |error: Error| error.in_file(&self.name);
            if !held && !self.rows.next_record().map_err(named)? {
                return Ok(count);
            }
            self.row(each).map_err(named)?;
        }
        Ok(max_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Origin;

    fn open(text: &[u8]) -> Result<CsvRecords> {
        CsvRecords::open(
            Origin::Memory {
                name: "a.csv".into(),
                bytes: text.into(),
            }
            .open()?,
            false,
            Notation::default(),
        )
    }

    fn line_of(place: Place<'_>) -> u64 {
        match place.at {
            At::Line(line) | At::Row(line) => line,
        }
    }

    /// All cells of the named columns, with the line each row begins at.
    fn cells(text: &str, names: &[&str]) -> Vec<(u64, Vec<String>)> {
        let mut records = open(text.as_bytes()).unwrap();
        records.select(
            &names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>(),
            &[],
        );
        let mut rows = Vec::new();
        let mut each = |place: Place<'_>, cells: &[Cell<'_>], _| {
            rows.push((
                line_of(place),
                cells
                    .iter()
                    .map(|cell| cell.category().unwrap_or("—".into()))
                    .collect(),
            ));
            Ok(())
        };
        while records.fill(1, &mut each).unwrap() > 0 {}
        rows
    }

    fn says(text: &[u8]) -> String {
        let read = |mut records: CsvRecords| {
            records.select(&records.header.clone(), &[]);
            records.fill(100, &mut |_, _, _| Ok(()))
        };
        open(text).and_then(read).unwrap_err().to_string()
    }

    #[test]
    fn quotes_holes_order_and_lines() {
        let rows = cells("\u{feff}a, b ,c\n1,\"x, y\nz\",\n\n2,NA,3.0\n", &["c", "b"]);
        assert_eq!(
            rows,
            [
                (2, vec!["".into(), "x, y\nz".into()]),
                (5, vec!["3".into(), "NA".into()])
            ]
        );
        assert_eq!(cells("a;\"b,,,\";c\n1;2,5;3\n", &["c"])[0].1, ["3"]);
        assert_eq!(cells("a\tb\r\n1\t2\r\n", &["b"]), [(2, vec!["2".into()])]);
        assert_eq!(cells("a;b\r1,2,3;2\r", &["b"]), [(2, vec!["2".into()])]);
        assert_eq!(
            cells("0,1\n5,6\n", &["1"])[0].1,
            ["6"],
            "pandas numbers columns that have no name"
        );
    }

    #[test]
    fn lines_are_counted_right() {
        let lines = |text: &str| {
            cells(text, &["a"])
                .iter()
                .map(|(line, _)| *line)
                .collect::<Vec<_>>()
        };
        for end in ["\n", "\r\n", "\r"] {
            let text = "a,b\n\n\n1,2\n\"x\ny\",3\n\n4,5\n6,7".replace('\n', end);
            assert_eq!(lines(&text), [4, 5, 8, 9], "{end:?}");
            assert_eq!(
                lines(&format!("{text}{end}")),
                [4, 5, 8, 9],
                "{end:?} at the end"
            );
            assert_eq!(
                lines(&format!("{text}{end}{end}")),
                [4, 5, 8, 9],
                "{end:?} twice at the end"
            );
        }
    }

    #[test]
    fn the_first_line_can_be_data() {
        let input = Origin::Memory {
            name: "a.csv".into(),
            bytes: b"5,6\n7,8\n"[..].into(),
        }
        .open()
        .unwrap();
        let mut records = CsvRecords::open(input, true, Notation::default()).unwrap();
        assert_eq!(records.header().unwrap(), ["x0", "x1"]);
        records.select(&["x1".to_owned()], &[0]);
        let mut seen = Vec::new();
        let mut each = |place: Place<'_>, cells: &[Cell<'_>], kept: Vec<Written>| {
            seen.push((line_of(place), cells[0].number(), kept));
            Ok(())
        };
        records.fill(9, &mut each).unwrap();
        let kept = |text: &str| vec![Written::Text(text.into())];
        assert_eq!(seen, [(1, Some(6.0), kept("5")), (2, Some(8.0), kept("7"))]);
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(
            says(b""),
            "a.csv: expected a line with the names of the columns, got nothing"
        );
        assert_eq!(says(b"\n\n"), says(b""));
        for text in ["a,b\n1,2\n3\n", "a,b\r\n1,2\r\n3\r\n", "a,b\r1,2\r3\r"] {
            assert_eq!(
                says(text.as_bytes()),
                "a.csv line 3: expected 2 cells, as in the first line, got 1"
            );
        }
        assert!(says(b"a,b\n\"1,2\n3,4\n").ends_with("got 1; is a quote left open?"));
        assert_eq!(
            says(b"a,b\n1,\xff\n"),
            "a.csv line 2: expected text in UTF-8, got other bytes in cell 2"
        );
        assert_eq!(
            says(b"a,b,a\n"),
            "a.csv line 1: expected every column to have its own name, got 'a' twice"
        );
        assert_eq!(
            says(b"5.1,3.5\n4.9,3.0\n"),
            "a.csv line 1: expected the names of the columns, got numbers (5.1, 3.5)"
        );
    }
}
