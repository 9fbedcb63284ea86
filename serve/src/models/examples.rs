//! Rows to try on the page.

use anyhow::Result;
use sumout_data::layout::{Layout, ReadOptions, Split};

/// Maximum of rows to try.
const EXAMPLES: usize = 200;

/// A row to try.
#[derive(Clone, Debug)]
pub struct Example {
    /// (width); NaN is missing.
    pub values: Vec<f32>,
    /// The name of its class.
    pub label: Option<String>,
}

/// Rows to try, from the user's data or, for MNIST's shape, from the digits.
pub fn examples(data: Option<&str>, layout: &Layout, classes: &[String]) -> Result<Vec<Example>> {
    let options = ReadOptions {
        split: Split::Test,
        ..ReadOptions::default()
    };
    let is_mnist = layout
        .shape
        .is_some_and(|s| (s.height, s.width, s.channels) == (28, 28, 1));
    let data = match data {
        Some(data) => sumout_data::open(data, &options)?,
        None if is_mnist => sumout_data::open_digits(&options)?,
        None => return Ok(Vec::new()),
    };
    let mut examples = Vec::new();
    for chunk in data.fitted_to(layout)? {
        let chunk = chunk?;
        for (row, values) in chunk.values.chunks_exact(layout.width).enumerate() {
            let label = chunk.labels.as_ref().map(|labels| labels[row]);
            let class = label.and_then(|label| classes.get(usize::try_from(label).ok()?));
            examples.push(Example {
                values: values.to_vec(),
                label: class.cloned(),
            });
            if examples.len() == EXAMPLES {
                return Ok(examples);
            }
        }
    }
    Ok(examples)
}
