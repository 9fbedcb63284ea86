//! `run`: one job for each seed of each experiment, several at a time.

use crate::experiment::{Experiment, Method};
use crate::inputs::examples::Collection;
use crate::methods::{digit_pairs, knn, tmm};
use crate::parallel;
use crate::results::ResultFile;
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use sumout_data::devices::DeviceChoice;

/// What is run, and on what.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Names of experiments: plans/NAME.toml, or a variant in tuning/*.toml
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The file or folder of the data set that the plans name; for MNIST also a name that `sumout data get` knows
    /// [default: mnist]
    #[arg(long)]
    data: Option<String>,
    /// Start over: throw away the runs in the result file
    #[arg(long)]
    again: bool,
    /// How many seeds run at the same time; within a seed, how many linear programs
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// cpu, cuda, cuda:1 (the second GPU), or auto (the first GPU that can be used, else the CPU)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// How a GPU multiplies: f32, or tf32 on its tensor cores [default: tf32 to train, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<String>,
}

impl RunArgs {
    fn device_choice(&self) -> DeviceChoice {
        DeviceChoice {
            device: self.device.clone(),
            precision: self.precision.clone(),
        }
    }
}

/// One seed of an experiment.
struct Job<'a> {
    experiment: &'a Experiment,
    seed: u64,
    file: &'a ResultFile,
}

/// Runs all seeds of the named experiments. A job that fails does not stop the others.
pub fn run(folder: &Path, args: &RunArgs) -> Result<()> {
    let read = |name: &String| Experiment::read(folder, name);
    let experiments = args.names.iter().map(read).collect::<Result<Vec<_>>>()?;
    let set = experiments[0].set;
    ensure!(
        experiments.iter().all(|experiment| experiment.set == set),
        "expected experiments on one data set"
    );
    let collection = set.read(args.data.as_deref())?;
    let open = |experiment: &Experiment| {
        let command = command(folder, experiment);
        ResultFile::open(experiment, &collection.checksum, command, args.again)
    };
    let files = experiments.iter().map(open).collect::<Result<Vec<_>>>()?;
    let failures = Mutex::new(Vec::new());
    parallel::for_each(args.jobs, jobs(&experiments, &files), |job| {
        run_or_note(&job, &collection, args, &failures);
        Ok(())
    })?;
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}

/// Runs a job, or prints why it failed and notes its name.
fn run_or_note(job: &Job<'_>, all: &Collection, args: &RunArgs, failures: &Mutex<Vec<String>>) {
    let name = &job.experiment.name;
    if let Err(error) = run_one(job, all, args) {
        eprintln!("{name}, seed {}: {error:#}", job.seed);
        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(name.clone());
    }
}

fn jobs<'a>(experiments: &'a [Experiment], files: &'a [ResultFile]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for (experiment, file) in experiments.iter().zip(files) {
        jobs.extend(experiment.seeds.iter().map(|&seed| Job {
            experiment,
            seed,
            file,
        }));
    }
    jobs
}

/// One seed. The method is chosen here.
fn run_one(job: &Job<'_>, all: &Collection, args: &RunArgs) -> Result<()> {
    let &Job {
        experiment,
        seed,
        file,
    } = job;
    let data = &experiment.data(all.for_seed(seed));
    let device = &args.device_choice();
    match experiment.method {
        Method::Knn => knn::run(experiment, seed, data, file),
        Method::Tmm => tmm::run(experiment, seed, data, file, device),
        Method::PairsTmm => digit_pairs::run_tmm(experiment, seed, data, file, device),
        Method::PairsRobust => digit_pairs::run_robust(experiment, seed, data, file, args.jobs),
        _ => bail!(
            "expected a method of this program, got a rival in PyTorch: see experiments/rivals"
        ),
    }
}

/// What to type to run it again.
fn command(folder: &Path, experiment: &Experiment) -> String {
    let words: Vec<String> = std::env::args().skip_while(|word| word != "run").collect();
    let at = words.iter().position(|word| word == "--device");
    let device = at.and_then(|at| words.get(at + 1));
    let on_gpu = device.is_some_and(|device| device != "cpu");
    let feature = if on_gpu { " --features cuda" } else { "" };
    let data = if experiment.set.known_by_name().is_some() {
        ""
    } else {
        " --data DATA"
    };
    let options = device.map_or_else(String::new, |device| format!(" --device {device}"));
    let place = if folder == Path::new("experiments") {
        String::new()
    } else {
        format!("--folder {} ", folder.display())
    };
    let name = &experiment.name;
    format!("cargo run --release -p experiments{feature} -- {place}run {name}{data}{options}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::norb::tests::write_folder;
    use crate::results;
    use std::fs;

    const PLAN: &str = r#"
title = "two together"
set = "norb"
method = "tmm"
seeds = [1]
columns = ["clean", "iid:0.5", "rect:1x7"]
[options]
shifts = 0
betas = [0.01, 1.0]
[options.model.image]
patch = [4, 4]
frame = [32, 32]
components = 8
levels = [{ window = [2, 2], channels = 8, sharing = "shared" }, { window = [4, 4], channels = 16, sharing = "shared" }]
[options.model.settings]
steps = 80
batch = 32
rate = 0.05
rotate = 2.0
stretch = 0.02
"#;

    /// From files in the published format to a result file.
    #[test]
    fn an_ensemble_on_small_norb() {
        let folder = tempfile::tempdir().unwrap();
        let (plans, files) = (folder.path().join("plans"), folder.path().join("norb"));
        fs::create_dir_all(&plans).unwrap();
        fs::create_dir_all(&files).unwrap();
        fs::write(plans.join("toys.toml"), PLAN).unwrap();
        write_folder(&files, 60);
        let args = RunArgs {
            names: vec!["toys".into()],
            data: Some(files.display().to_string()),
            again: false,
            jobs: 1,
            device: "cpu".into(),
            precision: None,
        };
        run(folder.path(), &args).unwrap();
        let record = results::read(&folder.path().join("results/toys.json")).unwrap();
        let [only] = &record.runs[..] else {
            panic!("expected one run, got {}", record.runs.len());
        };
        assert_eq!((only.train, only.test), (60, 60));
        assert!(only.accuracies.iter().all(|&x| x > 60.0), "{only:?}");
        assert!(record.is_on("norb") && !record.is_whole());
    }
}
