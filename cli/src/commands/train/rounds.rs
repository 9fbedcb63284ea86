//! Steps over rows that do not fit into memory: a sample has started the model, all rows teach it.

use crate::commands::train::args::Args;
use crate::commands::train::resume_command::{checkpoint_path, resume_command};
use crate::commands::train::start::CLASS_WEIGHT;
use crate::commands::train::steps::CheckpointTimes;
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::progress::RoundReporter;
use anyhow::Result;
use std::io::Write;
use std::time::Instant;
use sumout::recipes::{RoundOptions, Rounds};
use sumout::training::{Contribution, Data, Round, labels};
use sumout::{Model, Rows};
use sumout_data::model_files;
use sumout_data::spool::{Piece, Spool};

/// The fit by rounds of a model that a sample has started.
pub fn start(args: &Args, model: Model, spool: &Spool) -> Result<Rounds> {
    let weights = class_weights(&model);
    let prior = match &args.prior {
        Some(_) => model.log_prior.iter().map(|log| log.exp()).collect(),
        None => prior_of(spool, model.structure.classes, &weights),
    };
    let options = RoundOptions {
        whole: true,
        ..RoundOptions::default()
    };
    Ok(Rounds::start(model, &spool.sizes(), &prior, &options)?)
}

/// P(y) as the weighted rows have it, up to a factor.
fn prior_of(spool: &Spool, classes: usize, weights: &[f64]) -> Vec<f64> {
    if classes == 1 {
        return vec![1.0];
    }
    let count = |class: usize| spool.class_counts().get(class).copied().unwrap_or(0) as f64;
    let weight = |class: usize| weights.get(class).copied().unwrap_or(1.0);
    (0..classes)
        .map(|class| count(class) * weight(class))
        .collect()
}

fn class_weights(model: &Model) -> Vec<f64> {
    let noted = model.about.training.get::<Vec<f64>>(CLASS_WEIGHT);
    noted.unwrap_or_default()
}

/// Goes on to the end, or to Ctrl-C, with checkpoints on the way.
pub fn run(args: &Args, rounds: &mut Rounds, spool: &Spool, out: &mut impl Write) -> Result<Model> {
    let (done, steps) = (rounds.steps_done(), rounds.steps());
    writeln!(
        out,
        "all rows   {} rows, {} steps",
        spool.rows(),
        steps - done
    )?;
    let reporter = RoundReporter::new(steps, done);
    let mut due = CheckpointTimes::new(args.checkpoint_every, Instant::now());
    let checkpoint = checkpoint_path(&args.out);
    let deferred = interrupt::defer(
        "stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one",
    );
    let weights = class_weights(&rounds.model());
    while rounds.steps_done() < steps {
        let round = Round::from_bytes(&rounds.round()?)?;
        let loss = rounds.apply(&sum(&round, spool, &weights)?)?;
        let step = rounds.steps_done();
        reporter.step(step, &loss, rounds.generative(), out)?;
        let is_last = step == steps;
        if !is_last && (interrupt::requested() || due.at(step, Instant::now())) {
            model_files::save(&checkpoint, &rounds.checkpoint()?)?;
        }
        if !is_last && interrupt::requested() {
            drop(deferred);
            let command = resume_command(args);
            let words = format!("stopped after step {step} of {steps}; continue with\n  {command}");
            return Err(Interrupted(words).into());
        }
    }
    Ok(rounds.model())
}

/// What all pieces of a step add up to; one of them is in memory at a time.
fn sum(round: &Round, spool: &Spool, weights: &[f64]) -> Result<Contribution> {
    let contribution = |place: usize| -> Result<Contribution> {
        let piece = spool.piece(round.taken()[place])?;
        of_piece(round, place, &piece, weights)
    };
    let mut sum = contribution(0)?;
    for place in 1..round.taken().len() {
        sum.add(contribution(place)?)?;
    }
    Ok(sum)
}

fn of_piece(round: &Round, place: usize, piece: &Piece, weights: &[f64]) -> Result<Contribution> {
    let width = piece.values.len() / piece.labels.len();
    let known = if round.classes() == 1 {
        Vec::new()
    } else {
        labels(&piece.labels)
    };
    let weight = |label: &i64| usize::try_from(*label).map_or(1.0, |class| weights[class] as f32);
    let own: Vec<f32> = match weights {
        [] => Vec::new(),
        _ => piece.labels.iter().map(weight).collect(),
    };
    let data = Data::new(Rows::new(&piece.values, width)?, &known).weighted(&own);
    Ok(round.contribution(place, data)?)
}
