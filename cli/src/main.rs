//! `sumout`: parse, then act.

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::io::{self, Write};
use std::process::ExitCode;
use sumout_cli::args::{Args, Command, Data, FIRST_STEPS};
use sumout_cli::commands::{
    bench, completions, compress, data, demo, evaluate, explain, impute, inspect, man, predict,
    report, sample, serve, train,
};
use sumout_cli::demo::table::Step;
use sumout_cli::terminal::progress::Patient;
use sumout_cli::terminal::{hints, interrupt, user_error};

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return explain_arguments(&error),
    };
    interrupt::install();
    let Err(error) = run(&args) else {
        return ExitCode::SUCCESS;
    };
    if error.is::<interrupt::Interrupted>() {
        let _ = writeln!(io::stderr(), "{error}");
    } else if !user_error::is_closed_pipe(&error) {
        let words = user_error::in_words(&error, args.notation());
        let _ = writeln!(io::stderr(), "error: {words}");
    }
    ExitCode::from(user_error::exit_code(&error))
}

/// Prints what is wrong with the arguments, or the text of `--help`.
fn explain_arguments(error: &clap::Error) -> ExitCode {
    // It may go into a closed pipe.
    let _ = match user_error::wrong_number(error) {
        Some(words) => writeln!(io::stderr(), "error: {words}"),
        None => error.print(),
    };
    if error.use_stderr() {
        let words: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        if let Some(hint) = hints::data_hint(words.iter().map(String::as_str)) {
            let _ = writeln!(io::stderr(), "\n{hint}");
        }
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Parses the arguments. A number below zero is a wrong number, not an unknown option.
fn parse() -> Result<Args, clap::Error> {
    let mut command = Args::command()
        .allow_negative_numbers(true)
        .mut_subcommands(|command| command.allow_negative_numbers(true));
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run(args: &Args) -> Result<()> {
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()?;
    }
    let mut out = io::stdout().lock();
    let Some(command) = &args.command else {
        return Ok(out.write_all(FIRST_STEPS.as_bytes())?);
    };
    match command {
        Command::Demo(args) => match demo::tour(args)? {
            Some(steps) => take(&steps, &mut out)?,
            None => demo::run(args, &mut out)?,
        },
        Command::Train(args) => train::run(args, &mut Patient(&mut out))?,
        Command::Evaluate(args) => evaluate::run(args, &mut out)?,
        Command::Report(args) => report::run(args, &mut out)?,
        Command::Predict(args) => predict::run(args)?,
        Command::Impute(args) => impute::run(args)?,
        Command::Sample(args) => sample::run(args)?,
        Command::Explain(args) => explain::run(args)?,
        Command::Inspect(args) => inspect::run(args, &mut out)?,
        Command::Compress(args) => compress::run(args, &mut out)?,
        Command::Serve(args) => serve::run(args, &mut out)?,
        Command::Bench(args) => bench::run(args, &mut out)?,
        Command::Data(Data::List) => data::list(&mut out)?,
        Command::Data(Data::Get { name, to }) => {
            data::get(name, to.as_deref(), &mut out, &mut io::stderr())?
        }
        Command::Completions(args) => completions::run(args, Args::command(), &mut out)?,
        Command::Man(args) => man::run(args, Args::command())?,
    }
    out.flush()?;
    Ok(())
}

/// Lines of a file that the tour shows.
const SHOWN: usize = 5;

/// Takes the steps of a tour: prints every command, and runs it as if the user had typed it.
fn take(steps: &[Step], out: &mut impl Write) -> Result<()> {
    for step in steps {
        match step {
            Step::Say(sentence) => writeln!(out, "\n{sentence}")?,
            Step::Run(words) => {
                writeln!(out, "\n$ sumout {}", words.join(" "))?;
                out.flush()?;
                run(&Args::parse_from(["sumout".to_owned()].iter().chain(words)))?;
            }
            Step::Show(file) => {
                writeln!(out, "\n$ head -n {SHOWN} {file}")?;
                let text = std::fs::read_to_string(file)?;
                let mut lines = text.lines().take(SHOWN);
                lines.try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
    }
    Ok(())
}
