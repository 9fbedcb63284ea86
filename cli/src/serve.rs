//! `sumout serve`: models as a service, with a page to try them on.
//!
//! Modules stand in the order in which a request passes them on its way back: what problems look like, limits, what a
//! model's columns take, formats in and out, the engine, models, who may ask, routes, connections.

pub mod problem;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod formats;
pub mod cells;
pub mod json;
pub mod stream;
pub mod tables;
pub mod arrow;
pub mod answers;
pub mod neurons;
pub mod engine;
pub mod shelf;
pub mod gate;
pub mod openapi;
pub mod asks;
pub mod views;
pub mod routes;
pub mod listen;

use crate::interrupt;
use crate::mistake::{file_error, mistake};
use anyhow::{Context, Result};
use gate::Gate;
use limits::{Limits, STREAMS};
use log::{Level, Log};
use metrics::Metrics;
use routes::App;
use serde_json::json;
use shelf::Shelf;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Where the demo leaves its model.
const DEMO: &str = "sumout-demo/model.sumout";

/// Serve models over HTTP, with a page to try them on
///
/// Without a model it serves the one that `sumout demo` wrote. Bound to anything but this machine it needs a token, in
/// SUMOUT_TOKEN or a file. Ctrl-C finishes what is under way; a second one does not.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model files; NAME=FILE gives one another name than its file has
    models: Vec<String>,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Load a model again when its file changes; a bad file keeps the old model
    #[arg(long)]
    reload: bool,
    /// Rows to try on the page: any data set the models can read [default: digits, for images of 28×28]
    #[arg(long, value_name = "DATA")]
    examples: Option<String>,
    /// A file whose first line is the bearer token that clients must send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Another host name under which this machine may be asked, such as a proxy's
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// What is logged on standard error, a JSON object a line
    #[arg(long, value_enum, default_value_t = Level::Problems)]
    log: Level,
    #[command(flatten)]
    limits: Limits,
}

/// Serves until Ctrl-C.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let token = token(args.token_file.as_deref())?;
    let loopback = args.listen.ip().is_loopback();
    if !loopback && token.is_none() {
        let message =
            "anyone who can reach {} could use it: give a token in SUMOUT_TOKEN or --token-file";
        return Err(mistake(message.replace("{}", &args.listen.to_string())));
    }
    let models = if args.models.is_empty() {
        vec![demo_model()?]
    } else {
        args.models.clone()
    };
    let metrics: Arc<Metrics> = Arc::default();
    let log = Arc::new(Log::new(args.log));
    let shelf = Arc::new(Shelf::new(
        &models,
        args.examples.clone(),
        args.limits,
        metrics.clone(),
    )?);
    if args.reload {
        let (shelf, log) = (shelf.clone(), log.clone());
        std::thread::spawn(move || shelf.watch(&log));
    }
    let gate = Arc::new(Gate {
        loopback,
        hosts: args.allow_host.clone(),
        token,
    });
    let streams = Arc::new(Semaphore::new(STREAMS));
    let app = App {
        shelf: shelf.clone(),
        gate,
        limits: args.limits,
        metrics,
        log: log.clone(),
        streams,
    };
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(1, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let deferred = interrupt::defer();
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await;
        let listener = listener
            .map_err(|error| mistake(format!("cannot listen on {}: {error}", args.listen)))?;
        let address = listener.local_addr().context("cannot listen")?;
        log.event(
            "listening",
            json!({ "address": address.to_string(), "models": shelf.names() }),
        );
        writeln!(
            out,
            "serving {} on http://{address}  (open it in a browser; Ctrl-C ends it)",
            shelf.names().join(", ")
        )?;
        out.flush()?;
        let served = listen::serve(listener, routes::router(app)).await;
        log.event("stopped", json!({}));
        served
    });
    drop(deferred);
    // Threads that still compute for clients who have left are not waited for.
    runtime.shutdown_background();
    std::thread::sleep(std::time::Duration::from_millis(20)); // for the last line of the log
    served
}

/// The model of the demo, or how to get one.
fn demo_model() -> Result<String> {
    if Path::new(DEMO).is_file() {
        return Ok(format!("digits={DEMO}"));
    }
    let hint = format!(
        "`sumout demo` trains one in a minute and leaves it in {DEMO}, where `sumout serve` finds it"
    );
    Err(mistake(format!("expected a model file; {hint}")))
}

/// The token of SUMOUT_TOKEN or of a file.
fn token(file: Option<&Path>) -> Result<Option<String>> {
    let token = match file {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| file_error("read", path, error))?;
            Some(text.lines().next().unwrap_or_default().trim().to_owned())
        }
        None => std::env::var("SUMOUT_TOKEN")
            .ok()
            .map(|token| token.trim().to_owned()),
    };
    match token {
        Some(token) if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(mistake(
                "expected a token of at least 16 letters, digits or signs",
            ))
        }
        token => Ok(token),
    }
}
