//! Bodies of requests as they arrive: whole, or piece by piece for a thread that reads rows; never too large or too slow.

use crate::bodies::arrivals::{Arrival, Arrivals, BodyKind};
use crate::limits::Limits;
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender};

/// A whole body, if it is not too large and comes in time.
pub async fn whole(
    headers: &HeaderMap,
    mut body: Body,
    limits: &Limits,
    arrivals: &Arrivals,
) -> Result<Vec<u8>, Problem> {
    let most = limits.body();
    let large = || {
        Problem::large(format!(
            "body: expected at most {most} bytes, got more; JSON lines may be longer"
        ))
    };
    let claimed = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if claimed.is_some_and(|claimed| claimed > most) {
        return Err(large());
    }
    let arrival = arrivals.begin(BodyKind::Whole);
    let reading = async {
        let mut bytes = Vec::new();
        while let Some(piece) = next_piece(&mut body, &arrival).await? {
            if bytes.len() + piece.len() > most {
                return Err(large());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    };
    in_time(limits.pause(), reading).await
}

/// What `reading` gives, if it comes in time.
async fn in_time<T>(
    limit: Duration,
    reading: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    tokio::time::timeout(limit, reading)
        .await
        .unwrap_or_else(|_| Err(slow(limit)))
}

/// The next piece of a body, none at its end; another request may need its place first.
async fn next_piece(body: &mut Body, arrival: &Arrival<'_>) -> Result<Option<Bytes>, Problem> {
    arrival.waits();
    let frame = tokio::select! {
        frame = body.frame() => frame,
        () = arrival.gives_way() => return Err(crowded()),
    };
    let Some(frame) = frame else {
        return Ok(None);
    };
    let frame = frame.map_err(|_| Problem::bad("body: it ended before it was complete"))?;
    let data = frame.into_data().unwrap_or_default(); // trailers are no data
    arrival.came(data.len());
    Ok(Some(data))
}

fn slow(limit: Duration) -> Problem {
    let message = format!("body: expected it within {} seconds", limit.as_secs());
    Problem::new(StatusCode::REQUEST_TIMEOUT, message)
}

fn crowded() -> Problem {
    let message = "body: it came slowly while others waited for its place; try again in a moment";
    Problem::new(StatusCode::REQUEST_TIMEOUT, message)
}

/// Hands a body to the thread that reads it, piece by piece.
pub async fn pump(
    mut body: Body,
    to: Sender<Bytes>,
    limits: &Limits,
    arrivals: &Arrivals,
) -> Result<(), Problem> {
    let arrival = arrivals.begin(BodyKind::Stream);
    let (start, mut total) = (Instant::now(), 0);
    while let Some(data) = in_time(limits.pause(), next_piece(&mut body, &arrival)).await? {
        if start.elapsed() > limits.whole() {
            return Err(slow(limits.whole()));
        }
        total += data.len() as u64;
        if total > limits.stream() {
            let most = limits.stream();
            return Err(Problem::large(format!(
                "body: expected at most {most} bytes, got more"
            )));
        }
        if to.send(data).await.is_err() {
            return Ok(()); // the thread has found something wrong
        }
    }
    Ok(())
}

/// The bytes of a body, read by a thread. Of each row or batch only a limited number is held.
pub struct Incoming {
    pieces: Receiver<Bytes>,
    piece: Bytes,
    max_held: usize,
    held: Rc<Cell<usize>>,
}

/// With this a reader of rows says that it has finished one.
#[derive(Clone)]
pub struct Held(Rc<Cell<usize>>);

impl Held {
    /// What has been read so far is no longer held.
    pub fn release(&self) {
        self.0.set(0);
    }
}

impl Incoming {
    /// Reads what is sent, of which at most `max_held` bytes may be held at once.
    pub fn new(pieces: Receiver<Bytes>, max_held: usize) -> (Self, Held) {
        let held = Rc::new(Cell::new(0));
        (
            Self {
                pieces,
                piece: Bytes::new(),
                max_held,
                held: held.clone(),
            },
            Held(held),
        )
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        self.held.set(self.held.get() + count);
        if self.held.get() > self.max_held {
            let message = format!(
                "expected rows or batches of at most {} bytes, got more",
                self.max_held
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(count)
    }
}

/// A problem while reading: too large, or not what it should be.
pub fn unreadable(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Problem::large(error.to_string()),
        _ => Problem::bad(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_too_long_is_refused() {
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        for piece in ["abc", "", "defg"] {
            sender.blocking_send(Bytes::from(piece)).unwrap();
        }
        drop(sender);
        let (mut incoming, held) = Incoming::new(receiver, 5);
        let mut buffer = [0; 3];
        assert_eq!(incoming.read(&mut buffer).unwrap(), 3);
        held.release();
        assert_eq!(
            (
                incoming.read(&mut buffer).unwrap(),
                incoming.read(&mut buffer).unwrap()
            ),
            (3, 1)
        );
        assert_eq!(incoming.read(&mut buffer).unwrap(), 0);
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        sender.blocking_send(Bytes::from("abcdef")).unwrap();
        let (mut incoming, _) = Incoming::new(receiver, 5);
        assert_eq!(
            incoming.read(&mut [0; 9]).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }
}
