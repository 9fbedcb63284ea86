//! Clusters whose numbers depend on each other: a mixture of normals with factors for each class, as a tree of one
//! position like that of `class_clusters.rs`.
//!
//! ```text
//! P(x|y) = Σ_d W[y,d] N(x; μ_d, Λ_d Λ_dᵀ + diag ψ_d)          numbers; categories are independent in a cluster
//! C_d = (S_d + a C_y) / (n_d + a)      C_y = (S_y + a C) / (n_y + a)      C = S / n
//! ```
//!
//! S_d sums the products of numbers about the mean of their cluster, S_y over the clusters of a class, S over all; n
//! counts rows. So a small cluster has the covariance of its class. Then (1 − f) C_d + f diag C_d + f I ≈ Λ_d Λ_dᵀ + diag ψ_d
//! (`factor_analysis.rs`), with the floor f: no number follows from the others without an error.
//!
//! It begins with clusters of independent numbers. Then rounds of EM follow: every row goes to the cluster that is most likely
//! (hard EM), and what is missing in it counts with its mean and covariance given what is observed.

use crate::error::Result;
use crate::layers::leaf::{Coordinate, Factors, Family, MAX_RANK, values_of};
use crate::layers::leaf_kernel::LeafKernel;
use crate::layers::leaf_table::LeafTable;
use crate::model::Model;
use crate::random::{Purpose, Stream};
use crate::structure::Kind;
use crate::training::class_clusters::{clusters_of, model_of, rows_of};
use crate::training::data::Data;
use crate::training::factor_analysis::{Analysis, factor_analysis};
use crate::training::leaf_init::LeafStart;
use crate::training::stop::Stop;
use rayon::prelude::*;

/// At least so many rows for each cluster on average.
const ROWS: usize = 8;

/// a: what is common counts as so many rows.
const COMMON_ROWS: f64 = 50.0;

/// How often clusters are fitted: once to the clusters of independent numbers, then in rounds of EM.
const FITS: usize = 8;

/// Sums of products of pairs of numbers, (G, G), and how many rows they are of.
#[derive(Clone)]
struct Products {
    sums: Vec<f64>,
    rows: f64,
}

/// The rows of a class in the units of the model.
struct ClassRows {
    rows: Vec<f32>,       // (n, S)
    assigned: Vec<usize>, // (n): the cluster of each
    filled: Vec<f32>,     // (n, S): missing numbers have their means
    apart: Vec<Vec<f64>>, // (each), (G, G): the sum of the covariances of what is filled
}

/// What all classes have in common.
struct Clusters<'a> {
    kinds: &'a [Kind],
    numbers: Vec<usize>, // the columns of numbers, (G)
    each: usize,         // clusters in a class
    floor: f64,
}

/// How many clusters a class gets where it may have `most`.
pub(crate) fn clusters_of_class(data: &Data<'_>, classes: usize, most: usize) -> usize {
    let labelled = match classes {
        1 => data.len(),
        _ => data.labels.iter().filter(|&&label| label >= 0).count(),
    };
    (labelled / (ROWS * classes)).clamp(1, most)
}

/// At most `most` clusters with factors in a class, of the labelled rows or of all rows where there is one class, in the
/// columns, scaling, classes and prior of the model `like`. The floor is in units of standardised numbers.
pub(crate) fn correlated_clusters(
    like: &Model,
    data: &Data<'_>,
    start: &LeafStart,
    (most, floor): (usize, f64),
    seed: u64,
) -> Result<Model> {
    data.check(&like.structure)?;
    let (kinds, classes) = (&like.structure.kinds[..], like.structure.classes);
    let numbers = (0..kinds.len()).filter(|&s| kinds[s] == Kind::Gaussian);
    let all = Clusters {
        kinds,
        numbers: numbers.collect(),
        each: clusters_of_class(data, classes, most),
        floor,
    };
    let begin = |y: usize| all.begin((like, data), y, start, seed);
    let of_classes: Vec<ClassRows> = (0..classes).into_par_iter().map(begin).collect();
    data.stop.check()?;
    let mut common = Products::new(all.numbers.len());
    for own in &of_classes {
        let means = all.means(own);
        let products = all.products(own, &means);
        products.iter().for_each(|products| common.add(products));
    }
    let common = common.covariance(&vec![0.0; common.sums.len()], 0.0);
    let fit = |own| all.fit(own, &common, &data.stop);
    let fitted = of_classes.into_par_iter().map(fit);
    let (families, sizes): (Vec<Family>, Vec<Vec<f64>>) = fitted.unzip();
    data.stop.check()?;
    model_of(like, &families, sizes.concat())
}

/// Leaves out rows in which nothing is observed: they belong to no cluster more than to another.
fn retain_seen(rows: &mut Vec<f32>, width: usize) {
    let seen = rows.chunks_exact(width);
    let seen = seen.filter(|row| row.iter().any(|x| !x.is_nan()));
    *rows = seen.flatten().copied().collect();
}

impl Products {
    fn new(numbers: usize) -> Self {
        Self {
            sums: vec![0.0; numbers * numbers],
            rows: 0.0,
        }
    }

    /// Adds those of one row, (G), less the means.
    fn add_row(&mut self, apart: &[f64]) {
        for (sums, a) in self.sums.chunks_exact_mut(apart.len()).zip(apart) {
            let both = sums.iter_mut().zip(apart);
            both.for_each(|(sum, b)| *sum += a * b);
        }
        self.rows += 1.0;
    }

    fn add(&mut self, other: &Self) {
        let both = self.sums.iter_mut().zip(&other.sums);
        both.for_each(|(to, from)| *to += from);
        self.rows += other.rows;
    }

    /// The covariance, to which a common one counts as so many rows.
    fn covariance(&self, common: &[f64], rows: f64) -> Vec<f64> {
        let pairs = self.sums.iter().zip(common);
        let mixed =
            |(sum, common): (&f64, &f64)| (sum + rows * common) / (self.rows + rows).max(1.0);
        pairs.map(mixed).collect()
    }
}

impl Clusters<'_> {
    /// The rows of class y, or all where there is one, and clusters without factors.
    fn begin(
        &self,
        (like, data): (&Model, &Data<'_>),
        y: usize,
        start: &LeafStart,
        seed: u64,
    ) -> ClassRows {
        let random = Stream::new(seed, Purpose::Leaves, 2, y as u32);
        let class = (like.structure.classes > 1).then_some(y as i64);
        let mut rows = rows_of(data, class, self.kinds.len());
        retain_seen(&mut rows, self.kinds.len());
        let (family, _) = clusters_of(like, &rows, start, self.each, random, &data.stop);
        let width = self.kinds.len();
        let scaled = |(at, &x): (usize, &f32)| match values_of(self.kinds[at % width]) {
            None => like.scaling.apply(at % width, x),
            Some(_) => x,
        };
        let rows: Vec<f32> = rows.iter().enumerate().map(scaled).collect();
        let mut class = ClassRows {
            filled: rows.clone(),
            rows,
            assigned: Vec::new(),
            apart: vec![vec![0.0; self.numbers.len().pow(2)]; self.each],
        };
        self.assign(&mut class, &family);
        self.fill(&mut class, &family);
        class
    }

    /// Every row to the cluster under which it is most likely.
    fn assign(&self, class: &mut ClassRows, family: &Family) {
        let inputs: Vec<u32> = (0..self.kinds.len() as u32).collect();
        let kernel = LeafKernel::new(family);
        let rows = class.rows.par_chunks_exact(inputs.len());
        let nearest = |scratch: &mut Vec<f32>, row| kernel.most_likely(&inputs, row, scratch);
        class.assigned = rows.map_init(Vec::new, nearest).collect();
    }

    /// Fills what is missing in the rows.
    fn fill(&self, class: &mut ClassRows, family: &Family) {
        let table = LeafTable::new(family);
        let inputs: Vec<u32> = (0..self.kinds.len() as u32).collect();
        let g = self.numbers.len();
        let mut place = vec![0; inputs.len()]; // of a column among the numbers
        self.numbers
            .iter()
            .enumerate()
            .for_each(|(i, &s)| place[s] = i);
        class.apart.iter_mut().for_each(|apart| apart.fill(0.0));
        let rows = class.rows.chunks_exact(inputs.len());
        let rows = rows.zip(class.filled.chunks_exact_mut(inputs.len()));
        for ((row, filled), &d) in rows.zip(&class.assigned) {
            if self.numbers.iter().all(|&s| !row[s].is_nan()) {
                continue;
            }
            let missing = table.missing(&inputs, row, d);
            for a in &missing {
                filled[a.s] = a.mean as f32;
                let line = &mut class.apart[d][place[a.s] * g..][..g];
                line[place[a.s]] += a.own;
                for b in &missing {
                    let shared = a.shared.iter().zip(&b.shared).map(|(a, b)| a * b);
                    line[place[b.s]] += shared.sum::<f64>();
                }
            }
        }
    }

    /// The mean of every number in every cluster, (each, G), to which the mean of the class counts as one row.
    fn means(&self, class: &ClassRows) -> Vec<f64> {
        let g = self.numbers.len();
        let mut whole = vec![(0.0, 0.0); g];
        let mut own = vec![(0.0, 0.0); self.each * g];
        for (row, &d) in class
            .filled
            .chunks_exact(self.kinds.len())
            .zip(&class.assigned)
        {
            for (i, &s) in self.numbers.iter().enumerate() {
                for (sum, count) in [&mut whole[i], &mut own[d * g + i]] {
                    (*sum, *count) = (*sum + f64::from(row[s]), *count + 1.0);
                }
            }
        }
        let of_class: Vec<f64> = whole
            .iter()
            .map(|(sum, count)| sum / f64::max(*count, 1.0))
            .collect();
        let mean =
            |(at, (sum, count)): (usize, &(f64, f64))| (sum + of_class[at % g]) / (count + 1.0);
        own.iter().enumerate().map(mean).collect()
    }

    /// The products of every cluster, about its mean.
    fn products(&self, class: &ClassRows, means: &[f64]) -> Vec<Products> {
        let g = self.numbers.len();
        let mut all = vec![Products::new(g); self.each];
        for (products, apart) in all.iter_mut().zip(&class.apart) {
            products.sums.copy_from_slice(apart);
        }
        for (row, &d) in class
            .filled
            .chunks_exact(self.kinds.len())
            .zip(&class.assigned)
        {
            let numbers = self.numbers.iter().zip(&means[d * g..]);
            let apart: Vec<f64> = numbers.map(|(&s, mean)| f64::from(row[s]) - mean).collect();
            all[d].add_row(&apart);
        }
        all
    }

    /// The clusters of a class, and how many rows each has, plus one.
    fn fit(&self, mut class: ClassRows, common: &[f64], stop: &Stop) -> (Family, Vec<f64>) {
        let mut family = self.refit(&class, common);
        let is_complete = class.rows.iter().all(|x| !x.is_nan());
        for _ in 1..FITS {
            if stop.is_requested() {
                break;
            }
            let before = class.assigned.clone();
            self.assign(&mut class, &family);
            if is_complete && class.assigned == before {
                break;
            }
            self.fill(&mut class, &family);
            family = self.refit(&class, common);
        }
        let mut sizes = vec![1.0; self.each];
        class.assigned.iter().for_each(|&d| sizes[d] += 1.0);
        (family, sizes)
    }

    fn refit(&self, class: &ClassRows, common: &[f64]) -> Family {
        let (g, m) = (self.numbers.len(), self.each);
        let rank = g.saturating_sub(1).clamp(1, MAX_RANK);
        let means = self.means(class);
        let products = self.products(class, &means);
        let mut of_class = Products::new(g);
        products.iter().for_each(|own| of_class.add(own));
        let of_class = of_class.covariance(common, COMMON_ROWS);
        let mut family = Family::new(self.kinds, m);
        let mut loadings = vec![0.0; self.kinds.len() * rank * m];
        for (d, own) in products.iter().enumerate() {
            let mut covariance = own.covariance(&of_class, COMMON_ROWS);
            for (at, c) in covariance.iter_mut().enumerate() {
                *c = if at / g == at % g {
                    *c + self.floor
                } else {
                    (1.0 - self.floor) * *c
                };
            }
            let Analysis {
                loadings: found,
                own,
            } = factor_analysis(&covariance, g, rank, self.floor / 4.0);
            for (i, &s) in self.numbers.iter().enumerate() {
                if let Coordinate::Gaussian { mean, log_sigma } = &mut family.coordinates[s] {
                    mean[d] = means[d * g + i] as f32;
                    log_sigma[d] = (0.5 * own[i].ln()) as f32;
                }
                for r in 0..rank {
                    loadings[(s * rank + r) * m + d] = found[i * rank + r] as f32;
                }
            }
        }
        family.factors = Some(Factors { rank, loadings });
        self.count_categories(class, &mut family);
        family
    }

    /// Logarithms of counts of categories, to which those of the class count as one row.
    fn count_categories(&self, class: &ClassRows, family: &mut Family) {
        const LEAST: f64 = 0.01; // no value is impossible
        let m = self.each;
        for (s, coordinate) in family.coordinates.iter_mut().enumerate() {
            let Coordinate::Discrete { logits } = coordinate else {
                continue;
            };
            let values = logits.len() / m;
            let (mut whole, mut own) = (vec![LEAST; values], vec![0.0; logits.len()]);
            for (row, &d) in class
                .rows
                .chunks_exact(self.kinds.len())
                .zip(&class.assigned)
            {
                if !row[s].is_nan() {
                    whole[row[s] as usize] += 1.0;
                    own[row[s] as usize * m + d] += 1.0;
                }
            }
            let total: f64 = whole.iter().sum();
            for (at, logit) in logits.iter_mut().enumerate() {
                *logit = (own[at] + whole[at / m] / total).ln() as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Rows;
    use crate::queries::Predictor;
    use crate::structure::Structure;

    /// Two classes with the same means and variances: in one, x₂ follows x₁, in the other −x₁. A tenth of the cells is missing.
    fn crossed(rows: usize) -> (Vec<f32>, Vec<Option<usize>>) {
        let mut random = Stream::new(6, Purpose::Masks, 0, 0);
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let (class, x) = (row % 2, random.normal());
            let sign = if class == 0 { 1.0 } else { -1.0 };
            let cells = [x, sign * x + 0.1 * random.normal(), random.normal()];
            let cell = |x: f64| {
                if random.chance(0.1) {
                    f32::NAN
                } else {
                    x as f32
                }
            };
            values.extend(cells.map(cell));
            labels.push(Some(class));
        }
        (values, labels)
    }

    #[test]
    fn what_follows_from_another_number_is_learned() {
        let (values, labels) = crossed(400);
        let structure = Structure::table(&[Kind::Gaussian; 3])
            .components(2)
            .channels([2])
            .classes(2)
            .build()
            .unwrap();
        let like = Model::random(structure, 1.0, 1);
        let data = Data::new(Rows::new(&values, 3).unwrap(), &labels);
        let model = correlated_clusters(&like, &data, &LeafStart::default(), (4, 0.02), 1).unwrap();
        model.check().unwrap();
        assert_eq!(
            Model::from_bytes(&model.to_bytes().unwrap()).unwrap(),
            model
        );
        let mut predictor = Predictor::new(model).unwrap();
        let asked = [1.5, 1.5, 0.0, 1.5, -1.5, 0.0, f32::NAN, 1.5, 0.0];
        let asked = Rows::new(&asked, 3).unwrap();
        let posterior = predictor.posterior(asked).unwrap();
        assert!(
            posterior[(0, 0)] > 0.99 && posterior[(1, 1)] > 0.99,
            "{posterior:?}"
        );
        let filled = predictor.impute_mean(asked, Some(1)).unwrap();
        assert!((filled.mean[(2, 0)] + 1.5).abs() < 0.1, "{filled:?}");
        assert!(filled.variance[(2, 0)] < 0.1, "{filled:?}");
    }

    const KINDS: [Kind; 4] = [
        Kind::Gaussian,
        Kind::Categorical(3),
        Kind::Gaussian,
        Kind::Gaussian,
    ];
    const HOLE: f32 = f32::NAN;
    type Covariance = [[f64; 3]; 3];

    /// Two clusters of three numbers and a category.
    fn two() -> Clusters<'static> {
        Clusters {
            kinds: &KINDS,
            numbers: vec![0, 2, 3],
            each: 2,
            floor: 0.04,
        }
    }

    /// Their leaves, with two factors, and the dense means and covariances of the numbers.
    fn leaves() -> (Family, [[f64; 3]; 2], [Covariance; 2]) {
        let means = [[0.5, -1.0, 2.0], [-0.3, 0.7, 0.1]];
        let own = [[0.5, 0.2, 0.9], [1.1, 0.4, 0.3]];
        let loading = [
            [[0.9, 0.2], [-0.7, 0.5], [0.4, -0.6]],
            [[0.3, -0.8], [0.6, 0.6], [-0.5, 0.1]],
        ];
        let mut family = Family::new(&KINDS, 2);
        let mut loadings = vec![0.0; 4 * 2 * 2];
        let mut covariances = [[[0.0; 3]; 3]; 2];
        for d in 0..2 {
            for (i, s) in [0, 2, 3].into_iter().enumerate() {
                if let Coordinate::Gaussian { mean, log_sigma } = &mut family.coordinates[s] {
                    mean[d] = means[d][i] as f32;
                    log_sigma[d] = (0.5 * f64::ln(own[d][i])) as f32;
                }
                (0..2).for_each(|r| loadings[(s * 2 + r) * 2 + d] = loading[d][i][r] as f32);
                for j in 0..3 {
                    let shared = (0..2).map(|r| loading[d][i][r] * loading[d][j][r]);
                    covariances[d][i][j] = shared.sum::<f64>() + f64::from(i == j) * own[d][i];
                }
            }
        }
        family.factors = Some(Factors { rank: 2, loadings });
        (family, means, covariances)
    }

    fn class_of(rows: &[f32], assigned: &[usize]) -> ClassRows {
        ClassRows {
            rows: rows.to_vec(),
            assigned: assigned.to_vec(),
            filled: rows.to_vec(),
            apart: vec![vec![0.0; 9]; 2],
        }
    }

    fn assert_close(ours: &[f64], exact: &[f64]) {
        assert_eq!(ours.len(), exact.len());
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5 * b.abs().max(1.0);
        assert!(ours.iter().zip(exact).all(near), "{ours:?} {exact:?}");
    }

    /// Against the conditional mean and covariance by formula: μ₂ + Σ₂₁ Σ₁₁⁻¹ (x₁ − μ₁) and Σ₂₂ − Σ₂₁ Σ₁₁⁻¹ Σ₁₂.
    #[test]
    fn missing_cells_count_with_their_conditional_mean_and_covariance() {
        let (family, means, c) = leaves();
        let rows = [
            [0.3, 1.0, 1.5, -0.2],   // nothing is missing
            [1.7, HOLE, HOLE, HOLE], // the last two numbers, given the first
            [HOLE, 2.0, 0.4, 0.9],   // the first, given two, in the other cluster
            [HOLE, 0.0, -1.0, 2.0],  // the same once more
            [0.3, HOLE, 1.5, -0.2],  // a category alone
        ];
        let mut class = class_of(&rows.concat(), &[0, 0, 1, 1, 0]);
        two().fill(&mut class, &family);
        two().fill(&mut class, &family); // afresh, not on top
        let [a, b] = [c[0], c[1]];
        let slope = |i: usize| a[i][0] / a[0][0];
        let mean = |i: usize| means[0][i] + slope(i) * (1.7 - means[0][0]);
        let filled = |at: usize| f64::from(class.filled[at]);
        assert_close(&[filled(6), filled(7)], &[mean(1), mean(2)]);
        let left = |i: usize, j: usize| a[i][j] - slope(i) * a[0][j];
        let exact = [
            0.0,
            0.0,
            0.0,
            0.0,
            left(1, 1),
            left(1, 2),
            0.0,
            left(2, 1),
            left(2, 2),
        ];
        assert_close(&class.apart[0], &exact);
        let determinant = b[1][1] * b[2][2] - b[1][2] * b[2][1];
        let weights = [
            (b[0][1] * b[2][2] - b[0][2] * b[1][2]) / determinant,
            (b[0][2] * b[1][1] - b[0][1] * b[1][2]) / determinant,
        ];
        for (row, x) in [(2, [0.4, 0.9]), (3, [-1.0, 2.0])] {
            let apart = weights[0] * (x[0] - means[1][1]) + weights[1] * (x[1] - means[1][2]);
            assert_close(&[filled(row * 4)], &[means[1][0] + apart]);
        }
        let left = b[0][0] - weights[0] * b[0][1] - weights[1] * b[0][2];
        assert_close(&class.apart[1][..1], &[2.0 * left]);
        assert!(class.apart[1][1..].iter().all(|&c| c == 0.0));
        let seen = class.rows.iter().zip(&class.filled);
        assert!(seen.clone().all(|(x, filled)| x.is_nan() || x == filled));
        assert!(class.filled[5].is_nan() && class.filled[17].is_nan()); // categories stay missing
    }

    #[test]
    fn means_and_products_of_clusters() {
        let rows = [
            [1.0, 0.0, 2.0, 3.0],
            [3.0, 1.0, -2.0, 5.0],
            [8.0, 2.0, 6.0, -2.0],
        ];
        let mut class = class_of(&rows.concat(), &[0, 0, 1]);
        class.apart[0][4] = 0.5;
        class.apart[1][8] = 0.25;
        let means = two().means(&class);
        // The class's means 4, 2, 2 count as one row.
        let exact = [8.0 / 3.0, 2.0 / 3.0, 10.0 / 3.0, 6.0, 4.0, 0.0];
        assert_close(&means, &exact);
        let products = two().products(&class, &means);
        assert_eq!((products[0].rows, products[1].rows), (2.0, 1.0));
        let mut sums = vec![0.0; 9];
        for row in [[1.0, 2.0, 3.0], [3.0, -2.0, 5.0]] {
            for i in 0..3 {
                (0..3).for_each(|j| sums[i * 3 + j] += (row[i] - means[i]) * (row[j] - means[j]));
            }
        }
        sums[4] += 0.5;
        assert_close(&products[0].sums, &sums);
        assert_close(
            &products[1].sums,
            &[4.0, 4.0, -4.0, 4.0, 4.0, -4.0, -4.0, -4.0, 4.25],
        );
        let mut both = products[0].clone();
        both.add(&products[1]);
        assert_eq!(both.rows, 3.0);
        let sum: Vec<f64> = sums
            .iter()
            .zip(&products[1].sums)
            .map(|(a, b)| a + b)
            .collect();
        assert_close(&both.sums, &sum);
        let half: Vec<f64> = sum.iter().map(|sum| (sum + 2.0 * 0.7) / 5.0).collect();
        assert_close(&both.covariance(&[0.7; 9], 2.0), &half);
        assert_close(&Products::new(3).covariance(&[0.7; 9], 0.5), &[0.35; 9]); // of less than one row
    }

    /// A factor describes two numbers, nearly after some rounds: what is on the diagonal and beside it is that of the formula.
    #[test]
    fn covariances_are_drawn_to_the_class_and_to_all() {
        let clusters = Clusters {
            kinds: &[Kind::Gaussian; 2],
            numbers: vec![0, 1],
            each: 2,
            floor: 0.04,
        };
        let rows = [
            [1.0, 0.9],
            [-1.0, -1.2],
            [0.4, 0.7],
            [2.0, -1.0],
            [3.0, -3.0],
        ];
        let class = ClassRows {
            apart: vec![vec![0.0; 4]; 2],
            ..class_of(&rows.concat(), &[0, 0, 0, 1, 1])
        };
        let common = [1.2, 0.3, 0.3, 0.8];
        let family = clusters.refit(&class, &common);
        let means = clusters.means(&class);
        let products = clusters.products(&class, &means);
        let Factors { rank, loadings } = family.factors.as_ref().unwrap();
        assert_eq!(*rank, 1);
        for d in 0..2 {
            for (i, j) in [(0, 0), (0, 1), (1, 1)] {
                let at = i * 2 + j;
                let sum = products[0].sums[at] + products[1].sums[at];
                let of_class = (sum + COMMON_ROWS * common[at]) / (5.0 + COMMON_ROWS);
                let own = products[d].sums[at] + COMMON_ROWS * of_class;
                let own = own / (products[d].rows + COMMON_ROWS);
                let exact = if i == j { own + 0.04 } else { 0.96 * own };
                let mut ours = f64::from(loadings[i * 2 + d] * loadings[j * 2 + d]);
                if let (true, Coordinate::Gaussian { log_sigma, mean }) =
                    (i == j, &family.coordinates[i])
                {
                    ours += f64::from(2.0 * log_sigma[d]).exp();
                    assert_close(&[mean[d].into()], &[means[d * 2 + i]]);
                }
                assert!((ours - exact).abs() < 0.01, "{d} {i} {j}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn categories_are_counted() {
        let rows = [
            [0.0, 2.0, 0.0, 0.0],
            [0.0, 2.0, 0.0, 0.0],
            [0.0, HOLE, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
        ];
        let mut family = Family::new(&KINDS, 2);
        two().count_categories(&class_of(&rows.concat(), &[0, 1, 0, 0]), &mut family);
        let Coordinate::Discrete { logits } = &family.coordinates[1] else {
            unreachable!()
        };
        let whole = [0.01, 1.01, 2.01].map(|count| count / 3.03);
        let own = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0]; // (values, clusters)
        let exact = (0..6).map(|at| f64::ln(own[at] + whole[at / 2]));
        let ours: Vec<f64> = logits.iter().map(|&x| x.into()).collect();
        assert_close(&ours, &exact.collect::<Vec<_>>());
    }

    #[test]
    fn rows_without_anything_are_left_out() {
        let mut rows = vec![1.0, HOLE, HOLE, HOLE, HOLE, 2.0];
        retain_seen(&mut rows, 2);
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[0], rows[3]), (1.0, 2.0));
    }

    /// Eight rows of a class for each cluster; rows without a label count where there is one class.
    #[test]
    fn few_rows_have_few_clusters() {
        let values = vec![0.5; 100];
        let mut labels = vec![Some(0); 70];
        labels.extend([None; 30]);
        let data = Data::new(Rows::new(&values, 1).unwrap(), &labels);
        assert_eq!(clusters_of_class(&data, 2, 9), 4);
        assert_eq!(clusters_of_class(&data, 1, 20), 12);
        assert_eq!(clusters_of_class(&data, 2, 3), 3);
        assert_eq!(clusters_of_class(&data, 50, 3), 1);
    }

    /// One class, no labels: all rows are its own, in the units of the model; categories stay as they are.
    #[test]
    fn it_begins_with_the_rows_in_the_units_of_the_model() {
        let structure = Structure::table(&KINDS)
            .components(2)
            .channels([2])
            .classes(1);
        let mut like = Model::random(structure.build().unwrap(), 1.0, 1);
        like.scaling.offset = vec![1.0, 0.0, -2.0, 0.5];
        like.scaling.scale = vec![0.5, 1.0, 0.25, 2.0];
        let rows = [
            [3.0, 2.0, 6.0, 1.0],
            [HOLE; 4],
            [5.0, 1.0, HOLE, 0.5],
            [1.0, 0.0, -2.0, 0.0],
        ];
        let rows = rows.concat();
        let data = Data::new(Rows::new(&rows, 4).unwrap(), &[None; 4]);
        let class = two().begin((&like, &data), 0, &LeafStart::default(), 1);
        let exact = [1.0, 2.0, 2.0, 1.0, 2.0, 1.0, HOLE, 0.0, 0.0, 0.0, 0.0, -1.0];
        let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        assert!(class.rows.iter().zip(&exact).all(same), "{:?}", class.rows);
        assert_eq!((class.rows.len(), class.assigned.len()), (12, 3));
        assert!(!class.filled[6].is_nan() && class.filled[0] == 1.0);
    }

    /// Rows move to the cluster that suits them, whose size is counted.
    #[test]
    fn rounds_move_rows_and_count_them() {
        let rows: Vec<f32> = (0..20)
            .flat_map(|i| {
                let at = if i < 13 { -3.0 } else { 3.0 };
                [
                    at + (i as f32).sin() * 0.3,
                    0.0,
                    at + (i as f32).cos() * 0.3,
                    (i as f32 * 1.7).sin(),
                ]
            })
            .collect();
        let mut assigned = vec![0; 20];
        assigned[11..].fill(1); // two of them are wrong
        let common = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let (family, sizes) = two().fit(class_of(&rows, &assigned), &common, &Stop::default());
        assert_eq!(sizes, [14.0, 8.0]);
        let Coordinate::Gaussian { mean, .. } = &family.coordinates[0] else {
            unreachable!()
        };
        assert!(
            (mean[0] + 3.0).abs() < 0.3 && (mean[1] - 2.6).abs() < 0.5,
            "{mean:?}"
        );
    }
}
