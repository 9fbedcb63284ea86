//! A plan: `experiments/NAME.toml` says what an experiment is.
//!
//! ```toml
//! title = "HT-TMM"               # what tables and curves call it
//! paper = "HT-TMM"               # the row of paper.toml that it stands beside; none if left out
//! method = "tmm"
//! seeds = [1, 2, 3]              # of weights, and of holes; these are the default
//! columns = ["clean", "iid:0.9"] # the paper's 16 if left out
//! train = 60000                  # the first so many images; all if left out
//! test = 10000
//! hold_out = 0                   # judge by so many of the training images instead, to choose settings
//!
//! [options]                      # of the method
//! ```

use crate::columns;
use crate::mnist::Mnist;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use sumout::masks::Missing;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The nearest neighbours by the pixels that are seen.
    Knn,
    /// A Tensorial Mixture Model.
    Tmm,
    /// LeNet.
    Lenet,
    /// Two-digit tasks: a Tensorial Mixture Model.
    PairsTmm,
    /// Two-digit tasks: the robust linear classifier.
    PairsRobust,
}

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What tables and curves call it.
    pub title: String,
    /// The row of the paper's tables that it stands beside.
    pub paper: Option<String>,
    /// What is run.
    pub method: Method,
    /// Of weights, and of holes.
    #[serde(default = "three")]
    pub seeds: Vec<u64>,
    /// Kinds of holes, as [`Missing`] writes them.
    #[serde(default = "sixteen")]
    pub columns: Vec<String>,
    /// Learn from the first so many images.
    pub train: Option<usize>,
    /// Be judged by the first so many images.
    pub test: Option<usize>,
    /// Be judged by so many of the training images instead.
    #[serde(default)]
    pub hold_out: usize,
    /// What the method wants to know.
    #[serde(default)]
    pub options: toml::Table,
}

fn three() -> Vec<u64> {
    vec![1, 2, 3]
}

fn sixteen() -> Vec<String> {
    columns::all().iter().map(Missing::to_string).collect()
}

impl Plan {
    /// Reads `folder/name.toml`.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.toml"));
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let plan: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        plan.missing()?;
        Ok(Self {
            name: name.into(),
            ..plan
        })
    }

    /// Kinds of holes.
    pub fn missing(&self) -> Result<Vec<Missing>> {
        self.columns
            .iter()
            .map(|text| text.parse().map_err(anyhow::Error::new))
            .collect()
    }

    /// The method's options.
    pub fn options<T: DeserializeOwned>(&self) -> Result<T> {
        self.options
            .clone()
            .try_into()
            .with_context(|| format!("{}.toml: options", self.name))
    }

    /// The part of the data it asks for.
    pub fn data(&self, mnist: &Mnist) -> Mnist {
        let whole = if self.hold_out > 0 {
            mnist.held_out(self.hold_out)
        } else {
            mnist.clone()
        };
        Mnist {
            train: whole.train.some(
                0,
                self.train
                    .unwrap_or(usize::MAX)
                    .min(whole.train.labels.len()),
            ),
            test: whole.test.some(
                0,
                self.test.unwrap_or(usize::MAX).min(whole.test.labels.len()),
            ),
            checksum: whole.checksum,
        }
    }
}
