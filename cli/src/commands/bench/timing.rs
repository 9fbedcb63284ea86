//! Rounds of steps, of which the fastest counts.

use anyhow::Result;
use std::ops::ControlFlow;
use std::time::Instant;
use sumout::Trainer;

/// How often a job is measured.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub rounds: usize,
    pub steps: usize, // per round
}

impl Timing {
    /// Seconds of one call, in the fastest round.
    pub fn best_of(&self, mut job: impl FnMut() -> Result<()>) -> Result<f64> {
        (0..5.min(self.steps)).try_for_each(|_| job())?; // makes buffers and warms caches
        let mut best = f64::INFINITY;
        for _ in 0..self.rounds {
            let start = Instant::now();
            (0..self.steps).try_for_each(|_| job())?;
            best = best.min(start.elapsed().as_secs_f64() / self.steps as f64);
        }
        Ok(best)
    }

    /// Seconds per step of a training run. The first round only warms up.
    pub fn best_step(&self, trainer: &mut Trainer<'_>) -> Result<f64> {
        trainer.report_every(self.steps);
        let mut rounds = Rounds {
            start: Instant::now(),
            best: f64::INFINITY,
            done: 0,
        };
        trainer.run_with(|_, progress| rounds.on_step(progress.step, self))?;
        Ok(rounds.best)
    }
}

/// Rounds of steps so far.
struct Rounds {
    start: Instant,
    best: f64, // seconds per step
    done: usize,
}

impl Rounds {
    fn on_step(&mut self, step: usize, timing: &Timing) -> ControlFlow<()> {
        if step.is_multiple_of(timing.steps) {
            if self.done > 0 {
                let seconds = self.start.elapsed().as_secs_f64() / timing.steps as f64;
                self.best = self.best.min(seconds);
            }
            self.start = Instant::now();
            self.done += 1;
        }
        if self.done > timing.rounds {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
