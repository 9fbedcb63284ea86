//! A request about rows, as the model sees it: which questions to ask, and their answers side by side.

use crate::answers::rows::{AnswerOf, AnswerParts, Block, RowScores};
use crate::answers::writer::AnswerWriter;
use crate::bodies::spool::Spool;
use crate::formats::negotiate::BodyFormat;
use crate::formats::text::CsvTable;
use crate::limits::Limits;
use crate::models::registry::ServedModel;
use crate::models::worker::{Answer, BATCH, Question, Reply};
use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sumout::queries::How;
use sumout::random::seed_at;
use sumout_data::layout::Absent;

/// A request about rows: which model, and what to compute for every row.
pub(super) struct RowsRequest {
    pub live: Arc<ServedModel>,
    pub parts: AnswerParts,
    pub how: How,
    pub class: Option<usize>,
    pub seed: u64,
    pub absent: Absent,
    pub to: BodyFormat,
}

impl RowsRequest {
    /// Starts the answer; a CSV table comes back with its holes filled.
    pub fn writer(
        &self,
        table: Option<&CsvTable>,
        limits: &Limits,
    ) -> Result<AnswerWriter<'_>, Problem> {
        let answer = AnswerOf {
            model: &self.live.name,
            encoder: &self.live.encoder,
            classes: &self.live.classes,
            parts: self.parts,
        };
        AnswerWriter::new(self.to, answer, table.cloned(), Spool::new(limits.stream()))
    }

    /// Rows of one question: fewer where a row takes long, so that nobody waits long behind it.
    pub fn rows_at_once(&self) -> usize {
        match self.how {
            How::Mode => BATCH / 8,
            _ => BATCH / (1 + self.parts.draws),
        }
    }

    /// Asks everything about rows of which the first has this number.
    pub fn ask(&self, values: Vec<f32>, first: usize) -> Result<Vec<Reply>, Problem> {
        let (worker, class) = (&self.live.worker, self.class);
        let mut replies = Vec::new();
        if self.parts.scores {
            replies.push(worker.ask(Question::Score, values.clone())?);
        }
        if let Some(column) = self.live.predicted.filter(|_| self.parts.numbers) {
            replies.push(worker.ask(Question::Number { column }, values.clone())?);
        }
        if self.parts.probabilities {
            replies.push(worker.ask(Question::Probabilities { class }, values.clone())?);
        }
        if self.parts.draws > 0 {
            let seed = seed_at(self.seed.wrapping_add(1), first);
            let repeated = values.repeat(self.parts.draws);
            replies.push(worker.ask(
                Question::Fill {
                    how: How::Sample,
                    class,
                    seed,
                },
                repeated,
            )?);
        }
        if self.parts.values {
            // Only samples have a seed; the others can be answered together with those of other clients.
            let seed = if self.how == How::Sample {
                seed_at(self.seed, first)
            } else {
                0
            };
            replies.push(worker.ask(
                Question::Fill {
                    how: self.how,
                    class,
                    seed,
                },
                values,
            )?);
        }
        Ok(replies)
    }

    /// The same, but waits while the queue is full.
    pub fn ask_patiently(
        &self,
        values: &[f32],
        first: usize,
        until: Instant,
    ) -> Result<Vec<Reply>, Problem> {
        loop {
            match self.ask(values.to_vec(), first) {
                Err(problem)
                    if problem.status == StatusCode::SERVICE_UNAVAILABLE
                        && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                other => return other,
            }
        }
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
