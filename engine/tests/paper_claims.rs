//! Claims of the paper's appendices as checks that run: imputation can halve the accuracy, a sparse prior tensor is a
//! Gaussian mixture, and a deep tree needs exponentially many channels as a shallow one.

use sumout::internals::{Coordinate, Mixing};
use sumout::random::{Purpose, Stream};
use sumout::reference::Reference;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::{Model, Predictor, Rows};

const EPSILON: f64 = 1e-4;

/// The paper's table: weights of (x₁, x₂, y), which sum to 6.
const TABLE: [((f32, f32, usize), f64); 8] = [
    ((0.0, 0.0, 0), 1.0 - EPSILON),
    ((0.0, 1.0, 0), 1.0),
    ((1.0, 0.0, 0), 1.0 - EPSILON),
    ((1.0, 1.0, 0), 1.0),
    ((0.0, 0.0, 1), 0.0),
    ((0.0, 1.0, 1), 1.0 + EPSILON),
    ((1.0, 0.0, 1), 0.0),
    ((1.0, 1.0, 1), 1.0 + EPSILON),
];

/// That table as a TMM: leaves that are certain, and one channel a class, because x₁ and x₂ are independent given y.
fn counter_example() -> Model {
    let structure = Structure::table(&[Kind::Bernoulli; 2])
        .window(2)
        .components(2)
        .channels([2])
        .classes(2)
        .build()
        .unwrap();
    let mut model = Model::random(structure.with_identity_classes().unwrap(), 0.0, 0);
    let tree = &mut model.weights.trees[0];
    for family in &mut tree.families {
        let never = f32::NEG_INFINITY;
        family.coordinates[0] = Coordinate::Discrete {
            logits: vec![0.0, never, never, 0.0],
        }; // component d is value d
    }
    let [x1, x2_given_0, x2_given_1] = [[0.5, 0.5], [1.0 - EPSILON, 1.0], [0.0, 1.0]];
    tree.levels[0] = Mixing::from_weights(2, 2, 2, &[x1, x1, x2_given_0, x2_given_1].concat());
    model.set_prior(&[2.0 - EPSILON, 1.0 + EPSILON]).unwrap();
    model
}

/// The probability that a rule which sees x₁ alone names the class.
fn accuracy(rule: &mut dyn FnMut(f32) -> usize) -> f64 {
    let total: f64 = TABLE.iter().map(|(_, weight)| weight).sum();
    TABLE
        .iter()
        .filter(|((x1, _, y), _)| rule(*x1) == *y)
        .map(|(_, weight)| weight)
        .sum::<f64>()
        / total
}

#[test]
fn the_counter_example_is_the_papers_table() {
    let mut model = Predictor::new(counter_example()).unwrap();
    for ((x1, x2, y), weight) in TABLE {
        let log_joint = model
            .log_likelihood(model.model().rows(&[x1, x2]).unwrap())
            .unwrap()
            .into_vec()[y]
            + model.model().log_prior[y];
        assert!(
            (log_joint.exp() - weight / 6.0).abs() < 1e-7,
            "{x1} {x2} {y}: {}",
            log_joint.exp()
        );
    }
}

/// Claim on the sub-optimality of imputation: x₁ is seen, x₂ never.
#[test]
fn marginalising_is_right_twice_as_often_as_imputing() {
    let mut model = Predictor::new(counter_example()).unwrap();
    let mut predict = |row: [f32; 2]| model.predict(model.model().rows(&row).unwrap()).unwrap()[0];
    let marginalised = accuracy(&mut |x1| predict([x1, f32::NAN]));
    assert_eq!(format!("{:.3}", 100.0 * marginalised), "66.663");

    // unconditional: the most likely completion, then the Bayes predictor of complete rows
    let imputed = accuracy(&mut |x1| {
        let log_prob = [0.0, 1.0].map(|x2| {
            model
                .log_marginal(model.model().rows(&[x1, x2]).unwrap())
                .unwrap()[0]
        });
        let x2 = f32::from(log_prob[1] > log_prob[0]);
        assert_eq!(
            model
                .impute_mode(model.model().rows(&[x1, f32::NAN]).unwrap(), None)
                .unwrap()
                .into_vec(),
            [x1, x2]
        );
        model
            .predict(model.model().rows(&[x1, x2]).unwrap())
            .unwrap()[0]
    });
    assert_eq!(format!("{:.3}", 100.0 * imputed), "33.337");

    // conditional: a completion for each class
    let imputed = accuracy(&mut |x1| {
        let mut score = |y: usize| {
            let completed = model
                .impute_mode(model.model().rows(&[x1, f32::NAN]).unwrap(), Some(y))
                .unwrap()
                .into_vec();
            model
                .posterior(model.model().rows(&completed).unwrap())
                .unwrap()
                .into_vec()[y]
        };
        usize::from(score(1) > score(0))
    });
    assert_eq!(format!("{:.3}", 100.0 * imputed), "33.337");
}

/// Appendix "TMMs with sparsity constraints can represent Gaussian mixture models": M = N·K components, and
/// `P(d₁…d_N) = w_k` where every `d_i = N·k + i`, else 0.
#[test]
fn a_sparse_prior_tensor_is_a_gaussian_mixture() {
    let (n, s, k) = (5, 2, 3);
    let structure = Structure::sequence(n)
        .channels(s)
        .components(n * k)
        .level(usize::MAX, k, Sharing::Own)
        .build()
        .unwrap();
    let mut model = Model::random(structure, 0.0, 0);
    let mut stream = Stream::new(1, Purpose::Weights, 0, 0);
    let mut draw =
        |length: usize| -> Vec<f32> { (0..length).map(|_| stream.normal() as f32).collect() };
    let (mean, log_sigma) = ([draw(n * k), draw(n * k)], [draw(n * k), draw(n * k)]);
    let w = [0.2, 0.5, 0.3];
    let tree = &mut model.weights.trees[0];
    for coordinate in 0..s {
        let (mean, log_sigma) = (mean[coordinate].clone(), log_sigma[coordinate].clone());
        tree.families[0].coordinates[coordinate] = Coordinate::Gaussian { mean, log_sigma };
    }
    let is_there = |i: usize, z: usize, d: usize| {
        if d == n * z + i {
            0.0
        } else {
            f32::NEG_INFINITY
        }
    };
    tree.levels[0] = Mixing::from_logits(n, k, n * k, is_there);
    model.weights.classes = Mixing::from_weights(1, 1, k, &w);

    // Σ_k w_k Π over observed (i, coordinate) of N(x; μ, σ²), in plain probabilities
    let mixture = |row: &[f32]| -> f64 {
        let component = |z: usize| {
            let density = |(index, &x): (usize, &f32)| {
                let (i, coordinate) = (index / s, index % s);
                let (mean, sigma) = (
                    mean[coordinate][n * z + i],
                    f64::from(log_sigma[coordinate][n * z + i]).exp(),
                );
                let z = (f64::from(x) - f64::from(mean)) / sigma;
                (-0.5 * z * z).exp() / (sigma * std::f64::consts::TAU.sqrt())
            };
            w[z] * row
                .iter()
                .enumerate()
                .filter(|(_, x)| !x.is_nan())
                .map(density)
                .product::<f64>()
        };
        (0..k).map(component).sum::<f64>().ln()
    };
    let mut rows = draw(40 * n * s);
    rows.iter_mut()
        .enumerate()
        .filter(|(i, _)| i / (n * s) >= 20 && i % 3 == 0)
        .for_each(|(_, x)| *x = f32::NAN);
    let ours = Predictor::new(model.clone())
        .unwrap()
        .log_marginal(model.rows(&rows).unwrap())
        .unwrap();
    let reference = Reference::new(&model.structure, &model.weights);
    for (row, fast) in rows.chunks(n * s).zip(ours) {
        let exact = reference.scores(row)[0];
        assert!(
            (exact - mixture(row)).abs() < 1e-6,
            "{exact} {}",
            mixture(row)
        );
        assert!(
            (fast - mixture(row)).abs() < 1e-4,
            "{fast} {}",
            mixture(row)
        );
    }
}

/// `P(d₁…d_N)` of class 0, all M^N entries with d₁ slowest: the tree in f64 on leaves that are 1 for d_i and 0 for others.
fn prior_tensor(model: &Model) -> Vec<f64> {
    let (tree, reference) = (
        &model.structure.trees[0],
        Reference::new(&model.structure, &model.weights),
    );
    let (n, m) = (tree.positions.len(), tree.components);
    let dot = |log_row: &[f64], phi: &[f64]| {
        log_row
            .iter()
            .zip(phi)
            .map(|(log, phi)| log.exp() * phi)
            .sum::<f64>()
    };
    let entry = |index: usize| {
        let digit = |i: usize| index / m.pow((n - 1 - i) as u32) % m;
        let indicator = |i: usize| (0..m).map(|d| f64::from(d == digit(i))).collect();
        let mut phi: Vec<Vec<f64>> = (0..n).map(indicator).collect();
        for (level, matrices) in tree.levels.iter().zip(&reference.log_w[0]) {
            let mix = |j: usize| {
                matrices[level.weight_of[j] as usize]
                    .iter()
                    .map(|row| dot(row, &phi[j]))
                    .collect()
            };
            let psi: Vec<Vec<f64>> = (0..phi.len()).map(mix).collect();
            let product =
                |c: usize, children: &[u32]| children.iter().map(|&j| psi[j as usize][c]).product();
            let join =
                |children: &Vec<u32>| (0..level.channels).map(|c| product(c, children)).collect();
            phi = level.children.iter().map(join).collect();
        }
        dot(&reference.log_w_top[0], &phi[0])
    };
    (0..m.pow(n as u32)).map(entry).collect()
}

/// [A]: odd modes are rows and even modes columns; M^(N/2) columns of M^(N/2) numbers.
fn matricised(tensor: &[f64], n: usize, m: usize) -> Vec<Vec<f64>> {
    let side = m.pow(n as u32 / 2);
    let mut columns = vec![vec![0.0; side]; side];
    for (index, &value) in tensor.iter().enumerate() {
        let (mut row, mut column) = (0, 0);
        for i in 0..n {
            let digit = index / m.pow((n - 1 - i) as u32) % m;
            let to = if i % 2 == 0 { &mut row } else { &mut column };
            *to = *to * m + digit;
        }
        columns[column][row] = value;
    }
    columns
}

/// Singular values, largest first, by one-sided Jacobi: pairs of columns are rotated until all are orthogonal.
fn singular_values(mut columns: Vec<Vec<f64>>) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut turned = true;
    while turned {
        turned = false;
        for q in 1..columns.len() {
            for p in 0..q {
                let (left, right) = columns.split_at_mut(q);
                let (x, y) = (&mut left[p], &mut right[0]);
                let (xx, yy, xy) = (dot(x, x), dot(y, y), dot(x, y));
                if xy.abs() <= 1e-15 * (xx * yy).sqrt() || xy.abs() < 1e-60 {
                    continue;
                }
                turned = true;
                let zeta = (yy - xx) / (2.0 * xy);
                let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = cosine * tangent;
                for (x, y) in x.iter_mut().zip(y.iter_mut()) {
                    (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                }
            }
        }
    }
    let mut values: Vec<f64> = columns
        .iter()
        .map(|column| dot(column, column).sqrt())
        .collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// Singular values above 10⁻¹⁴ of the largest. The entries carry errors of about 10⁻¹⁶; singular values that are zero
/// in exact arithmetic came out below 3·10⁻¹⁶, and those of the random trees below are above 2·10⁻¹⁴.
fn rank(values: &[f64]) -> usize {
    values
        .iter()
        .filter(|&&value| value > 1e-14 * values[0])
        .count()
}

/// A random tree over 8 positions whose leaves say their component; levels are (window, channels).
fn random_tree(m: usize, levels: &[(usize, usize)], sharing: Sharing, seed: u64) -> Model {
    let level = |&(window, channels): &(usize, usize)| LevelSpec {
        window: (1, window),
        channels,
        sharing,
    };
    let spec = ImageSpec {
        kind: Kind::Categorical(m as u32),
        levels: levels.iter().map(level).collect(),
        patch: (1, 1),
        components: m,
        ..ImageSpec::new(1, 8)
    };
    let mut model = Model::random(spec.structure(1).unwrap(), 1.0, seed);
    let certain = |i: usize| {
        if i / m == i % m {
            0.0
        } else {
            f32::NEG_INFINITY
        }
    };
    model.weights.trees[0].families[0].coordinates[0] = Coordinate::Discrete {
        logits: (0..m * m).map(certain).collect(),
    };
    model
}

#[test]
fn singular_values_of_a_known_matrix() {
    let values = singular_values(vec![vec![3.0, 4.0], vec![0.0, 5.0]]);
    assert!(
        (values[0] - 45f64.sqrt()).abs() < 1e-12 && (values[1] - 5f64.sqrt()).abs() < 1e-12,
        "{values:?}"
    );
    assert_eq!(
        rank(&singular_values(vec![vec![1.0, 2.0], vec![2.0, 4.0]])),
        1
    );
}

/// What the rank test looks at is what the engine computes.
#[test]
fn the_prior_tensor_is_a_distribution_and_the_engines() {
    let model = random_tree(2, &[(2, 3), (2, 2), (2, 4)], Sharing::Own, 1);
    let tensor = prior_tensor(&model);
    assert!((tensor.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let rows: Vec<f32> = (0..256)
        .flat_map(|index| (0..8).map(move |i| (index >> (7 - i) & 1) as f32))
        .collect();
    let ours = Predictor::new(model)
        .unwrap()
        .log_likelihood(Rows::new(&rows, 8).unwrap())
        .unwrap()
        .into_vec();
    for (ours, entry) in ours.iter().zip(&tensor) {
        assert!(
            (ours.exp() / entry - 1.0).abs() < 1e-4,
            "{} {entry}",
            ours.exp()
        );
    }
}

/// Theorem on depth efficiency: with r = min(r₀, M), the prior tensor of almost every HT tree over N positions has a
/// matricisation of rank at least r^(N/2), shared or not; a CP model of Z channels has at most Z. So CP needs at least
/// r^(N/2) channels, here 16, for what HT does with 2 or 3.
#[test]
fn depth_is_worth_exponentially_many_channels() {
    for (m, r0) in [(2, 2), (2, 3), (3, 2)] {
        for sharing in [Sharing::Own, Sharing::Shared] {
            for seed in 0..if m == 2 { 10 } else { 2 } {
                let model = random_tree(m, &[(2, r0), (2, 3), (2, 3)], sharing, seed);
                let values = singular_values(matricised(&prior_tensor(&model), 8, m));
                assert!(
                    rank(&values) >= 16,
                    "M={m} r₀={r0} {sharing:?} seed {seed}: {values:?}"
                );
            }
        }
    }
    for (z, seed) in [(1, 0), (2, 1), (4, 2), (7, 3), (15, 4)] {
        for sharing in [Sharing::Own, Sharing::Shared] {
            let model = random_tree(2, &[(8, z)], sharing, seed);
            let values = singular_values(matricised(&prior_tensor(&model), 8, 2));
            assert!(rank(&values) <= z, "Z={z} {sharing:?}: {values:?}");
            assert!(rank(&values) >= z.min(4), "Z={z} {sharing:?}: {values:?}"); // the bound is met, not idle
        }
    }
}
