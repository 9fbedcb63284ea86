//! `/v1/predict` and `/v1/impute`: rows in; the same rows out with predictions, or with their holes filled.
//!
//! A small JSON body is answered on the spot; everything else is read by a thread a few rows at a time, so that memory
//! does not grow with the length of a stream.

use crate::answers::rows::Block;
use crate::bodies::incoming::{Incoming, pump, whole};
use crate::endpoints::app::{Answered, App, query};
use crate::endpoints::queries::{ImputeQuery, PredictQuery};
use crate::endpoints::rows_request::RowsRequest;
use crate::formats::arrow::read::ArrowDecoder;
use crate::formats::json;
use crate::formats::negotiate::BodyFormat;
use crate::formats::text::{CsvDecoder, Decode, LinesDecoder, WholeDecoder};
use crate::limits::Limits;
use crate::models::worker::Reply;
use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use std::time::Instant;
use tokio::sync::mpsc;

/// JSON up to here is parsed where it arrives.
const SMALL: usize = 256 << 10;

/// `POST /v1/predict`.
pub async fn predict(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let options: PredictQuery = query(request.uri())?;
    let live = app.registry.find(options.model.as_deref())?;
    let from = BodyFormat::of_body(request.headers())?;
    let to = BodyFormat::accepted(request.headers(), from)?;
    let asked = options.asked(live.predicted);
    let asked = RowsRequest { live, asked, to };
    answer(&app, asked, from, request).await
}

/// `POST /v1/impute`.
pub async fn impute(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let options: ImputeQuery = query(request.uri())?;
    let live = app.registry.find(options.model.as_deref())?;
    let from = BodyFormat::of_body(request.headers())?;
    let to = BodyFormat::accepted(request.headers(), from)?;
    let asked = options.asked(&live.classes)?;
    let asked = RowsRequest { live, asked, to };
    answer(&app, asked, from, request).await
}

async fn answer(
    app: &App,
    asked: RowsRequest,
    from: BodyFormat,
    request: Request,
) -> Result<Answered, Problem> {
    let limits = app.limits;
    let (head, body) = request.into_parts();
    if from == BodyFormat::Json {
        let bytes = whole(&head.headers, body, &limits, &app.arrivals).await?;
        // The two bytes {} are a whole row of holes, so rows are counted by the numbers they become.
        let most = limits
            .rows()
            .min(limits.body() / asked.live.encoder.width())
            .max(1);
        if bytes.len() <= SMALL {
            let values = json::document(&bytes, &asked.live.encoder, most)?;
            if values.len() <= asked.rows_at_once() * asked.live.encoder.width() {
                return answer_small(asked, values, &limits).await;
            }
            return in_thread(app, asked, move |_| {
                Ok(Box::new(WholeDecoder { values, used: 0 }))
            })
            .await;
        }
        return in_thread(app, asked, move |asked| {
            let values = json::document(&bytes, &asked.live.encoder, most)?;
            Ok(Box::new(WholeDecoder { values, used: 0 }))
        })
        .await;
    }
    let (sender, pieces) = mpsc::channel(4);
    let reading = in_thread(app, asked, move |asked| {
        stream_decoder(from, pieces, asked, &limits)
    });
    // Both at once: a thread that has stopped reading has its answer ready.
    let (pumped, answered) = tokio::join!(pump(body, sender, &limits, &app.arrivals), reading);
    pumped?;
    answered
}

/// Reads rows from the pieces of a body.
fn stream_decoder(
    from: BodyFormat,
    pieces: mpsc::Receiver<Bytes>,
    asked: &RowsRequest,
    limits: &Limits,
) -> Result<Box<dyn Decode>, Problem> {
    let (max_body, absent) = (limits.body(), asked.asked.absent);
    let (incoming, encoder) = (Incoming::new(pieces, max_body), &asked.live.encoder);
    Ok(match from {
        BodyFormat::Csv => Box::new(CsvDecoder::new(incoming, encoder, absent)?),
        BodyFormat::Arrow => Box::new(ArrowDecoder::new(incoming, encoder, absent, max_body)?),
        _ => Box::new(LinesDecoder::new(incoming)),
    })
}

/// Answers a few rows where they arrived.
async fn answer_small(
    asked: RowsRequest,
    values: Vec<f32>,
    limits: &Limits,
) -> Result<Answered, Problem> {
    let live = &asked.live;
    let rows = values.len() / live.encoder.width();
    let mut writer = asked.writer(None, limits)?;
    if rows > 0 {
        let mut answers = Vec::new();
        for reply in asked.ask(values, 0)? {
            let late = |_| Problem::busy("the model did not answer in time; try again in a moment");
            let answer = tokio::time::timeout(limits.patience(), reply)
                .await
                .map_err(late)?;
            answers.push(answer.map_err(|_| Problem::ours("the model has stopped"))??);
        }
        writer.block(&asked.asked.block(answers, rows))?;
    }
    Answered::new(writer.finish()?, asked.to, rows)
}

/// Answers a stream in a thread of its own.
async fn in_thread(
    app: &App,
    asked: RowsRequest,
    decoder: impl FnOnce(&RowsRequest) -> Result<Box<dyn Decode>, Problem> + Send + 'static,
) -> Result<Answered, Problem> {
    let permit = app.stream_permit().await?;
    let limits = app.limits;
    let work = move || {
        let _permit = permit; // until the stream is answered
        answer_stream(&asked, &mut *decoder(&asked)?, &limits)
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::ours("the service failed on this request"))?
}

/// Asks about some rows while the next ones are read.
fn answer_stream(
    asked: &RowsRequest,
    decoder: &mut dyn Decode,
    limits: &Limits,
) -> Result<Answered, Problem> {
    let (live, start) = (&asked.live, Instant::now());
    let width = live.encoder.width();
    let mut writer = asked.writer(decoder.table(), limits)?;
    let mut waiting: Option<(Vec<Reply>, Block)> = None;
    let mut first = 0;
    loop {
        let piece = decoder.next(&live.encoder, asked.rows_at_once())?;
        let rows = piece.values.len() / width;
        if first + rows > limits.rows() {
            return Err(Problem::large(format!(
                "rows: expected at most {}, got more",
                limits.rows()
            )));
        }
        if start.elapsed() > limits.whole() {
            let message = format!(
                "expected rows that take at most {} seconds",
                limits.whole().as_secs()
            );
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, message));
        }
        let replies = if rows > 0 {
            asked.ask_patiently(&piece.values, first, start + limits.whole())?
        } else {
            Vec::new()
        };
        let block = Block {
            rows,
            texts: piece.texts,
            ..Block::default()
        };
        if let Some((replies, before)) = waiting.replace((replies, block)) {
            let stopped = |_| Problem::ours("the model has stopped");
            let answers = replies
                .into_iter()
                .map(|reply| reply.blocking_recv().map_err(stopped)?);
            let answers = answers.collect::<Result<_, _>>()?;
            writer.block(&Block {
                texts: before.texts,
                ..asked.asked.block(answers, before.rows)
            })?;
        }
        if rows == 0 {
            return Answered::new(writer.finish()?, asked.to, first);
        }
        first += rows;
    }
}
