//! Masks for tests: which numbers a row loses (paper, section on missing data and appendix on protocols).
//!
//! ```text
//! clean        nothing
//! iid:0.9      every pixel alone, with probability 0.9                                   missing at random
//! rect:2x11    2 squares of 11 × 11, uniform among those wholly inside, may overlap       missing at random
//! nonzero:50   50 of the pixels that are not zero, or all if there are fewer              not at random
//! stripes:4    every other stripe of 4 rows, or of 4 columns; where they begin is random  missing at random
//! half         the upper, lower, left or right half                                      missing at random
//! rows:0.5     every row of pixels alone, with probability 0.5                           missing at random
//! blocks:4x0.9 every block of a grid of 4 × 4 blocks alone, with probability 0.9         missing at random
//! ```
//!
//! A mask is a function of the seed and of the row's number (and, for `nonzero`, of its values): batches, threads and
//! machines do not change it.
//!
//! ```
//! use sumout::masks::{Grid, Missing};
//! let missing: Missing = "rect:1x3".parse().unwrap();
//! let mut rows = vec![1.0; 2 * 64];
//! missing.apply(&Grid::image(8, 8, 1), &mut rows, 0, 7).unwrap();
//! assert_eq!(rows.iter().filter(|x| x.is_nan()).count(), 2 * 9);
//! ```

use crate::error::{Error, Result};
use crate::random::{Purpose, Stream};
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// What goes missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Missing {
    /// Nothing.
    None,
    /// Every pixel alone, with this probability.
    Iid(f64),
    /// Squares wholly inside the image.
    Squares {
        /// How many; they may overlap.
        count: usize,
        /// Pixels of a side.
        width: usize,
    },
    /// So many of the pixels that are not zero, or all of them if there are fewer.
    NonZero(usize),
    /// Every other stripe of so many rows, or of so many columns.
    Stripes(usize),
    /// The upper, lower, left or right half.
    Half,
    /// Every row of pixels alone, with this probability.
    Rows(f64),
    /// Every block of a grid alone.
    Blocks {
        /// Pixels of a side of a block.
        width: usize,
        /// The probability that a block is missing.
        p: f64,
    },
}

/// How a row of data is a grid of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
    /// Whether every channel has a mask of its own; else a pixel goes missing with all its numbers.
    pub apart: bool,
}

impl Grid {
    /// An image whose pixels go missing whole.
    pub fn image(height: usize, width: usize, channels: usize) -> Self {
        Self {
            height,
            width,
            channels,
            apart: false,
        }
    }

    /// A table: one row of this many columns.
    pub fn columns(width: usize) -> Self {
        Self::image(1, width, 1)
    }

    /// The same with a mask for every channel.
    pub fn apart(self) -> Self {
        Self {
            apart: true,
            ..self
        }
    }

    /// Numbers in a row of data.
    pub fn numbers(&self) -> usize {
        self.height * self.width * self.channels
    }
}

const FORMS: &str = "clean, iid:P with P from 0 to 1, rect:NxW with N from 1 to 1000 and W at least 1, nonzero:N, \
                     stripes:W, half, rows:P, or blocks:WxP";

/// The widest stripe or block.
const LARGEST: usize = 1 << 20;

impl FromStr for Missing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::Setting {
            name: "missing",
            expected: FORMS,
            got: text.to_string(),
        };
        let whole = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let share = |text: &str| text.parse::<f64>().map_err(|_| wrong());
        let missing = match text.split_once(':') {
            None if text == "clean" => Self::None,
            None if text == "half" => Self::Half,
            Some(("iid", p)) => Self::Iid(share(p)?),
            Some(("rows", p)) => Self::Rows(share(p)?),
            Some(("stripes", width)) => Self::Stripes(whole(width)?),
            Some(("blocks", size)) => {
                let (width, p) = size.split_once('x').ok_or_else(wrong)?;
                Self::Blocks {
                    width: whole(width)?,
                    p: share(p)?,
                }
            }
            Some(("rect", size)) => {
                let (count, width) = size.split_once('x').ok_or_else(wrong)?;
                Self::Squares {
                    count: whole(count)?,
                    width: whole(width)?,
                }
            }
            Some(("nonzero", count)) => Self::NonZero(whole(count)?),
            _ => return Err(wrong()),
        };
        missing.check().map(|()| missing)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => to.write_str("clean"),
            Self::Iid(p) => write!(to, "iid:{p}"),
            Self::Squares { count, width } => write!(to, "rect:{count}x{width}"),
            Self::NonZero(count) => write!(to, "nonzero:{count}"),
            Self::Stripes(width) => write!(to, "stripes:{width}"),
            Self::Half => to.write_str("half"),
            Self::Rows(p) => write!(to, "rows:{p}"),
            Self::Blocks { width, p } => write!(to, "blocks:{width}x{p}"),
        }
    }
}

impl Missing {
    fn check(&self) -> Result<()> {
        let sensible = match *self {
            Self::Iid(p) | Self::Rows(p) => (0.0..=1.0).contains(&p),
            Self::Squares { count, width } => (1..=1000).contains(&count) && width > 0,
            Self::Stripes(width) => (1..=LARGEST).contains(&width),
            Self::Blocks { width, p } => (1..=LARGEST).contains(&width) && (0.0..=1.0).contains(&p),
            Self::None | Self::NonZero(_) | Self::Half => true,
        };
        if sensible {
            return Ok(());
        }
        Err(Error::Setting {
            name: "missing",
            expected: FORMS,
            got: self.to_string(),
        })
    }

    /// Whether it is about places in an image.
    pub fn is_for_images(&self) -> bool {
        !matches!(self, Self::None | Self::Iid(_) | Self::NonZero(_))
    }

    /// Checks that this kind of mask fits such rows.
    pub fn check_on(&self, grid: &Grid) -> Result<()> {
        self.check()?;
        match *self {
            Self::Squares { width, .. } if width > grid.height.min(grid.width) => {
                Err(Error::Setting {
                    name: "missing",
                    expected: "squares that fit in the image",
                    got: format!("{self} in {}×{}", grid.height, grid.width),
                })
            }
            _ => Ok(()),
        }
    }

    /// Writes NaN over what goes missing. The first of `rows` (n, numbers of the grid) has the number `first_row`.
    pub fn apply(&self, grid: &Grid, rows: &mut [f32], first_row: usize, seed: u64) -> Result<()> {
        self.check_on(grid)?;
        let width = grid.numbers();
        if width == 0 || !rows.len().is_multiple_of(width) {
            return Err(Error::shape(
                "numbers",
                format!("rows of {width}"),
                rows.len(),
            ));
        }
        let numbered = rows.par_chunks_mut(width).enumerate();
        numbered.for_each(|(index, row)| {
            let mut stream = stream_of((first_row + index) as u64, seed);
            self.apply_to_row(grid, row, &mut stream);
        });
        Ok(())
    }

    fn apply_to_row(&self, grid: &Grid, row: &mut [f32], stream: &mut Stream) {
        let together = if grid.apart { 1 } else { grid.channels };
        for first in (0..grid.channels).step_by(together) {
            let mask = self.mask(grid, row, first..first + together, stream);
            let pixels = row.chunks_exact_mut(grid.channels).zip(mask);
            for (pixel, _) in pixels.filter(|(_, is_hole)| *is_hole) {
                pixel[first..first + together].fill(f32::NAN);
            }
        }
    }

    /// Which pixels of one row lose the numbers of these channels.
    fn mask(
        &self,
        grid: &Grid,
        row: &[f32],
        channels: Range<usize>,
        stream: &mut Stream,
    ) -> Vec<bool> {
        let mut mask = vec![false; grid.height * grid.width];
        match *self {
            Self::None => {}
            Self::Iid(p) => mask.fill_with(|| stream.chance(p)),
            Self::Squares { count, width } => {
                (0..count).for_each(|_| hide_square(&mut mask, grid, width, stream));
            }
            Self::NonZero(count) => {
                let lit = lit_pixels(grid, row, &channels);
                hide_some(&mut mask, lit, count, stream);
            }
            Self::Stripes(width) => {
                let (across, offset) = (stream.chance(0.5), stream.below(2 * width));
                let place = |y, x| if across { x } else { y };
                hide_where(&mut mask, grid, |y, x| {
                    (place(y, x) + offset) / width % 2 == 0
                });
            }
            Self::Half => {
                let (side, middle) = (stream.below(4), (grid.height / 2, grid.width / 2));
                hide_where(&mut mask, grid, |y, x| match side {
                    0 => y < middle.0,
                    1 => y >= middle.0,
                    2 => x < middle.1,
                    _ => x >= middle.1,
                });
            }
            Self::Rows(p) => {
                let hidden: Vec<bool> = (0..grid.height).map(|_| stream.chance(p)).collect();
                hide_where(&mut mask, grid, |y, _| hidden[y]);
            }
            Self::Blocks { width, p } => {
                let across = grid.width.div_ceil(width);
                let blocks = grid.height.div_ceil(width) * across;
                let hidden: Vec<bool> = (0..blocks).map(|_| stream.chance(p)).collect();
                hide_where(&mut mask, grid, |y, x| {
                    hidden[y / width * across + x / width]
                });
            }
        }
        mask
    }
}

/// The random numbers of one row.
fn stream_of(number: u64, seed: u64) -> Stream {
    Stream::new(seed, Purpose::Masks, (number >> 32) as u32, number as u32)
}

/// Hides the pixels (row, column) for which it is so.
fn hide_where(mask: &mut [bool], grid: &Grid, is_hidden: impl Fn(usize, usize) -> bool) {
    for (i, hidden) in mask.iter_mut().enumerate() {
        *hidden = is_hidden(i / grid.width, i % grid.width);
    }
}

fn hide_square(mask: &mut [bool], grid: &Grid, width: usize, stream: &mut Stream) {
    let top = stream.below(grid.height - width + 1);
    let left = stream.below(grid.width - width + 1);
    (top..top + width).for_each(|y| mask[y * grid.width + left..][..width].fill(true));
}

/// The pixels that have a number which is not zero in these channels.
fn lit_pixels(grid: &Grid, row: &[f32], channels: &Range<usize>) -> Vec<usize> {
    let is_lit = |numbers: &[f32]| {
        numbers[channels.clone()]
            .iter()
            .any(|&x| x != 0.0 && !x.is_nan())
    };
    let pixels = row.chunks_exact(grid.channels).enumerate();
    let lit = pixels.filter(|(_, numbers)| is_lit(numbers));
    lit.map(|(i, _)| i).collect()
}

/// Hides so many of these pixels: the first steps of a Fisher–Yates shuffle.
fn hide_some(mask: &mut [bool], mut pixels: Vec<usize>, count: usize, stream: &mut Stream) {
    for i in 0..count.min(pixels.len()) {
        let other = i + stream.below(pixels.len() - i);
        pixels.swap(i, other);
        mask[pixels[i]] = true;
    }
}

/// Writes NaN where `mask` is true. The mask has the length of all rows, or of one: it then serves every row.
pub fn hide(rows: &mut [f32], mask: &[bool]) -> Result<()> {
    if mask.is_empty() || !rows.len().is_multiple_of(mask.len()) {
        return Err(Error::shape(
            "mask",
            format!("one entry for each of {} numbers", rows.len()),
            mask.len(),
        ));
    }
    for row in rows.chunks_exact_mut(mask.len()) {
        row.iter_mut()
            .zip(mask)
            .filter(|(_, hidden)| **hidden)
            .for_each(|(x, _)| *x = f32::NAN);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(missing: &str, grid: Grid, rows: usize, first_row: usize, seed: u64) -> Vec<bool> {
        let mut values = vec![1.0; rows * grid.numbers()];
        missing
            .parse::<Missing>()
            .unwrap()
            .apply(&grid, &mut values, first_row, seed)
            .unwrap();
        values.iter().map(|x| x.is_nan()).collect()
    }

    fn picture(mask: &[bool], width: usize) -> Vec<String> {
        let line = |row: &[bool]| {
            row.iter()
                .map(|&hidden| if hidden { '#' } else { '.' })
                .collect()
        };
        mask.chunks(width).map(line).collect()
    }

    /// The same on every machine and in every version: results that people publish depend on it. The pictures come
    /// from a Philox and a mask written again in Python.
    #[test]
    fn golden_masks() {
        let grid = Grid::image(4, 8, 1);
        assert_eq!(
            picture(&mask("iid:0.5", grid, 1, 3, 11), 8),
            ["#.#.....", ".#..#.#.", ".###.##.", "...#.##."]
        );
        assert_eq!(
            picture(&mask("rect:2x2", grid, 1, 3, 11), 8),
            ["....##..", "...###..", "...##...", "........"]
        );
        assert_eq!(
            picture(&mask("nonzero:5", grid, 1, 3, 11), 8),
            ["........", ".......#", "...##...", "#..#...."]
        );
        for (text, expected) in STRUCTURED {
            assert_eq!(picture(&mask(text, grid, 1, 3, 11), 8), expected, "{text}");
        }
    }

    /// By `experiments/rivals/holes.py`.
    const STRUCTURED: [(&str, [&str; 4]); 4] = [
        (
            "stripes:2",
            ["..##..##", "..##..##", "..##..##", "..##..##"],
        ),
        ("half", ["########", "########", "........", "........"]),
        ("rows:0.5", ["########", "........", "########", "........"]),
        (
            "blocks:3x0.5",
            ["###...##", "###...##", "###...##", "........"],
        ),
    ];

    #[test]
    fn iid_has_its_frequency_per_pixel() {
        for (text, p) in [
            ("iid:0", 0.0),
            ("iid:0.25", 0.25),
            ("iid:0.9", 0.9),
            ("iid:1", 1.0),
        ] {
            let mask = mask(text, Grid::image(10, 10, 3), 500, 0, 1);
            assert!(
                mask.chunks(3)
                    .all(|pixel| pixel.iter().all(|&x| x == pixel[0])),
                "a pixel goes missing whole"
            );
            let share = mask.iter().filter(|&&x| x).count() as f64 / mask.len() as f64;
            assert!(
                (share - p).abs() <= 4.0 * (p * (1.0 - p) / 50_000.0).sqrt(),
                "{text}: {share}"
            );
        }
        let apart = mask("iid:0.5", Grid::image(10, 10, 2).apart(), 500, 0, 1);
        let both = apart.chunks(2).filter(|pixel| pixel[0] && pixel[1]).count() as f64 / 50_000.0;
        assert!(
            (both - 0.25).abs() < 0.01,
            "channels apart are independent: {both}"
        );
    }

    /// One square has W² pixels in one W × W box; every corner is equally likely.
    #[test]
    fn squares_are_inside_and_uniform() {
        let (h, w, side, rows) = (5, 7, 3, 30_000);
        let mut corners = vec![0; (h - side + 1) * (w - side + 1)];
        for mask in mask("rect:1x3", Grid::image(h, w, 1), rows, 0, 5).chunks(h * w) {
            let hidden: Vec<usize> = (0..h * w).filter(|&i| mask[i]).collect();
            let (top, left) = (hidden[0] / w, hidden[0] % w);
            let square: Vec<usize> = (0..9).map(|i| (top + i / 3) * w + left + i % 3).collect();
            assert_eq!(hidden, square);
            corners[top * (w - side + 1) + left] += 1;
        }
        let expected = rows as f64 / corners.len() as f64;
        assert!(
            corners
                .iter()
                .all(|&n| (f64::from(n) - expected).abs() < 5.0 * expected.sqrt()),
            "{corners:?}"
        );
        let counts = mask("rect:2x3", Grid::image(h, w, 1), 1000, 0, 5);
        let count = |mask: &[bool]| mask.iter().filter(|&&x| x).count();
        assert!(
            counts
                .chunks(h * w)
                .all(|mask| (9..=18).contains(&count(mask)))
        );
        assert!(
            mask("rect:1x5", Grid::image(5, 5, 1), 1, 0, 5)
                .iter()
                .all(|&x| x),
            "a square as large as the image"
        );
    }

    #[test]
    fn non_zero_values_are_deleted_in_exact_numbers() {
        let grid = Grid::image(5, 5, 2);
        let mut frequency = [0; 25];
        for seed in 0..4000 {
            let mut row: Vec<f32> = (0..50)
                .map(|i| if i / 2 < 10 { (i % 2) as f32 } else { 0.0 })
                .collect();
            row[0] = f32::NAN; // pixel 0 still has a number that is not zero
            (row[2], row[3]) = (f32::NAN, f32::NAN); // pixel 1 has none left: 9 of 10 can be deleted
            let before = row.clone();
            Missing::NonZero(4).apply(&grid, &mut row, 0, seed).unwrap();
            let deleted: Vec<usize> = (0..25)
                .filter(|&i| row[2 * i + 1].is_nan() && !before[2 * i + 1].is_nan())
                .collect();
            assert_eq!(deleted.len(), 4);
            assert!(
                deleted
                    .iter()
                    .all(|&i| i < 10 && i != 1 && row[2 * i].is_nan())
            );
            deleted.iter().for_each(|&i| frequency[i] += 1);
            Missing::NonZero(400)
                .apply(&grid, &mut row, 0, seed)
                .unwrap();
            assert!(row[..20].iter().all(|x| x.is_nan()) && row[20..].iter().all(|&x| x == 0.0));
        }
        let expected = 4000.0 * 4.0 / 9.0;
        let fair =
            |i: usize| (f64::from(frequency[i]) - expected).abs() < 5.0 * f64::sqrt(expected);
        assert!((0..10).filter(|&i| i != 1).all(fair), "{frequency:?}");
    }

    #[test]
    fn rows_do_not_depend_on_their_batch() {
        for text in [
            "iid:0.3",
            "rect:2x3",
            "nonzero:7",
            "stripes:2",
            "rows:0.5",
            "blocks:2x0.5",
        ] {
            let grid = Grid::image(6, 6, 1);
            let whole = mask(text, grid, 40, 0, 9);
            let parts: Vec<bool> = [(0, 1), (1, 13), (14, 26)]
                .map(|(first, n)| mask(text, grid, n, first, 9))
                .concat();
            assert_eq!(whole, parts);
            assert_ne!(whole[..36], whole[36..72], "{text}: rows differ");
            assert_ne!(whole, mask(text, grid, 40, 0, 10), "{text}: seeds differ");
        }
    }

    #[test]
    fn texts_round_trip_and_nonsense_is_explained() {
        for text in [
            "clean",
            "iid:0.9",
            "iid:0",
            "rect:2x11",
            "nonzero:50",
            "nonzero:0",
            "stripes:4",
            "half",
            "rows:0.5",
            "blocks:4x0.75",
        ] {
            assert_eq!(text.parse::<Missing>().unwrap().to_string(), text);
        }
        let nonsense = [
            "",
            "cleanly",
            "clean:1",
            "iid",
            "iid:",
            "iid:1.5",
            "iid:-0.1",
            "iid:NaN",
            "rect:2",
            "rect:0x3",
            "rect:3x0",
            "rect:1001x3",
            "rect:-1x3",
            "rect:1x2x3",
            "nonzero:",
            "nonzero:-5",
            "nonzero:1.5",
            "stripes:0",
            "half:1",
            "rows:1.5",
            "blocks:4",
            "blocks:0x0.5",
            "blocks:4x2",
            "squares:1x2",
            "iid:0.5 ",
        ];
        for text in nonsense {
            let error = text.parse::<Missing>().unwrap_err();
            assert!(
                matches!(&error, Error::Setting { got, .. } if got == text),
                "{error}"
            );
        }
        let error = Missing::Squares { count: 1, width: 6 }.apply(
            &Grid::image(5, 9, 1),
            &mut [0.0; 45],
            0,
            0,
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "missing: expected squares that fit in the image, got rect:1x6 in 5×9"
        );
        assert!(
            Missing::Iid(2.0)
                .apply(&Grid::columns(3), &mut [0.0; 3], 0, 0)
                .is_err()
        );
        let error = Missing::None
            .apply(&Grid::columns(3), &mut [0.0; 7], 0, 0)
            .unwrap_err();
        assert_eq!(error.to_string(), "numbers: expected rows of 3, got 7");
    }

    #[test]
    fn a_given_mask_hides_what_it_says() {
        let mut rows = [1.0, 2.0, 3.0, 4.0];
        hide(&mut rows, &[true, false]).unwrap();
        assert!(rows[0].is_nan() && rows[2].is_nan());
        assert_eq!((rows[1], rows[3]), (2.0, 4.0));
        hide(&mut rows, &[false, false, false, true]).unwrap();
        assert!(rows[1] == 2.0 && rows[3].is_nan());
        assert!(hide(&mut rows, &[true; 3]).is_err() && hide(&mut rows, &[]).is_err());
    }
}
