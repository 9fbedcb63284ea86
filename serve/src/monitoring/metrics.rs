//! Counters, and their page in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The routes that are counted by name; everything else is "other".
pub const ROUTES: [&str; 11] = [
    "/v1/predict",
    "/v1/impute",
    "/v1/sample",
    "/v1/explain",
    "/v1/examples",
    "/v1/models",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/",
    "other",
];

/// Upper ends of the buckets of request times, in seconds.
const SECONDS: [f64; 10] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0,
];

/// Upper ends of the buckets of batch sizes, in rows.
const ROWS: [f64; 8] = [1.0, 4.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// How many observations lie below each bound.
#[derive(Debug)]
struct Histogram<const N: usize> {
    bounds: [f64; N],
    counts: [AtomicU64; N],
    count: AtomicU64,
    micros: AtomicU64, // of the sum
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: [f64; N]) -> Self {
        Self {
            bounds,
            counts: [const { AtomicU64::new(0) }; N],
            count: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        }
    }

    fn observe(&self, value: f64) {
        if let Some(bucket) = self.bounds.iter().position(|&bound| value <= bound) {
            self.counts[bucket].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add((value * 1e6) as u64, Relaxed);
    }

    fn write(&self, name: &str, help: &str, to: &mut String) {
        let _ = writeln!(to, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count.load(Relaxed);
            let _ = writeln!(to, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let count = self.count.load(Relaxed);
        let _ = writeln!(to, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(
            to,
            "{name}_sum {}\n{name}_count {count}",
            self.micros.load(Relaxed) as f64 / 1e6
        );
    }
}

/// All counters.
#[derive(Debug)]
pub struct Metrics {
    /// By route and the first digit of the status.
    requests: [[AtomicU64; 5]; ROUTES.len()],
    seconds: Histogram<10>,
    batches: Histogram<8>,
    /// Requests under way.
    pub active: AtomicI64,
    /// Rows answered.
    pub rows: AtomicU64,
    /// Questions that found the queue full.
    pub shed: AtomicU64,
    /// Models loaded again, and files that could not be.
    pub reloads: [AtomicU64; 2],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: [const { [const { AtomicU64::new(0) }; 5] }; ROUTES.len()],
            seconds: Histogram::new(SECONDS),
            batches: Histogram::new(ROWS),
            active: AtomicI64::new(0),
            rows: AtomicU64::new(0),
            shed: AtomicU64::new(0),
            reloads: [const { AtomicU64::new(0) }; 2],
        }
    }
}

impl Metrics {
    /// Counts a request that was answered.
    pub fn request(&self, path: &str, status: u16, time: Duration) {
        let is = |route: &&str| {
            path == *route || (*route == "/v1/models" && path.starts_with("/v1/models/"))
        };
        let route = ROUTES.iter().position(is).unwrap_or(ROUTES.len() - 1);
        let kind = usize::from(status / 100).clamp(1, 5) - 1;
        self.requests[route][kind].fetch_add(1, Relaxed);
        self.seconds.observe(time.as_secs_f64());
    }

    /// Counts a batch that the engine was given.
    pub fn batch(&self, rows: usize) {
        self.batches.observe(rows as f64);
    }

    /// The page; `waiting` names the models and how many questions wait for each.
    pub fn page(&self, waiting: &[(String, usize)], dropped_lines: u64) -> String {
        let mut text = String::new();
        self.write_requests(&mut text);
        self.seconds.write(
            "sumout_request_seconds",
            "From the head of a request to its answer.",
            &mut text,
        );
        self.batches.write(
            "sumout_batch_rows",
            "Rows that the engine was given at once.",
            &mut text,
        );
        write_waiting(waiting, &mut text);
        let active = self.active.load(Relaxed);
        let _ = writeln!(
            text,
            "# HELP sumout_active Requests under way.\n# TYPE sumout_active gauge\nsumout_active {active}"
        );
        self.write_counters(dropped_lines, &mut text);
        text
    }

    fn write_requests(&self, text: &mut String) {
        text.push_str("# HELP sumout_requests_total Requests answered.\n");
        text.push_str("# TYPE sumout_requests_total counter\n");
        for (route, counts) in ROUTES.iter().zip(&self.requests) {
            for (kind, count) in (1..).zip(counts) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        text,
                        "sumout_requests_total{{route=\"{route}\",status=\"{kind}xx\"}} {count}"
                    );
                }
            }
        }
    }

    fn write_counters(&self, dropped_lines: u64, text: &mut String) {
        let [good, bad] = &self.reloads;
        let mut counter = |name: &str, help: &str, value: u64| {
            let head = format!("# HELP {name} {help}\n# TYPE {name} counter");
            let _ = writeln!(text, "{head}\n{name} {value}");
        };
        counter(
            "sumout_rows_total",
            "Rows answered.",
            self.rows.load(Relaxed),
        );
        let shed = self.shed.load(Relaxed);
        counter(
            "sumout_shed_total",
            "Questions that found the queue full.",
            shed,
        );
        counter(
            "sumout_reloads_total",
            "Models loaded again.",
            good.load(Relaxed),
        );
        let failed = bad.load(Relaxed);
        counter(
            "sumout_reloads_failed_total",
            "Files that could not be loaded.",
            failed,
        );
        let help = "Log lines nobody read in time.";
        counter("sumout_log_lines_dropped_total", help, dropped_lines);
    }
}

fn write_waiting(waiting: &[(String, usize)], text: &mut String) {
    let _ = writeln!(
        text,
        "# HELP sumout_waiting Questions waiting for a model.\n# TYPE sumout_waiting gauge"
    );
    for (model, count) in waiting {
        let name = model
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = writeln!(text, "sumout_waiting{{model=\"{name}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts() {
        let metrics = Metrics::default();
        metrics.request("/v1/models/a", 200, Duration::from_millis(2));
        metrics.request("/nonsense", 404, Duration::from_millis(20));
        metrics.batch(20);
        let page = metrics.page(&[("a \"b\"".into(), 3)], 0);
        for line in [
            "sumout_requests_total{route=\"/v1/models\",status=\"2xx\"} 1",
            "sumout_requests_total{route=\"other\",status=\"4xx\"} 1",
            "sumout_request_seconds_bucket{le=\"0.0025\"} 1",
            "sumout_request_seconds_bucket{le=\"0.025\"} 2",
            "sumout_request_seconds_count 2",
            "sumout_batch_rows_bucket{le=\"16\"} 0",
            "sumout_batch_rows_bucket{le=\"32\"} 1",
            "sumout_batch_rows_sum 20",
            "sumout_waiting{model=\"a \\\"b\\\"\"} 3",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }
}
