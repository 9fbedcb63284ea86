//! Questions in batches, in threads, shifted, by several models, and wrongly asked.

mod random_models;
mod worlds;

use random_models::Draw;
use sumout::internals::{Coordinate, Mixing};
use sumout::queries::{Ensemble, Neuron, View, predict_together, shifts};
use sumout::reference::Reference;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::{Error, Matrix, Model, Predictor, Rows};

/// A random model with a prior and a scaling of its own, and rows with holes; `spread` 30 needs the guard.
fn model_and_rows(seed: u64, spread: f64, count: usize) -> (Model, Vec<f32>) {
    let draw = &mut Draw::new(seed);
    let mut model = random_models::model(spread, draw);
    model.scaling = sumout::model::Scaling::uniform(0.5, 1.5);
    let rows = (0..count).flat_map(|_| {
        let row = worlds::row(&model, draw);
        worlds::with_holes(&row, 0.4, draw)
    });
    let rows = rows.collect();
    (model, rows)
}

/// The bits of every answer, one entry a question, (n, anything) each.
fn answers(predictor: &mut Predictor, values: &[f32]) -> Vec<Vec<u64>> {
    let class = Some(predictor.model().structure.classes - 1);
    let width = predictor.model().structure.width();
    let given = values.iter().enumerate().map(|(i, &x)| {
        if (i % width).is_multiple_of(3) {
            f32::NAN
        } else {
            x
        }
    });
    let given: Vec<f32> = given.collect();
    let rows = Rows::new(values, width).unwrap();
    let given = Rows::new(&given, width).unwrap();
    let scores = predictor.score(rows).unwrap();
    let shifted = predictor.score_shifted(rows, &shifts(1)).unwrap();
    let mut all = vec![
        wide(scores.posterior.as_slice()),
        wide(&scores.log_marginal),
        wide(shifted.posterior.as_slice()),
        wide(predictor.log_likelihood(rows).unwrap().as_slice()),
        wide(&predictor.log_marginal(rows).unwrap()),
        wide(predictor.posterior(rows).unwrap().as_slice()),
        predictor
            .predict(rows)
            .unwrap()
            .into_iter()
            .map(|y| y as u64)
            .collect(),
        wide(predictor.log_joint(rows, &shifts(1)).unwrap().as_slice()),
        narrow(&predictor.impute_mode(rows, None).unwrap()),
        narrow(&predictor.impute_mode(rows, class).unwrap()),
        wide(&predictor.log_conditional(rows, given).unwrap()),
    ];
    for class in [None, class] {
        let imputed = predictor.impute_mean(rows, class).unwrap();
        all.extend([narrow(&imputed.mean), narrow(&imputed.variance)]);
        all.extend(
            predictor
                .responsibilities(rows, class)
                .unwrap()
                .iter()
                .map(narrow),
        );
    }
    all
}

fn wide(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn narrow(values: &Matrix<f32>) -> Vec<u64> {
    let bits = |x: &f32| x.to_bits().into();
    values.as_slice().iter().map(bits).collect()
}

#[test]
fn rows_are_answered_alone_as_in_a_batch() {
    for seed in 0..24 {
        let count = 9;
        let (model, rows) = model_and_rows(seed, [1.0, 30.0][seed as usize % 2], count);
        let width = model.structure.width();
        let mut predictor = Predictor::new(model).unwrap();
        let together = answers(&mut predictor, &rows);
        for (b, row) in rows.chunks(width).enumerate() {
            let alone = answers(&mut predictor, row);
            for (question, (alone, together)) in alone.iter().zip(&together).enumerate() {
                assert_eq!(
                    alone[..],
                    together[b * alone.len()..(b + 1) * alone.len()],
                    "question {question}"
                );
            }
        }
    }
}

/// More rows than one piece holds, and completions that do not depend on what stands before them in the batch.
#[test]
fn pieces_do_not_show() {
    let (model, rows) = model_and_rows(3, 1.0, 1100);
    let width = model.structure.width();
    let mut predictor = Predictor::new(model).unwrap();
    let scores = predictor
        .log_likelihood(predictor.model().rows(&rows).unwrap())
        .unwrap()
        .into_vec();
    let means = predictor
        .impute_mean(predictor.model().rows(&rows).unwrap(), None)
        .unwrap()
        .mean
        .into_vec();
    let draws = predictor
        .sample_given(predictor.model().rows(&rows).unwrap(), None, 5)
        .unwrap()
        .into_vec();
    let modes = predictor
        .impute_mode(predictor.model().rows(&rows).unwrap(), None)
        .unwrap()
        .into_vec();
    let half = 600 * width;
    let k = predictor.model().structure.classes;
    assert_eq!(
        predictor
            .log_likelihood(predictor.model().rows(&rows[half..]).unwrap())
            .unwrap()
            .into_vec(),
        scores[600 * k..]
    );
    assert_eq!(
        predictor
            .impute_mean(predictor.model().rows(&rows[half..]).unwrap(), None)
            .unwrap()
            .mean
            .into_vec(),
        means[half..]
    );
    assert_eq!(
        predictor
            .impute_mode(predictor.model().rows(&rows[half..]).unwrap(), None)
            .unwrap()
            .into_vec(),
        modes[half..]
    );
    assert_eq!(
        predictor
            .sample_given(predictor.model().rows(&rows[..half]).unwrap(), None, 5)
            .unwrap()
            .into_vec(),
        draws[..half]
    );
    assert_ne!(
        predictor
            .sample_given(predictor.model().rows(&rows[..half]).unwrap(), None, 6)
            .unwrap()
            .into_vec(),
        draws[..half]
    );
    // every row has draws of its own, also in the second piece
    let structure = Structure::sequence(3)
        .components(2)
        .level(3, 2, Sharing::Own)
        .classes(2)
        .build()
        .unwrap();
    let draws = Predictor::new(Model::random(structure, 1.0, 1))
        .unwrap()
        .sample_given(Rows::new(&[f32::NAN; 3 * 1100], 3).unwrap(), None, 1)
        .unwrap();
    let distinct: std::collections::BTreeSet<Vec<u32>> = draws
        .iter()
        .map(|row| row.iter().map(|x| x.to_bits()).collect())
        .collect();
    assert_eq!(distinct.len(), 1100);
}

#[test]
fn threads_change_no_bit() {
    for (seed, spread) in [(5, 1.0), (6, 30.0), (7, 1.0), (8, 30.0)] {
        let (model, rows) = model_and_rows(seed, spread, 150);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let mut predictor = Predictor::new(model.clone()).unwrap();
                let mut all = answers(&mut predictor, &rows);
                let asked = predictor.model().rows(&rows).unwrap();
                all.push(narrow(&predictor.sample_given(asked, None, 2).unwrap()));
                all.push(narrow(&predictor.sample(100, None, 2).unwrap().rows));
                let neuron = Neuron {
                    tree: 0,
                    layer: 1,
                    node: 0,
                    channel: 0,
                };
                all.push(narrow(
                    &predictor
                        .explain(
                            neuron,
                            View::Samples {
                                count: 100,
                                seed: 2,
                            },
                        )
                        .unwrap(),
                ));
                all.push(narrow(&predictor.explain(neuron, View::Mode).unwrap()));
                all
            })
        };
        let one = run(1);
        assert!(run(2) == one && run(5) == one);
    }
}

#[test]
fn nothing_observed_gives_the_prior() {
    for seed in 0..10 {
        let (model, _) = model_and_rows(seed, 30.0, 0);
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let row = vec![f32::NAN; model.structure.width()];
        assert_eq!(
            predictor
                .log_likelihood(predictor.model().rows(&row).unwrap())
                .unwrap()
                .into_vec(),
            vec![0.0; model.structure.classes]
        );
        let prior: Vec<f64> = model.log_prior.iter().map(|log| log.exp()).collect();
        assert_eq!(
            predictor
                .posterior(predictor.model().rows(&row).unwrap())
                .unwrap()
                .into_vec(),
            prior
        );
        let rows = model.rows(&row).unwrap();
        assert_eq!(predictor.log_marginal(rows).unwrap(), [0.0]);
    }
}

/// Every shift, with the image laid in its frame by hand.
#[test]
fn shifts_move_the_image_in_the_frame() {
    let spec = ImageSpec {
        frame: (4, 5),
        levels: vec![
            LevelSpec::square(2, 3, Sharing::Own),
            LevelSpec::all(4, Sharing::Own),
        ],
        channels: 2,
        components: 3,
        ..ImageSpec::new(3, 3)
    };
    let structure = spec.structure(2).unwrap();
    let weights = random_models::weights(&structure, 1.0, &mut Draw::new(1));
    let mut model = Model {
        weights,
        ..Model::random(structure, 0.0, 0)
    };
    model.set_prior(&[0.2, 0.8]).unwrap();
    model.scaling = sumout::model::Scaling::uniform(1.0, 3.0);
    let draw = &mut Draw::new(2);
    let row = worlds::with_holes(&worlds::row(&model, draw), 0.2, draw);
    let reference = Reference::new(&model.structure, &model.weights);
    let mut exact = model.log_prior.clone();
    for (down, right) in shifts(2) {
        let mut frame = vec![f32::NAN; 4 * 5 * 2];
        let mut seen = 0;
        for (y, x, c) in (0..3).flat_map(|y| (0..3).flat_map(move |x| [(y, x, 0), (y, x, 1)])) {
            let (top, left, value) = (y + down, 1 + x + right, row[((y * 3 + x) * 2 + c) as usize]);
            if (0..4).contains(&top) && (0..5).contains(&left) {
                frame[((top * 5 + left) * 2 + c) as usize] = (value - 1.0) * 3.0;
                seen += usize::from(!value.is_nan());
            }
        }
        let up = reference.forward(&frame, &|_, _, _| false);
        exact
            .iter_mut()
            .zip(up.log_likelihood)
            .for_each(|(sum, log)| *sum += log + seen as f64 * 3f64.ln());
    }
    let ours = Predictor::new(model)
        .unwrap()
        .log_joint(Rows::new(&row, 18).unwrap(), &shifts(2))
        .unwrap()
        .into_vec();
    assert!(
        ours.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-3),
        "{ours:?} {exact:?}"
    );
}

#[test]
fn an_ensemble_averages_posteriors() {
    let draw = &mut Draw::new(9);
    let member = |spread| {
        Model::random(
            Structure::sequence(5)
                .components(3)
                .level(5, 4, Sharing::Own)
                .classes(3)
                .build()
                .unwrap(),
            spread,
            4,
        )
    };
    let rows: Vec<f32> = (0..20 * 5).map(|_| draw.0.normal() as f32).collect();
    let mut members: Vec<Predictor> = [0.5, 1.0, 2.0]
        .map(member)
        .into_iter()
        .map(|model| Predictor::new(model).unwrap())
        .collect();
    let asked = Rows::new(&rows, 5).unwrap();
    let each: Vec<Vec<f64>> = members
        .iter_mut()
        .map(|member| {
            member
                .posterior(member.model().rows(&rows).unwrap())
                .unwrap()
                .into_vec()
        })
        .collect();
    let log_marginals: Vec<Vec<f64>> = members
        .iter_mut()
        .map(|member| member.log_marginal(asked).unwrap())
        .collect();
    let mut ensemble = Ensemble::new(members).unwrap();
    let posterior = ensemble.posterior(asked).unwrap().into_vec();
    let scores = ensemble.score(asked, &[(0, 0)]).unwrap();
    for (row, log) in scores.log_marginal.iter().enumerate() {
        let sum: f64 = log_marginals.iter().map(|logs| logs[row].exp()).sum();
        assert!((log - (sum / 3.0).ln()).abs() < 1e-9);
    }
    let apart = |(a, b): (&f64, &f64)| (a - b).abs();
    let pairs = scores.posterior.as_slice().iter().zip(&posterior);
    assert!(pairs.map(apart).fold(0.0, f64::max) < 1e-6);
    for (i, p) in posterior.iter().enumerate() {
        assert!((p - each.iter().map(|each| each[i]).sum::<f64>() / 3.0).abs() < 1e-12);
    }
    for (y, p) in ensemble
        .predict(asked)
        .unwrap()
        .into_iter()
        .zip(posterior.chunks(3))
    {
        assert!(p.iter().all(|&other| other <= p[y]));
    }
    assert_eq!(ensemble.members().len(), 3);
    assert_eq!(
        Ensemble::new(vec![]).err(),
        Some(Error::Empty {
            what: "member of an ensemble"
        })
    );
    let other = Model::random(
        Structure::sequence(4)
            .components(3)
            .level(4, 4, Sharing::Own)
            .classes(3)
            .build()
            .unwrap(),
        1.0,
        4,
    );
    let message = Ensemble::new(vec![
        Predictor::new(member(1.0)).unwrap(),
        Predictor::new(other).unwrap(),
    ])
    .err()
    .unwrap()
    .to_string();
    assert_eq!(
        message,
        "ensemble: expected rows of 5 and 3 classes, got rows of 4 and 3 classes"
    );
}

#[test]
fn wrong_questions_get_a_clear_error() {
    let kinds = [Kind::Gaussian, Kind::Categorical(3), Kind::Bernoulli];
    let structure = Structure::table(&kinds)
        .window(2)
        .components(2)
        .channels([2])
        .classes(2)
        .build()
        .unwrap();
    let p = &mut Predictor::new(Model::random(structure, 1.0, 1)).unwrap();
    fn says<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
        assert_eq!(result.unwrap_err().to_string(), message)
    }
    says(
        p.model().rows(&[0.0; 4]),
        "numbers: expected rows of 3, got 4",
    );
    let two = Rows::new(&[0.0; 4], 2).unwrap();
    let message = "rows: expected 3 columns, got 2";
    says(p.posterior(two), message);
    says(p.score(two), message);
    says(p.impute_mean(two, None), message);
    says(p.impute_mode(two, None), message);
    says(p.sample_given(two, None, 1), message);
    says(p.responsibilities(two, None), message);
    let three = Rows::new(&[0.0; 3], 3).unwrap();
    says(
        p.log_joint(three, &[]),
        "expected at least one shift, got none",
    );
    let together = |models: Vec<Model>| {
        let members = models.into_iter().map(Predictor::new);
        let mut members = members.collect::<Result<Vec<_>, _>>().unwrap();
        predict_together(&mut members, three, &[(0, 0)])
            .unwrap_err()
            .to_string()
    };
    let more = Structure::table(&kinds)
        .window(2)
        .components(2)
        .channels([2])
        .classes(3)
        .build()
        .unwrap();
    let both = vec![p.model().clone(), Model::random(more, 1.0, 1)];
    assert_eq!(together(both), "classes of a model: expected 2, got 3");
    let narrow = Structure::table(&[Kind::Gaussian])
        .window(2)
        .components(2)
        .channels([2])
        .classes(2)
        .build()
        .unwrap();
    let both = vec![p.model().clone(), Model::random(narrow, 1.0, 1)];
    assert_eq!(
        together(both),
        "numbers in a row of a model: expected 3, got 1"
    );
    assert_eq!(together(vec![]), "expected at least one model, got none");
    let message =
        "row index 0, column index 0: expected a finite number or NaN for missing, got inf";
    says(
        p.log_likelihood(p.model().rows(&[f32::INFINITY, 0.0, 0.0]).unwrap()),
        message,
    );
    says(
        p.log_conditional(
            p.model().rows(&[0.0; 3]).unwrap(),
            p.model().rows(&[0.0; 6]).unwrap(),
        ),
        "what is given: expected 3 numbers as in the rows, got 6",
    );
    let message =
        "what is given, row index 1, column index 1: expected NaN as in the rows, or NaN, got 2";
    says(
        p.log_conditional(
            p.model()
                .rows(&[0.0, 1.0, 1.0, 0.0, f32::NAN, 1.0])
                .unwrap(),
            p.model().rows(&[0.0, 1.0, 1.0, 0.0, 2.0, 1.0]).unwrap(),
        ),
        message,
    );
    let message = "row index 0, column index 1: expected a whole number from 0 to 2 or NaN for missing, got 3";
    assert_eq!(
        p.impute_mode(p.model().rows(&[0.0, 3.0, 0.0]).unwrap(), None)
            .unwrap_err()
            .to_string(),
        message
    );
    let class = "class: expected a number from 0 to 1, got 2";
    assert_eq!(
        p.impute_mean(p.model().rows(&[0.0; 3]).unwrap(), Some(2))
            .unwrap_err()
            .to_string(),
        class
    );
    assert_eq!(
        p.impute_mode(p.model().rows(&[0.0; 3]).unwrap(), Some(2))
            .unwrap_err()
            .to_string(),
        class
    );
    assert_eq!(
        p.responsibilities(p.model().rows(&[0.0; 3]).unwrap(), Some(2))
            .unwrap_err()
            .to_string(),
        class
    );
    assert_eq!(p.sample(1, Some(2), 0).unwrap_err().to_string(), class);
    assert_eq!(
        p.sample_given(p.model().rows(&[0.0; 3]).unwrap(), Some(2), 0)
            .unwrap_err()
            .to_string(),
        class
    );
    let probabilities = |p: &mut Predictor, column| {
        p.impute_probabilities(p.model().rows(&[0.0; 3]).unwrap(), &[column], None)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        probabilities(p, 0),
        "column 0: expected a discrete column, got real numbers"
    );
    assert_eq!(
        probabilities(p, 3),
        "column: expected a number from 0 to 2, got 3"
    );
    let explain = |p: &mut Predictor, tree, layer, node, channel| {
        p.explain(
            Neuron {
                tree,
                layer,
                node,
                channel,
            },
            View::Mode,
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        explain(p, 1, 0, 0, 0),
        "tree: expected a number from 0 to 0, got 1"
    );
    assert_eq!(
        explain(p, 0, 3, 0, 0),
        "level: expected 0 (the leaves) to 2 (the root), got 3"
    );
    assert_eq!(
        explain(p, 0, 1, 2, 0),
        "node: expected a number from 0 to 1, got 2"
    );
    assert_eq!(
        explain(p, 0, 1, 0, 2),
        "channel: expected a number from 0 to 1, got 2"
    );
}

/// A model whose parts do not fit each other is an error at once, not a panic later.
#[test]
fn a_model_that_cannot_answer_is_refused() {
    let structure = Structure::table(&[Kind::Gaussian; 3]).classes(2).build();
    let good = Model::random(structure.unwrap(), 1.0, 1);
    Predictor::new(good.clone()).unwrap();
    let refused = |change: &dyn Fn(&mut Model), message: &str| {
        let mut model = good.clone();
        change(&mut model);
        let error = Predictor::new(model).err().expect(message).to_string();
        assert!(error.contains(message), "{error}");
    };
    refused(&|m| m.scaling.scale = vec![1.0; 2], "1 or 3 numbers, got 2");
    refused(
        &|m| m.log_prior = vec![0.0],
        "expected 2 numbers that sum to 1",
    );
    refused(&|m| m.structure.classes = 3, "log_prior");
    refused(&|m| m.structure.kinds.truncate(2), "structure");
    refused(&|m| m.structure.trees[0].components += 1, "tree0");
    refused(
        &|m| drop(m.weights.trees.pop()),
        "expected weights of 1 trees",
    );
    refused(&|m| m.about.columns = vec!["a".into()], "names of columns");
}

/// Scores are exact: in the middle, where classes are too far apart for f32, and where a row is too far away for
/// log-likelihoods to tell classes apart.
#[test]
fn scores_agree_with_the_posterior_and_the_log_joint() {
    for seed in 0..24 {
        let (model, rows) = model_and_rows(seed, [1.0, 30.0][seed as usize % 2], 40);
        let log_prior = model.log_prior.clone();
        let rows = model.rows(&rows).unwrap();
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let scores = predictor.score(rows).unwrap();
        let log_joint = predictor.log_joint(rows, &[(0, 0)]).unwrap();
        assert_eq!(scores.log_marginal, predictor.log_marginal(rows).unwrap());
        assert_eq!(scores.classes(), scores.posterior.argmax());
        for row in 0..rows.len() {
            assert!(!scores.is_far(row));
            for y in 0..log_prior.len() {
                let exact = (log_joint[(row, y)] - scores.log_marginal[row]).exp();
                let ours = scores.posterior[(row, y)];
                assert!(
                    (ours - exact).abs() <= 1e-5 * exact + 1e-30,
                    "{ours} {exact}"
                );
            }
        }
    }
}

/// Two classes of one density, which their prior alone tells apart: 8 to 1, at any distance. The third one's density is
/// far below theirs, too far for f32.
#[test]
fn a_row_far_away_is_scored_by_what_tells_classes_apart() {
    let structure = Structure::table(&[Kind::Gaussian])
        .components(2)
        .channels([2]);
    let mut model = Model::random(structure.classes(3).build().unwrap(), 0.0, 1);
    model.set_prior(&[0.8, 0.1, 0.1]).unwrap();
    let only = |same: bool| if same { 0.0 } else { f32::NEG_INFINITY };
    let tree = &mut model.weights.trees[0];
    tree.families[0].coordinates[0] = Coordinate::Gaussian {
        mean: vec![0.0, -1.0],
        log_sigma: vec![0.0; 2],
    };
    tree.levels[0] = Mixing::from_logits(1, 2, 2, |_, c, a| only(c == a));
    model.weights.classes = Mixing::from_logits(1, 3, 2, |_, y, a| only((y == 2) == (a == 1)));
    let mut predictor = Predictor::new(model).unwrap();
    let rows = Rows::new(&[1e3, 1e10, 1e13], 1).unwrap();
    let scores = predictor.score(rows).unwrap();
    for (row, posterior) in scores.posterior.iter().enumerate() {
        assert!((posterior[0] - 8.0 / 9.0).abs() < 1e-6, "{posterior:?}");
        assert!((posterior[1] - 1.0 / 9.0).abs() < 1e-6, "{posterior:?}");
        assert_eq!(scores.is_far(row), row > 0);
    }
}

/// A predictor may move to another thread.
#[test]
fn predictors_can_be_sent() {
    fn sent<T: Send>(value: T) -> T {
        value
    }
    let (model, rows) = model_and_rows(2, 1.0, 5);
    let mut predictor = sent(Predictor::new(model).unwrap());
    let here = predictor
        .posterior(predictor.model().rows(&rows).unwrap())
        .unwrap()
        .into_vec();
    let there = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                predictor
                    .posterior(predictor.model().rows(&rows).unwrap())
                    .unwrap()
                    .into_vec()
            })
            .join()
            .unwrap()
    });
    assert_eq!(here, there);
}

/// No rows are no error.
#[test]
fn nothing_asked_nothing_answered() {
    let (model, _) = model_and_rows(1, 1.0, 0);
    let none = model.rows(&[]).unwrap();
    let mut predictor = Predictor::new(model).unwrap();
    assert_eq!(predictor.posterior(none).unwrap().rows(), 0);
    assert_eq!(predictor.impute_mean(none, None).unwrap().mean.rows(), 0);
    let probabilities = predictor.impute_probabilities(none, &[], None);
    assert!(probabilities.unwrap().is_empty());
    assert_eq!(predictor.sample(0, None, 1).unwrap().rows.rows(), 0);
    assert_eq!(predictor.sample_given(none, None, 1).unwrap().rows(), 0);
    assert_eq!(predictor.impute_mode(none, None).unwrap().rows(), 0);
}

/// What the model gives probability zero has no completion: its holes stay, and its posterior is the prior.
#[test]
fn what_cannot_be_stays_missing() {
    let kinds = [Kind::Bernoulli, Kind::Gaussian];
    let structure = Structure::table(&kinds)
        .window(2)
        .components(1)
        .channels([1])
        .classes(2)
        .build()
        .unwrap();
    let mut model = Model::random(structure, 1.0, 1);
    model.weights.trees[0].families[0].coordinates[0] = sumout::internals::Coordinate::Discrete {
        logits: vec![0.0, f32::NEG_INFINITY],
    };
    let mut predictor = Predictor::new(model).unwrap();
    let row = [1.0, f32::NAN];
    assert_eq!(
        predictor
            .log_marginal(predictor.model().rows(&row).unwrap())
            .unwrap(),
        [f64::NEG_INFINITY]
    );
    assert_eq!(
        predictor
            .posterior(predictor.model().rows(&row).unwrap())
            .unwrap()
            .into_vec(),
        [0.5, 0.5]
    );
    let scores = predictor.score(predictor.model().rows(&row).unwrap());
    assert_eq!(scores.unwrap().posterior.into_vec(), [0.5, 0.5]);
    assert!(
        predictor
            .impute_mean(predictor.model().rows(&row).unwrap(), None)
            .unwrap()
            .mean[(0, 1)]
            .is_nan()
    );
    assert!(
        predictor
            .sample_given(predictor.model().rows(&row).unwrap(), None, 1)
            .unwrap()
            .into_vec()[1]
            .is_nan()
    );
}

#[test]
fn a_mixture_is_the_average_of_its_models() {
    let (first, rows) = model_and_rows(3, 1.0, 20);
    let draw = &mut Draw::new(9);
    let second = Model {
        weights: random_models::weights(&first.structure, 1.0, draw),
        ..first.clone()
    };
    let mixture = Model::mixture(vec![first.clone(), second.clone()]).unwrap();
    mixture.check().unwrap();
    let rows = first.rows(&rows).unwrap();
    let [a, b, both] = [first.clone(), second, mixture].map(|model| {
        let mut predictor = Predictor::new(model).unwrap();
        predictor.log_likelihood(rows).unwrap().into_vec()
    });
    for i in 0..both.len() {
        let mean = (0.5 * (a[i].exp() + b[i].exp())).ln();
        assert!(
            (both[i] - mean).abs() < 1e-5 * mean.abs().max(1.0),
            "{i}: {} {mean}",
            both[i]
        );
    }
    let mut other = first.clone();
    other.scaling = sumout::model::Scaling::default();
    assert!(
        Model::mixture(vec![first, other])
            .unwrap_err()
            .to_string()
            .contains("the same inputs")
    );
    assert!(Model::mixture(Vec::new()).is_err());
}
