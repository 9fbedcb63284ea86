//! `sumout explain`: what one neuron stands for.

use crate::options::device::DeviceArgs;
use crate::options::input::Drawn;
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use sumout::queries::explain::{Neuron, View};
use sumout_data::atomic_file::check_apart;
use sumout_data::model_files;
use sumout_data::model_files::layout_of;
use sumout_data::output::{Output, OutputFormat, fields_of};

/// How a neuron is shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum How {
    /// Draws of what is below it
    Samples,
    /// The most likely assignment of what is below it, hidden variables included
    Mode,
}

/// Show what one neuron stands for: samples or the mode of what lies below it
///
/// What is not below it is missing in the answer. `sumout inspect MODEL` shows trees, levels, nodes and channels.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Which tree
    #[arg(long, default_value_t = 0)]
    tree: usize,
    /// 0 for the leaves, then one more for each level
    #[arg(long)]
    level: usize,
    /// Which node of the level
    #[arg(long, default_value_t = 0)]
    node: usize,
    /// Which channel of the node
    #[arg(long)]
    channel: usize,
    /// How it is shown
    #[arg(long, value_enum, default_value_t = How::Samples)]
    how: How,
    /// How many samples
    #[arg(long, default_value_t = 16)]
    count: usize,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Asks and writes.
pub fn run(args: &Args) -> Result<()> {
    let format = OutputFormat::of(&args.out.out)?;
    check_apart(&args.out.out, &[&args.model.to_string_lossy()])?;
    let mut predictor = args
        .device
        .choice()
        .predictor(model_files::load(&args.model)?)?;
    let neuron = Neuron {
        tree: args.tree,
        layer: args.level,
        node: args.node,
        channel: args.channel,
    };
    let view = match args.how {
        How::Samples => View::Samples {
            count: args.count,
            seed: args.out.seed,
        },
        How::Mode => View::Mode,
    };
    let rows = predictor.explain(neuron, view)?;
    let layout = layout_of(predictor.model());
    let mut out = Output::create(&args.out.out, format, fields_of(&layout), layout.image())?;
    out.numbers(&rows)?;
    Ok(out.finish()?)
}
