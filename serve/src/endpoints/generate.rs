//! `/v1/sample`, `/v1/explain` and `/v1/examples`: rows that the service makes or has.

use crate::answers::rows::{AnswerOf, AnswerParts, Block, ChannelOf, shortest};
use crate::answers::writer::AnswerWriter;
use crate::bodies::spool::Spool;
use crate::endpoints::app::{Answered, App, Document, class_of, query};
use crate::formats::negotiate::BodyFormat;
use crate::limits::{Limits, MAX_SAMPLES};
use crate::models::nodes::{ChannelView, NodeQuestion};
use crate::models::registry::{Example, ServedModel};
use crate::models::worker::{Answer, Question};
use crate::problem::Problem;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::{Value, json};
use sumout_data::dates::text_of;

/// Maximum of channels shown of a node.
const MAX_CHANNELS: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleQuery {
    model: Option<String>,
    class: Option<String>,
    count: Option<usize>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    model: Option<String>,
    tree: Option<usize>,
    level: usize,
    node: usize,
    channel: Option<usize>,
    channels: Option<usize>,
    how: Option<String>,
    count: Option<usize>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamplesQuery {
    model: Option<String>,
    first: Option<u32>,
    count: Option<usize>,
}

fn within(what: &str, got: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match got.unwrap_or(usual) {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(Problem::bad(format!(
            "{what}: expected 1 to {most}, got {count}"
        ))),
    }
}

async fn ask(live: &ServedModel, question: Question, limits: &Limits) -> Result<Answer, Problem> {
    let reply = live.worker.ask(question, Vec::new())?;
    let late = |_| Problem::busy("the model did not answer in time; try again in a moment");
    let answer = tokio::time::timeout(limits.patience(), reply)
        .await
        .map_err(late)?;
    answer.map_err(|_| Problem::ours("the model has stopped"))?
}

fn write(
    live: &ServedModel,
    to: BodyFormat,
    parts: AnswerParts,
    block: &Block,
    limits: &Limits,
) -> Result<Answered, Problem> {
    let spool = Spool::new(limits.stream());
    let answer = AnswerOf {
        model: &live.name,
        encoder: &live.encoder,
        classes: &live.classes,
        parts,
    };
    let mut writer = AnswerWriter::new(to, answer, None, spool)?;
    writer.block(block)?;
    Answered::new(writer.finish()?, to, block.rows)
}

/// `GET /v1/sample`: new rows.
pub async fn sample(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let asked: SampleQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let to = BodyFormat::accepted(request.headers(), BodyFormat::Json)?;
    let class = class_of(&live, asked.class.as_deref())?;
    let count = within("count", asked.count, 16, MAX_SAMPLES)?;
    let question = Question::Sample {
        count,
        class,
        seed: asked.seed.unwrap_or(1),
    };
    let Answer::Samples(values, classes) = ask(&live, question, &app.limits).await? else {
        return Err(Problem::ours("the model answered another question"));
    };
    let block = Block {
        rows: count,
        values: Some(values),
        classes: Some(classes),
        ..Block::default()
    };
    write(
        &live,
        to,
        AnswerParts {
            values: true,
            classes: true,
            ..AnswerParts::default()
        },
        &block,
        &app.limits,
    )
}

/// `GET /v1/explain`: what a node stands for.
pub async fn explain(State(app): State<App>, request: Request) -> Result<Answered, Problem> {
    let asked: ExplainQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let to = BodyFormat::accepted(request.headers(), BodyFormat::Json)?;
    let mode = match asked.how.as_deref() {
        None | Some("samples") => false,
        Some("mode") => true,
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            return Err(Problem::bad(format!(
                "how: expected samples or mode, got '{other}'"
            )));
        }
    };
    let question = NodeQuestion {
        tree: asked.tree.unwrap_or(0),
        level: asked.level,
        node: asked.node,
        channel: asked.channel,
        channels: within("channels", asked.channels, 8, MAX_CHANNELS)?,
        count: within("count", asked.count, 4, 64)?,
        mode,
        seed: asked.seed.unwrap_or(1),
    };
    let Answer::Channels(views) = ask(&live, Question::Explain(question), &app.limits).await?
    else {
        return Err(Problem::ours("the model answered another question"));
    };
    let block = channels_block(views, live.encoder.width());
    write(
        &live,
        to,
        AnswerParts {
            values: true,
            channels: true,
            ..AnswerParts::default()
        },
        &block,
        &app.limits,
    )
}

/// The rows of all channels, one channel after the other.
fn channels_block(views: Vec<ChannelView>, width: usize) -> Block {
    let (mut values, mut channels) = (Vec::new(), Vec::new());
    for view in views {
        let rows = view.rows.len() / width;
        let channel = ChannelOf {
            channel: view.channel,
            probability: view.probability,
        };
        channels.extend(std::iter::repeat_n(channel, rows));
        values.extend(view.rows);
    }
    Block {
        rows: channels.len(),
        values: Some(values),
        channels: Some(channels),
        ..Block::default()
    }
}

/// `GET /v1/examples`: rows to try, with their labels.
pub async fn examples(State(app): State<App>, request: Request) -> Result<Document, Problem> {
    let asked: ExamplesQuery = query(request.uri())?;
    let live = app.registry.find(asked.model.as_deref())?;
    let count = within("count", asked.count, 24, 200)?;
    let chosen = live
        .examples
        .iter()
        .skip(asked.first.unwrap_or(0) as usize)
        .take(count);
    let row = |Example { values, label }: &Example| {
        let cell = |(column, &x): (usize, &f32)| match live.encoder.categories(column) {
            _ if x.is_nan() => Value::Null,
            Some(names) => json!(names.get(x as usize)),
            None => match live.encoder.date(column) {
                Some(style) => json!(text_of(x.into(), style)),
                None => json!(shortest(x)),
            },
        };
        json!({ "values": values.iter().enumerate().map(cell).collect::<Vec<_>>(), "label": label })
    };
    Ok(Document(
        json!({ "model": live.name, "rows": chosen.map(row).collect::<Vec<_>>() }),
    ))
}
