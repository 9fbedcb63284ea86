//! Holes that a net is trained on: one kind always, or a kind drawn for each image.

use anyhow::{Result, bail};
use std::str::FromStr;
use sumout::masks::{Grid, Missing};
use sumout::random::{Purpose, Stream};

/// The distribution of holes in training images.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainHoles {
    /// `clean`, `iid:P`, `rect:NxW`: always the same distribution.
    Fixed(Missing),
    /// `iid:rand`: P uniform from 0 to 1, drawn for each image.
    AnyIid,
    /// `rect:rand`: 1 to 3 squares of a width from 7 to 15, drawn for each image.
    AnySquares,
}

impl FromStr for TrainHoles {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "iid:rand" => Self::AnyIid,
            "rect:rand" => Self::AnySquares,
            _ => match text.parse()? {
                Missing::NonZero(_) => {
                    bail!("expected clean, iid:P, rect:NxW, iid:rand or rect:rand, got {text}")
                }
                missing => Self::Fixed(missing),
            },
        })
    }
}

impl TrainHoles {
    /// Writes NaN over the missing pixels. The first row has the number `first_row`.
    pub fn apply(&self, grid: &Grid, rows: &mut [f32], first_row: usize, seed: u64) -> Result<()> {
        if let Self::Fixed(missing) = self {
            return Ok(missing.apply(grid, rows, first_row, seed)?);
        }
        for (index, row) in rows.chunks_exact_mut(grid.numbers()).enumerate() {
            let number = first_row + index;
            self.kind_of_row(number, seed)
                .apply(grid, row, number, seed)?;
        }
        Ok(())
    }

    /// The kind of holes of one row.
    fn kind_of_row(&self, number: usize, seed: u64) -> Missing {
        let (high, low) = ((number as u64 >> 32) as u32, number as u32);
        let mut random = Stream::new(seed, Purpose::Inputs, high, low);
        match self {
            Self::Fixed(missing) => *missing,
            Self::AnyIid => Missing::Iid(random.uniform()),
            Self::AnySquares => Missing::Squares {
                count: 1 + random.below(3),
                width: 7 + random.below(9),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_counts(holes: &str, rows: usize) -> Vec<usize> {
        let grid = Grid::image(28, 28, 1);
        let mut values = vec![1.0; rows * grid.numbers()];
        holes
            .parse::<TrainHoles>()
            .unwrap()
            .apply(&grid, &mut values, 7, 3)
            .unwrap();
        values
            .chunks(grid.numbers())
            .map(|row| row.iter().filter(|x| x.is_nan()).count())
            .collect()
    }

    #[test]
    fn drawn_anew_for_each_image() {
        let iid = missing_counts("iid:rand", 500);
        assert!(iid.iter().any(|&n| n < 20) && iid.iter().any(|&n| n > 764));
        let mean = iid.iter().sum::<usize>() / iid.len();
        assert!((340..440).contains(&mean), "{mean}");
        let squares = missing_counts("rect:rand", 500);
        assert!(
            squares.contains(&49) && squares.contains(&225) && squares.iter().any(|&n| n > 2 * 225)
        );
        assert!(squares.iter().all(|&n| (49..=675).contains(&n)));
        assert_eq!(missing_counts("clean", 2), [0, 0]);
        assert!("nonzero:5".parse::<TrainHoles>().is_err());
    }
}
