//! `/v1/sample`, `/v1/explain` and `/v1/examples`: rows that the service makes or has.

use crate::answers::rows::AnswerOf;
use crate::answers::writer::AnswerWriter;
use crate::bodies::spool::Spool;
use crate::endpoints::app::{Answered, App, Document, query};
use crate::endpoints::queries::{ExamplesQuery, ExplainQuery, SampleQuery, generated};
use crate::formats::negotiate::BodyFormat;
use crate::limits::Limits;
use crate::models::questions::Question;
use crate::models::registry::ServedModel;
use crate::problem::Problem;
use axum::extract::{Request, State};

async fn answer(
    live: &ServedModel,
    question: Question,
    to: BodyFormat,
    limits: &Limits,
) -> Result<Answered, Problem> {
    let reply = live.worker.ask(question, Vec::new())?;
    let late = |_| Problem::busy("the model did not answer in time; try again in a moment");
    let answer = tokio::time::timeout(limits.patience(), reply)
        .await
        .map_err(late)?;
    let answer = answer.map_err(|_| Problem::ours("the model has stopped"))??;
    let (parts, block) = generated(answer, live.encoder.width())?;
    let of = AnswerOf {
        model: &live.name,
        encoder: &live.encoder,
        classes: &live.classes,
        parts,
    };
    let mut writer = AnswerWriter::new(to, of, None, Spool::new(limits.stream()))?;
    writer.block(&block)?;
    Answered::new(writer.finish()?, to, block.rows)
}

/// `GET /v1/sample`: new rows.
pub async fn sample(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let asked: SampleQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let to = BodyFormat::accepted(request.headers(), BodyFormat::Json)?;
    answer(&live, asked.question(&live.classes)?, to, &app.limits).await
}

/// `GET /v1/explain`: what a node stands for.
pub async fn explain(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let asked: ExplainQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let to = BodyFormat::accepted(request.headers(), BodyFormat::Json)?;
    answer(&live, asked.question()?, to, &app.limits).await
}

/// `GET /v1/examples`: rows to try, with their labels.
pub async fn examples(State(app): State<App>, request: Request) -> Result<Document, Problem> {
    let asked: ExamplesQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let answer = asked.answer(&live.name, &live.encoder, &live.examples)?;
    Ok(Document(answer))
}
