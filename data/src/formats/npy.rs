//! NPY, NumPy's format for one array: `\x93NUMPY`, a version, the length of a header, and the header, which is a Python
//! dictionary such as `{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }`; then the numbers.

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::files::source::{ByteReader, Origin};
use crate::formats::array::{Array, ArrayHeader, Element, stream};
use crate::rows::layout::{ImageShape, RowStream};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers of plain arrays have about a hundred bytes; NumPy itself refuses more than ten thousand.
const LONGEST_HEADER: usize = 1 << 16;

/// The numbers that are read, as NumPy calls them.
const READABLE: &str = "f4, f8, u1, u2, u4, u8, i1, i2, i4, i8 or b1";

/// What stands in the dictionary, and the length of all that precedes the numbers.
struct Preamble {
    header: ArrayHeader,
    fortran: bool,
    bytes: u64,
}

fn preamble(input: &mut ByteReader) -> Result<Preamble> {
    let start: [u8; 8] = input.array("NPY header")?;
    if !start.starts_with(MAGIC) {
        let got = format!("bytes {:02x?}", &start[..6]);
        let error = Error::expected(ErrorKind::Damaged, "an NPY array (\\x93NUMPY)", got);
        return Err(error.in_file(&input.name));
    }
    let (length, before) = match start[6] {
        1 => (
            u32::from(u16::from_le_bytes(input.array("NPY header")?)),
            10,
        ),
        2 | 3 => (u32::from_le_bytes(input.array("NPY header")?), 12),
        other => {
            let error = Error::expected(ErrorKind::Damaged, "NPY version 1, 2 or 3", other);
            return Err(error.in_file(&input.name));
        }
    };
    if length as usize > LONGEST_HEADER {
        let expected = format!("an NPY header of at most {LONGEST_HEADER} bytes");
        return Err(Error::expected(ErrorKind::Damaged, expected, length).in_file(&input.name));
    }
    let mut text = Vec::new();
    input.fill(&mut text, length as usize, "NPY header")?;
    let text = String::from_utf8_lossy(&text);
    let said = Dictionary::parse(&text)
        .map_err(|what| Error::damaged(format!("NPY header: {what}")).in_file(&input.name))?;
    let (element, big_endian) = element(&said.descr).map_err(|error| error.in_file(&input.name))?;
    let header = ArrayHeader {
        dims: said.shape,
        element,
        big_endian,
    };
    Ok(Preamble {
        header,
        fortran: said.fortran,
        bytes: before + u64::from(length),
    })
}

/// The element and whether its largest byte comes first.
fn element(descr: &str) -> Result<(Element, bool)> {
    let expected = format!("numbers of type {READABLE}");
    let unreadable = || Error::unexpected(ErrorKind::WrongType, &*expected, descr);
    let (order, kind) = descr.split_at_checked(1).ok_or_else(unreadable)?;
    let element = match kind {
        "f4" => Element::F32,
        "f8" => Element::F64,
        "u1" => Element::U8,
        "u2" => Element::U16,
        "u4" => Element::U32,
        "u8" => Element::U64,
        "i1" => Element::I8,
        "i2" => Element::I16,
        "i4" => Element::I32,
        "i8" => Element::I64,
        "b1" => Element::Bool,
        _ => return Err(unreadable()),
    };
    match order {
        "<" | "|" | "=" => Ok((element, false)),
        ">" => Ok((element, true)),
        _ => Err(unreadable()),
    }
}

/// The three entries of the header.
struct Dictionary {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

/// The names of the three entries.
const ENTRIES: &str = "descr, fortran_order and shape";

impl Dictionary {
    fn parse(text: &str) -> Result<Self, String> {
        let body = text.trim().strip_prefix('{');
        let body = body.and_then(|text| text.strip_suffix('}'));
        let mut rest = body
            .ok_or_else(|| format!("expected {{…}}, got '{}'", clip(text)))?
            .trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let after = after.trim_start().strip_prefix(':');
            let after = after.ok_or(format!("expected ':' after '{key}'"))?;
            rest = after.trim_start();
            match key {
                "descr" => descr = Some(descr_of(&mut rest)?),
                "fortran_order" => fortran = Some(truth_of(&mut rest)?),
                "shape" => shape = Some(shape_of(&mut rest)?),
                _ => return Err(format!("expected {ENTRIES}, got '{}'", clip(key))),
            }
            rest = rest.trim_start().strip_prefix(',').unwrap_or(rest).trim();
        }
        let missing = |what| format!("expected {ENTRIES}, got no {what}");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// Takes a type from the front of the text.
fn descr_of(rest: &mut &str) -> Result<String, String> {
    let wrong = |_| format!("expected one plain type ({READABLE}), got {}", clip(rest));
    let (value, after) = quoted(rest).map_err(wrong)?;
    *rest = after;
    Ok(value.to_owned())
}

/// Takes True or False from the front of the text.
fn truth_of(rest: &mut &str) -> Result<bool, String> {
    let word = rest.split([',', '}', ' ']).next().unwrap_or_default();
    let truth = match word {
        "True" => true,
        "False" => false,
        _ => {
            let got = clip(word);
            return Err(format!(
                "expected True or False for fortran_order, got '{got}'"
            ));
        }
    };
    *rest = &rest[word.len()..];
    Ok(truth)
}

/// Takes a tuple of numbers from the front of the text.
fn shape_of(rest: &mut &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("expected a shape such as (3, 4), got '{}'", clip(rest));
    let inside = rest.strip_prefix('(').ok_or_else(wrong)?;
    let (inside, after) = inside.split_once(')').ok_or_else(wrong)?;
    let numbers = inside.split(',').map(str::trim);
    let numbers = numbers.filter(|number| !number.is_empty()).map(str::parse);
    let shape = numbers.collect::<Result<_, _>>().map_err(|_| wrong())?;
    *rest = after;
    Ok(shape)
}

/// A Python string and what follows it.
fn quoted(text: &str) -> Result<(&str, &str), String> {
    let wrong = || format!("expected a quoted name, got '{}'", clip(text));
    let quote = text
        .chars()
        .next()
        .filter(|&c| c == '\'' || c == '"')
        .ok_or_else(wrong)?;
    text[1..].split_once(quote).ok_or_else(wrong)
}

/// The beginning of a text, for a message.
fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Reads the header of an array that is a stream, as in an archive: a Fortran one is read into memory.
pub fn array(mut input: ByteReader) -> Result<Array> {
    let Preamble {
        header, fortran, ..
    } = preamble(&mut input)?;
    if !fortran || header.dims.len() < 2 {
        return Array::new(&header, input);
    }
    // Its rows are spread over the whole stream.
    let name = input.name.clone();
    let justified = input.justified;
    let checked = Array::new(
        &header,
        ByteReader::plain(name.clone(), Box::new(io::empty()), justified),
    )?;
    let count = checked.rows() * checked.width() * header.element.size();
    let mut bytes = Vec::new();
    input.fill(&mut bytes, count, "numbers")?;
    input.expect_end("them")?;
    Ok(checked.column_by_column(Box::new(Cursor::new(bytes)), 0))
}

/// Reads the header of a file. Fortran order is read where it lies, so that memory does not grow with rows.
pub fn array_of_file(path: &Path) -> Result<Array> {
    let origin = Origin::File(path.to_owned());
    let mut input = origin.open()?;
    let zipped = !input.peek()?.starts_with(MAGIC)
        || input.justified != path.metadata().map_or(0, |about| about.len());
    if zipped {
        return array(input);
    }
    let Preamble {
        header,
        fortran,
        bytes,
    } = preamble(&mut input)?;
    let array = Array::new(&header, input)?;
    if !fortran || header.dims.len() < 2 {
        return Ok(array);
    }
    let file = File::open(path).map_err(|error| file_error("read", path, error))?;
    Ok(array.column_by_column(Box::new(BufReader::new(file)), bytes))
}

/// Rows of one array, with the labels beside it if they are there.
pub fn open_file(path: &Path) -> Result<RowStream> {
    let values = array_of_file(path)?;
    let layout = values.layout()?;
    let labels = labels_beside(path)
        .map(|path| array_of_file(&path))
        .transpose()?;
    stream(values, labels, layout)
}

/// `y_train.npy` for `X_train.npy`, and `train-labels.npy` or `train_labels.npy` for `train.npy`.
fn labels_beside(path: &Path) -> Option<PathBuf> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".npy")?;
    let y = stem
        .strip_prefix(['X', 'x'])
        .map(|rest| format!("y{rest}.npy"));
    let names = y
        .into_iter()
        .chain(["-labels", "_labels"].map(|ending| format!("{stem}{ending}.npy")));
    names
        .map(|name| path.with_file_name(name))
        .find(|path| path.is_file())
}

/// Bytes for the header while the number of rows is not known yet; a multiple of 64, as NumPy wants it.
const WRITTEN_HEADER: usize = 128;

/// Writes an array row by row; the header is filled in at the end.
pub struct NpyWriter<W: Write + Seek> {
    out: W,
    double: bool,
    width: usize,
    shape: Option<ImageShape>,
    numbers: usize,
}

impl<W: Write + Seek> NpyWriter<W> {
    /// Numbers of 64 bits if `double`, else of 32.
    pub fn new(
        mut out: W,
        double: bool,
        width: usize,
        shape: Option<ImageShape>,
    ) -> io::Result<Self> {
        out.write_all(&[0; WRITTEN_HEADER])?;
        Ok(Self {
            out,
            double,
            width,
            shape,
            numbers: 0,
        })
    }

    /// The next number.
    pub fn push(&mut self, number: f64) -> io::Result<()> {
        self.numbers += 1;
        if self.double {
            self.out.write_all(&number.to_le_bytes())
        } else {
            self.out.write_all(&(number as f32).to_le_bytes())
        }
    }

    /// Writes the header and hands the file back.
    pub fn finish(mut self) -> io::Result<W> {
        let rows = self.numbers / self.width;
        let shape = match self.shape {
            Some(ImageShape {
                height,
                width,
                channels: 1,
            }) => format!("({rows}, {height}, {width})"),
            Some(ImageShape {
                height,
                width,
                channels,
            }) => format!("({rows}, {height}, {width}, {channels})"),
            None => format!("({rows}, {})", self.width),
        };
        let descr = if self.double { "<f8" } else { "<f4" };
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let length = WRITTEN_HEADER - MAGIC.len() - 4;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(MAGIC)?;
        self.out.write_all(&[1, 0])?;
        self.out.write_all(&(length as u16).to_le_bytes())?;
        self.out
            .write_all(format!("{text:<width$}\n", width = length - 1).as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A file of the tests.
    pub(crate) fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name)
    }

    fn file(version: u8, header: &str, numbers: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<f32>> {
        let mut array = array(
            Origin::Memory {
                name: "a.npy".into(),
                bytes: bytes.into(),
            }
            .open()?,
        )?;
        array.numbers(array.rows())
    }

    fn says(header: &str) -> String {
        read(&file(1, header, &[0; 8])).unwrap_err().to_string()
    }

    #[test]
    fn arrays_of_numpy() {
        for name in ["hole.npy", "fortran.npy"] {
            let rows = open_file(&data(name)).unwrap();
            assert_eq!(
                rows.layout.shape,
                Some(ImageShape {
                    height: 2,
                    width: 2,
                    channels: 1
                })
            );
            let values = rows.collect_table().unwrap().values;
            assert!(values[5].is_nan());
            let seen: Vec<f32> = values.iter().copied().filter(|x| !x.is_nan()).collect();
            assert_eq!(
                seen,
                [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
                "{name}"
            );
        }
    }

    #[test]
    fn labels_lie_beside() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = file(
            1,
            "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1)}",
            &[5, 6],
        );
        let labels = file(
            1,
            "{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}",
            &[1, 255],
        );
        for (x, y) in [
            ("X_train", "y_train"),
            ("train", "train-labels"),
            ("a", "a_labels"),
        ] {
            fs::write(folder.path().join(format!("{x}.npy")), &numbers).unwrap();
            fs::write(folder.path().join(format!("{y}.npy")), &labels).unwrap();
            let path = folder.path().join(format!("{x}.npy"));
            let table = open_file(&path).unwrap().collect_table().unwrap();
            assert_eq!(
                (table.labels, table.values),
                (Some(vec![1, -1]), vec![5.0, 6.0]),
                "{x}"
            );
        }
    }

    #[test]
    fn headers_as_people_write_them() {
        let header = "{ \"shape\":(2 , 1,), 'fortran_order' :False,'descr':'<i2' }   \n";
        for version in 1..=3 {
            assert_eq!(
                read(&file(version, header, &[1, 0, 255, 255])).unwrap(),
                [1.0, -1.0]
            );
        }
    }

    #[test]
    fn nonsense_is_named() {
        let bytes = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(bytes(b""), "a.npy: expected 8 bytes of NPY header, got 0");
        assert_eq!(
            bytes(b"x0,x1\n1,2\n"),
            "a.npy: expected an NPY array (\\x93NUMPY), got bytes [78, 30, 2c, 78, 31, 0a]"
        );
        assert_eq!(
            bytes(&file(9, "", &[])),
            "a.npy: expected NPY version 1, 2 or 3, got 9"
        );
        let mut long = file(2, "", &[]);
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            bytes(&long),
            "a.npy: expected an NPY header of at most 65536 bytes, got 4294967295"
        );
        assert_eq!(
            says("hello"),
            "a.npy: NPY header: expected {…}, got 'hello'"
        );
        assert_eq!(
            says("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"),
            "a.npy: expected numbers of type f4, f8, u1, u2, u4, u8, i1, i2, i4, i8 or b1, got '<c8'"
        );
        assert!(
            says("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}")
                .contains("got [('a'")
        );
        assert_eq!(
            says("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}"),
            "a.npy: NPY header: expected True or False for fortran_order, got 'Maybe'"
        );
        assert_eq!(
            says("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
            "a.npy: NPY header: expected a shape such as (3, 4), got '(-1,)'"
        );
        assert_eq!(
            says("{'descr': '<f4', 'fortran_order': False}"),
            "a.npy: NPY header: expected descr, fortran_order and shape, got no shape"
        );
        assert_eq!(
            says("{'os.system': 1}"),
            "a.npy: NPY header: expected descr, fortran_order and shape, got 'os.system'"
        );
        for order in ["True", "False"] {
            let huge = format!(
                "{{'descr': '<f8', 'fortran_order': {order}, 'shape': (4294967296, 4294967295)}}"
            );
            assert!(says(&huge).ends_with("got a shorter file"), "{order}");
        }
        assert!(says("{'descr': '', 'fortran_order': False, 'shape': ()}").contains("got ''"));
        assert!(says("{'descr': 'é', 'fortran_order': False, 'shape': ()}").contains("got 'é'"));
    }

    #[test]
    fn what_is_written_is_read() {
        let shape = ImageShape {
            height: 1,
            width: 2,
            channels: 1,
        };
        for (double, shape) in [(false, Some(shape)), (true, None)] {
            let mut writer = NpyWriter::new(Cursor::new(Vec::new()), double, 2, shape).unwrap();
            [1.5, f64::NAN, -3.0, 0.1]
                .into_iter()
                .for_each(|x| writer.push(x).unwrap());
            let bytes = writer.finish().unwrap().into_inner();
            assert_eq!(bytes.len(), 128 + 4 * if double { 8 } else { 4 });
            let values = read(&bytes).unwrap();
            assert_eq!(
                (values[0], values[1].is_nan(), values[2], values[3]),
                (1.5, true, -3.0, 0.1)
            );
        }
    }
}
