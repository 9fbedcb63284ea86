//! The model that a report is about, and the one question that most of the report is made of: how sure is it of what it
//! predicts, and how likely is what it sees?

use crate::model_page::sample::Sample;
use anyhow::Result;
use sumout::Predictor;

/// What a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicts {
    /// The class of a row.
    Class,
    /// The number in this column.
    Number(usize),
    /// Nothing in particular: it is a density. A model of numbers whose targets are all missing is treated as one.
    Nothing,
}

/// A model and the rows to ask it about.
pub struct Subject<'a> {
    /// Answers.
    pub predictor: &'a mut Predictor,
    /// The rows.
    pub sample: &'a Sample,
    /// What is predicted.
    pub predicts: Predicts,
    /// Is called after each question about all rows.
    pub tick: &'a mut dyn FnMut(),
}

/// What the model says of all rows.
#[derive(Clone, Debug)]
pub struct Answer {
    /// (n): log P(x_o), in nats.
    pub log_marginal: Vec<f64>,
    /// Mean uncertainty about what is predicted, in nats: the entropy of the class, or −log P(y|x_o) of a known number.
    pub uncertainty: f64,
    /// Share of labelled rows whose most probable class is right; NaN where there are none.
    pub accuracy: f64,
}

impl Predicts {
    /// What the model predicts that can be seen in these rows.
    pub fn of(predictor: &Predictor, sample: &Sample) -> Self {
        let model = predictor.model();
        match model.target() {
            Some(column) if sample.column(column).any(|y| !y.is_nan()) => Self::Number(column),
            Some(_) => Self::Nothing,
            None if model.structure.classes > 1 => Self::Class,
            None => Self::Nothing,
        }
    }
}

impl Subject<'_> {
    /// The columns that something is predicted from.
    pub fn inputs(&self) -> Vec<usize> {
        let is_input = |column: &usize| self.predicts != Predicts::Number(*column);
        (0..self.sample.layout.width).filter(is_input).collect()
    }

    /// Asks about rows (n, width), which are those of the sample with some cells hidden.
    pub fn ask(&mut self, rows: &[f32]) -> Result<Answer> {
        let answer = match self.predicts {
            Predicts::Class => self.ask_for_class(rows)?,
            Predicts::Number(column) => self.ask_for_number(rows, column)?,
            Predicts::Nothing => Answer {
                log_marginal: self
                    .predictor
                    .log_marginal(self.predictor.model().rows(rows)?)?,
                uncertainty: 0.0,
                accuracy: f64::NAN,
            },
        };
        (self.tick)();
        Ok(answer)
    }

    fn ask_for_class(&mut self, rows: &[f32]) -> Result<Answer> {
        let scores = self.predictor.score(self.predictor.model().rows(rows)?)?;
        let total: f64 = scores.posterior.iter().map(entropy).sum();
        let answers = scores.classes().into_iter().zip(&self.sample.labels);
        let labelled = answers.filter(|(_, label)| **label >= 0);
        let right: Vec<bool> = labelled
            .map(|(class, &label)| class as i64 == label)
            .collect();
        let correct = right.iter().filter(|&&right| right).count();
        Ok(Answer {
            uncertainty: total / self.sample.rows() as f64,
            accuracy: correct as f64 / right.len() as f64,
            log_marginal: scores.log_marginal,
        })
    }

    fn ask_for_number(&mut self, rows: &[f32], column: usize) -> Result<Answer> {
        let width = self.sample.layout.width;
        let mut without = rows.to_vec();
        without
            .chunks_exact_mut(width)
            .for_each(|row| row[column] = f32::NAN);
        let model = self.predictor.model();
        let (both, alone) = (model.rows(rows)?, model.rows(&without)?);
        let log_marginal = self.predictor.log_marginal(both)?;
        let alone = self.predictor.log_marginal(alone)?;
        let pairs = log_marginal.iter().zip(&alone);
        let total: f64 = pairs.map(|(both, alone)| alone - both).sum();
        let known = self.sample.column(column).filter(|y| !y.is_nan()).count();
        Ok(Answer {
            uncertainty: total / known as f64,
            accuracy: f64::NAN,
            log_marginal,
        })
    }
}

/// −Σ p log p, in nats.
pub fn entropy(probabilities: &[f64]) -> f64 {
    let positive = probabilities.iter().filter(|p| **p > 0.0);
    -positive.map(|p| p * p.ln()).sum::<f64>()
}
