//! The distribution of a missing number against sums and integrals over all worlds, and training to predict a column.

mod random_models;
mod worlds;

use random_models::Draw;
use sumout::model::Scaling;
use sumout::queries::{How, Mixture};
use sumout::random::{Purpose, Stream};
use sumout::recipes::{Fit, Preset};
use sumout::structure::{Kind, Structure};
use sumout::{Model, Predictor, Rows, Settings};
use worlds::{Worlds, tiny, with_holes};

/// A grid that is finer than the narrowest component and wider than all of them.
struct Axis {
    step: f64,
    points: Vec<f32>,
}

fn axis() -> Axis {
    let step = 0.05;
    let points = (-800..=800).map(|i| (f64::from(i) * step) as f32);
    Axis {
        step,
        points: points.collect(),
    }
}

/// P(x_m|x_o) at the points of the axis, from the joint density of every world.
fn density(worlds: &Worlds, given: &[f32], column: usize, axis: &Axis) -> Vec<f64> {
    let whole = worlds.probability(given, None);
    let at = |&x: &f32| {
        let mut row = given.to_vec();
        row[column] = x;
        worlds.probability(&row, None) / whole
    };
    axis.points.iter().map(at).collect()
}

fn close(ours: f64, exact: f64, tolerance: f64) {
    assert!((ours - exact).abs() < tolerance, "{ours} against {exact}");
}

/// Mean, variance, distribution function and quantiles of a mixture against the integrals of a density.
fn check_against_integrals(mixture: Mixture<'_>, density: &[f64], axis: &Axis) {
    let integral = |f: &dyn Fn(f64) -> f64| -> f64 {
        let points = axis.points.iter().zip(density);
        points.map(|(&x, p)| f(x.into()) * p * axis.step).sum()
    };
    close(integral(&|_| 1.0), 1.0, 1e-4);
    let mean = integral(&|x| x);
    close(mixture.mean(), mean, 1e-3);
    let variance = integral(&|x| (x - mean).powi(2));
    close(mixture.variance(), variance, 2e-3 * variance.max(1.0));
    for p in [0.001, 0.05, 0.25, 0.5, 0.75, 0.95] {
        let quantile = mixture.quantile(p);
        close(mixture.cdf(quantile), p, 1e-8);
        let below = integral(&|x| {
            let part = (quantile - x) / axis.step + 0.5; // of the cell around x
            part.clamp(0.0, 1.0)
        });
        close(below, p, 4e-3);
    }
}

/// Holes of all columns are filled in one pass; the distributions of single columns say the same.
#[test]
fn quantiles_of_all_holes_are_those_of_each_column() {
    for seed in 0..20 {
        let draw = &mut Draw::new(7100 + seed);
        let model = tiny(true, draw);
        let width = model.structure.width();
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let row = |draw: &mut Draw| with_holes(&worlds::row(&model, draw), 0.5, draw);
        let cells: Vec<f32> = (0..5).flat_map(|_| row(draw)).collect();
        let rows = Rows::new(&cells, width).unwrap();
        let median = predictor.impute(rows, How::Median, None, 0).unwrap();
        let tables = predictor.impute_quantiles(rows, &[0.1, 0.5], None).unwrap();
        assert_eq!(tables[1], median);
        for column in 0..width {
            let Ok(mixtures) = predictor.mixtures(rows, column, None) else {
                continue; // a category
            };
            for n in 0..rows.len() {
                let x = cells[n * width + column];
                let quantile = |p| match x.is_nan() {
                    true => mixtures.row(n).quantile(p) as f32,
                    false => x,
                };
                assert_eq!(tables[0][(n, column)], quantile(0.1), "seed {seed}");
                assert_eq!(tables[1][(n, column)], quantile(0.5), "seed {seed}");
            }
        }
    }
}

#[test]
fn the_distribution_of_a_number_is_that_of_all_worlds() {
    let (axis, mut checked) = (axis(), 0);
    for seed in 0..40 {
        let draw = &mut Draw::new(7000 + seed);
        let model = tiny(true, draw);
        let worlds = Worlds::new(&model);
        let kinds = model.structure.row_kinds();
        let Some(column) = kinds.iter().position(|kind| *kind == Kind::Gaussian) else {
            continue;
        };
        if worlds.all.len() > 600 {
            continue; // a second and more
        }
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let row = with_holes(&worlds::row(&model, draw), 0.3, draw);
        let mut given = row.clone();
        given[column] = f32::NAN;
        let both = [&row[..], &given].concat();
        let mixtures = predictor.mixtures(model.rows(&both).unwrap(), column, None);
        let mixtures = mixtures.unwrap();
        assert_eq!(mixtures.row(0), mixtures.row(1), "the column is looked at");
        let density = density(&worlds, &given, column, &axis);
        check_against_integrals(mixtures.row(1), &density, &axis);
        checked += 1;
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn samples_have_the_distribution_they_are_drawn_from() {
    let draw = &mut Draw::new(5);
    let structure = Structure::table(&[Kind::Gaussian; 3]).components(4);
    let structure = structure.channels([5]).build().unwrap();
    let weights = random_models::weights(&structure, 1.0, draw);
    let model = Model {
        weights,
        ..Model::random(structure, 1.0, 0)
    };
    let mut predictor = Predictor::new(model).unwrap();
    let rows = Rows::new(&[0.4, f32::NAN, f32::NAN], 3).unwrap();
    let mixtures = predictor.mixtures(rows, 1, None).unwrap();
    let mixture = mixtures.row(0);
    let draws = 20_000;
    let mut stream = Stream::new(3, Purpose::Sampling, 0, 0);
    let samples: Vec<f64> = (0..draws).map(|_| mixture.sample(&mut stream)).collect();
    for p in [0.1, 0.5, 0.9] {
        let quantile = mixture.quantile(p);
        let below = samples.iter().filter(|x| **x < quantile).count() as f64;
        close(below / f64::from(draws), p, 0.012);
    }
}

/// y is the sine of one column, with noise that the other column decides; some cells are missing.
fn sines(rows: usize, seed: u64) -> Vec<f32> {
    let mut random = Stream::new(seed, Purpose::Sampling, 0, 0);
    let mut row = |_| {
        let (x, loud) = (3.0 * (2.0 * random.uniform() - 1.0), random.uniform() < 0.5);
        let noise = if loud { 0.5 } else { 0.1 };
        let y = x.sin() + noise * random.normal();
        let x = if random.uniform() < 0.1 { f64::NAN } else { x };
        [x as f32, f32::from(u8::from(loud)), y as f32]
    };
    (0..rows).flat_map(&mut row).collect()
}

#[test]
fn a_column_is_learned_to_be_predicted() {
    let (train, test) = (sines(600, 1), sines(300, 2));
    let kinds = [Kind::Gaussian, Kind::Categorical(2), Kind::Gaussian];
    let fit = Fit::new().kinds(&kinds).target(2).trees(1).steps(300);
    let model = fit.run(Rows::new(&train, 3).unwrap(), &[]).unwrap();
    assert_eq!(model.target(), Some(2));
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.target(), Some(2));
    let mut predictor = Predictor::new(model).unwrap();
    let rows = Rows::new(&test, 3).unwrap();
    let mixtures = predictor.mixtures(rows, 2, None).unwrap();
    let (mut error, mut quiet, mut inside) = (0.0, 0.0, 0);
    for (b, row) in rows.iter().enumerate() {
        let (mixture, y) = (mixtures.row(b), f64::from(row[2]));
        error += (mixture.mean() - y).powi(2) / rows.len() as f64;
        inside += usize::from((0.05..0.95).contains(&mixture.cdf(y)));
        if row[1] == 0.0 && !row[0].is_nan() {
            quiet = f64::max(quiet, mixture.variance().sqrt());
        }
    }
    assert!(error < 0.27, "{error}"); // the noise has 0.13, and one in ten x is missing
    assert!((0.84..0.97).contains(&(inside as f64 / 300.0)), "{inside}");
    assert!(quiet < 0.5, "{quiet}");
}

#[test]
fn a_preset_has_no_target() {
    let rows = Rows::new(&[0.5, 1.0], 2).unwrap();
    let structure = Structure::table(&[Kind::Gaussian; 2]).components(2);
    let preset = Preset {
        structure: structure.channels([2]).build().unwrap(),
        settings: Settings::default(),
        scaling: Scaling::default(),
    };
    let fitted = Fit::new().preset(preset).target(1).run(rows, &[]);
    let words = fitted.map(drop).unwrap_err().to_string();
    assert_eq!(
        words,
        "target: expected a column of a table, got a preset or images"
    );
}

#[test]
fn what_cannot_be_a_target_is_an_error() {
    let rows = [0.5, 1.0, 0.7, 0.0];
    let kinds = [Kind::Gaussian, Kind::Categorical(2)];
    let run = |column, labels: &[Option<usize>]| {
        let fit = Fit::new().kinds(&kinds).target(column).steps(2);
        let fitted = fit.run(Rows::new(&rows, 2).unwrap(), labels);
        fitted.map(drop).unwrap_err().to_string()
    };
    assert_eq!(
        run(1, &[]),
        "target: expected a column of real numbers, got column 1"
    );
    assert_eq!(
        run(2, &[]),
        "target: expected a column of real numbers, got column 2"
    );
    let error = run(0, &[Some(0), Some(1)]);
    assert!(error.contains("in a table without classes"), "{error}");
}
