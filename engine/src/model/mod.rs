//! A model: blueprint, learned numbers, class prior, and how rows of data become numbers of the frame.

pub(crate) mod column_range;
pub(crate) mod curve;
pub(crate) mod tensor_file;
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
use column_range::{Moments, check_ranges};
pub use curve::Curve;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a number of the data becomes a number of the model: `z = (w(x) − offset) · scale`, where w is the identity for a
/// column without bounds or curve. Densities are reported in the units of the data: `log p(x) = log p(z) + log scale + log w'(x)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// One for each column, or a single one for all.
    pub offset: Vec<f32>,
    /// As many; positive.
    pub scale: Vec<f32>,
    /// What the numbers of each column can be, which gives w; empty where any column can hold any number. Training
    /// takes rows to which w was applied already ([`Fit`](crate::recipes::Fit) does so).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<ColumnRange>,
    /// The curve w of each column without bounds; empty where none has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

impl Default for Scaling {
    fn default() -> Self {
        Self::uniform(0.0, 1.0)
    }
}

impl Scaling {
    /// The same for every column.
    pub fn uniform(offset: f32, scale: f32) -> Self {
        Self {
            offset: vec![offset],
            scale: vec![scale],
            ranges: Vec::new(),
            curves: Vec::new(),
        }
    }

    fn of(&self, column: usize) -> (f32, f32) {
        let at = |values: &[f32]| {
            if values.len() == 1 {
                values[0]
            } else {
                values[column]
            }
        };
        (at(&self.offset), at(&self.scale))
    }

    /// What the numbers of a column can be.
    pub fn range_of(&self, column: usize) -> ColumnRange {
        self.ranges.get(column).copied().unwrap_or_default()
    }

    /// The curve of a column, if it has one.
    pub fn curve_of(&self, column: usize) -> Option<&Curve> {
        let curve = self.curves.get(column);
        curve.filter(|curve| !curve.is_identity())
    }

    /// Whether w of a column is not the identity.
    pub(crate) fn is_bent(&self, column: usize) -> bool {
        self.curve_of(column).is_some() || self.range_of(column).is_bounded()
    }

    /// w(x).
    pub(crate) fn bend(&self, column: usize, x: f32) -> f32 {
        match self.curve_of(column) {
            Some(curve) => curve.to_model(x),
            None => self.range_of(column).to_model(x),
        }
    }

    /// Rows (n, width) of the data with w applied; none where w is the identity.
    pub(crate) fn bent(&self, rows: &[f32], width: usize) -> Option<Vec<f32>> {
        if !(0..width).any(|column| self.is_bent(column)) {
            return None;
        }
        let mut rows = rows.to_vec();
        rows.par_chunks_mut(width).for_each(|row| {
            let cells = row.iter_mut().enumerate();
            cells.for_each(|(column, x)| *x = self.bend(column, *x));
        });
        Some(rows)
    }

    /// log w'(x).
    pub(crate) fn log_slope(&self, column: usize, x: f32) -> f64 {
        match self.curve_of(column) {
            Some(curve) => curve.log_slope(x),
            None => self.range_of(column).log_slope(x),
        }
    }

    /// The number of the data that stands for w: one that the column can hold.
    pub fn to_data(&self, column: usize, w: f64) -> f32 {
        match self.curve_of(column) {
            Some(curve) => self.range_of(column).tidy(curve.to_data(w)),
            None => self.range_of(column).from_model(w),
        }
    }

    /// Mean and variance of x where w is normal.
    pub(crate) fn moments(&self, column: usize, mean: f64, sigma: f64) -> Moments {
        match self.curve_of(column) {
            Some(curve) => curve.moments(mean, sigma),
            None => self.range_of(column).moments(mean, sigma),
        }
    }

    /// w(x) to model.
    pub fn apply(&self, column: usize, x: f32) -> f32 {
        let (offset, scale) = self.of(column);
        scaled(x, offset, scale)
    }

    /// Model to w(x).
    pub fn invert(&self, column: usize, z: f32) -> f32 {
        let (offset, scale) = self.of(column);
        z / scale + offset
    }

    /// The factor of a column; its logarithm is what one observed number adds to a log-density.
    pub fn scale_of(&self, column: usize) -> f32 {
        self.of(column).1
    }

    /// Checks lengths and signs against a row's width.
    pub fn check(&self, width: usize) -> Result<()> {
        check_ranges(&self.ranges, width)?;
        self.check_curves(width)?;
        for (what, values) in [
            ("scaling offsets", &self.offset),
            ("scaling factors", &self.scale),
        ] {
            if values.len() != 1 && values.len() != width {
                return Err(Error::shape(
                    what,
                    format!("1 or {width} numbers"),
                    values.len(),
                ));
            }
        }
        let wrong = self
            .offset
            .iter()
            .find(|x| !x.is_finite())
            .or(self.scale.iter().find(|&&x| !(x.is_finite() && x > 0.0)));
        match wrong {
            Some(value) => Err(Error::Setting {
                name: "scaling",
                expected: "finite offsets and positive factors",
                got: value.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Curves: none or one for each column, and none where there are bounds.
    fn check_curves(&self, width: usize) -> Result<()> {
        if !self.curves.is_empty() && self.curves.len() != width {
            let expected = format!("none or {width}");
            return Err(Error::shape("curves", expected, self.curves.len()));
        }
        for (column, curve) in self.curves.iter().enumerate() {
            curve.check(column)?;
            if !curve.is_identity() && self.range_of(column).is_bounded() {
                let what = format!("column {column}");
                return Err(Error::shape(what, "bounds or a curve", "both"));
            }
        }
        Ok(())
    }
}

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
    pub fn mixture(mut models: Vec<Self>) -> Result<Self> {
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
        let share = (models.len() as f64).ln();
        let top = |y: usize| {
            models
                .iter()
                .flat_map(move |model| model.weights.classes.log_row(0, y))
        };
        let tops: Vec<f64> = (0..first.structure.classes).flat_map(top).collect();
        let rows = first.structure.classes;
        let columns = tops.len() / rows;
        let logit = |_, y: usize, a: usize| (tops[y * columns + a] - share) as f32;
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
        let column = |(index, place)| {
            let (offset, scale) = if values_of(kinds[index]).is_none() {
                self.scaling.of(index)
            } else {
                (0.0, 1.0)
            };
            Column {
                place,
                offset,
                scale,
            }
        };
        self.structure
            .placement(shift)
            .into_iter()
            .enumerate()
            .map(column)
            .collect()
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

/// A finite number stays finite, NaN stays NaN.
fn scaled(x: f32, offset: f32, scale: f32) -> f32 {
    ((x - offset) * scale).clamp(f32::MIN, f32::MAX)
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
