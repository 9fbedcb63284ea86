//! Columns bent by a curve: densities and moments are those of the data, and files and checkpoints keep the curves.

use std::ops::ControlFlow;
use sumout::model::Curve;
use sumout::random::{Purpose, Stream};
use sumout::recipes::{Fit, FitProgress, Fitting};
use sumout::training::{Checkpoint, Data};
use sumout::{Kind, Model, Predictor, Rows};

const HOLE: f32 = f32::NAN;
const KINDS: [Kind; 3] = [Kind::Gaussian, Kind::Gaussian, Kind::Categorical(2)];

/// An income, an amount that is often 0, and a category, in two classes, with holes.
fn table(count: usize) -> (Vec<f32>, Vec<Option<usize>>) {
    let mut random = Stream::new(4, Purpose::Sampling, 0, 0);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let class = random.chance(0.4);
        let size = random.normal() + if class { 1.0 } else { 0.0 };
        let amount = (4.0 * (size + random.normal())).max(0.0);
        let row = [(3.0 + size).exp(), amount, f64::from(u8::from(size > 0.5))];
        let hole = |x: f64| if random.chance(0.1) { HOLE } else { x as f32 };
        values.extend(row.map(hole));
        labels.push(Some(usize::from(class)));
    }
    (values, labels)
}

fn fit() -> Fit {
    Fit::new().kinds(&KINDS).steps(60).seed(5)
}

fn model(values: &[f32], labels: &[Option<usize>]) -> Model {
    let rows = Rows::new(values, 3).unwrap();
    fit().run(rows, labels).unwrap()
}

/// P(first column | second) on a fine grid: it sums to one, and has the mean, variance and quantiles that are reported.
#[test]
fn a_density_is_one_in_the_units_of_the_data() {
    let (values, labels) = table(400);
    let mut predictor = Predictor::new(model(&values, &labels)).unwrap();
    let (steps, end) = (400_000, 4000.0);
    let number = |k: usize| (k as f32 + 0.5) * end / steps as f32;
    let mut grid = vec![HOLE; 3 * steps];
    for k in 0..steps {
        (grid[3 * k], grid[3 * k + 1]) = (number(k), 5.0);
    }
    let grid = Rows::new(&grid, 3).unwrap();
    let given = [HOLE, 5.0, HOLE];
    let given = Rows::new(&given, 3).unwrap();
    let observed = predictor.log_marginal(given).unwrap()[0];
    let step = f64::from(end) / steps as f64;
    let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
    let mut median = None;
    for (k, log) in predictor.log_marginal(grid).unwrap().iter().enumerate() {
        let (p, x) = ((log - observed).exp() * step, f64::from(number(k)));
        (mass, mean, square) = (mass + p, mean + p * x, square + p * x * x);
        if mass >= 0.5 && median.is_none() {
            median = Some(x);
        }
    }
    assert!((mass - 1.0).abs() < 2e-2, "{mass}"); // a little lies below zero
    let imputed = predictor.impute_mean(given, None).unwrap();
    let (ours, variance) = (imputed.mean[(0, 0)], imputed.variance[(0, 0)]);
    assert!((f64::from(ours) / mean - 1.0).abs() < 0.02, "{ours} {mean}");
    let exact = square - mean * mean;
    assert!(
        (f64::from(variance) / exact - 1.0).abs() < 0.05,
        "{variance} {exact}"
    );
    let mixtures = predictor.mixtures(given, 0, None).unwrap();
    let mixture = mixtures.row(0);
    assert!((mixture.mean() - f64::from(ours)).abs() < 1e-3 * mixture.mean());
    let median = median.unwrap();
    assert!((mixture.quantile(0.5) / median - 1.0).abs() < 0.02);
    assert!((mixture.cdf(median) - 0.5).abs() < 0.02);
}

#[test]
fn samples_are_like_the_rows() {
    let (values, _) = table(2000);
    let rows = Rows::new(&values, 3).unwrap();
    let model = fit().curves(true).steps(300).run(rows, &[]).unwrap();
    let mut predictor = Predictor::new(model).unwrap();
    let samples = predictor.sample(20_000, None, 2).unwrap().rows;
    let quantiles = |numbers: &[f32]| {
        let mut seen: Vec<f32> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
        seen.sort_by(f32::total_cmp);
        [0.1, 0.5, 0.9].map(|p| seen[(p * seen.len() as f64) as usize])
    };
    let column = |numbers: &[f32]| numbers.iter().step_by(3).copied().collect::<Vec<_>>();
    let rows = quantiles(&column(&values));
    let drawn = quantiles(&column(samples.as_slice()));
    for (a, b) in rows.iter().zip(drawn) {
        assert!((b / a - 1.0).abs() < 0.25, "{rows:?} {drawn:?}");
    }
}

#[test]
fn files_checkpoints_and_more_rows_keep_the_curves() {
    let (values, labels) = table(1200); // enough for trials
    let whole = model(&values, &labels);
    let curves = whole.scaling.curves.clone();
    assert!(!curves[0].is_identity() && curves[2].is_identity());
    assert_eq!(
        Model::from_bytes(&whole.to_bytes().unwrap()).unwrap(),
        whole
    );
    let data = Data::new(Rows::new(&values, 3).unwrap(), &labels);
    for stop_at in [10, 70, 150, 250, 350] {
        let mut fitting = fit().start(data.clone()).unwrap();
        let stop = |progress: &FitProgress| match progress.step >= stop_at {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        fitting.run_with(stop).unwrap();
        let checkpoint = fitting.checkpoint().unwrap();
        let checkpoint = Checkpoint::from_bytes(&checkpoint).unwrap();
        let resumed = Fitting::resume(checkpoint, data.clone(), None).unwrap();
        assert_eq!(resumed.into_model().unwrap(), whole, "{stop_at}");
    }
    let taught = Fit::new().steps(5).go_on(whole, data).unwrap();
    assert_eq!(taught.into_model().unwrap().scaling.curves, curves);
}

/// A table whose class follows from its columns without noise is learned by the sharp way, one of noise by the smooth.
#[test]
fn held_out_rows_choose_between_smooth_and_sharp() {
    let kinds = [Kind::Categorical(2); 8];
    let mut random = Stream::new(9, Purpose::Sampling, 0, 0);
    let rows: Vec<f32> = (0..8 * 1500)
        .map(|_| f32::from(u8::from(random.chance(0.5))))
        .collect();
    let is_even = |row: &[f32]| row[1] + row[4] + row[6] == 2.0 || row[0] + row[1] == 0.0;
    for (noise, is_sharp) in [(0.0, true), (0.4, false)] {
        let class = |row: &[f32]| Some(usize::from(is_even(row) != random.chance(noise)));
        let labels: Vec<Option<usize>> = rows.chunks(8).map(class).collect();
        let fit = Fit::new().kinds(&kinds).trees(1).steps(150);
        let model = fit.run(Rows::new(&rows, 8).unwrap(), &labels).unwrap();
        let settings: sumout::Settings = model.about.training.get("settings").unwrap();
        assert_eq!(settings.penalty == 0.0, is_sharp, "noise {noise}");
    }
}

#[test]
fn a_curve_that_falls_is_refused() {
    let (values, labels) = table(100);
    let mut wrong = model(&values, &labels);
    wrong.scaling.curves[0] = Curve {
        x: vec![0.0, 1.0],
        y: vec![1.0, 0.0],
    };
    let error = Predictor::new(wrong).err().unwrap().to_string();
    assert!(
        error.contains("curve of column 0: expected as many x as y"),
        "{error}"
    );
}
