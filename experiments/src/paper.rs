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

/// Reads them.
pub fn read(folder: &Path) -> Result<Vec<Row>> {
    #[derive(Deserialize)]
    struct File {
        row: Vec<Row>,
    }
    let path = folder.join("paper.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(toml::from_str::<File>(&text).with_context(|| path.display().to_string())?.row)
}
