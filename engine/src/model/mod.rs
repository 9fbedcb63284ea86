//! A model: blueprint, learned numbers, class prior, and how rows of data become numbers of the frame.

pub(crate) mod column_range;
pub(crate) mod curve;
mod scaling;
pub(crate) mod tensor_file;
pub(crate) mod logits_tensor;
mod factors_tensor;
pub(crate) mod check;
pub(crate) mod model_file;
mod target;

use crate::error::{Error, Result};
use crate::layers::leaf::values_of;
use crate::layers::mixing::Mixing;
use crate::layers::weights::Weights;
use crate::matrix::Rows;
use crate::rows::batch::Batch;
use crate::structure::{ClassRows, Kind, OUTSIDE, Structure};
pub use column_range::ColumnRange;
pub use curve::Curve;
use rayon::prelude::*;
pub use scaling::Scaling;
use scaling::scaled;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model that answers questions. [`Predictor::new`](crate::Predictor::new) and [`Model::to_bytes`] check all of it
/// before they use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The blueprint.
    pub structure: Structure,
    /// What was learned.
    #[doc(hidden)]
    pub weights: Weights,
    /// log P(y), (K).
    pub log_prior: Vec<f64>,
    /// From the units of the data to those of the leaves.
    pub scaling: Scaling,
    /// What people read. Names of classes, columns and categories, and how the model was trained.
    pub about: About,
}

/// Names and history; nothing that changes an answer. Empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// (K).
    pub classes: Vec<String>,
    /// (width).
    pub columns: Vec<String>,
    /// For each column, the names of its categories; empty for a number.
    pub categories: Vec<Vec<String>>,
    /// Settings, seed, steps, data: whatever the trainer wrote.
    pub training: Notes,
}

/// Notes by name, as JSON: what a model file says about its training.
///
/// ```
/// let mut notes = sumout::model::Notes::default();
/// notes.set("rows", 178);
/// assert_eq!((notes.get("rows"), notes.get::<String>("target")), (Some(178), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notes(Value);

impl Notes {
    /// Notes from anything that serializes to a map from names to notes. What JSON cannot hold becomes `null`.
    pub fn new(notes: impl Serialize) -> Self {
        Self(serde_json::to_value(notes).unwrap_or_default())
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    /// The note of that name, if there is one that reads as a `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.0.get(name)?).ok()
    }

    /// Whether there is a note of that name, even an empty one.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// Takes a note away, if there is one.
    pub fn remove(&mut self, name: &str) {
        if let Value::Object(notes) = &mut self.0 {
            notes.remove(name);
        }
    }

    /// Writes a note, in the place of an older one of that name. What JSON cannot hold becomes `null`.
    pub fn set(&mut self, name: &str, note: impl Serialize) {
        if !self.0.is_object() {
            self.0 = Value::Object(Default::default());
        }
        self.0[name] = serde_json::to_value(note).unwrap_or_default();
    }
}

impl Model {
    /// A model with a uniform class prior and random weights.
    pub fn random(structure: Structure, spread: f64, seed: u64) -> Self {
        let classes = structure.classes;
        let weights = Weights::random(&structure, spread, seed);
        let log_prior = vec![-(classes as f64).ln(); classes];
        Self {
            structure,
            weights,
            log_prior,
            scaling: Scaling::default(),
            about: About::default(),
        }
    }

    /// Models side by side, each equally likely: `P(X|y) = 1/T Σ_t P_t(X|y)`. They must have the same inputs, classes,
    /// P(y) and scaling; names are those of the first.
    pub fn mixture(models: Vec<Self>) -> Result<Self> {
        let equal = vec![-(models.len() as f64).ln(); models.len()];
        Self::mixture_of(models, &equal)
    }

    /// The same with the logarithm of every model's share.
    pub(crate) fn mixture_of(mut models: Vec<Self>, shares: &[f64]) -> Result<Self> {
        let alike = |a: &Self, b: &Self| {
            let shape = |s: &Structure| (s.kinds.clone(), s.frame, s.classes);
            shape(&a.structure) == shape(&b.structure)
                && (&a.log_prior, &a.scaling) == (&b.log_prior, &b.scaling)
        };
        let first = models.first().ok_or(Error::Empty { what: "model" })?;
        let mixing = |model: &Self| model.structure.class_rows == ClassRows::Mixing;
        if !models
            .iter()
            .all(|model| mixing(model) && alike(model, first))
        {
            return Err(Error::Structure(
                "a mixture needs models of the same inputs, classes, prior and scaling".into(),
            ));
        }
        let rows = first.structure.classes;
        let mut tops = Vec::new();
        for y in 0..rows {
            for (model, share) in models.iter().zip(shares) {
                let row = model.weights.classes.log_row(0, y).into_iter();
                tops.extend(row.map(|log| log + share));
            }
        }
        let columns = tops.len() / rows;
        let logit = |_, y: usize, a: usize| tops[y * columns + a] as f32;
        let classes = Mixing::from_logits(1, rows, columns, logit);
        let mut mixture = models.remove(0);
        mixture.weights.classes = classes;
        for model in models {
            mixture.structure.trees.extend(model.structure.trees);
            mixture.weights.trees.extend(model.weights.trees);
        }
        mixture.structure.check()?;
        Ok(mixture)
    }

    /// Whether the model has leaves whose numbers depend on each other, which only the CPU computes.
    pub fn has_factors(&self) -> bool {
        self.weights.have_factors()
    }

    /// Sets P(y); it is normalised.
    pub fn set_prior(&mut self, prior: &[f64]) -> Result<()> {
        if prior.len() != self.structure.classes {
            return Err(Error::shape(
                "class prior",
                self.structure.classes,
                prior.len(),
            ));
        }
        let total: f64 = prior.iter().sum();
        if !(total.is_finite() && total > 0.0) || prior.iter().any(|&p| p < 0.0) {
            let got = format!("{prior:?}");
            return Err(Error::Setting {
                name: "class prior",
                expected: "weights that are not negative",
                got,
            });
        }
        self.log_prior = prior.iter().map(|p| (p / total).ln()).collect();
        Ok(())
    }

    /// The name of a class, or its number.
    pub fn class_name(&self, class: usize) -> String {
        self.about
            .classes
            .get(class)
            .cloned()
            .unwrap_or_else(|| class.to_string())
    }

    /// The model of a file's bytes, checked; a training checkpoint opens as the model it holds.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        model_file::from_bytes(bytes)
    }

    /// The bytes of a model file (`docs/model-file.md`).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        model_file::to_bytes(self)
    }

    /// The bytes of a model file of about half the size: mixing weights have 16 bits.
    pub fn to_small_bytes(&self) -> Result<Vec<u8>> {
        model_file::to_small_bytes(self)
    }

    /// Says what is wrong with a model that cannot answer questions: sizes that differ from the blueprint's, numbers
    /// that are none.
    pub fn check(&self) -> Result<()> {
        check::check(self)
    }

    /// A view of values as rows of this model's width.
    pub fn rows<'a>(&self, values: &'a [f32]) -> Result<Rows<'a>> {
        Rows::new(values, self.structure.width())
    }

    /// Lays rows of data (n, width) in the frame, moved by `shift`; nothing is observed outside them.
    pub(crate) fn fill(&self, values: &[f32], shift: (isize, isize), batch: &mut Batch) {
        let columns = self.columns(shift);
        batch.fit(&self.structure, values.len() / columns.len());
        let runs: Vec<&[Column]> = columns.chunk_by(Column::goes_on).collect();
        batch.fill_rows(|b, frame| {
            let row = &values[b * columns.len()..(b + 1) * columns.len()];
            fill_frame(&runs, row, frame);
        });
    }

    /// Where each number of a row goes, and how it is scaled on its way.
    pub(crate) fn columns(&self, shift: (isize, isize)) -> Vec<Column> {
        let kinds = self.structure.row_kinds();
        let mut columns = Vec::with_capacity(kinds.len());
        for (index, place) in self.structure.placement(shift).into_iter().enumerate() {
            let (offset, scale) = if values_of(kinds[index]).is_none() {
                self.scaling.of(index)
            } else {
                (0.0, 1.0)
            };
            columns.push(Column {
                place,
                offset,
                scale,
            });
        }
        columns
    }
}

/// Lays one row in its frame; the columns of a run lie side by side.
fn fill_frame(runs: &[&[Column]], mut row: &[f32], frame: &mut [f32]) {
    for run in runs {
        let numbers = row.split_off(..run.len()).unwrap_or_default();
        let first = run[0];
        if first.place != OUTSIDE {
            let to = frame[first.place as usize..].iter_mut().zip(numbers);
            to.for_each(|(to, &x)| *to = scaled(x, first.offset, first.scale));
        }
    }
}

/// One number of a row of data on its way into the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub place: u32, // OUTSIDE where it leaves the frame
    pub offset: f32,
    pub scale: f32,
}

impl Column {
    /// Whether the next number lies beside this one, and is scaled alike.
    fn goes_on(&self, next: &Self) -> bool {
        (next.place, next.offset, next.scale)
            == (self.place.wrapping_add(1), self.offset, self.scale)
            && next.place != OUTSIDE
            && self.place != OUTSIDE
    }

    /// Scales a number and lays it down.
    #[inline(always)]
    pub fn put(&self, x: f32, frame: &mut [f32]) {
        if self.place != OUTSIDE {
            frame[self.place as usize] = scaled(x, self.offset, self.scale);
        }
    }
}

/// How many rows of the structure's width there are; an error for rows of another width, infinities, or categories that
/// do not exist.
pub(crate) fn check_rows(structure: &Structure, rows: Rows<'_>) -> Result<usize> {
    let width = structure.width();
    if rows.width() != width {
        let expected = format!("{width} columns");
        return Err(Error::shape("rows", expected, rows.width()));
    }
    let kinds = structure.row_kinds();
    let wrong = rows
        .as_slice()
        .par_chunks(width)
        .enumerate()
        .find_map_first(|(row, numbers)| {
            let mut numbers = numbers.iter().enumerate();
            numbers.find_map(|(column, &value)| wrong_number(kinds[column], row, column, value))
        });
    wrong.map_or(Ok(rows.len()), Err)
}

/// What is wrong with one number, if something is.
fn wrong_number(kind: Kind, row: usize, column: usize, value: f32) -> Option<Error> {
    if value.is_infinite() {
        return Some(Error::Infinite { row, column, value });
    }
    let last = values_of(kind)? as u32 - 1;
    let fits = value.is_nan() || (value >= 0.0 && value <= last as f32 && value.fract() == 0.0);
    (!fits).then_some(Error::Category {
        row,
        column,
        last,
        value,
    })
}
