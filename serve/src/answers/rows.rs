//! Rows of an answer: what they hold, and how a row looks in JSON, in CSV and in flat columns.

use crate::answers::numbers::{self, AnswerNumber};
use crate::formats::csv_rows::CsvTable;
use csv::StringRecord;
use serde::ser::{Serialize, Serializer};
use sumout_data::cells::{Cell, Field, FieldKind, Value};
use sumout_data::dates::text_of;
use sumout_data::encode::Encoder;
use sumout_data::model_files::{TOO_FAR, is_too_far};
use sumout_data::output::probability_name;

/// Quantiles of a number that a model predicts.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Mean, standard deviation and quantiles.
pub const NUMBERS: usize = 2 + QUANTILES.len();

/// Some rows of an answer; what was not asked for is not there.
#[derive(Debug, Default)]
pub struct Block {
    /// How many rows.
    pub rows: usize,
    /// (rows, width): filled, sampled or explained.
    pub values: Option<Vec<f32>>,
    /// (rows, width).
    pub deviation: Option<Vec<f32>>,
    /// (rows, values of all categories).
    pub probabilities: Option<Vec<f32>>,
    /// Sampled completions, each (rows, width).
    pub draws: Vec<Vec<f32>>,
    /// Posterior and log-likelihood.
    pub scores: Option<RowScores>,
    /// (rows, [`NUMBERS`]): mean, standard deviation and quantiles of the number that the model predicts.
    pub numbers: Option<Vec<f64>>,
    /// The class of each sampled row.
    pub classes: Option<Vec<usize>>,
    /// The channel of each explained row.
    pub channels: Option<Vec<ChannelOf>>,
    /// The cells of a CSV file as they were written.
    pub texts: Vec<StringRecord>,
}

/// What a model says of rows.
#[derive(Debug)]
pub struct RowScores {
    /// (rows, K).
    pub posterior: Vec<f64>,
    /// (rows).
    pub log_likelihood: Vec<f64>,
}

impl Block {
    /// Mean, standard deviation and quantiles of one row.
    fn numbers_of(&self, row: usize) -> Option<&[f64]> {
        let all = self.numbers.as_ref()?;
        Some(&all[row * NUMBERS..(row + 1) * NUMBERS])
    }
}

impl RowScores {
    /// Posterior and log-likelihood of one row.
    fn row(&self, row: usize, classes: usize) -> (&[f64], f64) {
        let posterior = &self.posterior[row * classes..(row + 1) * classes];
        (posterior, self.log_likelihood[row])
    }
}

/// A channel of a node.
#[derive(Clone, Copy, Debug)]
pub struct ChannelOf {
    /// Which.
    pub channel: usize,
    /// How often it is used.
    pub probability: f64,
}

/// What the rows of an answer hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerParts {
    /// Values.
    pub values: bool,
    /// Their standard deviations.
    pub deviation: bool,
    /// Probabilities of categories.
    pub probabilities: bool,
    /// How many sampled completions.
    pub draws: usize,
    /// Class, posterior and log-likelihood.
    pub scores: bool,
    /// Mean, standard deviation and quantiles of the number that the model predicts.
    pub numbers: bool,
    /// The class a row was sampled from.
    pub classes: bool,
    /// Channels.
    pub channels: bool,
}

/// Which model answers, and what its rows hold.
#[derive(Clone, Copy)]
pub struct AnswerOf<'a> {
    /// The model's name.
    pub model: &'a str,
    /// Its columns.
    pub encoder: &'a Encoder,
    /// Its classes.
    pub classes: &'a [String],
    /// What the rows hold.
    pub parts: AnswerParts,
}

fn argmax(posterior: &[f64]) -> usize {
    let mut best = 0;
    for y in 1..posterior.len() {
        if posterior[y] > posterior[best] {
            best = y;
        }
    }
    best
}

/// A number of the model as people know it.
fn shown(encoder: &Encoder, column: usize, value: f32) -> Value<'_> {
    match encoder.categories(column) {
        _ if value.is_nan() => Value::Missing,
        Some(names) => names
            .get(value as usize)
            .map_or(Value::Missing, |name| Value::Text(name)),
        None => match encoder.date(column) {
            Some(style) => Value::Date(value.into(), style),
            None => Value::Single(value),
        },
    }
}

/// The name, with a word before it if there is such a column already.
fn free_name(mut name: String, taken: &[String]) -> String {
    while taken.contains(&name) {
        name.insert_str(0, "predicted_");
    }
    name
}

/// What the probabilities of a column are called: `p_sex=f`; nothing for a number.
fn probability_names(encoder: &Encoder, column: usize) -> Vec<String> {
    let count = encoder.values(column).unwrap_or(0);
    let codes = || (0..count).map(|code| code.to_string()).collect();
    let values = encoder.categories(column).map_or_else(codes, <[_]>::to_vec);
    let names = values.iter();
    names
        .map(|value| probability_name(encoder.name(column), value))
        .collect()
}

/// A number with no more digits than 32 bits have: 2.56, and not 2.559999942779541.
pub fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(x.into())
}

/// A cell of CSV.
pub fn csv_text(value: Value<'_>) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Single(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Text(text) | Value::Json(text) => text.to_owned(),
        Value::Date(days, style) => text_of(days, style),
    }
}

/// A row of an answer in JSON.
#[derive(serde::Serialize)]
pub struct JsonAnswer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    posterior: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_likelihood: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<AnswerNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sd: Option<AnswerNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<Vec<AnswerNumber>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<JsonCells<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deviation: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<Option<&'a [f32]>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    draws: Vec<JsonCells<'a>>,
}

/// The numbers of a row in JSON: categories by name, holes as null.
struct JsonCells<'a> {
    encoder: &'a Encoder,
    values: &'a [f32],
}

/// A cell in JSON.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum AnswerCell<'a> {
    Name(&'a str),
    Number(f32),
    Date(String),
    Missing,
}

impl Serialize for JsonCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = |(column, &value): (usize, &f32)| match shown(self.encoder, column, value) {
            Value::Text(name) => AnswerCell::Name(name),
            Value::Single(number) => AnswerCell::Number(number),
            Value::Date(days, style) => AnswerCell::Date(text_of(days, style)),
            _ => AnswerCell::Missing,
        };
        serializer.collect_seq(self.values.iter().enumerate().map(cell))
    }
}

impl<'a> AnswerOf<'a> {
    /// The numbers of one row.
    fn row<'b>(&self, all: &'b [f32], row: usize) -> &'b [f32] {
        let width = self.encoder.width();
        &all[row * width..(row + 1) * width]
    }

    /// One row in JSON.
    pub fn json<'b>(&self, block: &'b Block, row: usize) -> JsonAnswer<'b>
    where
        'a: 'b,
    {
        let classes = self.classes;
        let scores = block
            .scores
            .as_ref()
            .map(|scores| scores.row(row, classes.len()));
        let best = scores.map(|(posterior, _)| argmax(posterior));
        let numbers = block.numbers_of(row);
        let mut numbers = numbers.map(|all| numbers::json(self.encoder, all).into_iter());
        let sampled = block.classes.as_ref().map(|all| all[row]);
        let channel = block.channels.as_ref().map(|all| all[row]);
        let encoder = self.encoder;
        let cells = |all: &'b Vec<f32>| JsonCells {
            encoder,
            values: self.row(all, row),
        };
        JsonAnswer {
            class: best.or(sampled).map(|class| &*classes[class]),
            posterior: scores.map(|(posterior, _)| posterior),
            log_likelihood: scores.map(|(_, log)| log),
            warning: scores
                .filter(|(_, log)| is_too_far(*log, self.encoder.width()))
                .map(|_| TOO_FAR),
            mean: numbers.as_mut().and_then(Iterator::next),
            sd: numbers.as_mut().and_then(Iterator::next),
            quantiles: numbers.map(Iterator::collect),
            channel: channel.map(|of| of.channel),
            probability: channel.map(|of| of.probability),
            values: block.values.as_ref().map(cells),
            deviation: block.deviation.as_ref().map(|all| self.row(all, row)),
            probabilities: block
                .probabilities
                .as_ref()
                .map(|all| self.probabilities(all, row)),
            draws: block.draws.iter().map(cells).collect(),
        }
    }

    /// The probabilities of one row by column; none for a number.
    fn probabilities<'b>(&self, all: &'b [f32], row: usize) -> Vec<Option<&'b [f32]>> {
        let counts = (0..self.encoder.width()).map(|column| self.encoder.values(column));
        let stride: usize = counts.clone().flatten().sum();
        let mut rest = &all[row * stride..(row + 1) * stride];
        let mut next = |count: usize| {
            let (own, others) = rest.split_at(count);
            rest = others;
            own
        };
        counts.map(|count| count.map(&mut next)).collect()
    }

    /// One row of a CSV table with its holes filled. What was there comes back as it was written.
    pub fn filled(&self, table: &CsvTable, block: &Block, row: usize) -> Vec<String> {
        let texts = &block.texts[row];
        let mut record: Vec<String> = texts.iter().map(str::to_owned).collect();
        let Some(values) = &block.values else {
            return record;
        };
        let values = self.row(values, row);
        for (column, &place) in table.places.iter().enumerate() {
            let cell = Cell::Text(&texts[place]);
            if self.encoder.known(column, cell) == Cell::Missing {
                record[place] = csv_text(shown(self.encoder, column, values[column]));
            }
        }
        record
    }

    /// The columns of a flat answer. Those that a CSV file already has keep their names, new ones get others.
    pub fn fields(&self, table: Option<&CsvTable>) -> Vec<Field> {
        let (encoder, parts) = (self.encoder, self.parts);
        let kind = |column: usize| match encoder.categories(column) {
            Some(names) => FieldKind::Category(names.to_vec()),
            None => encoder
                .date(column)
                .map_or(FieldKind::Single, FieldKind::Date),
        };
        let columns = || (0..encoder.width()).map(|column| (encoder.name(column), kind(column)));
        let mut fields = Vec::new();
        if parts.values && table.is_none() {
            fields.extend(columns().map(|(name, kind)| Field::new(name, kind)));
        }
        let taken: Vec<String> = match table {
            Some(table) => table.header.clone(),
            None => fields.iter().map(|field| field.name.clone()).collect(),
        };
        let mut add = |name: String, kind: FieldKind| {
            fields.push(Field::new(free_name(name, &taken), kind));
        };
        if parts.deviation {
            columns().for_each(|(name, _)| add(format!("sd_{name}"), FieldKind::Single));
        }
        if parts.probabilities {
            let names = (0..encoder.width()).flat_map(|column| probability_names(encoder, column));
            names.for_each(|name| add(name, FieldKind::Single));
        }
        for draw in 1..=parts.draws {
            columns().for_each(|(name, kind)| add(format!("draw{draw}_{name}"), kind));
        }
        if parts.scores || parts.classes {
            add("class".into(), FieldKind::Text);
        }
        if parts.scores {
            let names = self.classes.iter().map(|name| format!("p_{name}"));
            names.for_each(|name| add(name, FieldKind::Double));
            add("log_likelihood".into(), FieldKind::Double);
        }
        if parts.numbers {
            let fields = numbers::fields(encoder).into_iter();
            fields.for_each(|field| add(field.name, field.kind));
        }
        if parts.channels {
            add("channel".into(), FieldKind::Whole);
            add("probability".into(), FieldKind::Double);
        }
        fields
    }

    /// The cells of one row of a flat answer, values first.
    pub fn cells<'b>(&self, block: &'b Block, row: usize) -> Vec<Value<'b>>
    where
        'a: 'b,
    {
        let deviation = block.deviation.iter().filter(|_| self.parts.deviation);
        let probabilities = block.probabilities.iter();
        let probabilities = probabilities.flat_map(|all| self.probabilities(all, row));
        let numbers = block.values.iter().chain(deviation);
        let numbers = numbers
            .flat_map(|all| self.row(all, row))
            .chain(probabilities.flatten().flatten())
            .chain(block.draws.iter().flat_map(|all| self.row(all, row)));
        let mut cells: Vec<Value<'b>> = numbers.map(|&x| Value::Single(x)).collect();
        let classes = self.classes;
        if let Some(scores) = &block.scores {
            let (posterior, log_likelihood) = scores.row(row, classes.len());
            cells.push(Value::Text(&classes[argmax(posterior)]));
            cells.extend(posterior.iter().map(|&p| Value::Double(p)));
            cells.push(Value::Double(log_likelihood));
        }
        let numbers = block.numbers_of(row).into_iter().flatten();
        let shown = |(place, &x)| numbers::value(self.encoder, place, x);
        cells.extend(numbers.enumerate().map(shown));
        if let Some(sampled) = &block.classes {
            cells.push(Value::Text(&classes[sampled[row]]));
        }
        if let Some(channels) = &block.channels {
            cells.push(Value::Whole(channels[row].channel as i64));
            cells.push(Value::Double(channels[row].probability));
        }
        cells
    }
}
