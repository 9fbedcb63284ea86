//! Leaves with factors: every answer against integrals of the reference's density, training beside them, and the recipe
//! that chooses them.

mod random_models;

use random_models::Draw;
use std::ops::ControlFlow;
use sumout::internals::{Coordinate, Factors};
use sumout::model::ColumnRange;
use sumout::recipes::{Fit, Fitting};
use sumout::reference::Reference;
use sumout::training::{Checkpoint, Data};
use sumout::{Device, Kind, Model, Precision, Predictor, Rows, Settings, Structure, Trainer};

const KINDS: [Kind; 6] = [
    Kind::Gaussian,
    Kind::Gaussian,
    Kind::Categorical(3),
    Kind::Gaussian,
    Kind::Gaussian,
    Kind::Gaussian,
];

/// Two trees over leaves of three columns, all of them with factors.
fn model(seed: u64) -> Model {
    let draw = &mut Draw::new(seed);
    let orders = [
        vec![vec![0, 1, 2], vec![3, 4, 5]],
        vec![vec![5, 2, 0], vec![1, 4, 3]],
    ];
    let structure = Structure::table(&KINDS)
        .trees(orders)
        .window(2)
        .components(9)
        .channels([4])
        .classes(2)
        .build()
        .unwrap();
    let mut weights = random_models::weights(&structure, 1.0, draw);
    for family in weights.trees.iter_mut().flat_map(|tree| &mut tree.families) {
        let (rank, m) = (draw.from(1, 3), family.components);
        for coordinate in &mut family.coordinates {
            if let Coordinate::Gaussian { log_sigma, .. } = coordinate {
                log_sigma
                    .iter_mut()
                    .for_each(|log| *log = log.clamp(-1.5, 0.3));
            }
        }
        let mut loadings = Vec::new();
        for coordinate in &family.coordinates {
            let is_normal = matches!(coordinate, Coordinate::Gaussian { .. });
            let mut loading = || {
                if is_normal {
                    0.7 * draw.0.normal() as f32
                } else {
                    0.0
                }
            };
            loadings.extend((0..rank * m).map(|_| loading()));
        }
        family.factors = Some(Factors { rank, loadings });
    }
    let model = Model {
        weights,
        ..Model::random(structure, 0.0, 0)
    };
    model.check().unwrap();
    model
}

/// A row with holes.
fn row(draw: &mut Draw, missing: f64) -> Vec<f32> {
    let cell = |kind: &Kind| match kind {
        _ if draw.0.chance(missing) => f32::NAN,
        Kind::Gaussian => draw.0.normal() as f32,
        _ => draw.0.below(3) as f32,
    };
    KINDS.iter().map(cell).collect()
}

/// P(x_o), by the reference.
fn density(model: &Model, row: &[f32]) -> f64 {
    let scores = Reference::new(&model.structure, &model.weights).scores(row);
    let both = scores.iter().zip(&model.log_prior);
    both.map(|(score, prior)| (score + prior).exp()).sum()
}

fn close(ours: f64, exact: f64, by: f64) {
    assert!(
        (ours - exact).abs() <= by * exact.abs().max(1.0),
        "{ours} against {exact}"
    );
}

#[test]
fn scores_are_those_of_the_reference() {
    for seed in 0..20 {
        let (model, draw) = (model(seed), &mut Draw::new(100 + seed));
        let mut predictor = Predictor::new(model.clone()).unwrap();
        for missing in [0.0, 0.3, 0.7, 1.0] {
            let row = row(draw, missing);
            let rows = Rows::new(&row, 6).unwrap();
            let exact = Reference::new(&model.structure, &model.weights).scores(&row);
            let ours = predictor.log_likelihood(rows).unwrap();
            (0..2).for_each(|y| close(ours[(0, y)], exact[y], 1e-5));
        }
        let far: Vec<f32> = row(draw, 0.2)
            .iter()
            .map(|x| if *x < 0.0 { x * 3e3 } else { *x })
            .collect();
        let exact = Reference::new(&model.structure, &model.weights).scores(&far);
        let ours = predictor
            .log_likelihood(Rows::new(&far, 6).unwrap())
            .unwrap();
        (0..2).for_each(|y| close(ours[(0, y)], exact[y], 1e-5));
    }
}

/// Mean, variance and median of a missing number, by integration over it, in rows that have other holes too.
#[test]
fn answers_are_integrals() {
    for seed in 0..6 {
        let (model, draw) = (model(seed), &mut Draw::new(200 + seed));
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let mut row = row(draw, 0.3);
        row[4] = f32::NAN;
        let rows = Rows::new(&row, 6).unwrap();
        let imputed = predictor.impute_mean(rows, None).unwrap();
        let median = predictor
            .impute_quantiles(rows, &[0.5], None)
            .unwrap()
            .remove(0);
        let mixtures = predictor.mixtures(rows, 4, None).unwrap();
        let (mut sums, mut below, step) = ([0.0; 3], 0.0, 0.02);
        for i in -2_000..2_000 {
            let x = (f64::from(i) + 0.5) * step;
            let mut filled = row.clone();
            filled[4] = x as f32;
            let weight = density(&model, &filled) * step;
            (0..3).for_each(|p| sums[p] += weight * x.powi(p as i32));
            below += if x < f64::from(median[(0, 4)]) {
                weight
            } else {
                0.0
            };
        }
        close(sums[0], density(&model, &row), 1e-4);
        let mean = sums[1] / sums[0];
        let variance = sums[2] / sums[0] - mean * mean;
        close(imputed.mean[(0, 4)].into(), mean, 1e-3);
        close(imputed.variance[(0, 4)].into(), variance, 1e-3);
        close(below / sums[0], 0.5, 0.01);
        let mixture = mixtures.row(0);
        close(mixture.mean(), mean, 1e-3);
        close(mixture.variance(), variance, 1e-3);
        close(mixture.cdf(median[(0, 4)].into()), 0.5, 1e-5);
    }
}

/// What is drawn for two missing numbers of a leaf has their means and their covariance.
#[test]
fn draws_depend_on_each_other() {
    const COUNT: usize = 20_000;
    for seed in 0..3 {
        let (model, draw) = (model(seed), &mut Draw::new(300 + seed));
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let mut row = row(draw, 0.2);
        (row[3], row[4]) = (f32::NAN, f32::NAN);
        let many = row.repeat(COUNT);
        let drawn = predictor
            .sample_given(Rows::new(&many, 6).unwrap(), None, 1)
            .unwrap();
        let number = |b: usize, column: usize| f64::from(drawn[(b, column)]);
        let mean = |of: &dyn Fn(usize) -> f64| (0..COUNT).map(of).sum::<f64>() / COUNT as f64;
        let (mut sums, step) = ([0.0; 4], 0.2);
        for (i, j) in (-100..100).flat_map(|i| (-100..100).map(move |j| (i, j))) {
            let (x, y) = (f64::from(i) * step, f64::from(j) * step);
            let mut filled = row.clone();
            (filled[3], filled[4]) = (x as f32, y as f32);
            let weight = density(&model, &filled);
            let terms = [1.0, x, y, x * y];
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += weight * term);
        }
        let spread = |column: usize| mean(&|b| number(b, column).powi(2)).sqrt();
        let by = 5.0 * spread(3).max(spread(4)).max(1.0) / (COUNT as f64).sqrt();
        assert!((mean(&|b| number(b, 3)) - sums[1] / sums[0]).abs() < by);
        assert!((mean(&|b| number(b, 4)) - sums[2] / sums[0]).abs() < by);
        let product = mean(&|b| number(b, 3) * number(b, 4));
        let by = 3.0 * by * spread(3).max(spread(4));
        assert!(
            (product - sums[3] / sums[0]).abs() < by,
            "{product} {sums:?}"
        );
    }
}

/// The most likely completion is at least as likely, with its hidden states, as other completions can be.
#[test]
fn the_mode_is_kept_by_its_neighbours() {
    for seed in 0..10 {
        let (model, draw) = (model(seed), &mut Draw::new(400 + seed));
        let mut predictor = Predictor::new(model).unwrap();
        let row = row(draw, 0.5);
        let filled = predictor
            .impute_mode(Rows::new(&row, 6).unwrap(), None)
            .unwrap();
        // With one number taken out again, the mode of the rest leads back to it.
        for column in (0..6).filter(|&column| row[column].is_nan()) {
            let mut again = filled.row(0).to_vec();
            again[column] = f32::NAN;
            let back = predictor
                .impute_mode(Rows::new(&again, 6).unwrap(), None)
                .unwrap();
            close(back[(0, column)].into(), filled[(0, column)].into(), 1e-4);
        }
    }
}

#[test]
fn a_file_keeps_factors_and_refuses_wrong_ones() {
    let model = model(1);
    let bytes = model.to_bytes().unwrap();
    let read = Model::from_bytes(&bytes).unwrap();
    assert_eq!(read, model);
    assert_eq!(read.to_bytes().unwrap(), bytes);
    for (at, value) in [(0, f32::NAN), (0, 1e30), (usize::MAX, 1.0)] {
        let mut wrong = model.clone();
        let family = &mut wrong.weights.trees[0].families[0];
        let factors = family.factors.as_mut().unwrap();
        let at = at.min(factors.loadings.len() - 1); // the last is of the category
        factors.loadings[at] = value;
        assert!(wrong.check().is_err(), "{at} {value}");
    }
    let mut wrong = model.clone(); // one factor more than there are coordinates
    let family = &mut wrong.weights.trees[0].families[0];
    let loadings = vec![0.0; 4 * family.components * family.coordinates.len()];
    family.factors = Some(Factors { rank: 4, loadings });
    let error = wrong.check().unwrap_err().to_string();
    assert!(error.contains("expected 1 to 3"), "{error}");
    let error = Predictor::new(model)
        .unwrap()
        .use_device(Device::Cuda(0), Precision::Tf32);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("computed on the processor only"), "{error}");
}

/// Two classes with the same means and variances: x₁ follows x₀ in one, and −x₀ in the other.
fn crossed(count: usize) -> (Vec<f32>, Vec<Option<usize>>) {
    let (draw, mut values, mut labels) = (Draw::new(5), Vec::new(), Vec::new());
    let mut random = draw.0;
    for row in 0..count {
        let (sign, x) = ([1.0, -1.0][row % 2], random.normal());
        let cells = [x, sign * x + 0.2 * random.normal(), random.normal()];
        let mut cell = |x: f64| {
            if random.chance(0.1) {
                f32::NAN
            } else {
                x as f32
            }
        };
        values.extend(cells.map(&mut cell));
        labels.push(Some(row % 2));
    }
    (values, labels)
}

/// Training moves the matrices and leaves the factors as they are.
#[test]
fn training_leaves_factors_alone() {
    let (values, labels) = crossed(200);
    let structure = Structure::table(&[Kind::Gaussian; 3])
        .groups([vec![0, 1, 2]])
        .components(4)
        .channels([2])
        .classes(2)
        .build()
        .unwrap();
    let mut model = Model::random(structure, 1.0, 3);
    let family = &mut model.weights.trees[0].families[0];
    let loadings = (0..12)
        .map(|i| [0.9f32, -0.9][i / 4 % 2 * (i % 2)])
        .collect();
    family.factors = Some(Factors { rank: 1, loadings });
    let settings = Settings {
        steps: 60,
        rate: 0.1,
        ..Settings::default()
    };
    let data = Data::new(Rows::new(&values, 3).unwrap(), &labels);
    let before = model.weights.clone();
    let trainer = Trainer::from_model(model, settings, data).unwrap();
    let after = trainer.train().unwrap();
    assert_eq!(after.weights.trees[0].families, before.trees[0].families);
    assert_ne!(after.weights.trees[0].levels, before.trees[0].levels);
    let mut predictor = Predictor::new(after).unwrap();
    let found = predictor.predict(Rows::new(&[1.5, 1.5, 0.0, 1.5, -1.5, 0.0], 3).unwrap());
    assert_eq!(found.unwrap(), [0, 1]);
}

/// The recipe finds that columns depend on each other, and a fit that was stopped goes on to the same bits.
#[test]
fn a_fit_chooses_factors_where_they_tell_classes_apart() {
    let (values, labels) = crossed(400);
    let rows = Rows::new(&values, 3).unwrap();
    let fit = Fit::new().steps(40);
    let model = fit.clone().run(rows, &labels).unwrap();
    assert!(model.about.training.has("clusters_with_factors"));
    let mut predictor = Predictor::new(model.clone()).unwrap();
    let scores = predictor.score(Rows::new(&[1.5, 1.5, 0.0, 1.5, -1.5, 0.0], 3).unwrap());
    let posterior = scores.unwrap().posterior;
    assert!(
        posterior[(0, 0)] > 0.9 && posterior[(1, 1)] > 0.9,
        "{posterior:?}"
    );
    let (mut fitting, mut stops) = (fit.start(Data::new(rows, &labels)).unwrap(), 0);
    while !fitting.is_done() {
        // 40 steps of the trial, 40 of each of three trees, 5 of all together.
        let stop = |progress: &sumout::recipes::FitProgress| match progress.step {
            17 | 60 | 130 | 162 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        fitting.run_with(stop).unwrap();
        if !fitting.is_done() {
            stops += 1;
            let bytes = fitting.checkpoint().unwrap();
            let checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
            fitting = Fitting::resume(checkpoint, Data::new(rows, &labels), None).unwrap();
        }
    }
    assert_eq!(fitting.into_model().unwrap().weights, model.weights);
    assert_eq!(stops, 4);
    let on_a_gpu = Fit::new()
        .steps(40)
        .device(Device::Cuda(0), Precision::Tf32);
    let fitting = on_a_gpu.start(Data::new(rows, &labels)).unwrap();
    assert_eq!(fitting.trials(), 0); // which does not compute factors
}

/// A number that follows from two others has narrow intervals: held-out rows give clusters with factors nearly all
/// probability beside the trees, and few rows an error. A fit that was stopped goes on to the same bits.
#[test]
fn what_follows_from_other_numbers_is_predicted_sharply() {
    let mut draw = Draw::new(8);
    let row = |_| {
        let (a, b) = (draw.0.normal(), draw.0.normal());
        [a, b, 2.0 * a - b].map(|x| x as f32)
    };
    let values: Vec<f32> = (0..400).flat_map(row).collect();
    let rows = Rows::new(&values, 3).unwrap();
    let none = vec![None; 400];
    for (fit, parts) in [(Fit::new().target(2), 6), (Fit::new(), 4)] {
        let fit = fit.steps(20);
        let model = fit.clone().run(rows, &none).unwrap();
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let asked = [0.5, -0.7, f32::NAN, -0.3, 0.4, f32::NAN];
        let imputed = predictor.impute_mean(Rows::new(&asked, 3).unwrap(), None);
        let imputed = imputed.unwrap();
        for (row, exact) in [(0, 1.7), (1, -1.0)] {
            let (mean, variance) = (imputed.mean[(row, 2)], imputed.variance[(row, 2)]);
            assert!((mean - exact).abs() < 0.1, "{mean} {exact}");
            assert!(variance.sqrt() < 0.15, "{mean} {variance}"); // σ of the column is 2.2
        }
        let mut fitting = fit.start(Data::new(rows, &none)).unwrap();
        let mut part = 0;
        while !fitting.is_done() {
            fitting
                .run_part_with(|_| ControlFlow::Continue(()))
                .unwrap();
            part += 1;
            if !fitting.is_done() {
                let bytes = fitting.checkpoint().unwrap();
                let checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
                fitting = Fitting::resume(checkpoint, Data::new(rows, &none), None).unwrap();
            }
        }
        assert!(part > parts, "{part}");
        assert_eq!(fitting.into_model().unwrap().weights, model.weights);
    }
}

/// In units of the data that are not those of the model (scaled columns with curves, one of them with a bound), answers
/// are integrals of the model's own scores.
#[test]
fn answers_are_in_the_units_of_the_data() {
    let (mut values, labels) = crossed(400);
    for row in values.chunks_exact_mut(3) {
        (row[0], row[1], row[2]) = (5.0 + 40.0 * row[0], (0.5 * row[1]).exp(), 2.0 * row[2]);
    }
    let bound = ColumnRange {
        low: Some(0.0),
        ..ColumnRange::default()
    };
    let ranges = [ColumnRange::default(), bound, ColumnRange::default()];
    let fit = Fit::new().ranges(&ranges).steps(20);
    let model = fit.run(Rows::new(&values, 3).unwrap(), &labels).unwrap();
    assert!(model.has_factors());
    assert!(!model.scaling.curves.is_empty());
    let mut predictor = Predictor::new(model).unwrap();
    let hole = f32::NAN;
    for (row, column) in [([45.0, hole, 1.0], 1), ([hole, 2.0, hole], 0)] {
        let asked = Rows::new(&row, 3).unwrap();
        let imputed = predictor.impute_mean(asked, None).unwrap();
        let median = predictor.impute_quantiles(asked, &[0.5], None).unwrap();
        let (mean, variance) = (imputed.mean[(0, column)], imputed.variance[(0, column)]);
        let (mean, sigma) = (f64::from(mean), f64::from(variance).sqrt());
        let (mut sums, mut below, step) = ([0.0; 3], 0.0, sigma / 2_000.0);
        for i in -20_000..40_000 {
            let x = mean + (f64::from(i) + 0.5) * step;
            if column == 1 && x <= 0.0 {
                continue;
            }
            let mut filled = row;
            filled[column] = x as f32;
            let log = predictor.log_marginal(Rows::new(&filled, 3).unwrap());
            let weight = log.unwrap()[0].exp() * step;
            (0..3).for_each(|p| sums[p] += weight * (x - mean).powi(p as i32));
            below += if x < f64::from(median[0][(0, column)]) {
                weight
            } else {
                0.0
            };
        }
        let all = predictor.log_marginal(asked).unwrap()[0].exp();
        assert!((sums[0] / all - 1.0).abs() < 2e-3, "{} {all}", sums[0]);
        assert!((sums[1] / all).abs() < 0.01 * sigma, "{sums:?} {sigma}");
        assert!(
            (sums[2] / all / sigma.powi(2) - 1.0).abs() < 0.02,
            "{sums:?} {sigma}"
        );
        assert!((below / all - 0.5).abs() < 0.01, "{below} {all}");
    }
}
