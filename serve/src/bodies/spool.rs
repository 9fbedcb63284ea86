//! Answers are kept until the last row has been read.
//!
//! A bad row 90,000 can be reported only while the status has not been sent, and most clients read nothing before they
//! have sent everything. So answers wait: in memory while they are few, then in a file without a name.

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Answers beyond this go to a file.
const IN_MEMORY: usize = 1 << 20;

/// Answers that wait.
pub struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
    max_bytes: u64,
}

impl Spool {
    /// No answers yet; at most `max_bytes` of them.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            length: 0,
            max_bytes,
        }
    }

    /// The answers as the body of a response.
    pub fn into_body(mut self) -> io::Result<Body> {
        let Some(mut file) = self.file.take() else {
            return Ok(Body::from(self.memory));
        };
        file.write_all(&self.memory)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Body::new(Outgoing {
            file,
            left: self.length,
        }))
    }
}

/// A file that goes away with the program: it loses its name as soon as it is made.
fn nameless() -> io::Result<File> {
    let nanos = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |age| age.as_nanos());
    let path = std::env::temp_dir().join(format!("sumout-answers-{}-{nanos}", std::process::id()));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        if self.length > self.max_bytes {
            let message = format!(
                "the answer: expected at most {} bytes, got more; ask about fewer rows",
                self.max_bytes
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > IN_MEMORY {
            if self.file.is_none() {
                self.file = Some(nameless()?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(&self.memory)?;
            }
            self.memory.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file on its way out. Its pages are in memory, so a read takes microseconds.
struct Outgoing {
    file: File,
    left: u64,
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; self.left.min(1 << 16) as usize];
        let read = self.file.read_exact(&mut piece);
        self.left -= piece.len() as u64;
        Poll::Ready(Some(read.map(|()| Frame::data(Bytes::from(piece)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn read(body: Body) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async { body.collect().await.unwrap().to_bytes().to_vec() })
    }

    #[test]
    fn what_waits_comes_out_whole() {
        for length in [0, 10, IN_MEMORY + 1, 3 * IN_MEMORY + 77] {
            let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let mut spool = Spool::new(1 << 30);
            bytes
                .chunks(1000)
                .for_each(|piece| spool.write_all(piece).unwrap());
            assert!(
                spool.memory.len() <= IN_MEMORY && spool.file.is_some() == (length > IN_MEMORY)
            );
            assert!(read(spool.into_body().unwrap()) == bytes, "{length}");
        }
        let mut spool = Spool::new(5);
        assert_eq!(
            spool.write_all(b"123456").unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }
}
