//! Training examples of which few have a label.

use crate::inputs::examples::Examples;

/// The seed of the holes in training examples; that of the holes in the test is the run's own.
pub fn training_seed(seed: u64) -> u64 {
    1000 + seed
}

/// How many examples have a label.
pub struct FewLabels {
    /// In all; equally many of every class.
    pub labels: usize,
    /// How many classes there are.
    pub classes: usize,
    /// The share of labelled examples in a step.
    pub share: f64,
}

impl FewLabels {
    /// The examples that keep their label: of every class those that come first, for the second seed those after them,
    /// and so on.
    pub fn labelled(&self, labels: &[i64], seed: u64) -> Vec<usize> {
        let each = self.labels / self.classes;
        let first = seed.saturating_sub(1) as usize * each;
        let mut seen = vec![0; self.classes];
        let mut chosen = Vec::new();
        for (row, &label) in labels.iter().enumerate() {
            let count = &mut seen[label as usize];
            if (first..first + each).contains(count) {
                chosen.push(row);
            }
            *count += 1;
        }
        chosen
    }

    /// All examples, most without their label. A step takes each equally often, so labelled ones are repeated until they
    /// have their share.
    pub fn of(&self, train: &Examples, seed: u64) -> Examples {
        let labelled = self.labelled(&train.labels, seed);
        let rest = (train.len() - labelled.len()) as f64;
        let wanted = rest * self.share / (1.0 - self.share);
        let times = (wanted / labelled.len() as f64).round().max(1.0) as usize;
        let mut few = train.clone();
        few.labels.fill(-1);
        for &row in &labelled {
            few.labels[row] = train.labels[row];
        }
        let again = train.picked(&labelled.repeat(times - 1));
        few.values.extend(again.values);
        few.labels.extend(again.labels);
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::layout::ImageShape;

    #[test]
    fn labelled_examples_are_repeated() {
        let few = FewLabels {
            labels: 4,
            classes: 2,
            share: 0.5,
        };
        let labels: Vec<i64> = (0..24).map(|row| row % 2).collect();
        assert_eq!(few.labelled(&labels, 1), [0, 1, 2, 3]);
        assert_eq!(few.labelled(&labels, 2), [4, 5, 6, 7]);
        let shape = ImageShape {
            height: 1,
            width: 1,
            channels: 1,
        };
        let train = Examples {
            shape,
            values: (0..24).map(|row| row as f32).collect(),
            labels,
        };
        let few = few.of(&train, 2);
        assert_eq!(few.len(), 40, "20 without a label, 4 with one five times");
        let with: Vec<f32> = (0..few.len())
            .filter(|&row| few.labels[row] >= 0)
            .map(|row| few.values[row])
            .collect();
        assert_eq!(with.len(), 20);
        assert!(with.iter().all(|x| (4.0..8.0).contains(x)));
    }
}
