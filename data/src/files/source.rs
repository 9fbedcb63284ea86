//! Where bytes come from: a file, memory or standard input, with gzip undone on the way.
//!
//! A header can claim any size. What it claims is compared with what the file can hold ([`ByteReader::justified`]), and
//! memory is taken only as bytes arrive.

use crate::error::{Error, ErrorKind, Result, file_error, read_error};
use flate2::read::MultiGzDecoder;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// One byte of a deflate stream stands for at most this many.
pub const MAX_INFLATION: u64 = 1032;

/// Maximum bytes of a row of text. A row is held in memory, and without a bound a line that never ends would fill it.
pub const LONGEST_ROW: u64 = 64 << 20;

/// A row of text that is longer than this many bytes.
pub fn row_too_long(max: u64) -> Error {
    let expected = match max {
        ..1_048_576 => format!("rows of at most {max} bytes"),
        _ => format!("rows of at most {} MiB", max >> 20),
    };
    Error::expected(ErrorKind::RowTooLong, expected, "more")
}

/// Where bytes come from, and how to open it again.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// Bytes that are in memory already.
    Memory {
        /// What messages call it.
        name: String,
        /// All of it.
        bytes: Arc<[u8]>,
    },
    /// Standard input, which can be read only once.
    Stdin,
}

impl Origin {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.clone(),
            Self::Stdin => "standard input".to_owned(),
        }
    }

    /// Starts reading.
    pub fn open(&self) -> Result<ByteReader> {
        let (reader, length): (Box<dyn BufRead + Send>, _) = match self {
            Self::File(path) => {
                let fails = |error| file_error("read", path, error);
                let file = File::open(path).map_err(fails)?;
                let about = file.metadata().map_err(fails)?;
                if about.is_dir() {
                    let error = std::io::ErrorKind::IsADirectory.into();
                    return Err(file_error("read", path, error));
                }
                // A pipe does not say how much will come.
                let length = if about.is_file() {
                    about.len()
                } else {
                    u64::MAX
                };
                let file = UnchangedFile::new(file).map_err(fails)?;
                (Box::new(BufReader::with_capacity(1 << 16, file)), length)
            }
            Self::Memory { bytes, .. } => {
                (Box::new(Cursor::new(bytes.clone())), bytes.len() as u64)
            }
            Self::Stdin => (Box::new(BufReader::new(io::stdin())), u64::MAX),
        };
        ByteReader::new(self.name(), reader, length)
    }

    /// Tells a file from a newer one of the same name.
    pub fn stamp(&self) -> Stamp {
        let about = match self {
            Self::File(path) => std::fs::metadata(path).ok(),
            _ => None,
        };
        about.map_or((None, 0), |about| stamp(&about))
    }

    /// The same bytes, but from where they can be read twice: a pipe is read into memory.
    pub fn reopenable(&self) -> Result<Self> {
        match self {
            Self::File(path) if path.is_file() || path.is_dir() || !path.exists() => {
                Ok(self.clone())
            }
            Self::Memory { .. } => Ok(self.clone()),
            Self::File(_) | Self::Stdin => {
                let mut input = self.open()?;
                let bytes = input.rest()?;
                Ok(Self::Memory {
                    name: self.name(),
                    bytes: bytes.into(),
                })
            }
        }
    }
}

/// When a file was written, and its length. Zero for what is not a file.
pub type Stamp = (Option<SystemTime>, u64);

fn stamp(about: &Metadata) -> Stamp {
    if about.is_file() {
        (about.modified().ok(), about.len())
    } else {
        (None, 0)
    }
}

/// A file that has changed since its beginning was read.
pub fn changed() -> io::Error {
    io::Error::other("it changed while it was read; try again")
}

/// A file that is not to change while it is read: half of the old one and half of the new one is neither.
struct UnchangedFile {
    file: File,
    before: Stamp,
}

impl UnchangedFile {
    fn new(file: File) -> io::Result<Self> {
        let before = stamp(&file.metadata()?);
        Ok(Self { file, before })
    }
}

impl Read for UnchangedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if count == 0 && stamp(&self.file.metadata()?) != self.before {
            return Err(changed());
        }
        Ok(count)
    }
}

/// Bytes being read, gzip already undone.
pub struct ByteReader {
    /// What messages call it.
    pub name: String,
    /// The maximum of bytes that can still come, by the size of the file.
    pub justified: u64,
    reader: Box<dyn BufRead + Send>,
}

impl ByteReader {
    /// Undoes gzip, if the first bytes are those of gzip.
    pub fn new(name: String, mut reader: Box<dyn BufRead + Send>, length: u64) -> Result<Self> {
        let zipped = reader
            .fill_buf()
            .map_err(|error| read_error(&name, error))?
            .starts_with(&[0x1f, 0x8b]);
        if !zipped {
            return Ok(Self {
                name,
                justified: length,
                reader,
            });
        }
        let reader = Box::new(BufReader::with_capacity(
            1 << 16,
            MultiGzDecoder::new(reader),
        ));
        Ok(Self {
            name,
            justified: length.saturating_mul(MAX_INFLATION),
            reader,
        })
    }

    /// Bytes that stand as they are, at most `justified` of them.
    pub fn plain(name: String, reader: Box<dyn BufRead + Send>, justified: u64) -> Self {
        Self {
            name,
            justified,
            reader,
        }
    }

    /// Exactly `count` bytes into `buffer`, which is emptied first.
    pub fn fill(&mut self, buffer: &mut Vec<u8>, count: usize, what: &str) -> Result<()> {
        buffer.clear();
        buffer.reserve(count.min(1 << 16));
        let read = (&mut self.reader).take(count as u64).read_to_end(buffer);
        read.map_err(|error| read_error(&self.name, error))?;
        if buffer.len() < count {
            let (name, got) = (&self.name, buffer.len());
            let expected = format!("{count} bytes of {what}");
            return Err(Error::expected(ErrorKind::Damaged, expected, got).in_file(name));
        }
        self.justified = self.justified.saturating_sub(count as u64);
        Ok(())
    }

    /// Exactly N bytes.
    pub fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut buffer = Vec::new();
        self.fill(&mut buffer, N, what)?;
        let mut array = [0; N];
        array.copy_from_slice(&buffer);
        Ok(array)
    }

    /// Passes over `count` bytes.
    pub fn skip(&mut self, count: u64, what: &str) -> Result<()> {
        let passed = io::copy(&mut (&mut self.reader).take(count), &mut io::sink());
        let passed = passed.map_err(|error| read_error(&self.name, error))?;
        if passed < count {
            let expected = format!("{count} bytes of {what}");
            return Err(Error::expected(ErrorKind::Damaged, expected, passed).in_file(&self.name));
        }
        self.justified = self.justified.saturating_sub(count);
        Ok(())
    }

    /// All that is left.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader
            .read_to_end(&mut bytes)
            .map_err(|error| read_error(&self.name, error))?;
        Ok(bytes)
    }

    /// The next bytes without taking them; none at the end.
    pub fn peek(&mut self) -> Result<&[u8]> {
        self.reader
            .fill_buf()
            .map_err(|error| read_error(&self.name, error))
    }

    /// Checks that nothing follows. For gzip, this also compares the checksum.
    pub fn expect_end(&mut self, what: &str) -> Result<()> {
        if self.peek()?.is_empty() {
            return Ok(());
        }
        let expected = format!("the file to end after {what}");
        Err(Error::expected(ErrorKind::Damaged, expected, "more").in_file(&self.name))
    }

    /// The reader itself.
    pub fn into_reader(self) -> Box<dyn BufRead + Send> {
        self.reader
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn memory(bytes: &[u8]) -> Origin {
        Origin::Memory {
            name: "test".into(),
            bytes: bytes.into(),
        }
    }

    fn zipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_undone_and_its_end_checked() {
        let whole = zipped(b"some bytes");
        let mut input = memory(&whole).open().unwrap();
        assert_eq!(&input.array::<10>("text").unwrap(), b"some bytes");
        input.expect_end("the text").unwrap();
        for cut in 2..whole.len() {
            let read = memory(&whole[..cut])
                .open()
                .and_then(|mut input| input.rest());
            assert!(
                read.unwrap_err().to_string().starts_with("test: damaged: "),
                "cut at {cut}"
            );
        }
        let mut wrong = whole.clone();
        *wrong.iter_mut().rev().nth(5).unwrap() ^= 1; // in the checksum
        assert!(memory(&wrong).open().unwrap().rest().is_err());
    }

    #[test]
    fn a_short_file_and_a_long_one() {
        let mut input = memory(b"abc").open().unwrap();
        let error = input.array::<4>("magic number").unwrap_err().to_string();
        assert_eq!(error, "test: expected 4 bytes of magic number, got 3");
        let mut input = memory(b"abc").open().unwrap();
        input.array::<2>("x").unwrap();
        let error = input.expect_end("2 rows").unwrap_err().to_string();
        assert_eq!(
            error,
            "test: expected the file to end after 2 rows, got more"
        );
    }

    #[test]
    fn a_claim_takes_no_memory() {
        let mut buffer = Vec::new();
        assert!(
            memory(b"abc")
                .open()
                .unwrap()
                .fill(&mut buffer, usize::MAX >> 1, "rows")
                .is_err()
        );
        assert!(buffer.capacity() <= 1 << 17);
    }

    #[test]
    fn files_that_are_not_there() {
        let error = Origin::File("no/such/file".into()).open().err().unwrap();
        assert_eq!(
            error.to_string(),
            "cannot read no/such/file: there is no such file or folder"
        );
        assert!(error.is_user_error());
        let folder = tempfile::tempdir().unwrap();
        let error = Origin::File(folder.path().into()).open().err().unwrap();
        assert!(error.to_string().ends_with("it is a folder"));
    }
}
