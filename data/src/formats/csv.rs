//! CSV: a line of names, then a line for each row; commas, semicolons or tabs; quotes where text needs them. Lines end
//! with LF, CRLF or, as on old Macs, CR.

use crate::cells::{Cell, EachRow, Field, FieldKind, Holes, Place, Records, Written};
use crate::error::mistake;
use crate::layout::some_of;
use crate::source::{Input, LONGEST_ROW, row_too_long};
use anyhow::Result;
use csv::{ByteRecord, ErrorKind};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, MutexGuard};

/// Where lines begin that are not empty, as far as they have been read: the place of the first byte and the number of
/// the line. A line ends with LF, CR or both, as for the csv crate; that one counts empty lines before a record as part
/// of it, so it cannot be asked.
#[derive(Default)]
pub struct LineStarts {
    begun: VecDeque<(u64, u64)>,
    read: u64,
    line: u64,
    inside: bool,
    after_cr: bool,
    /// Where the row begins that is being read.
    row: u64,
}

impl LineStarts {
    fn note(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\r' || (byte == b'\n' && !self.after_cr) {
                self.line += 1;
                self.inside = false;
            } else if byte != b'\n' && !self.inside {
                self.begun.push_back((self.read, self.line + 1));
                self.inside = true;
            }
            self.after_cr = byte == b'\r';
            self.read += 1;
        }
    }

    /// The first line that begins at this place or after it.
    fn at(&mut self, place: u64) -> u64 {
        while self.begun.front().is_some_and(|&(begun, _)| begun < place) {
            self.begun.pop_front();
        }
        self.begun.front().map_or(self.line + 1, |&(_, line)| line)
    }
}

/// A reader that notes where lines begin, and stops in a row that is too long.
pub struct Noting<R> {
    reader: R,
    longest: u64,
    lines: Arc<Mutex<LineStarts>>,
}

impl<R> Noting<R> {
    /// Notes what is read; the lines can be asked for elsewhere, and are told there where a row begins.
    pub fn new(reader: R, longest: u64) -> (Self, Arc<Mutex<LineStarts>>) {
        let lines = Arc::new(Mutex::new(LineStarts::default()));
        (
            Self {
                reader,
                longest,
                lines: lines.clone(),
            },
            lines,
        )
    }
}

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let mut lines = locked(&self.lines);
        if lines.read - lines.row > self.longest {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, row_too_long()));
        }
        lines.note(&buffer[..count]);
        Ok(count)
    }
}

fn locked(lines: &Mutex<LineStarts>) -> MutexGuard<'_, LineStarts> {
    lines
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The line on which a record begins.
pub fn line_of(lines: &Mutex<LineStarts>, position: Option<&csv::Position>) -> u64 {
    locked(lines).at(position.map_or(0, csv::Position::byte))
}

/// What is asked where a row goes on over the end of its line.
const QUOTE: &str = "; is a quote left open?";

/// A CSV file being read.
pub struct CsvRecords {
    name: String,
    reader: csv::Reader<Noting<Box<dyn BufRead + Send>>>,
    lines: Arc<Mutex<LineStarts>>,
    header: Vec<String>,
    /// Where the chosen columns are, and those that are kept.
    chosen: Vec<usize>,
    kept: Vec<usize>,
    holes: Holes,
    record: ByteRecord,
    /// The line on which it begins.
    line: u64,
    /// A first line that turned out to be data.
    held: bool,
}

impl CsvRecords {
    /// Reads the line of names, or makes names (x0, x1, …) if the first line is data.
    pub fn open(mut input: Input, no_header: bool, holes: Holes) -> Result<Self> {
        let name = input.name.clone();
        let delimiter = delimiter(input.peek()?);
        let mut builder = csv::ReaderBuilder::new();
        // Lengths are compared here, where the line is known for certain.
        builder
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter);
        let (noting, lines) = Noting::new(input.into_reader(), LONGEST_ROW);
        let reader = builder.from_reader(noting);
        let mut records = Self {
            name,
            reader,
            lines,
            header: vec![],
            chosen: vec![],
            kept: vec![],
            holes,
            record: ByteRecord::new(),
            line: 1,
            held: false,
        };
        if !records.next()? {
            let name = records.name;
            return Err(mistake(format!(
                "{name}: expected a line with the names of the columns, got an empty file"
            )));
        }
        let columns = 0..records.record.len();
        let cells = columns
            .map(|i| Ok(records.cell(i)?.trim().to_owned()))
            .collect::<Result<Vec<_>>>()?;
        if no_header {
            records.header = (0..cells.len()).map(|i| format!("x{i}")).collect();
            records.held = true;
        } else {
            check_names(&records.name, &cells)?;
            records.header = cells;
        }
        Ok(records)
    }

    /// Reads the next record; false at the end.
    fn next(&mut self) -> Result<bool> {
        let read = self.reader.read_byte_record(&mut self.record);
        self.line = line_of(&self.lines, self.record.position());
        let more = read.map_err(|error| match error.into_kind() {
            ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let hint = if locked(&self.lines).line >= self.line {
                    QUOTE
                } else {
                    ""
                };
                mistake(format!("{}: {error}{hint}", self.place()))
            }
            ErrorKind::Io(error) => crate::source::damaged(&self.name, error),
            other => anyhow::anyhow!("{}: {other:?}", self.name),
        })?;
        locked(&self.lines).row = self.reader.position().byte();
        let (expected, got) = (self.header.len(), self.record.len());
        if more && expected > 0 && got != expected {
            let place = self.place();
            let hint = if self.record.as_slice().iter().any(ends_line) {
                QUOTE
            } else {
                ""
            };
            return Err(mistake(format!(
                "{place}: expected {expected} cells, as in the first line, got {got}{hint}"
            )));
        }
        Ok(more)
    }

    fn place(&self) -> Place<'_> {
        Place {
            file: &self.name,
            unit: "line",
            row: self.line,
        }
    }

    /// The text of a cell.
    fn cell(&self, column: usize) -> Result<&str> {
        std::str::from_utf8(&self.record[column]).map_err(|_| {
            let place = self.place();
            mistake(format!(
                "{place}: expected text in UTF-8, got other bytes in cell {}",
                column + 1
            ))
        })
    }
}

fn ends_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The separator that stands most often in the first line, outside of quotes.
pub fn delimiter(start: &[u8]) -> u8 {
    let line = start.split(ends_line).next().unwrap_or_default();
    let outside = |wanted: u8| {
        let mut quoted = false;
        line.iter()
            .filter(|&&byte| {
                quoted ^= byte == b'"';
                !quoted && byte == wanted
            })
            .count()
    };
    // The last of equals wins, so the comma does.
    *b";\t,"
        .iter()
        .max_by_key(|&&wanted| outside(wanted))
        .unwrap_or(&b',')
}

/// Names must differ, and be names.
fn check_names(file: &str, names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    if let Some(twice) = names
        .iter()
        .find(|name| !name.is_empty() && !seen.insert(*name))
    {
        return Err(mistake(format!(
            "{file} line 1: expected every column to have its own name, got '{twice}' twice"
        )));
    }
    let numbers = names.iter().all(|name| name.parse::<f64>().is_ok());
    let counted = names
        .iter()
        .enumerate()
        .all(|(i, name)| *name == i.to_string());
    if numbers && !counted {
        let hint = "if the first line is data already, say --no-header";
        let message = format!(
            "{file} line 1: expected the names of the columns, got numbers ({}); {hint}",
            some_of(names)
        );
        return Err(mistake(message));
    }
    Ok(())
}

impl Records for CsvRecords {
    fn header(&self) -> Option<&[String]> {
        Some(&self.header)
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        Ok(self
            .header
            .iter()
            .map(|name| Field::new(name, FieldKind::Text))
            .collect())
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        let at: HashMap<&String, usize> = self
            .header
            .iter()
            .enumerate()
            .map(|(i, name)| (name, i))
            .collect();
        self.chosen = names
            .iter()
            .filter_map(|name| at.get(name).copied())
            .collect();
        self.kept = kept.to_vec();
    }

    fn fill(&mut self, most: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..most {
            if !std::mem::take(&mut self.held) && !self.next()? {
                return Ok(count);
            }
            let cells = self
                .chosen
                .iter()
                .map(|&column| Ok(self.holes.cell(self.cell(column)?)));
            let cells = cells.collect::<Result<Vec<Cell>>>()?;
            let kept = self
                .kept
                .iter()
                .map(|&column| Ok(Written::Text(self.cell(column)?.to_owned())));
            each(self.place(), &cells, kept.collect::<Result<_>>()?)?;
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Origin;

    fn open(text: &[u8]) -> Result<CsvRecords> {
        CsvRecords::open(
            Origin::Memory {
                name: "a.csv".into(),
                bytes: text.into(),
            }
            .open()?,
            false,
            Holes::default(),
        )
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
                place.row,
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
                (2, vec!["—".into(), "x, y\nz".into()]),
                (5, vec!["3".into(), "—".into()])
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
        let mut records = CsvRecords::open(input, true, Holes::default()).unwrap();
        assert_eq!(records.header().unwrap(), ["x0", "x1"]);
        records.select(&["x1".to_owned()], &[0]);
        let mut seen = Vec::new();
        let mut each = |place: Place<'_>, cells: &[Cell<'_>], kept: Vec<Written>| {
            seen.push((place.row, cells[0].number(), kept));
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
            "a.csv: expected a line with the names of the columns, got an empty file"
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
            "a.csv line 1: expected the names of the columns, got numbers (5.1, 3.5); if the first line is data \
             already, say --no-header"
        );
    }
}
