//! Where f32 underflows: weights of e⁻¹⁰⁰, values of ±10⁶ and 10³⁰, thousands of positions. Every answer stays finite
//! and agrees with the slow evaluator in f64 log space.

mod random_models;

use random_models::{Draw, model};
use std::collections::BTreeMap;
use sumout::internals::{
    Activations, Batch, Coordinate, Keep, Mixing, Prepared, ScaledF64, log_sum_exp,
};
use sumout::model::Scaling;
use sumout::queries::predict_together;
use sumout::reference::Reference;
use sumout::structure::{Kind, OUTSIDE, Sharing, Structure, Tree};
use sumout::training::Data;
use sumout::{Matrix, Model, Predictor, Rows, Settings, Trainer};

/// Rows of data with holes and outliers.
fn rows(model: &Model, count: usize, missing: f64, reach: f32, draw: &mut Draw) -> Vec<f32> {
    let kinds = model.structure.row_kinds();
    let number = |kind: Kind, draw: &mut Draw| match kind {
        _ if draw.0.chance(missing) => f32::NAN,
        Kind::Gaussian if draw.0.chance(0.1) => reach * (2.0 * draw.0.uniform() - 1.0) as f32,
        Kind::Gaussian => draw.0.normal() as f32,
        Kind::Bernoulli => draw.0.below(2) as f32,
        Kind::Categorical(n) => draw.0.below(n as usize) as f32,
    };
    (0..count)
        .flat_map(|_| kinds.clone())
        .map(|kind| number(kind, draw))
        .collect()
}

/// Where each row of scores (n, k) is largest, the first where several are.
fn argmax(scores: &[f64], k: usize) -> Vec<usize> {
    let best = |row: &[f64]| (1..k).fold(0, |best, y| if row[y] > row[best] { y } else { best });
    scores.chunks_exact(k).map(best).collect()
}

/// Leaving out what cannot change the answer does not change the answer, of one model or of two together.
#[test]
fn predictions_over_shifts_are_those_of_the_scores() {
    let mut apart = 0;
    for seed in 0..60 {
        let mut draw = Draw::new(seed);
        let model = model(if seed % 2 == 0 { 30.0 } else { 3.0 }, &mut draw);
        let rows = rows(&model, 40, 0.2, 30.0, &mut draw);
        let k = model.structure.classes;
        let weights = random_models::weights(&model.structure, 10.0, &mut draw);
        let mut other = Predictor::new(Model {
            weights,
            ..model.clone()
        })
        .unwrap();
        let mut predictor = Predictor::new(model).unwrap();
        for reach in [0, 1] {
            let shifts = sumout::queries::shifts(reach);
            let scores = predictor
                .log_joint(predictor.model().rows(&rows).unwrap(), &shifts)
                .unwrap()
                .into_vec();
            let range = |row: &[f64]| {
                row.iter()
                    .fold(0.0, |most: f64, x| most.max((row[0] - x).abs()))
            };
            apart += scores.chunks(k).filter(|row| range(row) > 100.0).count(); // further than mantissas of f32 reach
            assert_eq!(
                predictor
                    .predict_shifted(predictor.model().rows(&rows).unwrap(), &shifts)
                    .unwrap(),
                argmax(&scores, k)
            );
            let sums: Vec<f64> = scores
                .iter()
                .zip(
                    other
                        .log_joint(other.model().rows(&rows).unwrap(), &shifts)
                        .unwrap()
                        .into_vec(),
                )
                .map(|(a, b)| a + b)
                .collect();
            let asked = predictor.model().rows(&rows).unwrap();
            let mut members = [predictor, other];
            assert_eq!(
                predict_together(&mut members, asked, &shifts).unwrap(),
                argmax(&sums, k)
            );
            [predictor, other] = members;
        }
    }
    assert!(apart > 100, "{apart}");
    assert!(
        predict_together(&mut [], Rows::new(&[], 1).unwrap(), &[(0, 0)])
            .unwrap_err()
            .to_string()
            .contains("at least one model")
    );
}

/// Every answer to every row is a finite number.
fn check_finite(predictor: &mut Predictor, rows: &[f32]) {
    let finite = |values: &[f64]| assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
    let finite_f32 = |values: &[f32]| assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
    finite(
        &predictor
            .log_likelihood(predictor.model().rows(rows).unwrap())
            .unwrap()
            .into_vec(),
    );
    finite(
        &predictor
            .log_marginal(predictor.model().rows(rows).unwrap())
            .unwrap(),
    );
    let posterior = predictor
        .posterior(predictor.model().rows(rows).unwrap())
        .unwrap()
        .into_vec();
    finite(&posterior);
    for row in posterior.chunks(predictor.model().structure.classes) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
    }
    finite(
        &predictor
            .log_joint(
                predictor.model().rows(rows).unwrap(),
                &sumout::queries::shifts(1),
            )
            .unwrap()
            .into_vec(),
    );
    for class in [None, Some(0)] {
        let flows = predictor
            .responsibilities(predictor.model().rows(rows).unwrap(), class)
            .unwrap();
        flows.iter().for_each(|tree| finite_f32(tree.as_slice()));
        let trees = predictor.model().structure.trees.clone();
        for b in 0..rows.len() / predictor.model().structure.width() {
            let first = |(tree, flows): (&Tree, &Matrix<f32>)| -> f32 {
                flows.row(b)[..tree.components].iter().sum()
            };
            let sum: f32 = trees.iter().zip(&flows).map(first).sum();
            assert!((sum - 1.0).abs() < 1e-4, "responsibilities sum to {sum}");
        }
        let imputed = predictor
            .impute_mean(predictor.model().rows(rows).unwrap(), class)
            .unwrap();
        finite_f32(imputed.mean.as_slice());
        finite_f32(imputed.variance.as_slice());
        finite_f32(
            &predictor
                .impute_mode(predictor.model().rows(rows).unwrap(), class)
                .unwrap()
                .into_vec(),
        );
        finite_f32(
            &predictor
                .sample_given(predictor.model().rows(rows).unwrap(), class, 1)
                .unwrap()
                .into_vec(),
        );
    }
}

/// Scores, posteriors, responsibilities and means of rows against `reference.rs`.
fn check_reference(predictor: &mut Predictor, rows: &[f32]) {
    let model = predictor.model().clone();
    let (s, k, width) = (
        &model.structure,
        model.structure.classes,
        model.structure.width(),
    );
    let reference = Reference::new(s, &model.weights);
    let scores = predictor
        .log_likelihood(predictor.model().rows(rows).unwrap())
        .unwrap()
        .into_vec();
    let posterior = predictor
        .posterior(predictor.model().rows(rows).unwrap())
        .unwrap()
        .into_vec();
    let flows = predictor
        .responsibilities(predictor.model().rows(rows).unwrap(), None)
        .unwrap();
    let imputed = predictor
        .impute_mean(predictor.model().rows(rows).unwrap(), None)
        .unwrap();
    let mut batch = sumout::internals::Batch::default();
    sumout::internals::fill(&model, rows, &mut batch);
    for b in 0..batch.rows {
        let up = reference.forward(batch.row(b), &|_, _, _| false);
        let joint: Vec<f64> = up
            .log_likelihood
            .iter()
            .zip(&model.log_prior)
            .map(|(score, prior)| score + prior)
            .collect();
        let whole = log_sum_exp(&joint);
        let exact: Vec<f64> = joint.iter().map(|log| (log - whole).exp()).collect();
        for y in 0..k {
            let (ours, exact) = (scores[b * k + y], up.log_likelihood[y]);
            assert!(
                (ours - exact).abs() <= 1e-4_f64.max(1e-6 * exact.abs()),
                "score {ours} {exact}"
            );
        }
        let largest = up
            .log_likelihood
            .iter()
            .map(|x| x.abs())
            .fold(0.0, f64::max);
        let tolerance = 1e-4 + 1e-15 * largest; // f64 holds the logarithm of a product no better
        if tolerance > 0.01 {
            continue;
        }
        for y in 0..k {
            assert!(
                (posterior[b * k + y] - exact[y]).abs() < tolerance,
                "posterior {} {}",
                posterior[b * k + y],
                exact[y]
            );
        }
        let down = reference.flows(&up, &exact);
        for (t, tree) in s.trees.iter().enumerate() {
            let m = tree.components;
            let row = flows[t].row(b);
            for (i, d) in (0..tree.positions.len()).flat_map(|i| (0..m).map(move |d| (i, d))) {
                let (ours, exact) = (f64::from(row[i * m + d]), down.leaves[&(t, i)][d]);
                assert!(
                    (ours - exact).abs() < tolerance,
                    "responsibility {ours} {exact}"
                );
            }
        }
        let means = means(&model, &down.leaves);
        for column in (0..width).filter(|&column| rows[b * width + column].is_nan()) {
            let ours = f64::from(imputed.mean[(b, column)]);
            if let Some(exact) = means[column] {
                assert!(
                    (ours - exact).abs() < 20.0 * tolerance,
                    "mean {ours} {exact}"
                );
            }
        }
    }
}

/// `Σ_t Σ_d r(d) μ_d` of every real column.
fn means(model: &Model, flows: &BTreeMap<(usize, usize), Vec<f64>>) -> Vec<Option<f64>> {
    let s = &model.structure;
    let places = s.placement((0, 0));
    let mut sums = vec![None; places.len()];
    for (t, tree) in s.trees.iter().enumerate() {
        for (i, position) in tree.positions.iter().enumerate() {
            let family = &model.weights.trees[t].families[position.family as usize];
            for (c, &input) in position
                .inputs
                .iter()
                .enumerate()
                .filter(|(_, input)| **input != OUTSIDE)
            {
                let column = places.iter().position(|&place| place == input);
                if let (Some(column), Coordinate::Gaussian { mean, .. }) =
                    (column, &family.coordinates[c])
                {
                    let part: f64 = flows[&(t, i)]
                        .iter()
                        .zip(mean)
                        .map(|(f, &mean)| f * f64::from(mean))
                        .sum();
                    *sums[column].get_or_insert(0.0) += part;
                }
            }
        }
    }
    sums
}

#[test]
fn random_models_of_extreme_weights_and_values() {
    for seed in 0..60 {
        let draw = &mut Draw::new(seed);
        let model = model([1.0, 10.0, 30.0, 60.0][seed as usize % 4], draw);
        let missing = 0.8 * draw.0.uniform();
        let rows = rows(
            &model,
            20,
            missing,
            [3.0, 1e4, 1e6][seed as usize % 3],
            draw,
        );
        let mut predictor = Predictor::new(model).unwrap();
        check_finite(&mut predictor, &rows);
        check_reference(&mut predictor, &rows);
    }
}

#[test]
fn values_of_any_size() {
    for seed in 0..30 {
        let draw = &mut Draw::new(100 + seed);
        let mut model = model([1.0, 30.0][seed as usize % 2], draw);
        model.scaling = Scaling::uniform(-3.0, 7.0);
        let rows = rows(&model, 20, 0.3, [1e30, f32::MAX][seed as usize % 2], draw);
        check_finite(&mut Predictor::new(model).unwrap(), &rows);
    }
}

/// A value of 10³⁰ leaves one component, as 10⁵ does; all else must be the same, although its log-density is −10⁵⁹ and
/// f64 logarithms of products with it forget everything else.
#[test]
fn an_outlier_does_not_drown_the_rest() {
    for (seed, spread) in (0..20).map(|seed| (seed, [1.0, 40.0][seed as usize % 2])) {
        let draw = &mut Draw::new(200 + seed);
        let levels = [(2, 4, Sharing::Own), (4, 5, Sharing::Own)];
        let structure = levels
            .iter()
            .fold(Structure::sequence(8), |s, &(window, channels, sharing)| {
                s.level(window, channels, sharing)
            })
            .components(3)
            .classes(2)
            .build()
            .unwrap();
        let weights = random_models::weights(&structure, spread, draw);
        let mut predictor = Predictor::new(Model {
            weights,
            ..Model::random(structure, 0.0, 0)
        })
        .unwrap();
        let mut row: Vec<f32> = (0..8).map(|_| draw.0.normal() as f32).collect();
        row[draw.from(1, 7)] = f32::NAN;
        let mut answers = |x: f32| {
            row[0] = x;
            let mode = predictor
                .impute_mode(predictor.model().rows(&row).unwrap(), Some(0))
                .unwrap()
                .into_vec()[1..]
                .to_vec();
            (
                predictor
                    .responsibilities(predictor.model().rows(&row).unwrap(), Some(0))
                    .unwrap(),
                mode,
                predictor
                    .posterior(predictor.model().rows(&row).unwrap())
                    .unwrap()
                    .into_vec(),
            )
        };
        let (far, farther) = (answers(1e5), answers(1e30));
        assert!(
            far.2
                .iter()
                .zip(&farther.2)
                .all(|(a, b)| (a - b).abs() < 1e-4),
            "{:?} {:?}",
            far.2,
            farther.2
        );
        for (a, b) in far.0[0].as_slice().iter().zip(farther.0[0].as_slice()) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
        assert!(
            far.1
                .iter()
                .zip(&farther.1)
                .all(|(a, b)| a == b || a.is_nan())
        );
    }
}

/// Sequences so long that a plain product would be e⁻³⁰⁰⁰.
#[test]
fn thousands_of_positions() {
    for (seed, levels) in [
        vec![(4096, 6, Sharing::Own)],
        vec![(2, 5, Sharing::Shared); 12],
        vec![(64, 5, Sharing::Own), (64, 7, Sharing::Own)],
    ]
    .into_iter()
    .enumerate()
    {
        let draw = &mut Draw::new(300 + seed as u64);
        let structure = levels
            .iter()
            .fold(
                Structure::sequence(3500),
                |s, &(window, channels, sharing)| s.level(window, channels, sharing),
            )
            .components(4)
            .classes(3)
            .build()
            .unwrap();
        let weights = random_models::weights(&structure, [1.0, 20.0][seed % 2], draw);
        let model = Model {
            weights,
            ..Model::random(structure, 0.0, 0)
        };
        let rows = rows(&model, 4, 0.3, 1e4, draw);
        let mut predictor = Predictor::new(model).unwrap();
        check_finite(&mut predictor, &rows);
        check_reference(&mut predictor, &rows);
        let sample = predictor.sample(3, None, 1).unwrap();
        assert!(sample.rows.as_slice().iter().all(|x| x.is_finite()));
    }
}

/// Three channels; the first, e¹⁰⁰ times as likely as the others, cannot make what is observed. So the others share it,
/// 7 to 3, though f32 holds neither.
#[test]
fn what_is_left_after_underflow_is_shared_exactly() {
    let kinds = [Kind::Gaussian, Kind::Gaussian];
    let structure = Structure::table(&kinds)
        .window(2)
        .components(2)
        .channels([3])
        .build()
        .unwrap();
    let mut model = Model::random(structure, 0.0, 0);
    let tree = &mut model.weights.trees[0];
    for (family, means) in tree.families.iter_mut().zip([[0.0, 1000.0], [-1.0, 5.0]]) {
        family.coordinates[0] = Coordinate::Gaussian {
            mean: means.to_vec(),
            log_sigma: vec![0.0; 2],
        };
    }
    let first = |c, a| {
        if c == 0 && a == 1 {
            -1000.0
        } else if c > 0 && a == 0 {
            -50.0
        } else {
            0.0
        }
    };
    let second = |c, a| if (c == 1) == (a == 0) { 0.0 } else { -60.0 };
    tree.levels[0] = Mixing::from_logits(2, 3, 2, |matrix, c, a| {
        if matrix == 0 {
            first(c, a)
        } else {
            second(c, a)
        }
    });
    model.weights.classes = Mixing::from_logits(1, 1, 3, |_, _, a| {
        [0.0, 0.7f32.ln() - 100.0, 0.3f32.ln() - 100.0][a]
    });
    let mut predictor = Predictor::new(model).unwrap();
    let row = [1000.0, f32::NAN]; // channel 1 says −1, channel 2 says 5
    let flows = predictor
        .responsibilities(predictor.model().rows(&row).unwrap(), None)
        .unwrap();
    let near =
        |ours: f32, exact: f64| assert!((f64::from(ours) - exact).abs() < 1e-4, "{ours} {exact}");
    near(flows[0][(0, 1)], 1.0);
    near(flows[0][(0, 2)], 0.7);
    let imputed = predictor
        .impute_mean(predictor.model().rows(&row).unwrap(), None)
        .unwrap();
    near(imputed.mean[(0, 1)], -0.7 + 1.5);
    near(imputed.variance[(0, 1)], 1.0 + 0.21 * 36.0);
    assert_eq!(
        predictor
            .impute_mode(predictor.model().rows(&row).unwrap(), None)
            .unwrap()
            .into_vec(),
        [1000.0, -1.0]
    );
    let draws = predictor
        .sample_given(
            predictor.model().rows(&row.repeat(10_000)).unwrap(),
            None,
            3,
        )
        .unwrap()
        .into_vec();
    let share = draws.chunks(2).filter(|row| row[1] < 2.0).count() as f64 / 1e4;
    assert!((share - 0.7).abs() < 0.02, "{share}");
}

/// The circuit is computed once for equal rows: each is answered as if it stood among others, to the bit.
#[test]
fn equal_rows_are_answered_like_single_ones() {
    for seed in 0..20 {
        let draw = &mut Draw::new(9000 + seed);
        let model = model(40.0, draw);
        let width = model.structure.width();
        let others = rows(&model, 6, 0.5, 1e4, draw);
        let row = rows(&model, 1, 0.5, 1e4, draw);
        let mut predictor = Predictor::new(model).unwrap();
        let mut answers = |rows: &[f32]| {
            let rows = Rows::new(rows, width).unwrap();
            let samples = predictor.sample_given(rows, None, seed).unwrap();
            let imputed = predictor.impute_mean(rows, None).unwrap();
            [samples, imputed.mean, imputed.variance]
        };
        let together = answers(&row.repeat(6));
        for b in 0..6 {
            let mut apart = others.clone();
            apart[b * width..(b + 1) * width].copy_from_slice(&row);
            for (apart, together) in answers(&apart).iter().zip(&together) {
                let bits = |m: &Matrix<f32>| m.row(b).iter().map(|x| x.to_bits()).collect();
                let (apart, together): (Vec<u32>, Vec<u32>) = (bits(apart), bits(together));
                assert_eq!(apart, together, "model {seed}, row {b}");
            }
        }
    }
}

/// Classes that share nothing lie further apart than the mantissas of one row reach; none of that needs the guard.
#[test]
fn classes_hundreds_of_nats_apart() {
    let structure = sumout::recipes::preset("mnist-cp").unwrap().structure;
    let mut model = Model::random(structure, 6.0, 5);
    let mut draw = Draw::new(8);
    for coordinate in &mut model.weights.trees[0].families[0].coordinates {
        let Coordinate::Gaussian { mean, log_sigma } = coordinate else {
            panic!("pixels are Gaussian")
        };
        mean.iter_mut()
            .for_each(|mean| *mean = draw.0.normal() as f32);
        log_sigma.fill(-1.0);
    }
    let rows: Vec<f32> = (0..70 * 784).map(|_| draw.0.normal() as f32).collect();
    let (prepared, reference) = (
        Prepared::new(&model.weights),
        Reference::new(&model.structure, &model.weights),
    );
    let (mut batch, mut activations) = (Batch::default(), Activations::new());
    sumout::internals::fill(&model, &rows, &mut batch);
    for keep in [Keep::Scores, Keep::Everything] {
        activations.forward(&model.structure, &prepared, &batch, &[], keep);
        assert!(activations.scores_to_recheck(10).is_empty());
        let mut widest = 0.0f64;
        for (b, ours) in activations
            .log_likelihood()
            .chunks(10)
            .enumerate()
            .step_by(23)
        {
            let pass = reference.forward(batch.row(b), &|_, _, _| false);
            for (ours, exact) in ours.iter().zip(&pass.log_likelihood) {
                assert!((ours - exact).abs() < 1e-6 * exact.abs(), "{ours} {exact}");
            }
            let (low, high) = ours.iter().fold((0.0f64, f64::MIN), |(low, high), &x| {
                (low.min(x), high.max(x))
            });
            widest = widest.max(high - low);
        }
        assert!(widest > 100.0, "{widest}");
    }
    let seeds: Vec<f32> = (0..700)
        .map(|i| if i % 10 == i / 10 % 10 { 1.0 } else { 0.0 })
        .collect();
    assert!(activations.gradients_to_recheck(10, &seeds).is_empty());
    activations.backward(&model.structure, &prepared, &seeds, true);
    let tree = &model.structure.trees[0];
    for b in (0..70).step_by(23) {
        let pass = reference.forward(batch.row(b), &|_, _, _| false);
        let seeds: Vec<f64> = seeds[b * 10..(b + 1) * 10]
            .iter()
            .map(|&seed| seed.into())
            .collect();
        let flows = reference.flows(&pass, &seeds);
        for (&(_, i), exact) in flows.leaves.iter().step_by(7) {
            let ours = activations.leaf_flow(0, tree, i, b).unwrap();
            ours.iter()
                .zip(exact)
                .for_each(|(&ours, exact)| assert!((f64::from(ours) - exact).abs() < 1e-4));
        }
    }
}

/// Classes too far apart for f32 but not for f64: the wide circuit gives the scores of the reference.
#[test]
fn wide_numbers_agree_with_the_reference() {
    let mut held = 0;
    for seed in 0..40 {
        let mut draw = Draw::new(seed);
        let structure = random_models::structure(&mut draw);
        let weights = random_models::weights(&structure, 12.0, &mut draw);
        let batch = random_models::batch(&structure, 7, 0.3, 30.0, &mut draw);
        let (wide, reference) = (
            ScaledF64::new(&structure, &weights),
            Reference::new(&structure, &weights),
        );
        let samples = [6, 0, 3, 2, 5];
        let ours = wide.scores(&structure, &weights, &batch, &samples);
        assert_eq!(ours.len(), samples.len());
        for (ours, b) in ours.iter().zip(samples) {
            let Some(ours) = ours else { continue };
            held += 1;
            let exact = reference.scores(batch.row(b));
            for (ours, exact) in ours.iter().zip(&exact) {
                assert!(
                    (ours - exact).abs() <= 1e-4f64.max(1e-6 * exact.abs()),
                    "{ours} {exact}"
                );
            }
        }
    }
    assert!(held > 150, "{held}");
}

/// A trained model and clean rows, whose children disagree at every level: no row is computed again, every class is as
/// the reference has it, and training computes no row again either.
#[test]
fn a_trained_model_needs_no_recheck() {
    let (model, values) = random_models::trained();
    let reference = Reference::new(&model.structure, &model.weights);
    let (k, width) = (model.structure.classes, model.structure.width());
    let rows = Rows::new(&values, width).unwrap();
    let mut predictor = Predictor::new(model.clone()).unwrap();
    let scores = predictor.log_likelihood(rows).unwrap();
    let posterior = predictor.score(rows).unwrap().posterior;
    predictor
        .score_shifted(rows, &sumout::queries::shifts(1))
        .unwrap();
    assert_eq!(predictor.recomputed(), 0);
    let mut batch = Batch::default();
    sumout::internals::fill(&model, &values, &mut batch);
    for b in (0..rows.len()).step_by(7) {
        let exact = reference.scores(batch.row(b));
        let whole = log_sum_exp(&exact); // the prior is uniform
        for y in 0..k {
            let (ours, exact, p) = (scores[(b, y)], exact[y], posterior[(b, y)]);
            assert!((ours - exact).abs() <= 1e-4, "{ours} {exact}");
            let share = (exact - whole).exp();
            assert!((p - share).abs() <= 1e-4 * share, "{p} {share}");
        }
    }
    let labels: Vec<Option<usize>> = (0..rows.len()).map(|row| Some((row + 1) % k)).collect();
    let settings = Settings {
        drop_inputs: 0.1,
        ..Settings::default()
    };
    let data = Data::new(rows, &labels); // all wrong, so that every class has its gradient
    let mut trainer = Trainer::from_model(model, settings, data).unwrap();
    for _ in 0..5 {
        trainer.advance().unwrap();
    }
    assert_eq!(trainer.recomputed(), 0);
}

/// What underflow takes from a class is at most the bound, also where that is neither nothing nor everything.
#[test]
fn the_bound_holds() {
    let (mut bounded, mut spoilt) = (0, 0);
    for seed in 0..400 {
        let draw = &mut Draw::new(7000 + seed);
        let structure = random_models::structure(draw);
        let spread = [3.0, 10.0, 30.0, 60.0][seed as usize % 4];
        let weights = random_models::weights(&structure, spread, draw);
        let batch = random_models::batch(&structure, 6, 0.1, 1e4, draw);
        let reference = Reference::new(&structure, &weights);
        let mut activations = Activations::new();
        let prepared = Prepared::new(&weights);
        activations.forward(&structure, &prepared, &batch, &[], Keep::Scores);
        let k = structure.classes;
        for b in 0..batch.rows {
            let exact = reference.scores(batch.row(b));
            let ours = &activations.log_likelihood()[b * k..(b + 1) * k];
            let bounds = activations.class_underflow_bounds(k, b);
            let known = |(_, bound): &(_, &f32)| bound.is_finite(); // else computed again
            for ((exact, ours), &bound) in exact.iter().zip(ours).zip(bounds).filter(known) {
                let most = f64::from(bound).ln_1p() + 1e-4f64.max(1e-6 * exact.abs());
                assert!(
                    exact - ours <= most,
                    "{seed}: {exact} {ours}, bound {bound}"
                );
                bounded += usize::from(bound < 1e-6);
                spoilt += usize::from(exact - ours > 0.01);
            }
        }
    }
    assert!(bounded > 1000 && spoilt > 5, "{bounded} {spoilt}");
}
