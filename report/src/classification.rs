//! How good the posteriors of a classifier are, counted row by row.
//!
//! ```text
//! log-loss           mean of −log P(y|x_o) of the true class, in nats
//! calibration error  Σ_bins (rows of the bin / rows) · |accuracy − mean confidence|     15 bins of confidence
//! precision, recall  right / predicted as the class,  right / of the class
//! ```

/// Bins of confidence.
const BINS: usize = 15;

/// Rows whose most probable class has about the same probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// How many.
    pub rows: usize,
    correct: usize,
    confidence: f64, // sum over the rows
}

impl Bin {
    /// Mean probability of the predicted class.
    pub fn confidence(&self) -> f64 {
        self.confidence / self.rows.max(1) as f64
    }

    /// Share of the rows that are right.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.rows.max(1) as f64
    }
}

/// How confident predictions were, and how often they were right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Confidence {
    bins: [Bin; BINS],
}

impl Confidence {
    /// Counts a prediction that has this probability.
    pub fn count(&mut self, confidence: f64, is_right: bool) {
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        let bin = &mut self.bins[bin];
        bin.rows += 1;
        bin.correct += usize::from(is_right);
        bin.confidence += confidence;
    }

    /// The bins that have rows, by confidence.
    pub fn bins(&self) -> impl Iterator<Item = &Bin> {
        self.bins.iter().filter(|bin| bin.rows > 0)
    }

    /// Expected difference between accuracy and confidence; none without rows.
    pub fn error(&self) -> Option<f64> {
        let rows: usize = self.bins.iter().map(|bin| bin.rows).sum();
        let off = |bin: &Bin| (bin.correct as f64 - bin.confidence).abs();
        (rows > 0).then(|| self.bins.iter().map(off).sum::<f64>() / rows as f64)
    }
}

/// What was counted so far.
#[derive(Clone, Debug)]
pub struct Classification {
    /// How confident it was.
    pub confidence: Confidence,
    classes: usize,
    confusion: Vec<usize>, // (true class, predicted class)
    log_loss: f64,         // sum over the rows
}

/// Figures of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassFigures {
    /// Rows of this class.
    pub rows: usize,
    /// Rows that were predicted to be of this class.
    pub predicted: usize,
    /// Share of the predicted rows that are of this class; none where there are none.
    pub precision: Option<f64>,
    /// Share of the rows of this class that were predicted so; none where there are none.
    pub recall: Option<f64>,
    /// Harmonic mean of the two; none where there is neither.
    pub f1: Option<f64>,
}

impl Classification {
    /// Nothing counted yet, of this many classes.
    pub fn new(classes: usize) -> Self {
        Self {
            confidence: Confidence::default(),
            classes,
            confusion: vec![0; classes * classes],
            log_loss: 0.0,
        }
    }

    /// Counts a row of class `label` with this posterior (K), of which `predicted` is the most probable class.
    pub fn count(&mut self, posterior: &[f64], predicted: usize, label: usize) {
        self.confusion[label * self.classes + predicted] += 1;
        self.log_loss -= posterior[label].max(f64::MIN_POSITIVE).ln();
        let is_right = predicted == label;
        self.confidence.count(posterior[predicted], is_right);
    }

    /// Rows that were counted.
    pub fn rows(&self) -> usize {
        self.confusion.iter().sum()
    }

    /// Share of rows whose most probable class is the true one; none without rows.
    pub fn accuracy(&self) -> Option<f64> {
        let correct = (0..self.classes).map(|class| self.cell(class, class));
        share(correct.sum(), self.rows())
    }

    /// Mean of −log P(y|x_o) of the true class; none without rows.
    pub fn log_loss(&self) -> Option<f64> {
        let rows = self.rows();
        (rows > 0).then(|| self.log_loss / rows as f64)
    }

    /// Share of rows of the most frequent class: the accuracy of who always guesses it; none without rows.
    pub fn most_frequent(&self) -> Option<f64> {
        let rows = self.per_class().into_iter().map(|class| class.rows);
        share(rows.max().unwrap_or(0), self.rows())
    }

    /// Rows of the class `label` that were predicted to be of the class `predicted`.
    pub fn cell(&self, label: usize, predicted: usize) -> usize {
        self.confusion[label * self.classes + predicted]
    }

    /// (true class, predicted class): rows.
    pub fn confusion(&self) -> Vec<Vec<usize>> {
        let rows = self.confusion.chunks_exact(self.classes.max(1));
        rows.map(<[usize]>::to_vec).collect()
    }

    /// Figures of every class.
    pub fn per_class(&self) -> Vec<ClassFigures> {
        (0..self.classes)
            .map(|class| self.of_class(class))
            .collect()
    }

    fn of_class(&self, class: usize) -> ClassFigures {
        let all = || 0..self.classes;
        let rows = all().map(|predicted| self.cell(class, predicted)).sum();
        let predicted = all().map(|label| self.cell(label, class)).sum();
        let right = self.cell(class, class);
        ClassFigures {
            rows,
            predicted,
            precision: share(right, predicted),
            recall: share(right, rows),
            f1: share(2 * right, rows + predicted),
        }
    }
}

fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) {
        assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} {b}");
    }

    #[test]
    fn figures_are_those_of_the_formulas() {
        let mut counted = Classification::new(3);
        assert_eq!((counted.rows(), counted.accuracy()), (0, None));
        assert_eq!(
            (counted.log_loss(), counted.confidence.error()),
            (None, None)
        );
        let rows: [([f64; 3], usize, usize); 4] = [
            ([0.9, 0.1, 0.0], 0, 0),
            ([0.9, 0.1, 0.0], 0, 1),
            ([0.2, 0.7, 0.1], 1, 1),
            ([1.0, 0.0, 0.0], 0, 0),
        ];
        for (posterior, predicted, label) in &rows {
            counted.count(posterior, *predicted, *label);
        }
        close(counted.accuracy(), 0.75);
        let log_loss = -(0.9f64.ln() + 0.1f64.ln() + 0.7f64.ln()) / 4.0;
        close(counted.log_loss(), log_loss);
        // 0.9 is in bin 13 (1 of 2 right), 0.7 in bin 10, 1.0 in the last.
        close(
            counted.confidence.error(),
            ((1.8 - 1.0) + (1.0 - 0.7) + 0.0) / 4.0,
        );
        close(counted.most_frequent(), 0.5);
        let figures = |bin: &Bin| (bin.rows, bin.accuracy());
        let bins: Vec<(usize, f64)> = counted.confidence.bins().map(figures).collect();
        assert_eq!(bins, [(1, 1.0), (2, 0.5), (1, 1.0)]);
        close(counted.confidence.bins().nth(1).map(Bin::confidence), 0.9);
        assert_eq!(counted.confusion(), [[2, 0, 0], [1, 1, 0], [0, 0, 0]]);
        let per_class = counted.per_class();
        close(per_class[0].precision, 2.0 / 3.0);
        close(per_class[0].recall, 1.0);
        close(per_class[1].f1, 2.0 / 3.0);
        assert_eq!((per_class[2].rows, per_class[2].f1), (0, None));
        let mut wrong = Classification::new(2);
        wrong.count(&[1.0, 0.0], 0, 1);
        assert!(wrong.log_loss().unwrap() > 700.0, "and finite");
    }
}
