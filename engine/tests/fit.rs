//! The recipe: what it trains, that it can be watched and broken off, and what it refuses.

use std::ops::ControlFlow;
use sumout::random::{Purpose, Stream};
use sumout::recipes::Fit;
use sumout::recipes::images::ImageShape;
use sumout::recipes::tables::{ColumnPlan, settings, standardise};
use sumout::training::Data;
use sumout::{Kind, Predictor, Rows, Settings, Trainer};

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

const KINDS: [Kind; 3] = [Kind::Gaussian, Kind::Gaussian, Kind::Categorical(2)];

fn small() -> Fit {
    Fit::new().kinds(&KINDS).steps(24).seed(5)
}

#[test]
fn trees_and_clusters_stand_side_by_side() {
    let (values, labels) = table(200);
    let rows = Rows::new(&values, 3).unwrap();
    let model = small().run(rows, &labels).unwrap();
    assert_eq!(model.structure.trees.len(), 3 + 1); // few rows: three trees and the clusters
    let notes = &model.about.training;
    assert_eq!(notes.get("rows"), Some(200));
    let (trees, finish): (Settings, Settings) =
        (notes.get("settings").unwrap(), notes.get("finish").unwrap());
    assert_eq!((trees.seed, trees.steps), (5, 24));
    assert_eq!((finish.seed, finish.steps), (8, 3));
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
    let (values, labels) = table(200);
    let rows = Rows::new(&values, 3).unwrap();
    let fit = small().trees(1).clusters(false);
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
    assert_eq!(fitting.steps(), 3 * 24 + 3);
    assert_eq!(steps, (1..=fitting.steps()).collect::<Vec<_>>());
    assert_eq!(calls, 8);
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
        (1, 3)
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
        "row 1: expected a label from 0 to 1, or none, got 2",
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
    let unknown = std::collections::BTreeMap::from([("speed", 1)]);
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
