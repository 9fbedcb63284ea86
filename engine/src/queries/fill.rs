//! All ways to fill holes, by name.

use crate::error::{Error, Result};
use crate::matrix::{Matrix, Rows};
use crate::queries::predictor::Predictor;

/// What holes are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The mean given what is observed; for a category, the most probable one.
    Mean,
    /// The median given what is observed; for a category, the most probable one.
    Median,
    /// The value in the most likely assignment of hidden variables and missing values together.
    Mode,
    /// A sample given what is observed.
    Sample,
}

impl How {
    /// The names.
    pub const NAMES: &str = "mean, median, mode or sample";
}

impl std::str::FromStr for How {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "mean" => Ok(Self::Mean),
            "median" => Ok(Self::Median),
            "mode" => Ok(Self::Mode),
            "sample" => Ok(Self::Sample),
            _ => Err(Error::Setting {
                name: "how",
                expected: Self::NAMES,
                got: name.into(),
            }),
        }
    }
}

impl Predictor {
    /// The rows with their holes filled, (n, width). Only samples use the seed.
    ///
    /// ```
    /// use sumout::queries::How;
    /// use sumout::{Kind, Model, Predictor, Rows, Structure};
    /// let structure = Structure::table(&[Kind::Gaussian; 3]).components(4).channels([8]).build()?;
    /// let mut predictor = Predictor::new(Model::random(structure, 1.0, 1))?;
    /// let rows = Rows::new(&[0.5, -1.0, f32::NAN], 3)?;
    /// let filled = predictor.impute(rows, How::Median, None, 0)?; // leaves are standard normals
    /// assert!(filled[(0, 0)] == 0.5 && filled[(0, 2)].abs() < 1e-6);
    /// # Ok::<(), sumout::Error>(())
    /// ```
    pub fn impute(
        &mut self,
        rows: Rows<'_>,
        how: How,
        class: Option<usize>,
        seed: u64,
    ) -> Result<Matrix<f32>> {
        match how {
            How::Mean => Ok(self.impute_mean(rows, class)?.mean),
            How::Median => Ok(self.impute_quantiles(rows, &[0.5], class)?.remove(0)),
            How::Mode => self.impute_mode(rows, class),
            How::Sample => self.sample_given(rows, class, seed),
        }
    }
}
