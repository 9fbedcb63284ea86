//! The paper's numbers, `experiments/paper.toml`.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A row of its tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The method.
    pub name: String,
    /// In percent, by column; of some methods the paper has no squares.
    pub accuracies: Vec<f64>,
}

/// Nets trained on one kind of holes; the paper has numbers for some columns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Net {
    /// What it was trained on.
    pub name: String,
    /// In percent, for each p from .25 on.
    pub iid: Vec<f64>,
    /// In percent, for all squares or none.
    #[serde(default)]
    pub squares: Vec<f64>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// MNIST, the 16 columns.
    pub row: Vec<Row>,
    /// MNIST, nets asked about what they were not trained on.
    #[serde(default)]
    pub net: Vec<Net>,
    /// Two-digit tasks, by how many pixels are deleted.
    #[serde(default)]
    pub pairs: Vec<Row>,
}

/// Reads them.
pub fn read(folder: &Path) -> Result<Paper> {
    let path = folder.join("paper.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}
