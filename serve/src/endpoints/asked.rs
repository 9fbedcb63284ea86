//! What is asked about every row: which questions the model gets, and their answers side by side.

use crate::answers::rows::{AnswerParts, Block, RowScores};
use crate::models::questions::{Answer, Question};
use sumout::queries::How;
use sumout::random::seed_at;
use sumout_data::layout::Absent;

/// What to compute for every row.
#[derive(Clone, Debug)]
pub struct RowsAsked {
    /// What the rows of the answer hold.
    pub parts: AnswerParts,
    /// What holes are filled with.
    pub how: How,
    /// Given this class.
    pub class: Option<usize>,
    /// Seed of samples.
    pub seed: u64,
    /// What becomes of columns that a table does not have.
    pub absent: Absent,
    /// The column that the model predicts as a number.
    pub predicted: Option<usize>,
}

impl RowsAsked {
    /// All questions about rows of which the first has this number.
    pub fn questions(&self, values: Vec<f32>, first: usize) -> Vec<(Question, Vec<f32>)> {
        let class = self.class;
        let mut questions = Vec::new();
        if self.parts.scores {
            questions.push((Question::Score, values.clone()));
        }
        if let Some(column) = self.predicted.filter(|_| self.parts.numbers) {
            questions.push((Question::Number { column }, values.clone()));
        }
        if self.parts.probabilities {
            questions.push((Question::Probabilities { class }, values.clone()));
        }
        if self.parts.draws > 0 {
            let question = Question::Fill {
                how: How::Sample,
                class,
                seed: seed_at(self.seed.wrapping_add(1), first),
            };
            questions.push((question, values.repeat(self.parts.draws)));
        }
        if self.parts.values {
            // Only samples have a seed; the others can be answered together with those of other clients.
            let seed = match self.how {
                How::Sample => seed_at(self.seed, first),
                _ => 0,
            };
            let how = self.how;
            questions.push((Question::Fill { how, class, seed }, values));
        }
        questions
    }

    /// The answers side by side, in the order in which they were asked for.
    pub fn block(&self, answers: Vec<Answer>, rows: usize) -> Block {
        let mut block = Block {
            rows,
            ..Block::default()
        };
        for answer in answers {
            match answer {
                Answer::Scores(posterior, log_likelihood) => {
                    block.scores = Some(RowScores {
                        posterior,
                        log_likelihood,
                    });
                }
                Answer::Numbers(all) => block.numbers = Some(all),
                Answer::Probabilities(all) => block.probabilities = Some(all),
                Answer::Filled(values, _) if block.draws.len() < self.parts.draws => {
                    block.draws = values
                        .chunks(values.len() / self.parts.draws)
                        .map(<[f32]>::to_vec)
                        .collect();
                }
                Answer::Filled(values, deviation) => {
                    block.values = Some(values);
                    block.deviation = deviation.filter(|_| self.parts.deviation);
                }
                Answer::Samples(..) | Answer::Channels(_) => {} // of other endpoints
            }
        }
        block
    }
}
