//! The first test images with holes, as a model completes them: files for a figure.

use crate::arrays;
use crate::experiment::Experiment;
use crate::inputs::examples::{DataSet, Examples};
use anyhow::Result;
use std::fs;
use sumout::{Predictor, Rows};

/// Kinds of holes, as the scripts in `rivals` keep them too.
const SHOWN: [&str; 3] = ["iid:0.75", "rect:2x11", "half"];

const IMAGES: usize = 10;

/// Writes images as they are seen, completed and whole into the folder `completions` of the results; those of other sets
/// than MNIST have the name of the set before theirs.
pub fn keep(
    experiment: &Experiment,
    predictor: &mut Predictor,
    data: &DataSet,
    seed: u64,
) -> Result<()> {
    let images = spread_out(data);
    let folder = experiment.results.join("completions");
    fs::create_dir_all(&folder)?;
    let set = experiment.set.prefix();
    for kind in SHOWN {
        let seen = images.with_holes(kind.parse()?, seed)?;
        let rows = Rows::new(&seen, images.width())?;
        let completed = predictor.impute_mean(rows, None)?.mean;
        let (ending, width) = (kind.replace(':', "-"), images.width());
        for (name, numbers) in [
            ("seen", &seen[..]),
            ("tmm", completed.as_slice()),
            ("whole", &images.values),
        ] {
            let path = folder.join(format!("{set}{name}-{ending}.npy"));
            arrays::write(&path, width, numbers.iter().copied())?;
        }
    }
    Ok(())
}

/// The first images of MNIST, as the scripts in `rivals` show them; of sets that stand in the order of their classes,
/// images far apart.
fn spread_out(data: &DataSet) -> Examples {
    let test = &data.test;
    let in_order = test.labels.is_sorted();
    let step = if in_order { test.len() / IMAGES } else { 1 };
    let rows: Vec<usize> = (0..IMAGES.min(test.len()))
        .map(|i| i * step.max(1))
        .collect();
    test.picked(&rows)
}
