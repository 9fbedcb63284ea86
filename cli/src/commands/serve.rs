//! `sumout serve`: models as an HTTP service, with a web page.

use crate::terminal::interrupt;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use clap::ValueEnum;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use sumout_data::error::file_error;

use sumout_serve::{Limits, LogLevel, ServeOptions, run as serve};

/// Where `sumout demo` writes its model.
const DEMO: &str = "sumout-demo/model.sumout";

/// Serve models over HTTP, with a web page to try them
///
/// Without a model, it serves the one that `sumout demo` wrote. If other machines can connect, it
/// needs a token, in SUMOUT_TOKEN or in a file. Ctrl-C lets running requests finish; a second
/// Ctrl-C stops at once.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model files; NAME=FILE serves a model under this name instead of the name of its file
    models: Vec<String>,
    /// Address to listen on; port 0 is any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Load a model again when its file changes; if the new file is damaged, the old model stays
    #[arg(long)]
    reload: bool,
    /// Example rows for the web page: a data set that one of the models can read at least [default:
    /// digits, for images of 28×28]
    #[arg(long, value_name = "DATA")]
    examples: Option<String>,
    /// A file whose first line is the bearer token that clients must send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Another host name that requests may use, such as the name of a proxy; can be given several
    /// times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// What to log on standard error, one JSON object per line
    #[arg(long, value_enum, default_value_t = LogArg::Problems)]
    log: LogArg,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogArg {
    /// Every request
    All,
    /// Start, stop, reloads, and failed requests
    Problems,
    /// Nothing
    None,
}

/// Limits of requests.
#[derive(Clone, Copy, Debug, clap::Args)]
struct LimitArgs {
    /// Maximum MiB that a request may hold in memory at once: a JSON body, a line, an Arrow record
    /// batch
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_body: u64,
    /// Maximum MiB of a whole stream (JSON lines, CSV, Arrow), and of any answer
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..))]
    max_stream: u64,
    /// Maximum rows per request
    #[arg(long, value_name = "ROWS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_rows: u64,
    /// Maximum requests at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: u64,
    /// Maximum seconds for receiving a body. A stream may pause this long, and take 30 times as
    /// long in total
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: u64,
    /// Maximum requests that wait for a model; more get status 503
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    max_waiting: u64,
}

impl LimitArgs {
    fn limits(self) -> Limits {
        Limits {
            max_body: self.max_body,
            max_stream: self.max_stream,
            max_rows: self.max_rows,
            max_requests: self.max_requests,
            max_seconds: self.max_seconds,
            max_waiting: self.max_waiting,
        }
    }
}

/// Serves until Ctrl-C.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let token = token(args.token_file.as_deref())?;
    if !args.listen.ip().is_loopback() && token.is_none() {
        return Err(user_error(format!(
            "anyone who can reach {} could use it: give a token in SUMOUT_TOKEN or --token-file",
            args.listen
        )));
    }
    let models = if args.models.is_empty() {
        vec![demo_model()?]
    } else {
        args.models.clone()
    };
    let log = match args.log {
        LogArg::All => LogLevel::All,
        LogArg::Problems => LogLevel::Problems,
        LogArg::None => LogLevel::None,
    };
    let options = ServeOptions {
        models,
        listen: args.listen,
        reload: args.reload,
        examples: args.examples.clone(),
        token,
        allow_host: args.allow_host.clone(),
        log,
        limits: args.limits.limits(),
    };
    let _deferred = interrupt::defer("finishing running requests; Ctrl-C again stops at once");
    serve(&options, out, interrupt::requested)
}

/// The model of the demo, or how to get one.
fn demo_model() -> Result<String> {
    if Path::new(DEMO).is_file() {
        return Ok(format!("digits={DEMO}"));
    }
    Err(user_error(format!(
        "expected a model file; `sumout demo` trains one in a minute and writes it to {DEMO}, \
         where `sumout serve` finds it"
    )))
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
        Some(token) if !is_strong(&token) => Err(user_error(
            "expected a token of at least 16 letters, digits or signs",
        )),
        token => Ok(token),
    }
}

fn is_strong(token: &str) -> bool {
    token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic())
}
