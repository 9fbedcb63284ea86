//! A request about rows on its way through the worker of a model.

use crate::answers::rows::AnswerOf;
use crate::answers::writer::AnswerWriter;
use crate::bodies::spool::Spool;
use crate::endpoints::asked::RowsAsked;
use crate::formats::csv_rows::CsvTable;
use crate::formats::negotiate::BodyFormat;
use crate::limits::Limits;
use crate::models::registry::ServedModel;
use crate::models::worker::{BATCH, Reply};
use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sumout::queries::How;

/// A request about rows: which model, what to compute for every row, and how the answer is written.
pub(super) struct RowsRequest {
    pub live: Arc<ServedModel>,
    pub asked: RowsAsked,
    pub to: BodyFormat,
}

impl RowsRequest {
    /// Starts the answer; a CSV table comes back with its holes filled.
    pub fn writer(
        &self,
        table: Option<&CsvTable>,
        limits: &Limits,
    ) -> Result<AnswerWriter<'_, Spool>, Problem> {
        let answer = AnswerOf {
            model: &self.live.name,
            encoder: &self.live.encoder,
            classes: &self.live.classes,
            parts: self.asked.parts,
        };
        AnswerWriter::new(self.to, answer, table.cloned(), Spool::new(limits.stream()))
    }

    /// Rows of one question: fewer where a row takes long, so that nobody waits long behind it.
    pub fn rows_at_once(&self) -> usize {
        match self.asked.how {
            How::Median | How::Mode => BATCH / 8,
            _ => BATCH / (1 + self.asked.parts.draws),
        }
    }

    /// Asks everything about rows of which the first has this number.
    pub fn ask(&self, values: Vec<f32>, first: usize) -> Result<Vec<Reply>, Problem> {
        let questions = self.asked.questions(values, first).into_iter();
        questions
            .map(|(question, rows)| self.live.worker.ask(question, rows))
            .collect()
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
}
