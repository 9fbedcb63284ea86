//! The options of `sumout train`.

use crate::options::device::DeviceArgs;
use crate::options::input::Input;
use std::path::PathBuf;

/// Train a model on data with missing values
///
/// Without a plan, Sumout chooses a model for the data: for images, a deep tree of 2×2 windows; for
/// tables, a tree over columns, built from how they depend on each other. The same seed prints the
/// same lines and gives the same model, with any number of threads.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A TOML file, or a preset (`sumout inspect` lists them)
    #[arg(value_name = "PLAN", conflicts_with = "resume")]
    pub plan: Option<String>,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Columns whose numbers are names of categories, separated by commas; can be given several
    /// times
    #[arg(long, value_name = "COLUMNS")]
    pub(super) categorical: Vec<String>,
    /// The smallest and the largest number of a column, such as share=0:100, or price=0: for one
    /// bound: nothing that the model gives is outside. Can be given several times
    #[arg(long, value_name = "COLUMN=LOW:HIGH", allow_hyphen_values = true)]
    pub(super) bounds: Vec<String>,
    /// Columns of whole numbers, separated by commas: what the model gives is rounded. Can be
    /// given several times
    #[arg(long, value_name = "COLUMNS")]
    pub(super) whole: Vec<String>,
    /// The target is a number, to be predicted as a number: mean, standard deviation and quantiles in place
    /// of classes
    #[arg(long, requires = "target", conflicts_with_all = ["prior", "class_weight", "plan"])]
    pub(super) regression: bool,
    /// Columns to leave out, separated by commas; can be given several times
    #[arg(long, value_name = "COLUMNS")]
    pub(super) ignore: Vec<String>,
    /// P(y), what is assumed of the class before anything is seen: labels (their frequencies), uniform, or
    /// a weight for each class, such as no=9,yes=1 [default: labels]
    #[arg(long, value_name = "PRIOR")]
    pub(super) prior: Option<String>,
    /// Weights of the rows of each class: balanced (all classes weigh the same), or a weight for each class,
    /// such as no=1,yes=5. They change the prior too, unless --prior is given
    #[arg(long, value_name = "WEIGHTS")]
    pub(super) class_weight: Option<String>,
    /// Validation data, to keep the best model: a data set (its test half, if it has two), or the
    /// share of the rows to use for validation, such as 0.1
    #[arg(long, value_name = "DATA")]
    pub(super) validation: Option<String>,
    /// What to write into the model file about the model, such as who trained it, when and why:
    /// `sumout inspect` prints it
    #[arg(long, value_name = "TEXT")]
    pub(super) note: Option<String>,
    /// Where to write the model
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Replace the file at --out even if it is not a model
    #[arg(long)]
    pub(super) force: bool,
    /// How much memory the training may take, such as 2GB. Of rows that would take more, a sample starts the
    /// model, and all of them, from a scratch file, teach it [default: half of the memory that is free]
    #[arg(long, value_name = "SIZE", value_parser = crate::options::memory::bytes)]
    pub(super) memory: Option<u64>,
    /// Continue from this checkpoint; the model is the same as without the stop, to the last bit
    #[arg(long, value_name = "CHECKPOINT", conflicts_with_all = ["seed", "steps", "batch", "trees", "categorical", "bounds", "whole", "ignore", "prior", "class_weight", "note"])]
    pub(super) resume: Option<PathBuf>,
    /// Steps between checkpoints, which are at most a minute apart; with 0, there is one only on
    /// Ctrl-C [default: 1000, and at most one in ten seconds]
    #[arg(long, value_name = "STEPS")]
    pub(super) checkpoint_every: Option<usize>,
    /// Seed of all random numbers [default: 1]
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Steps of every tree; the joint training after them has an eighth of that [default: chosen for the data]
    #[arg(long)]
    pub(super) steps: Option<usize>,
    /// Trees that are trained separately and joined [default: chosen for the data, 1 with a plan]
    #[arg(long)]
    pub(super) trees: Option<usize>,
    /// Rows per step
    #[arg(long, value_name = "ROWS")]
    pub(super) batch: Option<usize>,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
}

impl Args {
    /// The column of the class, if there is one: a target that is a number is a column like the others.
    pub(super) fn class_column(&self) -> Option<String> {
        let target = self.input.target.clone();
        target.filter(|_| !self.regression)
    }
}
