//! What a model says of the number that it predicts: its mean, its standard deviation and quantiles. Where it is a date,
//! mean and quantiles are dates and the standard deviation is in days.

use sumout_data::cells::{Field, FieldKind, Value};
use sumout_data::dates::{DateStyle, text_of};
use sumout_data::encode::Encoder;

/// The columns of a flat answer.
const NAMES: [&str; 7] = ["mean", "sd", "q05", "q25", "q50", "q75", "q95"];

/// Where the standard deviation is among them.
const DEVIATION: usize = 1;

/// A number in JSON.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub enum AnswerNumber {
    Number(f64),
    Date(String),
}

/// The columns of a flat answer and what they hold.
pub fn fields(encoder: &Encoder) -> Vec<Field> {
    let kind = |place| match date_of(encoder) {
        Some(style) if place != DEVIATION => FieldKind::Date(style),
        _ => FieldKind::Double,
    };
    let names = NAMES.into_iter().enumerate();
    names
        .map(|(place, name)| Field::new(name, kind(place)))
        .collect()
}

/// How the predicted dates are written, if they are dates.
fn date_of(encoder: &Encoder) -> Option<DateStyle> {
    encoder.predicted.and_then(|column| encoder.date(column))
}

/// The number at a place as people know it.
pub fn value(encoder: &Encoder, place: usize, x: f64) -> Value<'static> {
    match date_of(encoder) {
        _ if x.is_nan() => Value::Double(x),
        Some(style) if place != DEVIATION => Value::Date(x, style),
        _ => Value::Double(x),
    }
}

/// All numbers of a row in JSON.
pub fn json(encoder: &Encoder, numbers: &[f64]) -> Vec<AnswerNumber> {
    let json = |(place, &x): (usize, &f64)| match value(encoder, place, x) {
        Value::Date(days, style) => AnswerNumber::Date(text_of(days, style)),
        _ => AnswerNumber::Number(x),
    };
    numbers.iter().enumerate().map(json).collect()
}
