//! NPZ, NumPy's format for several arrays: a zip archive of NPY files, stored or deflated.
//!
//! Only what NumPy writes is read: the list at the end of the archive (with the 64-bit fields of large ones) and the
//! entries it points to. Checksums are compared.

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::files::source::{ByteReader, MAX_INFLATION};
use crate::formats::array::stream;
use crate::formats::npy;
use crate::rows::layout::{RowStream, Split, some_of};
use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// What a file begins with.
pub const MAGIC: &[u8] = b"PK\x03\x04";

/// An archive holds a few arrays; a list longer than this is not NumPy's.
const LONGEST_LIST: u64 = 1 << 24;

const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const END_64_PLACE: [u8; 4] = *b"PK\x06\x07";
const LISTED: [u8; 4] = *b"PK\x01\x02";

/// One file of the archive.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    deflated: bool,
    crc: u32,
    packed: u64,
    size: u64,
    at: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u16::from_le_bytes(
        *bytes.get(at..)?.first_chunk()?,
    )))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(
        *bytes.get(at..)?.first_chunk()?,
    )))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads `count` bytes at a place, as far as the file goes.
fn bytes_at(file: &mut File, at: u64, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the list of entries is, and how long; `None` if the file has no end that says so.
fn find_list(file: &mut File, length: u64) -> io::Result<Option<(u64, u64)>> {
    // The end is 22 bytes and a comment of at most 65,535.
    let from = length.saturating_sub(22 + 65_535);
    let tail = bytes_at(file, from, length - from)?;
    let Some(at) = tail.windows(4).rposition(|window| window == END) else {
        return Ok(None);
    };
    let end = &tail[at..];
    let (Some(size), Some(place)) = (u32_at(end, 12), u32_at(end, 16)) else {
        return Ok(None);
    };
    if size < u64::from(u32::MAX) && place < u64::from(u32::MAX) {
        return Ok(Some((place, size)));
    }
    let Some(pointer) = at
        .checked_sub(20)
        .map(|at| &tail[at..])
        .filter(|tail| tail.starts_with(&END_64_PLACE))
    else {
        return Ok(None);
    };
    let Some(place) = u64_at(pointer, 8).filter(|&place| place < length) else {
        return Ok(None);
    };
    let large = bytes_at(file, place, 56)?;
    let found = large
        .starts_with(&END_64)
        .then(|| u64_at(&large, 48).zip(u64_at(&large, 40)))
        .flatten();
    Ok(found)
}

/// One entry of the list, and the length of what the list says about it.
fn parse_entry(list: &[u8]) -> Option<(Entry, usize)> {
    let name_length = u16_at(list, 28)? as usize;
    let extra_length = u16_at(list, 30)? as usize;
    let length = 46 + name_length + extra_length + u16_at(list, 32)? as usize;
    let name = String::from_utf8_lossy(list.get(46..46 + name_length)?).into_owned();
    let (mut packed, mut size, mut at) = (u32_at(list, 20)?, u32_at(list, 24)?, u32_at(list, 42)?);
    // Fields that are full stand in the extra part instead, in this order.
    let mut extra = list.get(46 + name_length..46 + name_length + extra_length)?;
    while let (Some(kind), Some(count)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let mut large = extra.get(4..4 + count as usize)?;
        extra = &extra[4 + count as usize..];
        for field in [&mut size, &mut packed, &mut at] {
            if kind == 1 && *field == u64::from(u32::MAX) {
                *field = u64_at(large, 0)?;
                large = &large[8..];
            }
        }
    }
    let deflated = match u16_at(list, 10)? {
        0 => false,
        8 => true,
        _ => return None,
    };
    let locked = u16_at(list, 8)? & 1 == 1;
    (!locked).then_some((
        Entry {
            name,
            deflated,
            crc: u32_at(list, 16)? as u32,
            packed,
            size,
            at,
        },
        length,
    ))
}

/// An archive and what is in it.
struct Archive {
    name: String,
    path: std::path::PathBuf,
    length: u64,
    entries: Vec<Entry>,
}

impl Archive {
    fn open(path: &Path) -> Result<Self> {
        let fails = |error| file_error("read", path, error);
        let name = path.display().to_string();
        let mut file = File::open(path).map_err(fails)?;
        let length = file.metadata().map_err(fails)?.len();
        let list = find_list(&mut file, length).map_err(fails)?;
        let sound = list.filter(|&(at, size)| {
            size <= LONGEST_LIST && at.checked_add(size).is_some_and(|end| end <= length)
        });
        let Some((at, size)) = sound else {
            let got = "a file without a sound list of entries at its end";
            return Err(Error::expected(ErrorKind::Damaged, "an NPZ archive", got).in_file(&name));
        };
        let list = bytes_at(&mut file, at, size).map_err(fails)?;
        let (mut rest, mut entries) = (&list[..], Vec::new());
        while rest.starts_with(&LISTED) {
            let parsed = parse_entry(rest).filter(|&(_, length)| length <= rest.len());
            let Some((entry, length)) = parsed else {
                let number = entries.len() + 1;
                let sentence = format!(
                    "entry {number} of the archive is damaged, locked or packed in an unknown way"
                );
                return Err(Error::damaged(sentence).in_file(&name));
            };
            entries.push(entry);
            rest = &rest[length..];
        }
        Ok(Self {
            name,
            path: path.to_owned(),
            length,
            entries,
        })
    }

    /// The entry with one of these names.
    fn find(&self, names: &[String]) -> Option<&Entry> {
        names.iter().find_map(|name| {
            self.entries
                .iter()
                .find(|entry| entry.name.strip_suffix(".npy") == Some(name))
        })
    }

    /// The bytes of an entry.
    fn input(&self, entry: &Entry) -> Result<ByteReader> {
        let fails = |error| file_error("read", &self.path, error);
        let name = format!("{} ({})", self.name, entry.name);
        let mut file = File::open(&self.path).map_err(fails)?;
        // A place beyond the end reads as nothing.
        let local = bytes_at(&mut file, entry.at.min(self.length), 30).map_err(fails)?;
        let lengths = u16_at(&local, 26)
            .zip(u16_at(&local, 28))
            .filter(|_| local.starts_with(MAGIC));
        let start = lengths.and_then(|(name, extra)| entry.at.checked_add(30 + name + extra));
        let end = start
            .and_then(|start| start.checked_add(entry.packed))
            .filter(|&end| end <= self.length);
        let (Some(start), Some(_)) = (start, end) else {
            let sentence = "the archive is damaged: the entry is not where the list says";
            return Err(Error::damaged(sentence).in_file(&name));
        };
        let max_size = if entry.deflated {
            entry.packed.saturating_mul(MAX_INFLATION)
        } else {
            entry.packed
        };
        if entry.size > max_size {
            let (size, packed) = (entry.size, entry.packed);
            let sentence =
                format!("the archive promises {size} bytes from {packed}, which is impossible");
            return Err(Error::damaged(sentence).in_file(&name));
        }
        file.seek(SeekFrom::Start(start)).map_err(fails)?;
        let packed = BufReader::with_capacity(1 << 16, file.take(entry.packed));
        let bytes: Box<dyn Read + Send> = if entry.deflated {
            Box::new(DeflateDecoder::new(packed))
        } else {
            Box::new(packed)
        };
        let checked = Checked {
            bytes: bytes.take(entry.size),
            crc: Crc::new(),
            expected: entry.crc,
        };
        Ok(ByteReader::plain(
            name,
            Box::new(BufReader::with_capacity(1 << 16, checked)),
            entry.size,
        ))
    }
}

/// Compares the checksum when all bytes have passed.
struct Checked<R> {
    bytes: io::Take<R>,
    crc: Crc,
    expected: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.crc.update(&buffer[..count]);
        if count == 0 && !buffer.is_empty() && self.crc.sum() != self.expected {
            let message = "the checksum does not match";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

/// Names of arrays to look for, the best first; those of the wanted half come first.
fn names_of(plain: &[&str], split: Split) -> Vec<String> {
    let halves = plain.iter().map(|name| format!("{name}_{}", split.word()));
    let other_way = plain.iter().map(|name| format!("{}_{name}", split.word()));
    halves
        .chain(other_way)
        .chain(plain.iter().map(|&name| name.to_owned()))
        .collect()
}

/// Rows from X (or x, data, images), labels from y (or Y, labels, label, target).
pub fn open_file(path: &Path, split: Split) -> Result<RowStream> {
    let archive = Archive::open(path)?;
    let Some(entry) = archive.find(&names_of(&["X", "x", "data", "images", "arr_0"], split)) else {
        let names: Vec<&str> = archive
            .entries
            .iter()
            .map(|entry| entry.name.trim_end_matches(".npy"))
            .collect();
        let expected = "an array X, x, data or images";
        let error = Error::expected(ErrorKind::MissingColumn, expected, some_of(&names));
        return Err(error.in_file(&archive.name));
    };
    let values = npy::array(archive.input(entry)?)?;
    let labels = archive.find(&names_of(&["y", "Y", "labels", "label", "target"], split));
    let labels = labels
        .map(|entry| npy::array(archive.input(entry)?))
        .transpose()?;
    let layout = values.layout()?;
    stream(values, labels, layout)
}

/// One array of an archive.
pub struct NamedArray {
    /// Rows first.
    pub dims: Vec<usize>,
    /// Row by row.
    pub values: Vec<f32>,
}

/// Reads the array of that name.
pub fn named(path: &Path, name: &str) -> Result<NamedArray> {
    let archive = Archive::open(path)?;
    let Some(entry) = archive.find(&[name.to_owned()]) else {
        let expected = format!("an array {name}");
        let error = Error::expected(ErrorKind::MissingColumn, expected, "none");
        return Err(error.in_file(&archive.name));
    };
    let mut array = npy::array(archive.input(entry)?)?;
    Ok(NamedArray {
        dims: array.dims.clone(),
        values: array.numbers(array.rows())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn data(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name)
    }

    #[test]
    fn every_type_of_numpy() {
        let archive = Archive::open(&data("types.npz")).unwrap();
        assert_eq!(archive.entries.len(), 14);
        for entry in &archive.entries {
            let array = npy::array(archive.input(entry).unwrap());
            if entry.name == "c8.npy" {
                let error = array.err().unwrap().to_string();
                assert!(
                    error.ends_with(
                        "(c8.npy): expected numbers of type f4, f8, u1, u2, u4, u8, i1, i2, i4, i8 or b1, got '<c8'"
                    ),
                    "{error}"
                );
                continue;
            }
            let values = array.unwrap().numbers(3).unwrap();
            let wanted = (0..12u8).map(|i| {
                if entry.name == "b1.npy" {
                    f32::from(i.min(1))
                } else {
                    f32::from(i)
                }
            });
            assert_eq!(values, wanted.collect::<Vec<_>>(), "{}", entry.name);
        }
    }

    #[test]
    fn halves_and_labels() {
        let read = |split| {
            open_file(&data("halves.npz"), split)
                .unwrap()
                .collect_table()
                .unwrap()
        };
        let train = read(Split::Train);
        assert_eq!((train.rows(), train.labels), (3, Some(vec![2, 0, 1])));
        assert_eq!(
            (train.values[4], train.values[5].is_nan(), train.values[6]),
            (4.0, true, 6.0)
        );
        let test = read(Split::Test);
        assert_eq!(
            (test.values, test.labels),
            (vec![0.0, 1.0, 2.0, 3.0], Some(vec![-1]))
        );
    }

    /// The error of a changed copy of an archive.
    fn says(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut bytes = fs::read(data(name)).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let read = open_file(&path, Split::Train)
            .and_then(RowStream::collect_table)
            .map(drop);
        read.map_err(|error| {
            let folder = format!("{}/", folder.path().display());
            error.to_string().replace(&folder, "")
        })
    }

    fn position(bytes: &[u8], wanted: &[u8]) -> usize {
        bytes
            .windows(wanted.len())
            .position(|window| window == wanted)
            .unwrap()
    }

    #[test]
    fn nonsense_is_named() {
        let error = says("types.npz", |_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.npz: expected an array X, x, data or images, got f4, f8, u1, u2, u4, u8, i1, i2, … (14 in all)"
        );
        says("halves.npz", |_| ()).unwrap();
        let error = says("halves.npz", |bytes| bytes.truncate(700))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "a.npz: expected an NPZ archive, got a file without a sound list of entries at its end"
        );
        let error = says("halves.npz", |bytes| {
            let at = position(bytes, &LISTED);
            bytes[at + 16] ^= 1; // the checksum
        });
        assert_eq!(
            error.unwrap_err().to_string(),
            "a.npz (X_train.npy): damaged: the checksum does not match"
        );
        let error = says("halves.npz", |bytes| {
            let at = position(bytes, &LISTED);
            bytes[at + 24..at + 28].copy_from_slice(&(u32::MAX - 1).to_le_bytes()); // the size
        });
        assert!(
            error
                .unwrap_err()
                .to_string()
                .ends_with("which is impossible")
        );
        let error = says("halves.npz", |bytes| {
            let at = position(bytes, &LISTED);
            bytes[at + 42] = 77; // the place
        });
        assert!(
            error
                .unwrap_err()
                .to_string()
                .ends_with("the entry is not where the list says")
        );
        let error = says("halves.npz", |bytes| {
            let at = position(bytes, &LISTED);
            bytes[at + 10] = 12; // bzip2
        });
        assert!(
            error
                .unwrap_err()
                .to_string()
                .starts_with("a.npz: entry 1 of the archive is damaged, locked")
        );
    }

    #[test]
    fn fields_of_large_archives() {
        // An entry whose three fields are full and stand in the extra part: size, packed size, place.
        let mut entry = vec![0; 46];
        entry[..4].copy_from_slice(&LISTED);
        entry[20..28].fill(0xff);
        entry[42..46].fill(0xff);
        entry[28] = 1;
        entry[30] = 28;
        entry.push(b'X');
        entry.extend([1, 0, 24, 0]);
        [5u64 << 32, 6 << 32, 7 << 32]
            .iter()
            .for_each(|field| entry.extend(field.to_le_bytes()));
        let (parsed, length) = parse_entry(&entry).unwrap();
        assert_eq!(
            (parsed.size, parsed.packed, parsed.at, length),
            (5 << 32, 6 << 32, 7 << 32, 75)
        );
        for cut in 0..entry.len() {
            assert!(parse_entry(&entry[..cut]).is_none(), "cut at {cut}");
        }
    }
}
