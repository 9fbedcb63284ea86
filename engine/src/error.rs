//! The one error of the engine. Every message says what was expected and what came.

/// What can go wrong. Everything is checked before work starts, so an error leaves models and data as they were.
#[derive(Debug, thiserror::Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A length or count does not fit.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The thing that was measured.
        what: String,
        /// What would have fitted.
        expected: String,
        /// What came.
        got: String,
    },
    /// A value that is infinite.
    #[error(
        "row index {row}, column index {column}: expected a finite number or NaN for missing, got {value}"
    )]
    Infinite {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A value that a discrete coordinate cannot take.
    #[error(
        "row index {row}, column index {column}: expected a whole number from 0 to {last} or NaN for missing, got {value}"
    )]
    Category {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The largest category.
        last: u32,
        /// The value.
        value: f32,
    },
    /// A number outside the bounds of its column.
    #[error(
        "row index {row}, column index {column}: expected {expected} or NaN for missing, got {value}"
    )]
    Outside {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// What its numbers can be.
        expected: String,
        /// The value.
        value: f32,
    },
    /// A label outside the classes.
    #[error("row index {row}: expected a label from 0 to {last}, or none, got {label}")]
    Label {
        /// Row, counted from 0.
        row: usize,
        /// The label.
        label: usize,
        /// The last class.
        last: usize,
    },
    /// No rows.
    #[error("expected at least one {what}, got none")]
    Empty {
        /// What there is none of.
        what: &'static str,
    },
    /// A class that training cannot learn.
    #[error("class {class}: expected at least one labelled example, got none")]
    ClassWithoutExamples {
        /// The class, counted from 0.
        class: usize,
    },
    /// A blueprint that is not a model.
    #[error("structure: {0}")]
    Structure(String),
    /// A setting outside its range.
    #[error("{name}: expected {expected}, got {got}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// What came.
        got: String,
    },
    /// Settings that cannot be read.
    #[error("{0}")]
    Settings(String),
    /// No preset of that name.
    #[error("preset: expected one of {known}, got '{name}'")]
    Preset {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Bytes that are not a model file, or a damaged one.
    #[error("model file: {0}")]
    ModelFile(String),
    /// A model file of another format version.
    #[error("model file: expected format version {expected}, got {got}")]
    Version {
        /// What this build reads.
        expected: u32,
        /// What the file says.
        got: u32,
    },
    /// Bytes that are not a contribution to a step, or contributions that do not belong together.
    #[error("contribution: {0}")]
    Contribution(String),
    /// A device that is not there, or that failed.
    #[error("device: {0}")]
    Device(String),
    /// A model that cannot be trained in the memory there is.
    #[error(
        "expected a model that fits into memory, got one of {weights} weights, which needs about {needed:.1} GiB; \
         {free:.1} GiB are free, enough for some {fitting} weights: fewer components or channels"
    )]
    Memory {
        /// Its weights.
        weights: usize,
        /// The memory that training needs, in GiB.
        needed: f64,
        /// What is free, in GiB.
        free: f64,
        /// Weights of a model that would fit.
        fitting: usize,
    },
    /// A loss that is no number, with the step that gave it.
    #[error("step {step}: expected a finite loss, got {loss}; a smaller learning rate may help")]
    Diverged {
        /// The training step.
        step: usize,
        /// The loss.
        loss: f64,
    },
    /// Somebody wanted it to stop ([`Stop`](crate::training::Stop)).
    #[error("stopped on request")]
    Stopped,
}

/// A result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A [`Error::Shape`] from anything that prints.
    pub fn shape(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Shape {
            what: what.into(),
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }
}
