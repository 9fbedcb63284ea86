//! Arrays of numbers in binary files, row by row: what IDX, NPY and NORB files have in common.

use crate::error::{At, Error, ErrorKind, Place, Result, read_error};
use crate::files::source::ByteReader;
use crate::rows::layout::{Chunk, ImageShape, Layout, RowStream, rows_per_chunk};
use std::io::{Read, Seek, SeekFrom};

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 0 is false.
    Bool,
    /// 8 bits.
    U8,
    /// 8 bits.
    I8,
    /// 16 bits.
    U16,
    /// 16 bits.
    I16,
    /// 32 bits.
    U32,
    /// 32 bits.
    I32,
    /// 64 bits.
    U64,
    /// 64 bits.
    I64,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl Element {
    /// Bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The number in `size` bytes.
    fn value(self, bytes: &[u8], big_endian: bool) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        if big_endian {
            word[..bytes.len()].reverse();
        }
        let word = u64::from_le_bytes(word);
        match self {
            Self::Bool => f64::from(u8::from(word != 0)),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => word as f64,
            Self::I8 => f64::from(word as u8 as i8),
            Self::I16 => f64::from(word as u16 as i16),
            Self::I32 => f64::from(word as u32 as i32),
            Self::I64 => word as i64 as f64,
            Self::F32 => f64::from(f32::from_bits(word as u32)),
            Self::F64 => f64::from_bits(word),
        }
    }
}

/// What a file's header says.
#[derive(Clone, Debug)]
pub struct ArrayHeader {
    /// Rows first.
    pub dims: Vec<u64>,
    /// How numbers are stored.
    pub element: Element,
    /// The largest byte first.
    pub big_endian: bool,
}

/// A source that can go back.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

enum Storage {
    /// One row after the other.
    Rows(ByteReader),
    /// One column after the other (Fortran order), the first of them at this place.
    Columns(Box<dyn ReadSeek>, u64),
}

/// An array being read.
pub struct Array {
    name: String,
    /// Numbers of each dimension, rows first.
    pub dims: Vec<usize>,
    element: Element,
    big_endian: bool,
    storage: Storage,
    /// Where each stored number of a row goes; empty when they stay where they are.
    place: Vec<usize>,
    /// Rows handed over so far.
    next: usize,
    buffer: Vec<u8>,
}

/// An error if an array is empty, or does not fit into this many bytes.
fn check_size(header: &ArrayHeader, justified: u64) -> Result<()> {
    let shown: Vec<String> = header.dims.iter().map(u64::to_string).collect();
    let shown = shown.join("×");
    if header.dims.is_empty() {
        let got = "an array without dimensions";
        return Err(Error::expected(ErrorKind::Empty, "rows of numbers", got));
    }
    if header.dims[1..].contains(&0) {
        let (expected, got) = (
            "at least one number in a row",
            format!("an array of {shown}"),
        );
        return Err(Error::expected(ErrorKind::Empty, expected, got));
    }
    let size = header.element.size() as u64;
    let bytes_of = |dims: &[u64]| {
        dims.iter()
            .try_fold(size, |bytes, &dim| bytes.checked_mul(dim))
    };
    let fits = |bytes: &u64| *bytes <= justified && usize::try_from(*bytes).is_ok();
    // A product of 0 rows can hide dimensions that overflow when multiplied alone.
    if bytes_of(&header.dims).filter(fits).is_none() || bytes_of(&header.dims[1..]).is_none() {
        let expected = format!("{shown} numbers of {size} bytes, as its header says");
        return Err(Error::expected(
            ErrorKind::Damaged,
            expected,
            "a shorter file",
        ));
    }
    Ok(())
}

impl Array {
    /// Checks that the input can hold what its header, which has been read, claims.
    pub fn new(header: &ArrayHeader, input: ByteReader) -> Result<Self> {
        let name = input.name.clone();
        check_size(header, input.justified).map_err(|error| error.in_file(&name))?;
        Ok(Self {
            name,
            dims: header.dims.iter().map(|&dim| dim as usize).collect(),
            element: header.element,
            big_endian: header.big_endian,
            storage: Storage::Rows(input),
            place: Vec::new(),
            next: 0,
            buffer: Vec::new(),
        })
    }

    /// Numbers are stored column by column from byte `start` of `source`.
    pub fn column_by_column(mut self, source: Box<dyn ReadSeek>, start: u64) -> Self {
        self.storage = Storage::Columns(source, start);
        if self.rows() == 0 {
            return self; // nothing in the file confirms the width
        }
        // Stored with the first dimension fastest; wanted with the last one fastest.
        let tail = &self.dims[1..];
        let width: usize = tail.iter().product();
        self.place = (0..width)
            .map(|stored| last_fastest(stored, tail))
            .collect();
        self
    }

    /// Images whose channels are stored one whole plane after the other: dimensions (rows, channels, height, width)
    /// become (rows, height, width, channels).
    pub fn planes_to_pixels(mut self) -> Self {
        let [rows, channels, height, width] = self.dims[..] else {
            return self;
        };
        self.dims = vec![rows, height, width, channels];
        if rows > 0 {
            let plane = height * width;
            self.place = (0..channels * plane)
                .map(|stored| stored % plane * channels + stored / plane)
                .collect();
        }
        self
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.dims[0]
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.dims[1..].iter().product()
    }

    /// Rows of plain numbers, or images where there are three or four dimensions.
    pub fn layout(&self) -> Result<Layout> {
        let shape = match self.dims[1..] {
            [] | [_] => None,
            [height, width] => Some(ImageShape {
                height,
                width,
                channels: 1,
            }),
            [height, width, channels] => Some(ImageShape {
                height,
                width,
                channels,
            }),
            _ => {
                let expected = "an array of 1 to 4 dimensions";
                let error = Error::expected(ErrorKind::WrongType, expected, self.dims.len());
                return Err(error.in_file(&self.name));
            }
        };
        Ok(Layout::unnamed(self.width(), shape))
    }

    /// The next `count` rows as f64, in the order in which they are wanted.
    fn take(&mut self, count: usize) -> Result<Vec<f64>> {
        let (size, width) = (self.element.size(), self.width());
        let (element, big_endian) = (self.element, self.big_endian);
        let mut values;
        match &mut self.storage {
            Storage::Rows(input) => {
                input.fill(&mut self.buffer, count * width * size, "numbers")?;
                let numbers = self
                    .buffer
                    .chunks_exact(size)
                    .map(|bytes| element.value(bytes, big_endian));
                if self.place.is_empty() {
                    values = numbers.collect();
                } else {
                    values = vec![0.0; count * width];
                    for (i, number) in numbers.enumerate() {
                        values[i / width * width + self.place[i % width]] = number;
                    }
                }
            }
            Storage::Columns(source, start) => {
                values = vec![0.0; count * width];
                self.buffer.resize(count * size, 0);
                for (stored, &column) in self.place.iter().enumerate() {
                    let at = *start + ((stored * self.dims[0] + self.next) * size) as u64;
                    let read = source
                        .seek(SeekFrom::Start(at))
                        .and_then(|_| source.read_exact(&mut self.buffer));
                    read.map_err(|error| read_error(&self.name, error))?;
                    for (row, bytes) in self.buffer.chunks_exact(size).enumerate() {
                        values[row * width + column] = element.value(bytes, big_endian);
                    }
                }
            }
        }
        self.next += count;
        Ok(values)
    }

    /// The next `count` rows; NaN is missing, infinity an error.
    pub fn numbers(&mut self, count: usize) -> Result<Vec<f32>> {
        let first = self.next;
        let values = self.take(count)?;
        let numbers: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        if let Some(at) = numbers.iter().position(|number| number.is_infinite()) {
            let expected = "a finite number of 32 bits or NaN for missing";
            let got = format!("{:e}", values[at]);
            let column = format!("x{}", at % self.width());
            let error = Error::expected(ErrorKind::NotFinite, expected, got).in_column(&column);
            return Err(error.at(self.place_of(first + at / self.width())));
        }
        Ok(numbers)
    }

    /// The next `count` labels; NaN and −1 are missing.
    pub fn labels(&mut self, count: usize) -> Result<Vec<i64>> {
        let first = self.next;
        let values = self.take(count)?;
        let label = |(row, value): (usize, f64)| {
            label_of(value).map_err(|error| error.at(self.place_of(first + row)))
        };
        values.into_iter().enumerate().map(label).collect()
    }

    /// Where a row is; `row` is counted from 0, the place from 1.
    fn place_of(&self, row: usize) -> Place<'_> {
        Place {
            file: &self.name,
            at: At::Row(row as u64 + 1),
        }
    }

    /// Checks that the file ends here; numbers stored column by column have been found by their place instead.
    fn expect_end(&mut self) -> Result<()> {
        match &mut self.storage {
            Storage::Rows(input) => input.expect_end(&format!("{} rows", self.dims[0])),
            Storage::Columns(..) => Ok(()),
        }
    }
}

/// A number as a label: the number of a class, or −1 for missing.
fn label_of(value: f64) -> Result<i64> {
    match value {
        missing if missing.is_nan() => Ok(-1),
        whole if (-1.0..1e9).contains(&whole) && whole.fract() == 0.0 => Ok(whole as i64),
        other => {
            let expected = "a class (0, 1, …) or -1 for missing";
            Err(Error::expected(ErrorKind::NotAClass, expected, other))
        }
    }
}

/// An error if labels are not one for each row.
fn check_labels(labels: &Array, values: &Array) -> Result<()> {
    let error = if labels.width() != 1 {
        Error::expected(ErrorKind::Labels, "one label for each row", labels.width())
    } else if labels.rows() != values.rows() {
        let expected = format!(
            "{} labels, as many as {} has rows",
            values.rows(),
            values.name
        );
        Error::expected(ErrorKind::Labels, expected, labels.rows())
    } else {
        return Ok(());
    };
    Err(error.in_file(&labels.name))
}

/// The place with the last dimension fastest of what is stored with the first one fastest.
fn last_fastest(stored: usize, dims: &[usize]) -> usize {
    let mut left = stored;
    let at: Vec<usize> = dims
        .iter()
        .map(|&dim| (left % dim, left /= dim).0)
        .collect();
    let both = at.iter().zip(dims);
    both.fold(0, |place, (&i, &dim)| place * dim + i)
}

/// Rows of numbers with their labels, chunk by chunk.
pub fn stream(mut values: Array, mut labels: Option<Array>, layout: Layout) -> Result<RowStream> {
    if let Some(labels) = &labels {
        check_labels(labels, &values)?;
    }
    let max_rows = rows_per_chunk(values.width());
    Ok(RowStream::new(values.name.clone(), layout, move || {
        next_chunk(&mut values, labels.as_mut(), max_rows)
    }))
}

/// The next rows; none at the end, where nothing may be left in the files.
fn next_chunk(
    values: &mut Array,
    labels: Option<&mut Array>,
    max_rows: usize,
) -> Result<Option<Chunk>> {
    let first = values.next;
    let count = max_rows.min(values.rows() - first);
    if count == 0 {
        values.expect_end()?;
        labels.map_or(Ok(()), Array::expect_end)?;
        return Ok(None);
    }
    let values = values.numbers(count)?;
    let labels = labels.map(|labels| labels.labels(count)).transpose()?;
    Ok(Some(Chunk {
        first,
        values,
        labels,
        ..Chunk::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Origin;

    fn array(dims: &[u64], element: Element, bytes: &[u8]) -> Result<Array> {
        let input = Origin::Memory {
            name: "a".into(),
            bytes: bytes.into(),
        }
        .open()?;
        Array::new(
            &ArrayHeader {
                dims: dims.to_vec(),
                element,
                big_endian: false,
            },
            input,
        )
    }

    #[test]
    fn every_element_in_both_byte_orders() {
        let cases: [(Element, &[u8], f64); 11] = [
            (Element::Bool, &[2], 1.0),
            (Element::U8, &[200], 200.0),
            (Element::I8, &[200], -56.0),
            (Element::U16, &[1, 200], 51201.0),
            (Element::I16, &[1, 200], -14335.0),
            (Element::U32, &[1, 0, 0, 200], 3355443201.0),
            (Element::I32, &[255, 255, 255, 255], -1.0),
            (
                Element::U64,
                &[0, 0, 0, 0, 0, 0, 0, 128],
                9223372036854775808.0,
            ),
            (
                Element::I64,
                &[254, 255, 255, 255, 255, 255, 255, 255],
                -2.0,
            ),
            (Element::F32, &1.5f32.to_le_bytes(), 1.5),
            (Element::F64, &(-2.5f64).to_le_bytes(), -2.5),
        ];
        for (element, bytes, value) in cases {
            assert_eq!(element.size(), bytes.len());
            assert_eq!(element.value(bytes, false), value, "{element:?}");
            let backwards: Vec<u8> = bytes.iter().rev().copied().collect();
            assert_eq!(
                element.value(&backwards, true),
                value,
                "{element:?} big endian"
            );
        }
    }

    #[test]
    fn columns_come_out_as_rows() {
        // NumPy: np.asfortranarray(np.arange(12).reshape(2, 3, 2)) is stored 0 6 2 8 4 10 1 7 3 9 5 11.
        let stored = [0u8, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
        let numbers = |count: &[usize]| {
            let source = Box::new(std::io::Cursor::new([&[99], &stored[..]].concat()));
            let mut array = array(&[2, 3, 2], Element::U8, &stored)
                .unwrap()
                .column_by_column(source, 1);
            count
                .iter()
                .flat_map(|&count| array.numbers(count).unwrap())
                .collect::<Vec<_>>()
        };
        let wanted: Vec<f32> = (0..12u8).map(f32::from).collect();
        assert_eq!(numbers(&[2]), wanted);
        assert_eq!(numbers(&[1, 1]), wanted);
    }

    #[test]
    fn planes_become_pixels() {
        let mut images = array(&[1, 2, 1, 3], Element::U8, &[1, 2, 3, 11, 12, 13])
            .unwrap()
            .planes_to_pixels();
        assert_eq!(
            images.layout().unwrap().shape,
            Some(ImageShape {
                height: 1,
                width: 3,
                channels: 2
            })
        );
        assert_eq!(
            images.numbers(1).unwrap(),
            [1.0, 11.0, 2.0, 12.0, 3.0, 13.0]
        );
    }

    #[test]
    fn claims_that_the_file_does_not_justify() {
        for dims in [
            &[3u64, 2][..],
            &[u64::MAX, u64::MAX],
            &[1 << 40, 1 << 40],
            &[0, u64::MAX, u64::MAX],
            &[7],
        ] {
            let error = array(dims, Element::U8, &[0; 5]).err().unwrap().to_string();
            assert!(error.ends_with("got a shorter file"), "{error}");
        }
        let error = array(&[3, 0], Element::U8, &[0; 5])
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            error,
            "a: expected at least one number in a row, got an array of 3×0"
        );
        assert!(array(&[], Element::U8, &[0; 5]).is_err());
        let wide = array(&[0, 1 << 50, 2, 3], Element::U8, &[]).unwrap();
        assert_eq!(wide.planes_to_pixels().place.len(), 0);
        let error = array(&[1, 1, 1, 1, 1], Element::U8, &[0])
            .unwrap()
            .layout()
            .unwrap_err()
            .to_string();
        assert_eq!(error, "a: expected an array of 1 to 4 dimensions, got 5");
    }

    #[test]
    fn infinity_and_odd_labels_are_refused_with_their_row() {
        let bytes: Vec<u8> = [0.0, f64::NAN, 1.0, f64::INFINITY]
            .iter()
            .flat_map(|x: &f64| x.to_le_bytes())
            .collect();
        let error = array(&[2, 2], Element::F64, &bytes)
            .unwrap()
            .numbers(2)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "a row 2, column 'x1': expected a finite number of 32 bits or NaN for missing, got inf"
        );
        let large: Vec<u8> = [1e300].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
        let error = array(&[1, 1], Element::F64, &large)
            .unwrap()
            .numbers(1)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("got 1e300"), "{error}");
        assert_eq!(
            array(&[3], Element::I8, &[0, 255, 7])
                .unwrap()
                .labels(3)
                .unwrap(),
            [0, -1, 7]
        );
        let error = array(&[2], Element::I8, &[0, 254])
            .unwrap()
            .labels(2)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "a row 2: expected a class (0, 1, …) or -1 for missing, got -2"
        );
    }

    #[test]
    fn labels_must_match_rows() {
        let values = || array(&[3, 1], Element::U8, &[1, 2, 3]).unwrap();
        let with = |dims: &[u64], bytes: &[u8]| {
            let labels = array(dims, Element::U8, bytes).unwrap();
            stream(values(), Some(labels), values().layout().unwrap())
                .and_then(RowStream::collect_table)
        };
        assert_eq!(with(&[3], &[0, 1, 0]).unwrap().labels, Some(vec![0, 1, 0]));
        let error = with(&[2], &[0, 1]).unwrap_err().to_string();
        assert_eq!(error, "a: expected 3 labels, as many as a has rows, got 2");
        let error = with(&[3, 2], &[0; 6]).unwrap_err().to_string();
        assert_eq!(error, "a: expected one label for each row, got 2");
        let error = with(&[3], &[0, 1, 0, 9]).unwrap_err().to_string();
        assert_eq!(error, "a: expected the file to end after 3 rows, got more");
    }
}
