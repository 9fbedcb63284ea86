//! Bent copies of images, to learn from more handwritings than there are (after Simard, Steinkraus and Platt 2003).
//!
//! ```text
//! bent(p) = image(p + d(p))     d: pixels, normal at the nodes of a coarse grid, in straight lines between them
//! ```

use crate::mnist::{Images, PIXELS};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sumout::random::{Purpose, Stream};

const SIDE: usize = 28;

/// What copies there are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distort {
    /// Of every image, beside itself.
    pub copies: usize,
    /// Standard deviation of a displacement, in pixels.
    pub bend: f64,
    /// Pixels between the nodes of the grid.
    pub spacing: usize,
}

impl Distort {
    /// The images and their copies.
    pub fn apply(&self, images: &Images, seed: u64) -> Images {
        let mut all = images.clone();
        for copy in 0..self.copies {
            let rows = images.values.par_chunks(PIXELS).enumerate();
            let bent = rows.flat_map_iter(|(i, image)| {
                self.bent(image, &mut Stream::new(seed, Purpose::Augment, copy as u32, i as u32))
            });
            all.values.par_extend(bent);
            all.labels.extend(&images.labels);
        }
        all
    }

    fn bent(&self, image: &[f32], random: &mut Stream) -> Vec<f32> {
        let nodes = (SIDE - 1).div_ceil(self.spacing) + 1;
        let mut field = || (0..nodes * nodes).map(|_| self.bend * random.normal()).collect::<Vec<f64>>();
        let (down, right) = (field(), field());
        let at = |y: usize, x: usize| {
            let node = (y as f64 / self.spacing as f64, x as f64 / self.spacing as f64);
            let from = (y as f64 + between(&down, nodes, node, |d| d), x as f64 + between(&right, nodes, node, |d| d));
            between(image, SIDE, from, f64::from).round() as f32
        };
        (0..PIXELS).map(|i| at(i / SIDE, i % SIDE)).collect()
    }
}

/// Between the four nearest numbers of a square grid; 0 outside of it.
fn between<T: Copy>(grid: &[T], side: usize, (y, x): (f64, f64), number: impl Fn(T) -> f64) -> f64 {
    let (top, left) = (y.floor(), x.floor());
    let (below, right) = (y - top, x - left);
    let get = |y: f64, x: f64| {
        let inside = |v: f64| (0.0..side as f64).contains(&v);
        if inside(y) && inside(x) { number(grid[y as usize * side + x as usize]) } else { 0.0 }
    };
    (1.0 - below) * ((1.0 - right) * get(top, left) + right * get(top, left + 1.0))
        + below * ((1.0 - right) * get(top + 1.0, left) + right * get(top + 1.0, left + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Images {
        let values = (0..2 * PIXELS).map(|i| ((i * 37) % 256) as f32).collect();
        Images { values, labels: vec![3, 8] }
    }

    #[test]
    fn without_a_bend_copies_are_the_images() {
        let all = Distort { copies: 2, bend: 0.0, spacing: 7 }.apply(&images(), 1);
        assert_eq!(all.values, images().values.repeat(3));
        assert_eq!(all.labels, [3, 8, 3, 8, 3, 8]);
    }

    #[test]
    fn every_copy_is_bent_otherwise_and_numbers_stay_bytes() {
        let distort = Distort { copies: 2, bend: 1.0, spacing: 7 };
        let all = distort.apply(&images(), 1);
        let [first, second, third] = [0, 1, 2].map(|copy| &all.values[copy * 2 * PIXELS..(copy + 1) * 2 * PIXELS]);
        assert!(first == images().values && first != second && second != third);
        assert!(all.values.iter().all(|x| x.fract() == 0.0 && (0.0..=255.0).contains(x)));
        assert_eq!(all.values, distort.apply(&images(), 1).values);
        assert_ne!(all.values, distort.apply(&images(), 2).values);
    }

    #[test]
    fn numbers_lie_in_straight_lines_between_their_neighbours() {
        let grid = [0.0, 1.0, 10.0, 11.0];
        assert_eq!(between(&grid, 2, (0.5, 0.5), |x| x), 5.5);
        assert_eq!(between(&grid, 2, (1.0, 0.25), |x| x), 10.25);
        assert_eq!(between(&grid, 2, (-0.5, 0.0), |x| x), 0.0, "outside is 0");
        assert_eq!(between(&grid, 2, (1.5, 1.0), |x| x), 5.5);
    }
}
