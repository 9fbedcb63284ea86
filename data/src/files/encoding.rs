//! Text that is not UTF-8 becomes UTF-8 while it is read.

use crate::error::Result;
use crate::files::source::ByteReader;
use std::io::{self, BufRead, BufReader, Read};

/// How letters are written as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16 where the first two bytes say so, else UTF-8.
    #[default]
    Unknown,
    /// Latin-1 as programs write it, which is Windows-1252.
    Latin1,
    /// UTF-16; without a mark at its beginning, little-endian.
    Utf16,
}

/// The mark at the beginning of UTF-16, little-endian and big-endian.
const MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// The letters of the bytes 0x80 to 0x9f in Windows-1252; five bytes are none.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The same text in UTF-8.
pub fn decoded(mut input: ByteReader, encoding: Encoding) -> Result<ByteReader> {
    let start = input.peek()?;
    let mark = MARKS.iter().position(|mark| start.starts_with(mark));
    let letters = match encoding {
        Encoding::Unknown if mark.is_none() => return Ok(input),
        Encoding::Latin1 => Letters::Latin1,
        _ => Letters::Utf16 {
            big_endian: mark == Some(1),
            units: Vec::new(),
            half: None,
        },
    };
    let (name, justified) = (input.name.clone(), input.justified.saturating_mul(3));
    let reader = Decoder {
        reader: input.into_reader(),
        letters,
        text: Vec::new(),
        used: 0,
    };
    let reader = Box::new(BufReader::with_capacity(1 << 16, reader));
    Ok(ByteReader::plain(name, reader, justified))
}

/// What bytes stand for.
enum Letters {
    Latin1,
    Utf16 {
        big_endian: bool,
        /// Units that are not letters yet: half of a pair.
        units: Vec<u16>,
        /// A byte that waits for its other half.
        half: Option<u8>,
    },
}

/// UTF-8 on its way.
struct Decoder {
    reader: Box<dyn BufRead + Send>,
    letters: Letters,
    text: Vec<u8>,
    used: usize,
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.text.len() {
            let bytes = self.reader.fill_buf()?;
            let (count, text) = (bytes.len(), self.letters.decode(bytes)?);
            self.reader.consume(count);
            (self.text, self.used) = (text.into_bytes(), 0);
            if count == 0 {
                break;
            }
        }
        let count = buffer.len().min(self.text.len() - self.used);
        buffer[..count].copy_from_slice(&self.text[self.used..][..count]);
        self.used += count;
        Ok(count)
    }
}

impl Letters {
    /// The letters of the next bytes; no bytes are the end.
    fn decode(&mut self, bytes: &[u8]) -> io::Result<String> {
        let Self::Utf16 {
            big_endian,
            units,
            half,
        } = self
        else {
            return Ok(bytes.iter().map(|&byte| latin1(byte)).collect());
        };
        let is_end = bytes.is_empty();
        let bytes: Vec<u8> = half
            .take()
            .into_iter()
            .chain(bytes.iter().copied())
            .collect();
        let (pairs, rest) = bytes.as_chunks::<2>();
        *half = rest.first().copied();
        let from = if *big_endian {
            u16::from_be_bytes
        } else {
            u16::from_le_bytes
        };
        units.extend(pairs.iter().map(|&pair| from(pair)));
        let open = units
            .last()
            .is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let kept = if open { units.pop() } else { None };
        let text = String::from_utf16(units).map_err(|_| not_utf16())?;
        *units = kept.into_iter().collect();
        if is_end && (half.is_some() || !units.is_empty()) {
            return Err(not_utf16());
        }
        Ok(text)
    }
}

fn latin1(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte) - 0x80],
        byte => byte.into(),
    }
}

fn not_utf16() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "expected text in UTF-16, got other bytes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Origin;

    fn text(bytes: &[u8], encoding: Encoding) -> std::result::Result<String, String> {
        let origin = Origin::Memory {
            name: "a.csv".into(),
            bytes: bytes.into(),
        };
        let input = decoded(origin.open().unwrap(), encoding).unwrap();
        let mut text = String::new();
        // Two bytes at a time, so that letters are cut.
        let mut reader = BufReader::with_capacity(2, input.into_reader());
        let read = reader.read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    fn utf16(text: &str, mark: bool, to: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mark = mark.then_some(0xfeff).into_iter();
        mark.chain(text.encode_utf16()).flat_map(to).collect()
    }

    #[test]
    fn letters_of_all_encodings() {
        let wanted = "größe, 5 €\n𝄞";
        for to in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes = utf16(wanted, true, to);
            let read = text(&bytes, Encoding::Unknown).unwrap();
            assert_eq!(read.trim_start_matches('\u{feff}'), wanted);
        }
        let bytes = utf16(wanted, false, u16::to_le_bytes);
        assert_eq!(text(&bytes, Encoding::Utf16).unwrap(), wanted);
        let error = text(&bytes[..bytes.len() - 1], Encoding::Utf16).unwrap_err();
        assert!(error.contains("expected text in UTF-16"), "{error}");
        assert_eq!(
            text(b"gr\xf6\xdfe, 5 \x80", Encoding::Latin1).unwrap(),
            "größe, 5 €"
        );
        assert_eq!(
            text("größe".as_bytes(), Encoding::Unknown).unwrap(),
            "größe"
        );
    }

    #[test]
    fn a_pair_may_be_cut_anywhere() {
        let bytes = utf16("a𝄞b", false, u16::to_le_bytes);
        for cut in 0..bytes.len() {
            let mut letters = Letters::Utf16 {
                big_endian: false,
                units: Vec::new(),
                half: None,
            };
            let parts = [&bytes[..cut], &bytes[cut..], &[]];
            let read = parts.map(|part| {
                if part.is_empty() {
                    String::new()
                } else {
                    letters.decode(part).unwrap()
                }
            });
            assert_eq!(read.concat(), "a𝄞b", "cut at {cut}");
        }
    }
}
