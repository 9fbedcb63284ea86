//! How a model is trained: settings, checked before work starts.

use crate::error::{Error, Result};
use crate::training::leaf_init::LeafStart;
use crate::training::optimizer::{Rule, Schedule};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Display;

/// Where P(y) comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prior {
    /// 1/K.
    Uniform,
    /// The labels' frequencies.
    #[default]
    Labels,
    /// These weights.
    Given(Vec<f64>),
}

/// How a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Steps in all.
    pub steps: usize,
    /// B.
    pub batch: usize,
    /// How weights follow their gradient.
    pub rule: Rule,
    /// Learning rate at the start.
    pub rate: f64,
    /// How it changes.
    pub schedule: Schedule,
    /// β, the weight of −log P(X).
    pub generative: f64,
    /// λ, the weight of Σw² over the simplex weights.
    pub penalty: f64,
    /// Probability that a number of the input is summed out.
    pub drop_inputs: f64,
    /// Every row draws its own such probability, uniformly from 0 to twice it (to 1 at most), so that all amounts of
    /// holes are learned from.
    pub drop_varied: bool,
    /// For layer 0 (leaves), 1, …: probability that a node is summed out. Layers not named keep all.
    pub drop_nodes: Vec<f64>,
    /// Training images are moved by up to this many pixels each way; what they leave is missing.
    pub shift: usize,
    /// Training images are turned about their centre by up to this many degrees either way.
    pub rotate: f64,
    /// Training images grow or shrink by up to this part of their size.
    pub stretch: f64,
    /// Learning rate of the leaves relative to the rest; 0 keeps them as they started.
    pub leaf_rate: f64,
    /// How leaves start.
    pub leaves: LeafStart,
    /// Standard deviation of the logits at the start.
    pub spread: f64,
    /// P(y).
    pub prior: Prior,
    /// The column y that is to be predicted from the others, where there is one: then the objective is
    /// `−log P(y|x) − β log P(x)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
    /// The minimum of the target's variances, in place of that of `leaves`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_floor: Option<f32>,
    /// Steps between validations, where there is a validation set.
    pub validate_every: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            steps: 2000,
            batch: 128,
            rule: Rule::adam(),
            rate: 0.03,
            schedule: Schedule::Cosine,
            generative: 0.1,
            penalty: 0.0,
            drop_inputs: 0.0,
            drop_varied: false,
            drop_nodes: Vec::new(),
            shift: 0,
            rotate: 0.0,
            stretch: 0.0,
            leaf_rate: 0.0,
            leaves: LeafStart::default(),
            spread: 1.0,
            prior: Prior::Labels,
            target: None,
            target_floor: None,
            validate_every: 1000,
            seed: 1,
        }
    }
}

impl Settings {
    /// The same settings with some of them changed: `changes` is anything that serializes to a map from names of settings
    /// to values. Of `leaves`, only what is named changes.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use sumout::Settings;
    /// let settings = Settings::default().with(BTreeMap::from([("steps", 50)]))?;
    /// assert_eq!((settings.steps, settings.batch), (50, Settings::default().batch));
    /// # Ok::<(), sumout::Error>(())
    /// ```
    pub fn with(&self, changes: impl Serialize) -> Result<Self> {
        let wrong = |error: serde_json::Error| Error::Settings(error.to_string());
        let mut all = serde_json::to_value(self).map_err(wrong)?;
        let changes = serde_json::to_value(changes).map_err(wrong)?;
        for (key, value) in changes.as_object().into_iter().flatten() {
            match (&mut all[key], value) {
                (Value::Object(old), Value::Object(new)) if key == "leaves" => {
                    old.extend(new.clone());
                }
                (old, value) => *old = value.clone(),
            }
        }
        serde_json::from_value(all).map_err(wrong)
    }

    /// How the leaves of a family start that describes positions of these columns.
    pub(crate) fn leaves_of(&self, positions: &[Vec<u32>]) -> LeafStart {
        let target = self.target.map(|column| column as u32);
        let is_target = |columns: &Vec<u32>| columns.iter().any(|&column| Some(column) == target);
        let floor = self
            .target_floor
            .filter(|_| positions.iter().any(is_target));
        LeafStart {
            floor: floor.unwrap_or(self.leaves.floor),
            ..self.leaves
        }
    }

    /// Whether training images are turned or stretched.
    pub(crate) fn turns(&self) -> bool {
        self.rotate > 0.0 || self.stretch > 0.0
    }

    /// Says which setting is out of range.
    pub fn check(&self) -> Result<()> {
        let count = |name, x: usize| require(name, "at least 1", x > 0, x);
        let real = |name, x: f64| require(name, "a number from 0", x.is_finite() && x >= 0.0, x);
        let within =
            |name, expected, max: f64, x: f64| require(name, expected, (0.0..=max).contains(&x), x);
        let is_positive = |x: f64| x.is_finite() && x > 0.0;
        let (batch, floor, nodes) = (self.batch, self.leaves.floor, &self.drop_nodes);
        let are_probabilities = nodes.iter().all(|p| (0.0..=1.0).contains(p));
        count("steps", self.steps)?;
        require(
            "batch",
            "from 1 to 65536",
            (1..=65536).contains(&batch),
            batch,
        )?;
        require(
            "rate",
            "a positive number",
            is_positive(self.rate),
            self.rate,
        )?;
        real("generative", self.generative)?;
        real("penalty", self.penalty)?;
        real("leaf_rate", self.leaf_rate)?;
        real("spread", self.spread)?;
        require(
            "floor",
            "a positive number",
            is_positive(floor.into()),
            floor,
        )?;
        let target_floor = self.target_floor.unwrap_or(floor);
        require(
            "target_floor",
            "a positive number",
            is_positive(target_floor.into()),
            target_floor,
        )?;
        count("structures", self.leaves.structures)?;
        within("drop_inputs", "from 0 to 1", 1.0, self.drop_inputs)?;
        require(
            "drop_nodes",
            "from 0 to 1",
            are_probabilities,
            format!("{nodes:?}"),
        )?;
        within("rotate", "from 0 to 180", 180.0, self.rotate)?;
        within("stretch", "from 0 to 0.9", 0.9, self.stretch)?;
        count("validate_every", self.validate_every)?;
        let suits_target = self.rule != Rule::Em && nodes.is_empty();
        require(
            "target",
            "none with EM, and none where nodes are summed out",
            self.target.is_none() || suits_target,
            format!("{:?}", self.target),
        )?;
        let suits_rule = self.rule != Rule::Em || self.rate <= 1.0;
        require("rate", "at most 1 for EM", suits_rule, self.rate)?;
        self.rule.check()
    }
}

/// An error about a setting that is out of range.
fn require(
    name: &'static str,
    expected: &'static str,
    fits: bool,
    got: impl Display,
) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::Setting {
        name,
        expected,
        got: got.to_string(),
    })
}
