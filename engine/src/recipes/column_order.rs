//! The order in which columns of a table should meet: the most dependent first.
//!
//! ```text
//! dependence   I(a, b) = Σ p(a,b) log p(a,b)/(p(a) p(b)) − (|a|−1)(|b|−1)/2n      over the n rows where both are seen
//! ```
//!
//! Numbers are cut at their quantiles, categories are as they are; the last term is what independent columns would seem
//! to share by chance (Miller and Madow). Nodes are then paired level by level, the most dependent pair first, where two
//! nodes depend on each other as much as their columns do on average. Pairs at every level keep the tree log₂ as deep as
//! it is wide, and [`Structure::columns`](crate::structure::Structure::columns) with a window of 2 rebuilds them from
//! the order alone.
//!
//! ```
//! use sumout::recipes::order_columns;
//! use sumout::structure::Kind;
//! let twins = (0..100).flat_map(|i| [i as f32, (i * 37 % 100) as f32, 3.0 * i as f32, f32::NAN]);
//! let order = order_columns(&[Kind::Gaussian; 4], &twins.collect::<Vec<_>>());
//! assert_eq!(order, [0, 2, 1, 3]); // columns 0 and 2 meet first
//! ```

use crate::layers::leaf::values_of;
use crate::structure::Kind;
use crate::training::stop::Stop;
use rayon::prelude::*;

/// Rows looked at, evenly spread; more would not change an order worth having.
const MOST_ROWS: usize = 4096;

/// Wider tables keep the order they have: the dependence of all pairs would not fit in memory.
const MOST_COLUMNS: usize = 4096;

/// Values told apart in one column; rarer categories count as one.
const MOST_VALUES: usize = 16;

const HOLE: u8 = u8::MAX;

/// Mutual information of every pair; symmetric, with a diagonal of 0.
pub(crate) type Shared = Vec<Vec<f32>>;

/// The columns of a table (rows, kinds) in the order in which neighbours should meet.
pub fn order_columns(kinds: &[Kind], values: &[f32]) -> Vec<u32> {
    order_unless(&Stop::default(), kinds, values)
}

/// The same; any order, if it is to stop.
pub(crate) fn order_unless(stop: &Stop, kinds: &[Kind], values: &[f32]) -> Vec<u32> {
    match dependences(kinds, values, stop) {
        Some(shared) if kinds.len() > 2 => pair_order(shared, stop),
        _ => (0..kinds.len() as u32).collect(),
    }
}

/// The dependence of every pair of columns; nothing where there are too many to compare, or if it is to stop.
pub(crate) fn dependences(kinds: &[Kind], values: &[f32], stop: &Stop) -> Option<Shared> {
    let width = kinds.len();
    if !(1..=MOST_COLUMNS).contains(&width) {
        return None;
    }
    let rows = values.len() / width;
    let kept = rows.min(MOST_ROWS);
    let column = |c: usize| {
        let cell = |i: usize| values[i * rows / kept * width + c];
        let seen = || (0..kept).map(cell).collect::<Vec<f32>>();
        stop.unless(|| codes(kinds[c], &seen()))
    };
    let codes: Vec<Vec<u8>> = (0..width).into_par_iter().map(column).collect();
    let upper = |a: usize| {
        let before = std::iter::repeat_n(0.0, a + 1);
        let after = (a + 1..width).map(|b| stop.unless(|| dependence(&codes[a], &codes[b])));
        before.chain(after).collect()
    };
    let mut shared: Shared = (0..width).into_par_iter().map(upper).collect();
    if stop.is_requested() {
        return None;
    }
    for a in 0..width {
        for b in 0..a {
            shared[a][b] = shared[b][a];
        }
    }
    Some(shared)
}

/// An order in which the most dependent nodes are paired first, level by level; any order, if it is to stop.
pub(crate) fn pair_order(mut shared: Shared, stop: &Stop) -> Vec<u32> {
    let mut nodes: Vec<Vec<u32>> = (0..shared.len() as u32).map(|c| vec![c]).collect();
    let mut short = false; // the last node holds fewer columns than the others
    while nodes.len() > 1 && !stop.is_requested() {
        let pairs = pair(&shared, short);
        let row = |p: &Vec<usize>| pairs.iter().map(|q| average(&shared, p, q)).collect();
        shared = pairs.par_iter().map(row).collect();
        short |= nodes.len() % 2 == 1;
        let joined = |pair: &Vec<usize>| pair.iter().flat_map(|&i| nodes[i].clone()).collect();
        nodes = pairs.iter().map(joined).collect();
    }
    nodes.into_iter().flatten().collect()
}

/// The mean dependence of two sets of nodes.
fn average(shared: &Shared, p: &[usize], q: &[usize]) -> f32 {
    let pairs = p.iter().flat_map(|&i| q.iter().map(move |&j| (i, j)));
    let sum: f32 = pairs.map(|(i, j)| shared[i][j]).sum();
    sum / (p.len() * q.len()) as f32
}

/// A small whole number for every value, [`HOLE`] for what is missing.
fn codes(kind: Kind, column: &[f32]) -> Vec<u8> {
    let code_of: Box<dyn Fn(f32) -> u8> = match values_of(kind) {
        None => {
            let mut sorted: Vec<f32> = column.iter().copied().filter(|x| !x.is_nan()).collect();
            sorted.sort_by(f32::total_cmp);
            // Cells of a pair should hold some rows each: bins grow with the cube root.
            let bins = ((sorted.len() as f64).cbrt().round() as usize).clamp(2, MOST_VALUES);
            let mut cuts: Vec<f32> = (1..bins)
                .filter_map(|i| sorted.get(i * sorted.len() / bins).copied())
                .collect();
            cuts.dedup();
            Box::new(move |x| cuts.partition_point(|&cut| cut <= x) as u8)
        }
        Some(values) => {
            let mut counts = vec![0usize; values];
            column
                .iter()
                .filter(|x| !x.is_nan())
                .for_each(|&x| counts[x as usize] += 1);
            let mut by_count: Vec<usize> = (0..values).collect();
            by_count.sort_by_key(|&v| std::cmp::Reverse(counts[v]));
            let mut codes = vec![MOST_VALUES as u8 - 1; values];
            by_count
                .iter()
                .take(MOST_VALUES - 1)
                .enumerate()
                .for_each(|(code, &v)| codes[v] = code as u8);
            Box::new(move |x| codes[x as usize])
        }
    };
    column
        .iter()
        .map(|&x| if x.is_nan() { HOLE } else { code_of(x) })
        .collect()
}

/// The mutual information of two columns in nats, less what chance alone would show; not negative.
fn dependence(a: &[u8], b: &[u8]) -> f32 {
    let mut both = [0u32; MOST_VALUES * MOST_VALUES];
    for (&a, &b) in a.iter().zip(b) {
        if a != HOLE && b != HOLE {
            both[a as usize * MOST_VALUES + b as usize] += 1;
        }
    }
    let sum = |cells: &mut dyn Iterator<Item = u32>| f64::from(cells.sum::<u32>());
    let of_a: Vec<f64> = both
        .chunks(MOST_VALUES)
        .map(|row| sum(&mut row.iter().copied()))
        .collect();
    let of_b: Vec<f64> = (0..MOST_VALUES)
        .map(|v| sum(&mut both.iter().skip(v).step_by(MOST_VALUES).copied()))
        .collect();
    let n: f64 = of_a.iter().sum();
    if n == 0.0 {
        return 0.0;
    }
    let mut information = 0.0;
    for (i, &count) in both.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = f64::from(count);
        information +=
            count / n * (count * n / (of_a[i / MOST_VALUES] * of_b[i % MOST_VALUES])).ln();
    }
    let used = |counts: &[f64]| counts.iter().filter(|&&count| count > 0.0).count() as f64;
    let chance = (used(&of_a) - 1.0) * (used(&of_b) - 1.0) / (2.0 * n);
    (information - chance).max(0.0) as f32
}

/// Pairs nodes, the most dependent first. One that is left over, or whose node is short, comes last.
fn pair(shared: &[Vec<f32>], short: bool) -> Vec<Vec<usize>> {
    let count = shared.len();
    let mut free = vec![true; count];
    let odd = count % 2 == 1;
    if odd && short {
        free[count - 1] = false; // a short node must stay last, and so must one left over
    }
    let mut candidates: Vec<(usize, usize)> = (0..count)
        .flat_map(|i| (i + 1..count).map(move |j| (i, j)))
        .collect();
    candidates.par_sort_by(|&(a, b), &(c, d)| shared[c][d].total_cmp(&shared[a][b])); // stable: ties keep their order
    let mut pairs = Vec::with_capacity(count.div_ceil(2));
    for (i, j) in candidates {
        if free[i] && free[j] {
            (free[i], free[j]) = (false, false);
            pairs.push(vec![i, j]);
        }
    }
    if odd {
        let left = free.iter().position(|&free| free).unwrap_or(count - 1);
        pairs.push(vec![left]);
    } else if let Some(at) = pairs.iter().position(|pair| short && pair[1] == count - 1) {
        let last = pairs.remove(at);
        pairs.push(last);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Columns of which 2i and 2i + 1 are noisy copies, then shuffled by `place`.
    fn twins(width: usize, rows: usize, holes: f64, place: impl Fn(usize) -> usize) -> Vec<f32> {
        let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
        let mut values = vec![f32::NAN; rows * width];
        for row in values.chunks_exact_mut(width) {
            let hidden: Vec<f64> = (0..width.div_ceil(2)).map(|_| random.normal()).collect();
            for c in 0..width {
                let x = hidden[c / 2] + 0.3 * random.normal();
                if !random.chance(holes) {
                    row[place(c)] = x as f32;
                }
            }
        }
        values
    }

    #[test]
    fn twins_meet_first_with_holes_and_at_any_width() {
        for width in [3, 4, 5, 6, 7, 9, 12, 13] {
            let place = |c: usize| c * 2 % width + usize::from(width % 2 == 0 && c >= width / 2);
            let values = twins(width, 400, 0.3, place);
            let order = order_columns(&vec![Kind::Gaussian; width], &values);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..width as u32).collect::<Vec<_>>());
            for c in (0..width - 1).step_by(2) {
                let at = |c: usize| order.iter().position(|&o| o as usize == place(c)).unwrap();
                assert_eq!(at(c) / 2, at(c + 1) / 2, "width {width}: {order:?}");
            }
        }
    }

    #[test]
    fn information_of_known_tables() {
        let copies: Vec<u8> = (0..1000).map(|i| (i % 4) as u8).collect();
        let information = dependence(&copies, &copies);
        assert!(
            (f64::from(information) - (4f64.ln() - 9.0 / 2000.0)).abs() < 1e-6,
            "{information}"
        );
        let other: Vec<u8> = (0..1000).map(|i| (i / 4 % 4) as u8).collect();
        assert!(dependence(&copies, &other) < 1e-3);
        assert_eq!(dependence(&copies, &[HOLE; 1000]), 0.0);
    }

    #[test]
    fn categories_numbers_and_constants_mix() {
        let kinds = [
            Kind::Categorical(40),
            Kind::Gaussian,
            Kind::Bernoulli,
            Kind::Gaussian,
        ];
        let row = |i: usize| [(i % 40) as f32, 7.0, (i % 40 % 2) as f32, (i / 40) as f32];
        let values: Vec<f32> = (0..800).flat_map(row).collect();
        assert_eq!(order_columns(&kinds, &values)[..2], [0, 2]);
        assert_eq!(order_columns(&kinds, &[]).len(), 4);
    }
}
