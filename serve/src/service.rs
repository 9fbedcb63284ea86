//! The service from its first line of log to its last.

use crate::access::Access;
use crate::endpoints::app::App;
use crate::heap::give_back_large_buffers;
use crate::limits::{Limits, STREAMS};
use crate::listening::{listen, routes};
use crate::models::registry::Registry;
use crate::monitoring::log::{Log, LogLevel};
use crate::monitoring::metrics::Metrics;
use anyhow::{Context, Result};
use serde_json::json;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use sumout_data::{Error, ErrorKind};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What is served, where, and who may use it.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Model files; NAME=FILE gives one another name than its file has.
    pub models: Vec<String>,
    /// Where to listen; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Load a model again when its file changes.
    pub reload: bool,
    /// Rows to try on the page.
    pub examples: Option<String>,
    /// The bearer token that clients must send.
    pub token: Option<String>,
    /// Other host names under which this machine may be reached.
    pub allow_host: Vec<String>,
    /// What is logged.
    pub log: LogLevel,
    /// Limits of a request.
    pub limits: Limits,
}

/// Loads the models.
pub fn app(options: &ServeOptions) -> Result<App> {
    let metrics: Arc<Metrics> = Arc::default();
    let registry = Registry::new(
        &options.models,
        options.examples.clone(),
        options.limits,
        metrics.clone(),
    )?;
    let access = Access {
        loopback: options.listen.ip().is_loopback(),
        hosts: options.allow_host.clone(),
        token: options.token.clone(),
    };
    Ok(App {
        registry: Arc::new(registry),
        access: Arc::new(access),
        limits: options.limits,
        metrics,
        log: Arc::new(Log::new(options.log)),
        streams: Arc::new(Semaphore::new(STREAMS)),
        arrivals: Arc::default(),
    })
}

/// Serves until `stop` is true, and finishes what is under way. The first line on `out` says where.
pub fn run(options: &ServeOptions, out: &mut impl Write, stop: fn() -> bool) -> Result<()> {
    give_back_large_buffers();
    let app = app(options)?;
    let (registry, log) = (app.registry.clone(), app.log.clone());
    if options.reload {
        let (registry, log) = (registry.clone(), log.clone());
        std::thread::spawn(move || registry.watch(&log));
    }
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(1, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|error| {
            let sentence = format!("cannot listen on {}: {error}", options.listen);
            Error::new(ErrorKind::Argument, sentence)
        })?;
        let address = listener.local_addr().context("cannot listen")?;
        log.event(
            "listening",
            json!({ "address": address.to_string(), "models": registry.names() }),
        );
        writeln!(
            out,
            "serving {} on http://{address}  (open it in a browser; Ctrl-C ends it)",
            registry.names().join(", ")
        )?;
        out.flush()?;
        let served = listen::serve(listener, routes::router(app), stop).await;
        log.event("stopped", json!({}));
        served
    });
    // Threads that still compute for clients that have left are not waited for.
    runtime.shutdown_background();
    std::thread::sleep(std::time::Duration::from_millis(20)); // for the last line of the log
    served
}
