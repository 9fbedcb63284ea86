//! The recipe: what it trains, that it can be watched and broken off, and what it refuses.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use sumout::random::{Purpose, Stream};
use sumout::recipes::images::ImageShape;
use sumout::recipes::tables::{ColumnPlan, settings, standardise};
use sumout::recipes::{Fit, Fitting};
use sumout::training::{Checkpoint, Data, Stop};
use sumout::{Error, Kind, Predictor, Rows, Settings, Trainer};

/// Two classes of three columns with holes: two numbers apart by class, and a category that hints at it.
fn table(count: usize) -> (Vec<f32>, Vec<Option<usize>>) {
    let mut random = Stream::new(7, Purpose::Sampling, 0, 0);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..count {
        let class = row % 2;
        let centre = if class == 0 { 20.0 } else { -20.0 };
        let category = if random.chance(0.9) { class } else { 1 - class };
        let numbers = [
            centre + 10.0 * random.normal(),
            100.0 + centre + 10.0 * random.normal(),
            category as f64,
        ];
        for number in numbers {
            let hole = random.chance(0.2);
            values.push(if hole { f32::NAN } else { number as f32 });
        }
        labels.push((!random.chance(0.1)).then_some(class));
    }
    (values, labels)
}

/// The rows by what they hold: numbers by their bits, holes last.
fn sorted((values, labels): (Vec<f32>, Vec<Option<usize>>)) -> (Vec<f32>, Vec<Option<usize>>) {
    let key = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    let mut rows: Vec<_> = values.chunks(3).zip(labels).collect();
    rows.sort_by_key(|(row, label)| {
        let label = label.map_or(u32::MAX, |class| class as u32);
        row.iter().map(key).chain([label]).collect::<Vec<_>>()
    });
    let values = rows.iter().flat_map(|(row, _)| row.iter().copied());
    (
        values.collect(),
        rows.iter().map(|(_, label)| *label).collect(),
    )
}

const KINDS: [Kind; 3] = [Kind::Gaussian, Kind::Gaussian, Kind::Categorical(2)];

fn small() -> Fit {
    Fit::new().kinds(&KINDS).steps(24).seed(5)
}

#[test]
fn trees_and_clusters_stand_side_by_side() {
    let (values, labels) = table(200);
    let rows = Rows::new(&values, 3).unwrap();
    let model = small().run(rows, &labels).unwrap();
    assert_eq!(model.structure.trees.len(), 3 + 2); // few rows: three trees, and clusters without and with factors
    let notes = &model.about.training;
    assert_eq!(notes.get("rows"), Some(200));
    let (trees, finish): (Settings, Settings) =
        (notes.get("settings").unwrap(), notes.get("finish").unwrap());
    assert_eq!((trees.seed, trees.steps), (5, 24));
    assert_eq!((finish.seed, finish.steps), (8, 3));
    assert!(notes.has("clusters_with_factors"));
    assert!(notes.has("clusters") && notes.get::<String>("program").is_some());
    let found = Predictor::new(model.clone())
        .unwrap()
        .predict(rows)
        .unwrap();
    let right = |(found, label): (&usize, &Option<usize>)| label.is_none_or(|y| y == *found);
    let right = found
        .iter()
        .zip(&labels)
        .filter(|&pair| right(pair))
        .count();
    assert!(right > 180, "{right} of 200");
    assert_eq!(small().run(rows, &labels).unwrap(), model);
    let other = small().seed(6).run(rows, &labels).unwrap();
    assert_ne!(other.weights, model.weights);
}

#[test]
fn one_tree_is_what_a_trainer_trains() {
    let (values, labels) = sorted(table(200)); // as a fit sorts them
    let rows = Rows::new(&values, 3).unwrap();
    let fit = small().trees(1).clusters(false).curves(false);
    let model = fit.clone().run(rows, &labels).unwrap();
    let structure = ColumnPlan::for_rows(200)
        .structure(&KINDS, &values, 2)
        .unwrap();
    let settings = Settings {
        steps: 24,
        seed: 5,
        ..settings(&KINDS, &values)
    };
    let (scaling, data) = (standardise(&KINDS, &values), Data::new(rows, &labels));
    let by_hand = Trainer::start(structure, scaling, settings, data.clone()).unwrap();
    let alone = fit.trainer(data).unwrap();
    assert_eq!(alone.model().weights, by_hand.model().weights);
    let (alone, by_hand) = (alone.train().unwrap(), by_hand.train().unwrap());
    assert_eq!(alone.weights, by_hand.weights);
    assert_eq!(alone.log_prior, model.log_prior);
    // A mixture of one is normalised once more.
    assert_eq!(alone.weights.trees, model.weights.trees);
}

#[test]
fn a_fit_that_was_broken_off_goes_on_to_the_same_bits() {
    let (values, labels) = table(120);
    let rows = Rows::new(&values, 3).unwrap();
    let whole = small().run(rows, &labels).unwrap();
    let mut fitting = small().start(Data::new(rows, &labels)).unwrap();
    let (mut steps, mut calls) = (Vec::new(), 0);
    while !fitting.is_done() {
        calls += 1;
        let report = |progress: &sumout::recipes::FitProgress| {
            steps.push(progress.step);
            if progress.step.is_multiple_of(10) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        fitting.run_with(report).unwrap();
    }
    assert_eq!(fitting.steps(), 24 + 3 * 24 + 3); // a trial, three trees, all together
    assert_eq!(steps, (1..=fitting.steps()).collect::<Vec<_>>());
    assert_eq!(calls, 10);
    assert_eq!(fitting.into_model().unwrap(), whole);
    let mut again = small().start(Data::new(rows, &labels)).unwrap();
    again.run_with(|_| ControlFlow::Break(())).unwrap();
    assert_eq!(again.into_model().unwrap(), whole);
}

#[test]
fn a_model_learns_more_rows() {
    let (values, labels) = table(120);
    let (first, more) = values.split_at(60 * 3);
    let rows = Rows::new(first, 3).unwrap();
    let model = small().run(rows, &labels[..60]).unwrap();
    let data = Data::new(Rows::new(more, 3).unwrap(), &labels[60..]);
    let fit = Fit::new().steps(10);
    let taught = fit.go_on(model.clone(), data).unwrap();
    assert_eq!(taught.steps(), 10);
    let taught = taught.into_model().unwrap();
    assert_eq!(taught.structure, model.structure);
    assert_ne!(taught.weights, model.weights);
}

#[test]
fn without_labels_a_density_is_learned_and_images_are_images() {
    let (values, _) = table(50);
    let model = small().run(Rows::new(&values, 3).unwrap(), &[]).unwrap();
    assert_eq!(
        (model.structure.classes, model.structure.trees.len()),
        (1, 4 + 1) // four trees and the clusters of a table of numbers
    );
    let pixels: Vec<f32> = (0..40 * 16).map(|i| (i * 37 % 256) as f32).collect();
    let labels: Vec<Option<usize>> = (0..40).map(|i| Some(i % 2)).collect();
    let fit = Fit::new().steps(3).trees(1).channels(4).components(3);
    let images = fit.images(ImageShape {
        height: 4,
        width: 4,
        channels: 1,
    });
    let model = images
        .run(Rows::new(&pixels, 16).unwrap(), &labels)
        .unwrap();
    assert_eq!(model.structure.frame.map(|f| f.height), Some(4));
    assert_eq!(model.structure.trees[0].components, 3);
    assert_eq!(model.scaling.scale, [1.0 / 255.0]);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let (values, labels) = table(30);
    let rows = Rows::new(&values, 3).unwrap();
    let refused = |fit: Fit, labels: &[Option<usize>], message: &str| {
        assert_eq!(fit.run(rows, labels).unwrap_err().to_string(), message);
    };
    let kinds = [Kind::Gaussian; 2];
    refused(
        small().kinds(&kinds),
        &labels,
        "kinds of columns: expected 3, got 2",
    );
    refused(
        small().trees(0),
        &labels,
        "trees: expected at least 1, got 0",
    );
    refused(
        small().trees(1001),
        &labels,
        "trees: expected at most 1000, got 1001",
    );
    refused(
        small().steps(0),
        &labels,
        "steps: expected at least 1, got 0",
    );
    refused(small(), &labels[..5], "labels: expected 30, got 5");
    let gap = [Some(0), Some(2)].repeat(15);
    let message = "class 1: expected at least one labelled example, got none";
    refused(small(), &gap, message);
    refused(
        small().prior(&[1.0, 1.0]),
        &gap,
        "row index 1: expected a label from 0 to 1, or none, got 2",
    );
    small()
        .prior(&[0.2, 0.3, 0.5])
        .trees(1)
        .run(rows, &gap)
        .unwrap(); // a prior may name more classes
    let nothing = Rows::new(&[], 3).unwrap();
    let error = small().run(nothing, &[]).unwrap_err().to_string();
    assert_eq!(error, "expected at least one row, got none");
    let error = small().settings("fast").unwrap_err().to_string();
    assert_eq!(error, "settings: expected a map, got \"fast\"");
    let unknown = BTreeMap::from([("speed", 1)]);
    let error = small()
        .settings(unknown)
        .unwrap()
        .run(rows, &labels)
        .unwrap_err();
    assert!(
        error.to_string().starts_with("unknown field `speed`"),
        "{error}"
    );
}

/// Two columns of which the second copies the first in nine rows of ten, and columns of noise.
fn copies(count: usize, noise: usize) -> Vec<f32> {
    let mut random = Stream::new(3, Purpose::Sampling, 0, 0);
    let mut values = Vec::new();
    for _ in 0..count {
        let first = random.chance(0.5);
        let second = first == random.chance(0.9);
        values.extend([first, second].map(|x| f32::from(u8::from(x))));
        values.extend((0..noise).map(|_| f32::from(u8::from(random.chance(0.5)))));
    }
    values
}

/// By default a density learns how columns depend on each other. Independent columns would give −2 ln 2 = −1.386 here;
/// the entropy of the two is ln 2 + H(0.1) = 1.018.
#[test]
fn a_density_is_not_independence() {
    for noise in [0, 6] {
        let width = 2 + noise;
        let (train, test) = (copies(1_000, noise), copies(2_000, noise));
        let test = &test[1_000 * width..];
        let fit = Fit::new().kinds(&vec![Kind::Categorical(2); width]);
        let model = fit.run(Rows::new(&train, width).unwrap(), &[]).unwrap();
        let mut predictor = Predictor::new(model).unwrap();
        let scores = predictor.score(Rows::new(test, width).unwrap()).unwrap();
        let mean = scores.log_marginal.iter().sum::<f64>() / scores.log_marginal.len() as f64;
        let of_noise = noise as f64 * 2f64.ln();
        let pair = mean + of_noise;
        assert!(
            pair > -1.018 - 0.1,
            "{pair} for the pair with {noise} columns of noise"
        );
        assert!(pair < -1.018 + 0.1, "{pair}: more than there is to know");
    }
}

#[test]
fn rows_are_held_out_to_choose_by_and_then_learned_from() {
    let values = copies(300, 4);
    let rows = Rows::new(&values, 6).unwrap();
    let fit = || {
        Fit::new()
            .kinds(&[Kind::Categorical(2); 6])
            .seed(3)
            .trees(2)
    };
    let model = fit().run(rows, &[]).unwrap();
    let notes = &model.about.training;
    assert_eq!(notes.get("rows"), Some(300));
    let trials: Vec<serde_json::Value> = notes.get("trials").unwrap();
    assert!(trials.len() > 2, "{trials:?}");
    let best = trials.iter().map(|trial| trial["score"].as_f64().unwrap());
    assert!(best.clone().fold(f64::MIN, f64::max) > best.fold(f64::MAX, f64::min));
    // The order in which rows come does not matter, and a fit that was broken off ends in the same bits.
    let reversed: Vec<f32> = values.chunks(6).rev().flatten().copied().collect();
    assert_eq!(
        fit().run(Rows::new(&reversed, 6).unwrap(), &[]).unwrap(),
        model
    );
    let mut fitting = fit().start(Data::new(rows, &[])).unwrap();
    while !fitting.is_done() {
        let stop = |progress: &sumout::recipes::FitProgress| match progress.step % 97 {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        fitting.run_with(stop).unwrap();
    }
    assert_eq!(fitting.into_model().unwrap(), model);
    // Without rows held out there is nothing to choose by; a given length is kept.
    let plain = fit().held_out(0.0).steps(20).run(rows, &[]).unwrap();
    assert!(!plain.about.training.has("trials"));
    let wrong = fit().held_out(1.0).run(rows, &[]).unwrap_err().to_string();
    assert_eq!(
        wrong,
        "held out: expected a share from 0 to less than 1, got 1"
    );
    let given: Settings = fit()
        .steps(20)
        .run(rows, &[])
        .unwrap()
        .about
        .training
        .get("settings")
        .unwrap();
    assert_eq!(given.steps, 20);
}

/// Runs to the end, but goes through the bytes of a checkpoint every `every` steps.
fn through_checkpoints<'a>(fit: Fit, data: &Data<'a>, every: usize) -> sumout::Model {
    let mut fitting = fit.start(data.clone()).unwrap();
    loop {
        let stop = |progress: &sumout::recipes::FitProgress| match progress.step % every {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        fitting.run_with(stop).unwrap();
        if fitting.is_done() {
            return fitting.into_model().unwrap();
        }
        let checkpoint = Checkpoint::from_bytes(&fitting.checkpoint().unwrap()).unwrap();
        fitting = Fitting::resume(checkpoint, data.clone(), None).unwrap();
    }
}

#[test]
fn a_fit_goes_on_from_a_checkpoint_of_any_part_to_the_same_bits() {
    let (values, labels) = table(120);
    let data = Data::new(Rows::new(&values, 3).unwrap(), &labels);
    let whole = small().start(data.clone()).unwrap().into_model().unwrap();
    assert_eq!(through_checkpoints(small(), &data, 7), whole);
    let fit = || {
        Fit::new()
            .kinds(&KINDS)
            .seed(5)
            .trees(2)
            .settings(BTreeMap::from([("batch", 8)]))
            .unwrap()
    };
    let data = Data::new(Rows::new(&values, 3).unwrap(), &[]);
    let whole = fit().start(data.clone()).unwrap().into_model().unwrap();
    assert!(whole.about.training.has("trials"));
    assert_eq!(through_checkpoints(fit(), &data, 61), whole);
    // The checkpoint of a trainer alone, as older programs wrote it.
    let (values, _) = sorted((values, labels));
    let data = Data::new(Rows::new(&values, 3).unwrap(), &[]);
    let mut alone = small().trainer(data.clone()).unwrap();
    alone.advance().unwrap();
    let checkpoint = Checkpoint::from_bytes(&alone.checkpoint().unwrap()).unwrap();
    let resumed = Fitting::resume(checkpoint, data.clone(), None).unwrap();
    let resumed = resumed.into_model().unwrap();
    while alone.steps_done() < alone.settings().steps {
        alone.advance().unwrap();
    }
    assert_eq!(resumed.weights, alone.model().weights);
    // A checkpoint of the last step has nothing left to do.
    let checkpoint = Checkpoint::from_bytes(&alone.checkpoint().unwrap()).unwrap();
    let ended = Fitting::resume(checkpoint, data, None).unwrap();
    assert_eq!(ended.into_model().unwrap().weights, resumed.weights);
}

/// The same where a column is to be predicted: trials, trees and the target survive.
#[test]
fn a_fit_of_a_number_goes_on_to_the_same_bits() {
    let (values, _) = table(100);
    let data = Data::new(Rows::new(&values, 3).unwrap(), &[]);
    let fit = || small().target(1).trees(2);
    let mut fitting = fit().start(data.clone()).unwrap();
    assert_eq!(fitting.trials(), 5);
    fitting.run_with(|_| ControlFlow::Continue(())).unwrap();
    let whole = fitting.into_model().unwrap();
    assert_eq!(whole.target(), Some(1));
    assert_eq!(through_checkpoints(fit(), &data, 7), whole);
}

/// A start of leaves that would take for ever ends on request, and so does the choice of columns.
#[test]
fn a_fit_stops_before_its_first_step() {
    let (values, labels) = table(100);
    let rows = Rows::new(&values, 3).unwrap();
    let stop = Stop::default();
    let data = |labels| Data::new(rows, labels).stopped_by(&stop);
    let forever = serde_json::json!({ "leaves": { "rounds": usize::MAX } });
    let fit = Fit::new().kinds(&KINDS).settings(forever).unwrap();
    let mut fitting = fit.start(data(&labels)).unwrap();
    let stopped = std::thread::scope(|scope| {
        scope.spawn(|| stop.request());
        fitting.prepare()
    });
    assert_eq!(stopped, Err(Error::Stopped));
    for fit in [small(), small().target(1)] {
        assert_eq!(fit.start(data(&[])).err(), Some(Error::Stopped));
    }
    assert_eq!(small().start(data(&labels)).err(), Some(Error::Stopped));
}
