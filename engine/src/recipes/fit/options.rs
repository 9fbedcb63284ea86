//! The options of a fit, all of which may be left out.

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::model::{About, ColumnRange};
use crate::recipes::images::ImageShape;
use crate::recipes::presets::Preset;
use crate::structure::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How to fit a model: what is left out is chosen to suit the data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fit {
    pub(super) kinds: Option<Vec<Kind>>,
    pub(super) image: Option<ImageShape>,
    pub(super) ranges: Vec<ColumnRange>,
    pub(super) preset: Option<Preset>,
    pub(super) prior: Option<Vec<f64>>,
    pub(super) classes: Option<usize>,
    pub(super) target: Option<usize>,
    pub(super) components: Option<usize>,
    pub(super) channels: Option<usize>,
    pub(super) trees: Option<usize>,
    pub(super) without_clusters: bool,
    pub(super) without_factors: bool,
    pub(super) held_out: Option<f64>,
    pub(super) curves: Option<bool>,
    pub(super) changes: Map<String, Value>,
    pub(super) about: About,
    #[serde(skip)]
    pub(super) device: Device,
    #[serde(skip)]
    pub(super) precision: Precision,
}

impl Fit {
    /// All choices left to the data, on the processor.
    pub fn new() -> Self {
        Self {
            precision: Precision::Tf32,
            ..Self::default()
        }
    }

    /// What the columns of a table are; numbers, if nothing is said.
    pub fn kinds(self, kinds: &[Kind]) -> Self {
        Self {
            kinds: Some(kinds.to_vec()),
            ..self
        }
    }

    /// What the numbers of each column of a table can be: bounds, whole numbers. Margins are chosen to suit the data.
    pub fn ranges(self, ranges: &[ColumnRange]) -> Self {
        Self {
            ranges: ranges.to_vec(),
            ..self
        }
    }

    /// Rows are images of this size.
    pub fn images(self, shape: ImageShape) -> Self {
        Self {
            image: Some(shape),
            ..self
        }
    }

    /// This structure, these settings and this scaling.
    pub fn preset(self, preset: Preset) -> Self {
        Self {
            preset: Some(preset),
            ..self
        }
    }

    /// P(y), up to a factor, also for classes without examples. Without it there are as many classes as the labels name,
    /// with the labels' frequencies.
    pub fn prior(self, prior: &[f64]) -> Self {
        Self {
            prior: Some(prior.to_vec()),
            ..self
        }
    }

    /// How many classes there are, also if labels do not name them all.
    pub fn classes(self, classes: usize) -> Self {
        Self {
            classes: Some(classes),
            ..self
        }
    }

    /// The column of real numbers that is to be predicted from the others, in place of classes.
    /// [`Predictor::mixtures`](crate::Predictor::mixtures) then gives its distribution.
    pub fn target(self, column: usize) -> Self {
        Self {
            target: Some(column),
            ..self
        }
    }

    /// M: components of every leaf family.
    pub fn components(self, components: usize) -> Self {
        Self {
            components: Some(components),
            ..self
        }
    }

    /// Channels of every level.
    pub fn channels(self, channels: usize) -> Self {
        Self {
            channels: Some(channels),
            ..self
        }
    }

    /// How many trees are trained apart and put side by side.
    pub fn trees(self, trees: usize) -> Self {
        Self {
            trees: Some(trees),
            ..self
        }
    }

    /// Whether clusters of the classes may stand beside the trees of a small table.
    pub fn clusters(self, wanted: bool) -> Self {
        Self {
            without_clusters: !wanted,
            ..self
        }
    }

    /// The share of the rows that is held out to choose by, before all are learned from; 0 holds none out. Without it,
    /// a fifth of few rows and a tenth of many.
    pub fn held_out(self, share: f64) -> Self {
        Self {
            held_out: Some(share),
            ..self
        }
    }

    /// Whether each column of numbers is bent by a [`Curve`](crate::model::Curve) so that it is almost normal. Without
    /// it, columns of a table with classes are.
    pub fn curves(self, wanted: bool) -> Self {
        Self {
            curves: Some(wanted),
            ..self
        }
    }

    /// Steps of each tree.
    pub fn steps(self, steps: usize) -> Self {
        self.change("steps", steps.into())
    }

    /// Seed of everything random.
    pub fn seed(self, seed: u64) -> Self {
        self.change("seed", seed.into())
    }

    fn change(mut self, name: &str, value: Value) -> Self {
        self.changes.insert(name.into(), value);
        self
    }

    /// Other settings, as [`Settings::with`](crate::Settings::with) takes them.
    pub fn settings(mut self, changes: impl Serialize) -> Result<Self> {
        let wrong = |error: serde_json::Error| Error::Settings(error.to_string());
        match serde_json::to_value(changes).map_err(wrong)? {
            Value::Object(changes) => self.changes.extend(changes),
            other => {
                let message = format!("settings: expected a map, got {other}");
                return Err(Error::Settings(message));
            }
        }
        Ok(self)
    }

    /// Names, and notes that the model keeps; `rows` and `settings` are added to the notes.
    pub fn about(self, about: About) -> Self {
        Self { about, ..self }
    }

    /// What computes, and how a GPU multiplies.
    pub fn device(self, device: Device, precision: Precision) -> Self {
        Self {
            device,
            precision,
            without_factors: device != Device::Cpu, // which a GPU does not compute
            ..self
        }
    }
}
