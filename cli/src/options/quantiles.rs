//! Quantiles of a predicted number, by the names of their columns.

use std::str::FromStr;
use sumout::Matrix;
use sumout::queries::{Mixture, Mixtures};

/// Probabilities between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles(Vec<f64>);

impl Default for Quantiles {
    fn default() -> Self {
        Self(vec![0.05, 0.25, 0.5, 0.75, 0.95])
    }
}

impl FromStr for Quantiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |part: &str| {
            let number = part.trim().parse().ok();
            let share = number.filter(|p: &f64| *p > 0.0 && *p < 1.0);
            share.ok_or_else(|| format!("expected numbers between 0 and 1, got {part}"))
        };
        let shares: Result<Vec<f64>, String> = text.split(',').map(share).collect();
        shares.map(Self)
    }
}

impl Quantiles {
    /// q05 for 0.05, q97.5 for 0.975.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|p| {
            let percent = (p * 1e8).round() / 1e6; // 0.07 × 100 is not 7
            format!("q{}{percent}", if percent < 10.0 { "0" } else { "" })
        })
    }

    /// Mean, standard deviation and quantiles of every row.
    pub fn of(&self, mixtures: &Mixtures) -> Matrix<f64> {
        mixtures.map(2 + self.0.len(), |_, mixture: Mixture<'_>, to| {
            (to[0], to[1]) = (mixture.mean(), mixture.variance().sqrt());
            let numbers = to[2..].iter_mut().zip(&self.0);
            numbers.for_each(|(to, &p)| *to = mixture.quantile(p));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percents() {
        let names = |text: &str| -> Vec<String> {
            let quantiles: Quantiles = text.parse().unwrap();
            quantiles.names().collect()
        };
        let wanted = ["q05", "q07", "q50", "q97.5", "q00.5"];
        assert_eq!(names("0.05,0.07,0.5, 0.975,0.005"), wanted);
        for wrong in ["0", "1", "0.5,x", "", "nan"] {
            assert!(wrong.parse::<Quantiles>().is_err(), "{wrong}");
        }
    }
}
