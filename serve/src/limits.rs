//! Limits of a request and of the service.

use std::time::Duration;

/// Limits of the service; what goes beyond gets a 4xx that names the limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// MiB that a request may make the service hold at once: a JSON body, a line, an Arrow record batch
    pub max_body: u64,
    /// MiB of a whole stream (JSON lines, CSV, Arrow), and of any answer
    pub max_stream: u64,
    /// Rows in a request
    pub max_rows: u64,
    /// Requests under way at once
    pub max_requests: u64,
    /// Seconds that a body may take, or pause where it is a stream; a stream may take 30 times as long in all
    pub max_seconds: u64,
    /// Questions waiting for a model; more get a 503
    pub max_waiting: u64,
}

/// Streams at once: each has a thread.
pub const STREAMS: usize = 8;

/// Maximum of sampled completions of one row.
pub const MAX_DRAWS: usize = 16;

/// Maximum of rows that one request may sample.
pub const MAX_SAMPLES: usize = 1000;

/// Connections at once, below the 1,024 files that many systems allow; the next ones wait in the system's queue.
pub const CONNECTIONS: usize = 900;

impl Limits {
    /// Bytes held at once.
    pub fn body(&self) -> usize {
        (self.max_body as usize) << 20
    }

    /// Bytes of a stream.
    pub fn stream(&self) -> u64 {
        self.max_stream << 20
    }

    /// Rows of a request.
    pub fn rows(&self) -> usize {
        self.max_rows as usize
    }

    /// Requests at once.
    pub fn requests(&self) -> usize {
        self.max_requests as usize
    }

    /// Questions waiting for one model.
    pub fn waiting(&self) -> usize {
        self.max_waiting as usize
    }

    /// How long a body may take, or pause.
    pub fn pause(&self) -> Duration {
        Duration::from_secs(self.max_seconds)
    }

    /// How long a stream may take.
    pub fn whole(&self) -> Duration {
        Duration::from_secs(30 * self.max_seconds)
    }

    /// How long an answer may take once the question is complete.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.max_seconds)
    }
}

#[cfg(test)]
impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 1,
            max_stream: 4,
            max_rows: 1000,
            max_requests: 16,
            max_seconds: 5,
            max_waiting: 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_units_that_the_options_say() {
        let limits = Limits {
            max_body: 3,
            max_stream: 5,
            max_rows: 7,
            max_requests: 11,
            max_seconds: 13,
            max_waiting: 17,
        };
        assert_eq!((limits.body(), limits.stream()), (3_145_728, 5_242_880));
        let counts = (limits.rows(), limits.requests(), limits.waiting());
        assert_eq!(counts, (7, 11, 17));
        let seconds = [limits.pause(), limits.patience(), limits.whole()];
        assert_eq!(seconds.map(|time| time.as_secs()), [13, 13, 390]);
    }
}
