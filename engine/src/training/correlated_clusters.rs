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
}
