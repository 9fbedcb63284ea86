//! How good the predictions of a number are, counted row by row.
//!
//! ```text
//! rmse       √ mean (y − E[y|x_o])²
//! mae        mean |y − median of P(y|x_o)|
//! r2         1 − Σ (y − E[y|x_o])² / Σ (y − mean)²
//! coverage   share of the rows whose y lies in a central interval of P(y|x_o)
//! log score  mean of log P(y|x_o), in nats
//! ```

use anyhow::Result;
use sumout::Predictor;
use sumout::queries::Mixture;

/// Central intervals of 10 %, 20 %, …, 90 %.
const LEVELS: usize = 9;

/// How often central intervals hold the number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    inside: [usize; LEVELS],
    numbers: usize,
}

/// One central interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its probability.
    pub level: f64,
    /// The share of the numbers that it holds.
    pub inside: f64,
}

impl Coverage {
    /// Counts a number that has the probability `below` of numbers up to it.
    pub fn count(&mut self, below: f64) {
        self.numbers += 1;
        let needed = (2.0 * below - 1.0).abs(); // the smallest interval that holds it
        for (level, inside) in self.inside.iter_mut().enumerate() {
            *inside += usize::from(needed <= (level + 1) as f64 / 10.0);
        }
    }

    /// Numbers that were counted.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// The interval of a level from 10 to 90 percent, in steps of 10.
    pub fn of(&self, percent: usize) -> Interval {
        let inside = self.inside[percent / 10 - 1] as f64;
        Interval {
            level: percent as f64 / 100.0,
            inside: inside / self.numbers.max(1) as f64,
        }
    }

    /// All intervals.
    pub fn all(&self) -> [Interval; LEVELS] {
        std::array::from_fn(|level| self.of(10 * (level + 1)))
    }
}

/// Sums so far.
#[derive(Clone, Debug, Default)]
pub struct NumberErrors {
    /// Rows.
    pub rows: usize,
    /// How often intervals hold the target.
    pub coverage: Coverage,
    squares: f64,
    absolute: f64,
    log_score: f64,
    mean: f64,   // of the targets
    spread: f64, // Σ of their squared distances from it
}

impl NumberErrors {
    /// Counts rows with their targets, which are numbers of this column; NaN is unknown.
    pub fn count(
        &mut self,
        predictor: &mut Predictor,
        mut rows: Vec<f32>,
        column: usize,
        targets: &[f32],
    ) -> Result<()> {
        let width = predictor.model().structure.width();
        let mut alone = rows.clone();
        for (row, &target) in targets.iter().enumerate() {
            rows[row * width + column] = target;
            alone[row * width + column] = f32::NAN;
        }
        let model = predictor.model();
        let (both, alone) = (model.rows(&rows)?, model.rows(&alone)?);
        let logs = predictor.log_conditional(both, alone)?;
        let mixtures = predictor.mixtures(alone, column, None)?;
        let numbers = mixtures.map(3, |row, mixture: Mixture<'_>, to| {
            let below = mixture.cdf(targets[row].into());
            to.copy_from_slice(&[mixture.mean(), mixture.quantile(0.5), below]);
        });
        self.rows += targets.len();
        for (row, &target) in targets.iter().enumerate().filter(|(_, y)| !y.is_nan()) {
            let [mean, median, below] = [0, 1, 2].map(|i| numbers[(row, i)]);
            let y = f64::from(target);
            self.coverage.count(below);
            self.squares += (y - mean).powi(2);
            self.absolute += (y - median).abs();
            self.log_score += logs[row];
            let apart = y - self.mean;
            self.mean += apart / self.known() as f64;
            self.spread += apart * (y - self.mean);
        }
        Ok(())
    }

    /// Rows that have the target.
    pub fn known(&self) -> usize {
        self.coverage.numbers
    }

    /// Root of the mean squared error of the mean.
    pub fn rmse(&self) -> f64 {
        self.mean_of(self.squares).sqrt()
    }

    /// Mean absolute error of the median.
    pub fn mae(&self) -> f64 {
        self.mean_of(self.absolute)
    }

    /// Share of the variance that the mean explains; none if the target is constant.
    pub fn r2(&self) -> Option<f64> {
        (self.spread > 0.0).then(|| 1.0 - self.squares / self.spread)
    }

    /// Standard deviation of the targets.
    pub fn sd(&self) -> f64 {
        self.mean_of(self.spread).sqrt()
    }

    /// Mean of log P(y|x_o).
    pub fn log_score(&self) -> f64 {
        self.mean_of(self.log_score)
    }

    fn mean_of(&self, sum: f64) -> f64 {
        sum / self.known().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::{Kind, Model, Structure};

    #[test]
    fn intervals_are_central() {
        let mut coverage = Coverage::default();
        for below in [0.5, 0.25, 0.74, 0.04, 0.96] {
            coverage.count(below);
        }
        let inside = |percent| coverage.of(percent).inside;
        assert_eq!((inside(10), inside(50), inside(90)), (0.2, 0.6, 0.6));
        assert_eq!((coverage.all()[8].level, coverage.numbers()), (0.9, 5));
    }

    /// Leaves are standard normals, so the mean and the median of every row are 0.
    #[test]
    fn figures_are_those_of_the_formulas() {
        let structure = Structure::table(&[Kind::Gaussian; 2])
            .components(2)
            .channels([2]);
        let model = Model::random(structure.build().unwrap(), 1.0, 1);
        let mut predictor = Predictor::new(model).unwrap();
        let mut errors = NumberErrors::default();
        let rows = vec![0.3, 9.0, 0.1, 9.0, f32::NAN, 9.0];
        errors
            .count(&mut predictor, rows, 1, &[1.0, f32::NAN, -2.0])
            .unwrap();
        assert_eq!((errors.rows, errors.known()), (3, 2));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
        close(errors.rmse(), 2.5f64.sqrt());
        close(errors.mae(), 1.5);
        close(errors.sd(), 1.5);
        close(errors.r2().unwrap(), 1.0 - 5.0 / 4.5);
        close(
            errors.log_score(),
            -0.5 * (2.0 * std::f64::consts::PI).ln() - 1.25,
        );
    }
}
