//! The queries of all endpoints, and what they ask a model: the same with HTTP and without it.

use crate::answers::rows::{AnswerParts, Block, ChannelOf, shortest};
use crate::endpoints::asked::RowsAsked;
use crate::limits::{MAX_DRAWS, MAX_SAMPLES};
use crate::models::examples::Example;
use crate::models::nodes::{ChannelView, NodeQuestion};
use crate::models::questions::{Answer, Question};
use crate::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};
use sumout::queries::How;
use sumout_data::dates::text_of;
use sumout_data::encode::Encoder;
use sumout_data::layout::Absent;
use sumout_data::model_files::class_among;

/// Maximum of channels shown of a node.
const MAX_CHANNELS: usize = 32;

/// Of `/v1/predict`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictQuery {
    /// Which model.
    pub model: Option<String>,
    #[serde(default)]
    absent: Absent,
}

/// Of `/v1/impute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImputeQuery {
    /// Which model.
    pub model: Option<String>,
    how: Option<String>,
    class: Option<String>,
    seed: Option<u64>,
    draws: Option<usize>,
    #[serde(default)]
    deviation: bool,
    #[serde(default)]
    probabilities: bool,
    #[serde(default)]
    classes: bool,
    #[serde(default)]
    absent: Absent,
}

/// Of `/v1/sample`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleQuery {
    /// Which model.
    pub model: Option<String>,
    class: Option<String>,
    count: Option<usize>,
    seed: Option<u64>,
}

/// Of `/v1/explain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// Which model.
    pub model: Option<String>,
    tree: Option<usize>,
    level: Option<usize>,
    node: Option<usize>,
    channel: Option<usize>,
    channels: Option<usize>,
    how: Option<String>,
    count: Option<usize>,
    seed: Option<u64>,
}

/// Of `/v1/examples`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExamplesQuery {
    /// Which model.
    pub model: Option<String>,
    first: Option<u32>,
    count: Option<usize>,
}

impl PredictQuery {
    /// Classes; of a model that predicts a number, its distribution.
    pub fn asked(&self, predicted: Option<usize>) -> RowsAsked {
        let parts = AnswerParts {
            scores: predicted.is_none(),
            numbers: predicted.is_some(),
            ..AnswerParts::default()
        };
        RowsAsked {
            parts,
            how: How::Mean,
            class: None,
            seed: 0,
            absent: self.absent,
            predicted,
        }
    }
}

impl ImputeQuery {
    /// Rows with their holes filled, and what else is asked for.
    pub fn asked(&self, classes: &[String]) -> Result<RowsAsked, Problem> {
        let how = self.how()?;
        let draws = self.draws.unwrap_or(0);
        if draws > MAX_DRAWS {
            return Err(Problem::bad(format!(
                "draws: expected at most {MAX_DRAWS}, got {draws}"
            )));
        }
        let class = class_of(classes, self.class.as_deref())?;
        if self.deviation && how != How::Mean {
            let name = self.how.as_deref().unwrap_or_default();
            return Err(Problem::bad(format!(
                "deviation: expected how=mean, which alone has one, got how={name}"
            )));
        }
        let parts = AnswerParts {
            values: true,
            deviation: self.deviation,
            probabilities: self.probabilities,
            draws,
            scores: self.classes,
            ..AnswerParts::default()
        };
        Ok(RowsAsked {
            parts,
            how,
            class,
            seed: self.seed.unwrap_or(1),
            absent: self.absent,
            predicted: None,
        })
    }

    fn how(&self) -> Result<How, Problem> {
        let Some(name) = &self.how else {
            return Ok(How::Mean);
        };
        name.parse().map_err(|_| {
            let name: String = name.chars().take(40).collect();
            Problem::bad(format!("how: expected {}, got '{name}'", How::NAMES))
        })
    }
}

impl SampleQuery {
    /// New rows.
    pub fn question(&self, classes: &[String]) -> Result<Question, Problem> {
        let class = class_of(classes, self.class.as_deref())?;
        let count = within("count", self.count, 16, MAX_SAMPLES)?;
        let seed = self.seed.unwrap_or(1);
        Ok(Question::Sample { count, class, seed })
    }
}

impl ExplainQuery {
    /// What a node stands for.
    pub fn question(&self) -> Result<Question, Problem> {
        let mode = match self.how.as_deref() {
            None | Some("samples") => false,
            Some("mode") => true,
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                return Err(Problem::bad(format!(
                    "how: expected samples or mode, got '{other}'"
                )));
            }
        };
        Ok(Question::Explain(NodeQuestion {
            tree: self.tree.unwrap_or(0),
            level: needed("level", self.level)?,
            node: needed("node", self.node)?,
            channel: self.channel,
            channels: within("channels", self.channels, 8, MAX_CHANNELS)?,
            count: within("count", self.count, 4, 64)?,
            mode,
            seed: self.seed.unwrap_or(1),
        }))
    }
}

impl ExamplesQuery {
    /// Rows to try, with their labels.
    pub fn answer(
        &self,
        model: &str,
        encoder: &Encoder,
        examples: &[Example],
    ) -> Result<Value, Problem> {
        let count = within("count", self.count, 24, 200)?;
        let first = self.first.unwrap_or(0) as usize;
        let chosen = examples.iter().skip(first).take(count);
        let row = |example: &Example| example_json(example, encoder);
        Ok(json!({ "model": model, "rows": chosen.map(row).collect::<Vec<_>>() }))
    }
}

fn example_json(Example { values, label }: &Example, encoder: &Encoder) -> Value {
    let cell =
        |(column, &x): (usize, &f32)| match (encoder.categories(column), encoder.date(column)) {
            _ if x.is_nan() => Value::Null,
            (Some(names), _) => json!(names.get(x as usize)),
            (None, Some(style)) => json!(text_of(x.into(), style)),
            (None, None) => json!(shortest(x)),
        };
    json!({ "values": values.iter().enumerate().map(cell).collect::<Vec<_>>(), "label": label })
}

/// The class that a query names.
fn class_of(classes: &[String], name: Option<&str>) -> Result<Option<usize>, Problem> {
    let class = name.map(|name| class_among(classes, name));
    Ok(class.transpose()?)
}

/// A number that a query must have.
fn needed(what: &str, got: Option<usize>) -> Result<usize, Problem> {
    let none = || Problem::bad(format!("{what}: expected a whole number from 0, got none"));
    got.ok_or_else(none)
}

fn within(what: &str, got: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match got.unwrap_or(usual) {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(Problem::bad(format!(
            "{what}: expected 1 to {most}, got {count}"
        ))),
    }
}

/// Rows that a model has made: samples, or what the channels of a node stand for.
pub fn generated(answer: Answer, width: usize) -> Result<(AnswerParts, Block), Problem> {
    let mut parts = AnswerParts {
        values: true,
        ..AnswerParts::default()
    };
    let block = match answer {
        Answer::Samples(values, classes) => {
            parts.classes = true;
            Block {
                rows: classes.len(),
                values: Some(values),
                classes: Some(classes),
                ..Block::default()
            }
        }
        Answer::Channels(views) => {
            parts.channels = true;
            channels_block(views, width)
        }
        _ => return Err(Problem::ours("the model answered another question")),
    };
    Ok((parts, block))
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
