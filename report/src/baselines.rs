//! What Sumout is compared with: the five nearest training images, by the pixels that are seen, or by all pixels after
//! the missing ones were filled with the training mean.
//!
//! ```text
//! seen pixels   d(x, t) = Σ_{i seen} (x_i − t_i)²
//! mean          d(x, t) = Σ_i (x̂_i − t_i)²            x̂_i = x_i where seen, else the mean of pixel i
//! ```
//!
//! Pixels are whole numbers from 0 to 255, so distances are exact. They are added up from the pixels that vary most to
//! those that vary least, and given up once they are too large to matter: three times as fast as adding all.

use rayon::prelude::*;

/// k.
const K: usize = 5;

/// Training images that stay in the cache while a task asks all its images about them.
const TILE: usize = 64;

/// Images of one task.
const TASK: usize = 32;

/// Pixels that are added before looking whether the distance still matters.
const STRETCH: usize = 112;

/// The training images.
pub struct Neighbours {
    order: Vec<usize>, // (width): pixels, those that vary most first; all rows below are in this order
    images: Vec<i16>,  // (n, width)
    labels: Vec<usize>,
    mean: Vec<i16>, // (width)
}

/// The nearest so far, nearest first: squared distance and number of the image.
type Nearest = [(i32, usize); K];

impl Neighbours {
    /// From images (n, width) of whole numbers from 0 to 255, and their classes.
    pub fn new(values: &[f32], labels: &[i64], width: usize) -> Self {
        let (mut sums, mut squares) = (vec![0.0; width], vec![0.0; width]);
        for image in values.chunks_exact(width) {
            sums.iter_mut()
                .zip(image)
                .for_each(|(sum, &x)| *sum += f64::from(x));
            squares
                .iter_mut()
                .zip(image)
                .for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
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

    /// The class of every row (n, width), NaN where missing, by distances over the pixels that are seen.
    pub fn by_seen_pixels(&self, rows: &[f32]) -> Vec<usize> {
        self.classes_by_seen_pixels(rows)
            .iter()
            .map(|classes| vote(classes))
            .collect()
    }

    /// The classes of every row's neighbours, the nearest first.
    pub fn classes_by_seen_pixels(&self, rows: &[f32]) -> Vec<Vec<usize>> {
        let rows = self.ordered(rows);
        let seen = rows
            .iter()
            .map(|x| if x.is_nan() { 0 } else { -1 })
            .collect(); // −1 is all bits
        self.neighbours(rows.iter().map(|&x| x as i16).collect(), seen) // NaN becomes 0, and is not looked at
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
        self.neighbours(filled, vec![-1; rows.len()])
            .iter()
            .map(|classes| vote(classes))
            .collect()
    }

    fn ordered(&self, rows: &[f32]) -> Vec<f32> {
        rows.chunks_exact(self.order.len())
            .flat_map(|row| self.order.iter().map(|&i| row[i]))
            .collect()
    }

    fn neighbours(&self, rows: Vec<i16>, seen: Vec<i16>) -> Vec<Vec<usize>> {
        let task = TASK * self.order.len();
        let tasks = rows.par_chunks(task).zip(seen.par_chunks(task));
        let classes = |near: Nearest| {
            near.iter()
                .filter_map(|&(_, image)| self.labels.get(image).copied())
                .collect()
        };
        tasks
            .flat_map_iter(|(rows, seen)| self.nearest(rows, seen).into_iter().map(classes))
            .collect()
    }

    /// The nearest of every row; of equally near ones, those that come first.
    fn nearest(&self, rows: &[i16], seen: &[i16]) -> Vec<Nearest> {
        let width = self.order.len();
        let mut all = vec![[(i32::MAX, usize::MAX); K]; rows.len() / width];
        for (tile, images) in self.images.chunks(TILE * width).enumerate() {
            for ((row, seen), nearest) in rows
                .chunks_exact(width)
                .zip(seen.chunks_exact(width))
                .zip(&mut all)
            {
                for (i, image) in images.chunks_exact(width).enumerate() {
                    if let Some(distance) = distance(row, seen, image, nearest[K - 1].0) {
                        insert(nearest, (distance, tile * TILE + i));
                    }
                }
            }
        }
        all
    }
}

/// The class that most neighbours have; of equally frequent ones, that of the nearest.
fn vote(classes: &[usize]) -> usize {
    let votes = |class: usize| classes.iter().filter(|&&other| other == class).count();
    let better = |best: usize, class: usize| {
        if votes(class) > votes(best) {
            class
        } else {
            best
        }
    };
    classes.iter().copied().reduce(better).unwrap_or(0)
}

/// Σ (x − t)² over the seen pixels, or `None` if that is not below `limit`. In a form that compilers turn into
/// multiply-adds of 16-bit vectors.
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

/// Puts one in the place of the last and sorts it in.
fn insert(nearest: &mut Nearest, candidate: (i32, usize)) {
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
        let most = votes.iter().max().unwrap();
        all.iter()
            .map(|&(_, i)| labels[i] as usize)
            .find(|&label| votes[label] == *most)
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
