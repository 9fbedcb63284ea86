//! `sumout demo`: nothing but this program, a minute of training, a table, and a page to look at.

use crate::commands::demo_model;

use crate::terminal::progress::Report;
use crate::terminal::user_error::user_error as mistake;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use sumout::Model;
use sumout::model::model_file;
use sumout::queries::predictor::Predictor;
use sumout::training::data::Data;
use sumout::training::settings::Settings;
use sumout::training::trainer::{Proceed, Trainer};
use sumout_data::atomic_file::Staged;
use sumout_data::error::file_error;
use sumout_data::layout::{ReadOptions, Split, Table};
use sumout_data::model_files;
use sumout_data::table_checks;
use sumout_report::accuracy;
use sumout_report::accuracy::Score;
use sumout_report::baselines::Neighbours;
use sumout_report::page;
use sumout_report::page::Run;
use sumout_report::{gallery, strip};

/// Train on digits that come with the program, show what missing pixels cost, and write a page to look at
///
/// Takes about a minute on two cores and needs no files. The same seed prints the same table, with any number of threads.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder for report.html and model.sumout
    #[arg(long, value_name = "FOLDER", default_value = "sumout-demo")]
    out: PathBuf,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps in all
    #[arg(long, hide = true)]
    steps: Option<usize>,
    /// Ask about so many test images
    #[arg(long, hide = true)]
    images: Option<usize>,
    /// Also draw the picture of the README
    #[arg(long, hide = true, value_name = "PNG")]
    picture: Option<PathBuf>,
}

/// Trains, tests, prints the table, writes the page and the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let (report, path) = (args.out.join("report.html"), args.out.join("model.sumout"));
    prepare(&args.out, &report)?;
    let train = sumout_data::read(sumout_data::digits::NAME, &ReadOptions::default())?;
    let mut test = sumout_data::read(
        sumout_data::digits::NAME,
        &ReadOptions {
            split: Split::Test,
            ..ReadOptions::default()
        },
    )?;
    keep(&mut test, args.images);
    let mut settings = demo_model::settings(args.seed);
    settings.steps = args.steps.unwrap_or(settings.steps);
    let steps = settings.steps;
    say(&format!(
        "Training on {} digits: {steps} steps of {} images",
        train.rows(),
        settings.batch
    ));
    let model = learn(&train, settings)?;
    model_files::save(&path, &model_file::to_bytes(&model)?)?;
    let mut predictor = Predictor::new(model);
    say(&format!(
        "Asking about {} other digits with holes",
        test.rows()
    ));
    let scores = compare(args.seed, &train, &test, &mut predictor)?;
    let folder = args.out.display().to_string();
    let run = Run {
        folder: &folder,
        learned: train.rows(),
        steps,
        seed: args.seed,
    };
    model_files::save(
        &report,
        page::write(&mut predictor, &test, &scores, &run)?.as_bytes(),
    )?;
    if let Some(picture) = &args.picture {
        model_files::save(
            picture,
            &strip::draw(&gallery::completions(&mut predictor, &test, args.seed)?)?,
        )?;
    }
    accuracy::print(&scores, out)?;
    writeln!(
        out,
        "\nwrote {}  (open it in a browser)\nwrote {}",
        report.display(),
        path.display()
    )?;
    Ok(())
}

/// Makes the folder. One that cannot be written to is better known before a minute of training.
fn prepare(folder: &Path, report: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(mistake(format!(
            "cannot make the folder {}: there is a file of that name",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|error| file_error("make the folder", folder, error))?;
    Ok(Staged::create(report).map(drop)?)
}

/// For people who watch; nobody else needs it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Keeps the first so many images.
fn keep(test: &mut Table, images: Option<usize>) {
    let Some(images) = images else { return };
    test.values.truncate(images * test.layout.width);
    test.labels
        .iter_mut()
        .for_each(|labels| labels.truncate(images));
}

/// Trains with a live bar, or with lines where standard error is a file.
fn learn(train: &Table, settings: Settings) -> Result<Model> {
    let mut model = demo_model::model(settings.seed)?;
    model.about = table_checks::names(train);
    model.about.training = json!({
        "program": concat!("sumout ", env!("CARGO_PKG_VERSION"), " demo"),
        "rows": train.rows(),
        "settings": settings,
    });
    let data = Data::new(&train.values, train.labels.as_deref().unwrap_or_default());
    let mut report = Report::new(settings.steps, 0, settings.batch, settings.generative);
    let mut lines: Box<dyn Write> = if io::stderr().is_terminal() {
        Box::new(io::sink())
    } else {
        Box::new(io::stderr())
    };
    let mut trainer = Trainer::new(model, settings, &data)?;
    trainer.run(&data, None, &mut |_, progress| {
        let _ = report.step(progress, &mut lines); // nobody reads it: no reason to stop
        Proceed::Continue
    })?;
    report.finish();
    Ok(trainer.into_model())
}

/// The whole table.
fn compare(
    seed: u64,
    train: &Table,
    test: &Table,
    predictor: &mut Predictor,
) -> Result<Vec<Score>> {
    let neighbours = Neighbours::new(
        &train.values,
        train.labels.as_deref().unwrap_or_default(),
        train.layout.width,
    );
    let kinds = accuracy::kinds();
    let bar = ProgressBar::new(kinds.len() as u64);
    let style = "{bar:24} {pos} of {len} kinds of holes  time left {eta}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut scores = Vec::new();
    for missing in kinds {
        scores.push(accuracy::score(
            missing,
            test,
            seed,
            predictor,
            &neighbours,
        )?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(scores)
}
