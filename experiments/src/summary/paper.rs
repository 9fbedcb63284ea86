//! The paper's numbers, from `paper.toml`.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A row of the paper's tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// The method.
    pub name: String,
    /// In percent, by column; for some methods the paper has no squares.
    pub accuracies: Vec<f64>,
}

/// A net trained on one kind of holes. The paper has numbers for some columns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperNet {
    /// What it was trained on.
    pub name: String,
    /// In percent, for each p from .25 on.
    pub iid: Vec<f64>,
    /// In percent, for all squares or none.
    #[serde(default)]
    pub squares: Vec<f64>,
}

/// A row of the paper's experiment on speech.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSpeech {
    /// The method.
    pub name: String,
    /// In percent, nothing missing.
    pub whole: u32,
    /// In percent, half of the samples missing.
    pub half: u32,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// MNIST, the 16 columns.
    pub row: Vec<PaperRow>,
    /// MNIST, nets tested on holes that they were not trained on.
    #[serde(default)]
    pub net: Vec<PaperNet>,
    /// Two-digit tasks, by the number of deleted pixels.
    #[serde(default)]
    pub pairs: Vec<PaperRow>,
    /// small NORB, the 16 columns.
    #[serde(default)]
    pub norb: Vec<PaperRow>,
    /// TIMIT.
    #[serde(default)]
    pub speech: Vec<PaperSpeech>,
}

/// Reads them.
pub fn read(folder: &Path) -> Result<Paper> {
    let path = folder.join("paper.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}
