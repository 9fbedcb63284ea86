//! Lines of a text, which end with LF, CRLF or CR.

use std::io::{self, BufRead, ErrorKind};

/// A line with its end.
#[derive(Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    after_cr: bool, // the line ended with CR; LF may follow
}

impl LineBuffer {
    /// The line that was read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads the next line, or the beginning of one that has more than `max` bytes; false at the end. It never waits for
    /// what comes after a CR: a client may wait for an answer first.
    pub fn read(&mut self, reader: &mut impl BufRead, max: u64) -> io::Result<bool> {
        self.bytes.clear();
        let mut any = false;
        while self.bytes.len() as u64 <= max {
            let found = match reader.fill_buf() {
                Ok([]) => break,
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if std::mem::take(&mut self.after_cr) && found[0] == b'\n' {
                reader.consume(1);
                continue;
            }
            any = true;
            let end = found.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let used = end.map_or(found.len(), |end| end + 1);
            self.bytes.extend_from_slice(&found[..used]);
            self.after_cr = end.is_some_and(|end| found[end] == b'\r');
            reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// All lines, read through a buffer of this size.
    fn lines(text: &str, size: usize, max: u64) -> Vec<String> {
        let mut reader = BufReader::with_capacity(size, text.as_bytes());
        let (mut line, mut all) = (LineBuffer::default(), Vec::new());
        while line.read(&mut reader, max).unwrap() {
            all.push(String::from_utf8(line.bytes().to_vec()).unwrap());
        }
        all
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        for size in 1..9 {
            let found = lines("a\nbc\r\n\rd\r\re", size, 100);
            assert_eq!(found, ["a\n", "bc\r", "\r", "d\r", "\r", "e"], "{size}");
            assert_eq!(lines("\r\n", size, 100), ["\r"]);
        }
        assert!(lines("", 4, 100).is_empty());
    }

    #[test]
    fn a_long_line_is_broken_off() {
        let mut reader = BufReader::with_capacity(2, &b"abcdefgh\n"[..]);
        let mut line = LineBuffer::default();
        assert!(line.read(&mut reader, 3).unwrap());
        assert_eq!(line.bytes(), b"abcd");
    }
}
