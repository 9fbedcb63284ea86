//! What is reported of a fit after each step.

use crate::training::loss::Loss;
use crate::training::trainer::Progress;

/// A part of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A way to learn is tried and scored on held-out rows.
    Trial {
        /// Which one, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A tree is trained.
    Tree {
        /// Which one, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// All that was trained apart is trained on together.
    Together,
}

/// How far a fit is, all parts together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FitProgress {
    /// Steps done.
    pub step: usize,
    /// Steps in all; a guess until the trials are done.
    pub steps: usize,
    /// What is trained now.
    pub part: Part,
    /// The mean objective of the rows of the last step.
    pub objective: f64,
    /// Their loss.
    pub loss: Loss,
    /// Of the validation rows, where they were scored after this step.
    pub validation: Option<Loss>,
}

/// Where a part stands in a fit.
pub(super) struct WholeFit {
    /// Steps of the parts before.
    pub before: usize,
    /// Steps of all parts.
    pub steps: usize,
    pub part: Part,
}

impl WholeFit {
    /// How far the fit is when its part is as far as this.
    pub fn at(&self, progress: &Progress) -> FitProgress {
        FitProgress {
            step: self.before + progress.step,
            steps: self.steps,
            part: self.part,
            objective: progress.objective,
            loss: progress.loss,
            validation: progress.validation,
        }
    }
}
