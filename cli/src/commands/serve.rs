//! `sumout serve`: models as a service, with a page to try them on.

use crate::terminal::interrupt;
use crate::terminal::user_error::user_error as mistake;
use anyhow::Result;
use clap::ValueEnum;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use sumout_data::error::file_error;
use sumout_serve::limits::Limits;
use sumout_serve::log::LogLevel;
use sumout_serve::{ServeOptions, run as serve};

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
    /// Start, stop, reloads, and requests that failed
    Problems,
    /// Nothing
    None,
}

/// How much one client may ask for.
#[derive(Clone, Copy, Debug, clap::Args)]
struct LimitArgs {
    /// MiB that a request may make the service hold at once: a JSON body, a line, an Arrow record batch
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_body: u64,
    /// MiB of a whole stream (JSON lines, CSV, Arrow), and of any answer
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..))]
    max_stream: u64,
    /// Rows in a request
    #[arg(long, value_name = "ROWS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_rows: u64,
    /// Requests under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: u64,
    /// Seconds that a body may take, or pause where it is a stream; a stream may take 30 times as long in all
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: u64,
    /// Questions waiting for a model; more get a 503
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
        let message =
            "anyone who can reach {} could use it: give a token in SUMOUT_TOKEN or --token-file";
        return Err(mistake(message.replace("{}", &args.listen.to_string())));
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
    let _deferred = interrupt::defer();
    serve(&options, out, interrupt::requested)
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
