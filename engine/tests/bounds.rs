//! Columns with bounds and whole numbers: what comes out can occur, and a density is one in the units of the data.

use std::ops::ControlFlow;
use sumout::model::ColumnRange;
use sumout::random::{Purpose, Stream};
use sumout::recipes::images::ImageShape;
use sumout::recipes::{Fit, Fitting};
use sumout::training::{Checkpoint, Data};
use sumout::{Error, Kind, Model, Predictor, Rows};

const HOLE: f32 = f32::NAN;

/// A price above 0, a share from 0 to 100 that is often at its bounds, a debt up to 0, a count, and any number.
fn table(count: usize) -> Vec<f32> {
    let mut random = Stream::new(3, Purpose::Sampling, 0, 0);
    let mut values = Vec::new();
    for _ in 0..count {
        let size = random.normal();
        let share = 50.0 + 40.0 * (size + random.normal());
        let numbers = [
            (3.0 + size + 0.3 * random.normal()).exp(),
            share.clamp(0.0, 100.0),
            -(1.0 + 0.5 * size + 0.5 * random.normal()).exp(),
            (0.3 + 0.5 * size + 0.5 * random.normal()).exp().floor(),
            size + random.normal(),
        ];
        for number in numbers {
            values.push(if random.chance(0.2) {
                HOLE
            } else {
                number as f32
            });
        }
    }
    values
}

fn ranges() -> [ColumnRange; 5] {
    let range = |low, high, whole| ColumnRange {
        low,
        high,
        whole,
        margin: 0.0,
    };
    [
        range(Some(0.0), None, false),
        range(Some(0.0), Some(100.0), false),
        range(None, Some(0.0), false),
        range(Some(0.0), None, true),
        ColumnRange::default(),
    ]
}

fn fit() -> Fit {
    Fit::new()
        .kinds(&[Kind::Gaussian; 5])
        .ranges(&ranges())
        .steps(60)
        .trees(2)
        .seed(5)
}

fn model(values: &[f32]) -> Model {
    fit().run(Rows::new(values, 5).unwrap(), &[]).unwrap()
}

#[test]
fn samples_and_imputations_can_occur() {
    let values = table(300);
    let mut predictor = Predictor::new(model(&values)).unwrap();
    let rows = Rows::new(&values, 5).unwrap();
    let imputed = predictor.impute_mean(rows, None).unwrap();
    let mut medians = predictor.impute_quantiles(rows, &[0.5], None).unwrap();
    let answers = [
        imputed.mean,
        predictor.impute_mode(rows, None).unwrap(),
        predictor.sample_given(rows, None, 1).unwrap(),
        medians.remove(0),
        predictor.sample(2000, None, 1).unwrap().rows,
    ];
    for answer in &answers {
        for row in answer.as_slice().chunks(5) {
            let inside = ranges()
                .iter()
                .zip(row)
                .all(|(range, &x)| range.contains(x));
            assert!(
                inside && row[3].fract() == 0.0 && row.iter().all(|x| x.is_finite()),
                "{row:?}"
            );
        }
    }
    for answer in &answers[..4] {
        let kept = answer.as_slice().iter().zip(&values);
        assert!(kept.into_iter().all(|(ours, x)| x.is_nan() || ours == x));
    }
}

/// A column of whole numbers without bounds: all that is a number of the data is whole, and the mean need not be.
#[test]
fn whole_numbers_need_no_bounds() {
    let whole = ColumnRange {
        whole: true,
        ..ColumnRange::default()
    };
    let values: Vec<f32> = (0..200).map(|i| (i * i % 23) as f32).collect();
    let rows = Rows::new(&values, 1).unwrap();
    let fit = Fit::new().ranges(&[whole]).steps(20).trees(1);
    let mut predictor = Predictor::new(fit.run(rows, &[]).unwrap()).unwrap();
    let hole = Rows::new(&[HOLE], 1).unwrap();
    let quantiles = predictor.impute_quantiles(hole, &[0.3, 0.5], None).unwrap();
    assert!(
        quantiles.iter().all(|x| x.as_slice()[0].fract() == 0.0),
        "{quantiles:?}"
    );
    let mixtures = predictor.mixtures(hole, 0, None).unwrap();
    let (mixture, stream) = (
        mixtures.row(0),
        &mut Stream::new(1, Purpose::Sampling, 0, 0),
    );
    assert!((0..9).all(|_| mixture.sample(stream).fract() == 0.0));
    assert!(mixture.mean().fract() != 0.0 && (mixture.cdf(1e3) - 1.0).abs() < 1e-9);
}

/// The density between the bounds, summed, and the share of samples that were clipped to a bound are all there is. The
/// mean is that of the samples.
#[test]
fn a_density_is_one_in_the_units_of_the_data() {
    let mut predictor = Predictor::new(model(&table(300))).unwrap();
    let samples = predictor.sample(100_000, None, 2).unwrap().rows;
    let nothing = [HOLE; 5];
    let imputed = predictor
        .impute_mean(Rows::new(&nothing, 5).unwrap(), None)
        .unwrap();
    for (column, (start, end)) in [(0, (0.0, 3000.0)), (1, (0.0, 100.0)), (2, (-300.0, 0.0))] {
        let steps = 200_000;
        let step = (end - start) / f64::from(steps);
        let number = |k: i32| (start + step * (f64::from(k) + 0.5)) as f32;
        let mut rows = vec![HOLE; 5 * steps as usize];
        (0..steps).for_each(|k| rows[5 * k as usize + column] = number(k));
        let logs = predictor
            .log_marginal(Rows::new(&rows, 5).unwrap())
            .unwrap();
        let inside: f64 = logs.iter().map(|log| log.exp() * step).sum();
        let range = ranges()[column];
        let drawn = samples.as_slice().iter().skip(column).step_by(5);
        let is_clipped = |x: &&f32| Some(**x) == range.low || Some(**x) == range.high;
        let clipped = drawn.clone().filter(is_clipped).count() as f64 / 1e5;
        assert!(
            (inside + clipped - 1.0).abs() < 0.01,
            "column {column}: {inside} + {clipped}"
        );
        let mean = drawn.map(|&x| f64::from(x)).sum::<f64>() / 1e5;
        let ours = f64::from(imputed.mean[(0, column)]);
        assert!(
            (ours - mean).abs() < 0.03 * mean.abs(),
            "column {column}: {ours} {mean}"
        );
    }
}

#[test]
fn files_checkpoints_and_more_rows_keep_the_bounds() {
    let values = table(200);
    let whole = model(&values);
    let learned = whole.scaling.ranges.clone();
    assert_eq!(
        (learned[3].margin, learned[4]),
        (0.5, ColumnRange::default())
    );
    assert_eq!(
        Model::from_bytes(&whole.to_bytes().unwrap()).unwrap(),
        whole
    );
    let data = Data::new(Rows::new(&values, 5).unwrap(), &[]);
    let mut fitting = fit().start(data.clone()).unwrap();
    let stop = |progress: &sumout::recipes::FitProgress| match progress.step {
        70 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    fitting.run_with(stop).unwrap();
    let checkpoint = fitting.checkpoint().unwrap();
    assert_eq!(
        Model::from_bytes(&checkpoint).unwrap().scaling.ranges,
        learned
    );
    let checkpoint = Checkpoint::from_bytes(&checkpoint).unwrap();
    let resumed = Fitting::resume(checkpoint, data.clone(), None).unwrap();
    assert_eq!(resumed.into_model().unwrap(), whole);
    let taught = Fit::new().steps(5).go_on(whole.clone(), data).unwrap();
    let mut predictor = Predictor::new(taught.into_model().unwrap()).unwrap();
    let before = Predictor::new(whole)
        .unwrap()
        .log_marginal(Rows::new(&values, 5).unwrap())
        .unwrap();
    let after = predictor
        .log_marginal(Rows::new(&values, 5).unwrap())
        .unwrap();
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    assert!(
        (mean(&after) - mean(&before)).abs() < 1.0,
        "{} {}",
        mean(&after),
        mean(&before)
    );
}

#[test]
fn what_cannot_occur_is_refused() {
    let values = table(100);
    let mut predictor = Predictor::new(model(&values)).unwrap();
    let row = [HOLE, 101.0, HOLE, HOLE, HOLE];
    let error = predictor.score(Rows::new(&row, 5).unwrap()).unwrap_err();
    let expected =
        "row index 0, column index 1: expected numbers from 0 to 100 or NaN for missing, got 101";
    assert_eq!(error.to_string(), expected);
    let mut wrong = values.clone();
    wrong[5 * 7 + 2] = 1.0;
    let refused = fit().run(Rows::new(&wrong, 5).unwrap(), &[]).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Outside {
                row: 7,
                column: 2,
                ..
            }
        ),
        "{refused}"
    );
    let mut kinds = [Kind::Gaussian; 5];
    kinds[3] = Kind::Categorical(40);
    let refused = fit()
        .kinds(&kinds)
        .run(Rows::new(&values, 5).unwrap(), &[])
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("bounds of column 3: expected a column of numbers"),
        "{refused}"
    );
    let few = fit().ranges(&ranges()[..2]);
    assert!(few.run(Rows::new(&values, 5).unwrap(), &[]).is_err());
    let shape = ImageShape {
        height: 1,
        width: 5,
        channels: 1,
    };
    let images = fit()
        .images(shape)
        .start(Data::new(Rows::new(&values, 5).unwrap(), &[]));
    let refused = images.map(drop).unwrap_err().to_string();
    let expected =
        "bounds and whole numbers: expected the columns of a table, got images or sequences";
    assert_eq!(refused, expected);
}
