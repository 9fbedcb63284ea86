//! Samples have the frequencies that the model says: χ² tests with fixed seeds, and moments of real numbers.

mod random_models;
mod worlds;

use random_models::Draw;
use sumout::queries::{Neuron, View};
use sumout::structure::Kind;
use sumout::{Model, Predictor};
use worlds::{World, Worlds, agrees, complete_rows, tiny, with_holes};

const COUNT: usize = 20_000;

/// How far a χ² statistic lies from what chance gives, in standard deviations (Wilson and Hilferty 1931); cells that
/// expect less than five are put together.
fn surprise(counts: &[usize], probability: &[f64]) -> f64 {
    let total = counts.iter().sum::<usize>() as f64;
    assert!((probability.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    let (mut chi2, mut cells, mut rare) = (0.0, 0, (0.0, 0.0));
    for (&count, p) in counts.iter().zip(probability) {
        let expected = p * total;
        if expected < 5.0 {
            rare = (rare.0 + count as f64, rare.1 + expected);
        } else {
            chi2 += (count as f64 - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if rare.1 >= 5.0 {
        chi2 += (rare.0 - rare.1).powi(2) / rare.1;
        cells += 1;
    } else {
        assert!(
            rare.0 < 25.0,
            "cells that expect {} hold {}",
            rare.1,
            rare.0
        );
    }
    let free = f64::from((cells - 1).max(1));
    ((chi2 / free).powf(1.0 / 3.0) - (1.0 - 2.0 / (9.0 * free))) / (2.0 / (9.0 * free)).sqrt()
}

fn check(counts: &[usize], probability: &[f64]) {
    let surprise = surprise(counts, probability);
    assert!(surprise < 4.0, "{surprise}: {counts:?} {probability:?}");
}

fn count_rows(samples: &[f32], rows: &[Vec<f32>]) -> Vec<usize> {
    let width = rows[0].len();
    let mut counts = vec![0; rows.len()];
    for sample in samples.chunks(width) {
        counts[rows.iter().position(|row| row == sample).unwrap()] += 1;
    }
    counts
}

#[test]
fn rows_and_classes_have_their_frequencies() {
    for seed in 0..12 {
        let model = tiny(false, &mut Draw::new(seed));
        let (worlds, rows) = (Worlds::new(&model), complete_rows(&model.structure));
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let samples = predictor.sample(COUNT, None, seed).unwrap();
        let exact: Vec<f64> = rows
            .iter()
            .map(|row| worlds.probability(row, None))
            .collect();
        check(&count_rows(samples.rows.as_slice(), &rows), &exact);
        let of_class = |y| samples.classes.iter().filter(|&&class| class == y).count();
        let classes: Vec<usize> = (0..model.structure.classes).map(of_class).collect();
        check(
            &classes,
            &model
                .log_prior
                .iter()
                .map(|log| log.exp())
                .collect::<Vec<_>>(),
        );
        for y in 0..model.structure.classes {
            let samples = predictor.sample(COUNT, Some(y), 100 + seed).unwrap();
            assert!(samples.classes.iter().all(|&class| class == y));
            let exact: Vec<f64> = rows
                .iter()
                .map(|row| worlds.probability(row, Some(y)))
                .collect();
            check(&count_rows(samples.rows.as_slice(), &rows), &exact);
        }
    }
}

#[test]
fn a_completion_does_not_depend_on_the_rows_beside_it() {
    for seed in 0..20 {
        let draw = &mut Draw::new(700 + seed);
        let model = tiny(false, draw);
        let rows = complete_rows(&model.structure);
        let mut predictor = Predictor::new(model).unwrap();
        let given = with_holes(&rows[draw.from(0, rows.len() - 1)], 0.6, draw);
        let mut second = |first: &[f32]| {
            let both = [first, &given].concat();
            let both = predictor.model().rows(&both).unwrap();
            let filled = predictor.sample_given(both, None, seed).unwrap();
            filled.into_vec().split_off(given.len())
        };
        let expected = second(&rows[0]);
        assert!(rows.iter().all(|row| second(row) == expected), "{given:?}");
    }
}

#[test]
fn completions_have_their_frequencies_and_keep_what_is_observed() {
    for seed in 0..12 {
        let draw = &mut Draw::new(500 + seed);
        let model = tiny(false, draw);
        let (worlds, rows) = (Worlds::new(&model), complete_rows(&model.structure));
        let given = with_holes(&rows[draw.from(0, rows.len() - 1)], 0.6, draw);
        let mut predictor = Predictor::new(model.clone()).unwrap();
        for class in std::iter::once(None).chain((0..model.structure.classes).map(Some)) {
            let samples = predictor
                .sample_given(
                    predictor.model().rows(&given.repeat(COUNT)).unwrap(),
                    class,
                    seed,
                )
                .unwrap()
                .into_vec();
            assert!(
                samples
                    .chunks(given.len())
                    .all(|sample| agrees(sample, &given))
            );
            let whole = worlds.probability(&given, class);
            let of_row = |row: &Vec<f32>| {
                if agrees(row, &given) {
                    worlds.probability(row, class) / whole
                } else {
                    0.0
                }
            };
            check(
                &count_rows(&samples, &rows),
                &rows.iter().map(of_row).collect::<Vec<_>>(),
            );
        }
    }
}

#[test]
fn real_completions_have_their_moments() {
    for seed in 0..10 {
        let draw = &mut Draw::new(800 + seed);
        let model = tiny(true, draw);
        let given = with_holes(&worlds::row(&model, draw), 0.6, draw);
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let samples = predictor
            .sample_given(
                predictor.model().rows(&given.repeat(COUNT)).unwrap(),
                None,
                seed,
            )
            .unwrap()
            .into_vec();
        let exact = predictor
            .impute_mean(predictor.model().rows(&given).unwrap(), None)
            .unwrap(); // which all_worlds.rs checks
        let n = COUNT as f64;
        for column in 0..given.len() {
            let values: Vec<f64> = samples
                .iter()
                .skip(column)
                .step_by(given.len())
                .map(|&x| x.into())
                .collect();
            if !given[column].is_nan() {
                assert!(values.iter().all(|&x| x == f64::from(given[column])));
            } else if model.structure.row_kinds()[column] == Kind::Gaussian {
                let (mean, variance) = (
                    f64::from(exact.mean[(0, column)]),
                    f64::from(exact.variance[(0, column)]),
                );
                let ours = values.iter().sum::<f64>() / n;
                assert!(
                    (ours - mean).abs() < 4.5 * (variance / n).sqrt(),
                    "{ours} {mean}"
                );
                let spread = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                let fourth = values.iter().map(|x| (x - mean).powi(4)).sum::<f64>() / n;
                assert!(
                    (spread - variance).abs() < 4.5 * ((fourth - variance * variance) / n).sqrt(),
                    "{spread} {variance}"
                );
            }
        }
    }
}

/// Which columns are below a neuron, by walking down the tree.
fn below(model: &Model, neuron: Neuron) -> Vec<bool> {
    let tree = &model.structure.trees[neuron.tree];
    let mut nodes = vec![neuron.node as u32];
    for l in (0..neuron.layer).rev() {
        nodes = nodes
            .iter()
            .flat_map(|&p| tree.levels[l].children[p as usize].clone())
            .collect();
    }
    let inputs: Vec<u32> = nodes
        .iter()
        .flat_map(|&i| tree.positions[i as usize].inputs.clone())
        .collect();
    model
        .structure
        .placement((0, 0))
        .iter()
        .map(|place| inputs.contains(place))
        .collect()
}

/// Samples below every neuron have the frequencies of the worlds in which it has its state; the mode is the best.
#[test]
fn neurons_are_explained() {
    for seed in 0..8 {
        let draw = &mut Draw::new(900 + seed);
        let model = tiny(false, draw);
        let (worlds, rows) = (Worlds::new(&model), complete_rows(&model.structure));
        let mut predictor = Predictor::new(model.clone()).unwrap();
        for _ in 0..4 {
            let tree = draw.from(0, model.structure.trees.len() - 1);
            let layer = draw.from(0, model.structure.trees[tree].levels.len());
            let node = draw.from(0, model.structure.trees[tree].nodes(layer) - 1);
            let channel = draw.from(0, model.structure.trees[tree].channels(layer) - 1);
            let neuron = Neuron {
                tree,
                layer,
                node,
                channel,
            };
            let below = below(&model, neuron);
            let mask = |row: &[f32]| -> Vec<f32> {
                row.iter()
                    .zip(&below)
                    .map(|(&x, &below)| if below { x } else { f32::NAN })
                    .collect()
            };
            let fits = |world: &&World| world.tree == tree && world.states[layer][node] == channel;
            let fitting: Vec<&World> = worlds.all.iter().filter(fits).collect();
            let total: f64 = fitting.iter().map(|world| world.prior).sum();

            let samples = predictor
                .explain(neuron, View::Samples { count: COUNT, seed })
                .unwrap()
                .into_vec();
            assert_eq!(samples.len(), COUNT * below.len());
            // the numbers that are not below are 0 in every cell
            let zeros: Vec<Vec<f32>> = rows
                .iter()
                .filter(|row| row.iter().zip(&below).all(|(&x, &below)| below || x == 0.0))
                .cloned()
                .collect();
            let filled: Vec<f32> = samples
                .iter()
                .map(|x| if x.is_nan() { 0.0 } else { *x })
                .collect();
            assert!(samples.chunks(below.len()).all(|sample| {
                sample
                    .iter()
                    .zip(&below)
                    .all(|(x, below)| x.is_nan() != *below)
            }));
            let exact = |row: &Vec<f32>| -> f64 {
                fitting
                    .iter()
                    .map(|world| world.prior / total * worlds.density(world, &mask(row), false))
                    .sum()
            };
            check(
                &count_rows(&filled, &zeros),
                &zeros.iter().map(exact).collect::<Vec<_>>(),
            );

            let mode = predictor.explain(neuron, View::Mode).unwrap().into_vec();
            assert!(
                mode.iter()
                    .zip(&below)
                    .all(|(x, below)| x.is_nan() != *below)
            );
            let best = best_below(&worlds, &fitting, neuron, &mode);
            let most = zeros
                .iter()
                .map(|row| best_below(&worlds, &fitting, neuron, &mask(row)))
                .fold(0.0, f64::max);
            assert!((best / most - 1.0).abs() < 1e-5, "{best} {most}");
        }
    }
}

/// The largest `P(states below, numbers | the neuron's state)`: what is above and beside is divided out, by summing
/// over all worlds with the same states below.
fn best_below(worlds: &Worlds, fitting: &[&World], neuron: Neuron, row: &[f32]) -> f64 {
    let tree = &worlds.model.structure.trees[neuron.tree];
    let mut inside = vec![vec![]; neuron.layer + 1];
    inside[neuron.layer] = vec![neuron.node as u32];
    for l in (0..neuron.layer).rev() {
        inside[l] = inside[l + 1]
            .iter()
            .flat_map(|&p| tree.levels[l].children[p as usize].clone())
            .collect();
    }
    let mut sums = std::collections::BTreeMap::new();
    let mut total = 0.0;
    for world in fitting {
        let key: Vec<Vec<usize>> = inside
            .iter()
            .enumerate()
            .map(|(l, nodes)| nodes.iter().map(|&n| world.states[l][n as usize]).collect())
            .collect();
        total += world.prior;
        let entry = sums
            .entry(key)
            .or_insert((0.0, worlds.density(world, row, false)));
        entry.0 += world.prior;
    }
    sums.values()
        .map(|(prior, density)| prior / total * density)
        .fold(0.0, f64::max)
}

/// The test itself.
#[test]
fn a_wrong_frequency_is_seen() {
    let uniform = [0.25; 4];
    assert!(surprise(&[250, 251, 249, 250], &uniform) < 4.0);
    assert!(surprise(&[310, 190, 250, 250], &uniform) > 4.0);
}

/// With nothing observed, responsibilities of leaves are how often their components are used.
#[test]
fn usage_is_what_responsibilities_say_of_nothing() {
    for seed in 0..10 {
        let draw = &mut Draw::new(seed);
        let structure = random_models::structure(draw);
        let weights = random_models::weights(&structure, 1.0, draw);
        let mut model = Model {
            weights,
            ..Model::random(structure.clone(), 1.0, seed)
        };
        let prior: Vec<f64> = (1..=structure.classes).map(|y| y as f64).collect();
        model.set_prior(&prior).unwrap();
        let mut predictor = Predictor::new(model).unwrap();
        let nothing = vec![f32::NAN; structure.width()];
        let nothing = predictor.model().rows(&nothing).unwrap();
        let expected = predictor.responsibilities(nothing, None).unwrap();
        for (tree, blueprint) in structure.trees.iter().enumerate() {
            for node in 0..blueprint.positions.len() {
                let neuron = Neuron {
                    tree,
                    layer: 0,
                    node,
                    channel: 0,
                };
                let usage = predictor.channel_usage(neuron).unwrap();
                for (d, p) in usage.iter().enumerate() {
                    let exact = f64::from(expected[tree][(0, node * usage.len() + d)]);
                    assert!((p - exact).abs() < 1e-5, "model {seed}: {p} {exact}");
                }
            }
        }
    }
}
