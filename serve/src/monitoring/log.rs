//! Structured logs: one JSON object per line on standard error. A separate thread writes them, so that a reader that
//! stops cannot stop the service; lines that cannot be written in time are counted and dropped.

use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Every request
    All,
    /// Start, stop, reloads, and requests that failed
    Problems,
    /// Nothing
    None,
}

/// Where lines go.
#[derive(Debug)]
pub struct Log {
    level: LogLevel,
    lines: SyncSender<String>,
    dropped: AtomicU64,
}

impl Log {
    /// Starts the thread.
    pub fn new(level: LogLevel) -> Self {
        let (lines, receiver) = mpsc::sync_channel(1024);
        std::thread::spawn(move || write(&receiver));
        Self {
            level,
            lines,
            dropped: AtomicU64::new(0),
        }
    }

    /// An event of the service.
    pub fn event(&self, event: &str, mut fields: Value) {
        if self.level == LogLevel::None {
            return;
        }
        if let Some(map) = fields.as_object_mut() {
            map.insert("event".into(), event.into());
            map.insert("time".into(), now().into());
        }
        self.send(fields.to_string());
    }

    /// A request that was answered.
    pub fn request(&self, method: &str, path: &str, status: u16, seconds: f64, rows: u64) {
        if self.level == LogLevel::All || (self.level == LogLevel::Problems && status >= 400) {
            let milliseconds = (seconds * 1e5).round() / 100.0;
            let fields = json!({ "method": method, "path": path, "status": status, "milliseconds": milliseconds, "rows": rows });
            self.event("request", fields);
        }
    }

    fn send(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn write(lines: &Receiver<String>) {
    while let Ok(mut line) = lines.recv() {
        line.push('\n');
        let _ = io::stderr().write_all(line.as_bytes()); // nobody reads it: no reason to stop
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_millis());
    millis as f64 / 1000.0
}
