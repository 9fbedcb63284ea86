//! The figures of one kind of holes.

use crate::terminal::far_rows::FarRows;
use serde::Serialize;
use sumout::masks::Missing;
use sumout::queries::Scores;
use sumout_data::layout::Chunk;
use sumout_report::classification::{ClassFigures, Classification};

/// The result for one kind of holes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The kind.
    pub missing: String,
    /// Rows.
    pub n: usize,
    /// Rows with a label.
    pub labelled: usize,
    /// Share of labelled rows that were right; none without labels.
    pub accuracy: Option<f64>,
    /// Mean of −log P(y|x_o) of the labels, in nats.
    pub log_loss: Option<f64>,
    /// Expected difference between accuracy and the probability of the predicted class.
    pub calibration_error: Option<f64>,
    /// Mean over all rows of log P(x_o), in nats, a density in the units of the data.
    pub log_likelihood: f64,
    /// Figures of every class; empty without labels.
    pub classes: Vec<ClassOutcome>,
    /// Rows of the true class (first index) that were predicted as a class; empty without labels.
    pub confusion: Vec<Vec<usize>>,
}

impl Outcome {
    /// The accuracy of who always guesses the most frequent class; none without labels.
    pub fn most_frequent(&self) -> Option<f64> {
        let largest = self.classes.iter().map(|class| class.rows).max()?;
        Some(largest as f64 / self.labelled as f64)
    }
}

/// The figures of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassOutcome {
    /// Its name.
    pub class: String,
    /// Rows of this class.
    pub rows: usize,
    /// Rows that were predicted to be of this class.
    pub predicted: usize,
    /// Share of the predicted rows that are of this class.
    pub precision: Option<f64>,
    /// Share of the rows of this class that were predicted so.
    pub recall: Option<f64>,
    /// Harmonic mean of the two.
    pub f1: Option<f64>,
}

/// Counts of one kind of holes so far.
#[derive(Clone)]
pub struct Tally {
    rows: usize,
    classification: Classification,
    log_likelihood: f64,
    /// Rows that are too unlike the training data.
    pub far: FarRows,
}

impl Tally {
    /// Nothing counted yet, of this many classes.
    pub fn new(classes: usize) -> Self {
        Self {
            rows: 0,
            classification: Classification::new(classes),
            log_likelihood: 0.0,
            far: FarRows::default(),
        }
    }

    /// Counts the scores of a chunk.
    pub fn count(&mut self, chunk: &Chunk, scores: &Scores) {
        for (row, &class) in scores.classes().iter().enumerate() {
            self.log_likelihood += scores.log_marginal[row];
            let label = chunk.labels.as_ref().map_or(-1, |labels| labels[row]);
            if let Ok(label) = usize::try_from(label) {
                let posterior = scores.posterior.row(row);
                self.classification.count(posterior, class, label);
            }
        }
        let width = chunk.values.len() / scores.log_marginal.len().max(1);
        self.far.count(chunk.first, &scores.log_marginal, width);
        self.rows += scores.log_marginal.len();
    }

    /// The figures; `names` are those of the classes.
    pub fn outcome(&self, missing: &Missing, names: &[String]) -> Outcome {
        let counted = &self.classification;
        let labelled = counted.rows();
        let of_class = |(name, figures): (&String, ClassFigures)| ClassOutcome {
            class: name.clone(),
            rows: figures.rows,
            predicted: figures.predicted,
            precision: figures.precision,
            recall: figures.recall,
            f1: figures.f1,
        };
        let classes = names.iter().zip(counted.per_class());
        let classes = classes.filter(|_| labelled > 0).map(of_class);
        Outcome {
            missing: missing.to_string(),
            n: self.rows,
            labelled,
            accuracy: counted.accuracy(),
            log_loss: counted.log_loss(),
            calibration_error: counted.confidence.error(),
            log_likelihood: self.log_likelihood / self.rows as f64,
            classes: classes.collect(),
            confusion: if labelled > 0 {
                counted.confusion()
            } else {
                Vec::new()
            },
        }
    }
}
