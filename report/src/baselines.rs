//! The baselines of the demo: the five nearest training images, by the observed pixels, or by all
//! pixels after the missing ones were filled with the training mean.
//!
//! ```text
//! observed pixels   d(x, t) = Σ_{i observed} (x_i − t_i)²
//! mean              d(x, t) = Σ_i (x̂_i − t_i)²        x̂_i = x_i if observed, else the mean of pixel i
//! ```
//!
//! Pixels are whole numbers from 0 to 255, so distances are exact. A sum starts with the pixels
//! that vary most, and stops when it is too large to matter: three times as fast as adding all
//! pixels.

use rayon::prelude::*;

/// The number of neighbours.
const K: usize = 5;

/// Training images that stay in the cache while a task compares all its images with them.
const TILE: usize = 64;

/// Images per task.
const TASK: usize = 32;

/// Pixels that are added before each check whether the distance still matters.
const STRETCH: usize = 112;

/// The training images.
pub struct Neighbours {
    order: Vec<usize>, // (width): pixels, those that vary most first; the order of all rows below
    images: Vec<i16>,  // (n, width)
    labels: Vec<usize>,
    mean: Vec<i16>, // (width)
}

/// A training image; of two at the same distance, the first is nearer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbour {
    distance: i32, // squared
    image: usize,
}

/// The nearest so far, nearest first.
type Nearest = [Neighbour; K];

/// Before any image was compared.
const NOBODY: Neighbour = Neighbour {
    distance: i32::MAX,
    image: usize::MAX,
};

impl Neighbours {
    /// From images (n, width) of whole numbers from 0 to 255, and their classes.
    pub fn new(values: &[f32], labels: &[i64], width: usize) -> Self {
        let (mut sums, mut squares) = (vec![0.0; width], vec![0.0; width]);
        for image in values.chunks_exact(width) {
            for (i, &x) in image.iter().enumerate() {
                sums[i] += f64::from(x);
                squares[i] += f64::from(x) * f64::from(x);
            }
        }
        let n = labels.len() as f64;
        let variance = |i: usize| squares[i] / n - (sums[i] / n).powi(2);
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|&a, &b| variance(b).total_cmp(&variance(a)));
        Self {
            images: values
                .chunks_exact(width)
                .flat_map(|image| order.iter().map(|&i| image[i] as i16))
                .collect(),
            labels: labels.iter().map(|&label| label as usize).collect(),
            mean: order
                .iter()
                .map(|&i| (sums[i] / n).round() as i16)
                .collect(),
            order,
        }
    }

    /// The class of every row (n, width), NaN where missing, by distances over the observed pixels.
    pub fn by_seen_pixels(&self, rows: &[f32]) -> Vec<usize> {
        votes(&self.classes_by_seen_pixels(rows))
    }

    /// The classes of every row's neighbours, the nearest first.
    pub fn classes_by_seen_pixels(&self, rows: &[f32]) -> Vec<Vec<usize>> {
        let rows = self.ordered(rows);
        let all_bits = |x: &f32| if x.is_nan() { 0 } else { -1 };
        let seen = rows.iter().map(all_bits).collect();
        self.neighbours(rows.iter().map(|&x| x as i16).collect(), seen) // NaN becomes 0 and is masked
    }

    /// The same by distances over all pixels, the missing ones filled with their mean.
    pub fn by_filled_in(&self, rows: &[f32]) -> Vec<usize> {
        let rows = self.ordered(rows);
        let fill = |(&x, &mean): (&f32, &i16)| if x.is_nan() { mean } else { x as i16 };
        let filled = rows
            .iter()
            .zip(self.mean.iter().cycle())
            .map(fill)
            .collect();
        votes(&self.neighbours(filled, vec![-1; rows.len()]))
    }

    fn ordered(&self, rows: &[f32]) -> Vec<f32> {
        rows.chunks_exact(self.order.len())
            .flat_map(|row| self.order.iter().map(|&i| row[i]))
            .collect()
    }

    fn neighbours(&self, rows: Vec<i16>, seen: Vec<i16>) -> Vec<Vec<usize>> {
        let task = TASK * self.order.len();
        let tasks = rows.par_chunks(task).zip(seen.par_chunks(task));
        let nearest = tasks.flat_map_iter(|(rows, seen)| self.nearest(rows, seen));
        nearest.map(|near| self.classes_of(&near)).collect()
    }

    /// With fewer than k training images, some places are empty.
    fn classes_of(&self, nearest: &Nearest) -> Vec<usize> {
        let labels = nearest.iter().filter_map(|n| self.labels.get(n.image));
        labels.copied().collect()
    }

    /// The nearest of every row; of equally near ones, the first.
    fn nearest(&self, rows: &[i16], seen: &[i16]) -> Vec<Nearest> {
        let width = self.order.len();
        let mut all = vec![[NOBODY; K]; rows.len() / width];
        for (tile, images) in self.images.chunks(TILE * width).enumerate() {
            for ((row, seen), nearest) in rows
                .chunks_exact(width)
                .zip(seen.chunks_exact(width))
                .zip(&mut all)
            {
                for (i, image) in images.chunks_exact(width).enumerate() {
                    if let Some(distance) = distance(row, seen, image, nearest[K - 1].distance) {
                        let image = tile * TILE + i;
                        insert(nearest, Neighbour { distance, image });
                    }
                }
            }
        }
        all
    }
}

fn votes(rows: &[Vec<usize>]) -> Vec<usize> {
    rows.iter().map(|classes| vote(classes)).collect()
}

/// The most frequent class; of equally frequent ones, that of the nearest image.
fn vote(classes: &[usize]) -> usize {
    let count = |class: usize| classes.iter().filter(|&&other| other == class).count();
    let mut best = classes.first().copied().unwrap_or(0);
    for &class in classes {
        if count(class) > count(best) {
            best = class;
        }
    }
    best
}

/// Σ (x − t)² over the observed pixels, or `None` if that is not below `limit`. Written so that
/// compilers use multiply-adds of 16-bit vectors.
fn distance(row: &[i16], seen: &[i16], image: &[i16], limit: i32) -> Option<i32> {
    let mut sum = 0;
    for ((row, seen), image) in row
        .chunks(STRETCH)
        .zip(seen.chunks(STRETCH))
        .zip(image.chunks(STRETCH))
    {
        let apart = row
            .iter()
            .zip(seen)
            .zip(image)
            .map(|((&x, &seen), &t)| i32::from((x - t) & seen));
        sum += apart.map(|d| d * d).sum::<i32>();
        if sum >= limit {
            return None;
        }
    }
    Some(sum)
}

/// Replaces the last one, and moves the new one to its place.
fn insert(nearest: &mut Nearest, candidate: Neighbour) {
    nearest[K - 1] = candidate;
    for i in (1..K).rev() {
        if nearest[i] < nearest[i - 1] {
            nearest.swap(i, i - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::random::{Purpose, Stream};

    /// All distances in f64, sorted; votes counted in a table.
    fn naive(train: &[f32], labels: &[i64], row: &[f32]) -> usize {
        let width = row.len();
        let distance = |image: &[f32]| {
            let seen = row.iter().zip(image).filter(|(x, _)| !x.is_nan());
            seen.map(|(x, t)| f64::from(x - t).powi(2)).sum::<f64>()
        };
        let mut all: Vec<(f64, usize)> = train.chunks(width).map(distance).zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut votes = [0; 10];
        all[..5]
            .iter()
            .for_each(|&(_, i)| votes[labels[i] as usize] += 1);
        let max = votes.iter().max().unwrap();
        all.iter()
            .map(|&(_, i)| labels[i] as usize)
            .find(|&label| votes[label] == *max)
            .unwrap()
    }

    fn images(n: usize, width: usize, holes: f64, item: u32) -> Vec<f32> {
        let mut stream = Stream::new(3, Purpose::Masks, 0, item);
        // Few values, so that distances tie.
        (0..n * width)
            .map(|_| {
                if stream.chance(holes) {
                    f32::NAN
                } else {
                    85.0 * stream.below(4) as f32
                }
            })
            .collect()
    }

    #[test]
    fn neighbours_are_those_of_a_naive_search() {
        let (n, width) = (300, 241); // more than two stretches
        let train = images(n, width, 0.0, 1);
        let labels: Vec<i64> = (0..n as i64).map(|i| i * 7 % 10).collect();
        let neighbours = Neighbours::new(&train, &labels, width);
        for holes in [0.0, 0.5, 0.9, 1.0] {
            let rows = images(70, width, holes, 2);
            let expected: Vec<usize> = rows
                .chunks(width)
                .map(|row| naive(&train, &labels, row))
                .collect();
            assert_eq!(
                neighbours.by_seen_pixels(&rows),
                expected,
                "{holes} missing"
            );
            let mean = |i: usize| {
                let pixels = train
                    .iter()
                    .skip(i % width)
                    .step_by(width)
                    .map(|&x| f64::from(x));
                (pixels.sum::<f64>() / n as f64).round() as f32
            };
            let filled: Vec<f32> = rows
                .iter()
                .enumerate()
                .map(|(i, &x)| if x.is_nan() { mean(i) } else { x })
                .collect();
            let expected: Vec<usize> = filled
                .chunks(width)
                .map(|row| naive(&train, &labels, row))
                .collect();
            assert_eq!(
                neighbours.by_filled_in(&rows),
                expected,
                "{holes} filled in"
            );
        }
    }

    #[test]
    fn fewer_images_than_neighbours() {
        let neighbours = Neighbours::new(&[0.0, 9.0], &[4, 7], 1);
        assert_eq!(neighbours.by_seen_pixels(&[1.0, 8.0]), [4, 7]);
    }
}
