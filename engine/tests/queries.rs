//! Questions in batches, in threads, shifted, by several models, and wrongly asked.

mod random_models;
mod worlds;

use random_models::Draw;
use sumout::queries::ensemble::{Ensemble, predict_together};
use sumout::queries::explain::{Neuron, View};
use sumout::queries::predictor::{Predictor, shifts};
use sumout::reference::Reference;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::{Error, Model};

/// A random model with a prior and a scaling of its own, and rows with holes; `spread` 30 needs the guard.
fn model_and_rows(seed: u64, spread: f64, count: usize) -> (Model, Vec<f32>) {
    let draw = &mut Draw::new(seed);
    let structure = random_models::structure(draw);
    let weights = random_models::weights(&structure, spread, draw);
    let mut model = Model {
        weights,
        ..Model::random(structure, 0.0, 0)
    };
    let prior: Vec<f64> = (0..model.structure.classes)
        .map(|_| 0.1 + draw.0.uniform())
        .collect();
    model.set_prior(&prior).unwrap();
    model.scaling = sumout::model::Scaling::uniform(0.5, 1.5);
    let rows = (0..count).flat_map(|_| {
        let row = worlds::row(&model, draw);
        worlds::with_holes(&row, 0.4, draw)
    });
    let rows = rows.collect();
    (model, rows)
}

/// The bits of every answer, one entry a question, (n, anything) each.
fn answers(predictor: &mut Predictor, rows: &[f32]) -> Vec<Vec<u64>> {
    let wide = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    let narrow = |values: Vec<f32>| {
        values
            .into_iter()
            .map(|x| x.to_bits().into())
            .collect::<Vec<u64>>()
    };
    let class = Some(predictor.model().structure.classes - 1);
    let width = predictor.model().structure.width();
    let given = rows.iter().enumerate().map(|(i, &x)| {
        if (i % width).is_multiple_of(3) {
            f32::NAN
        } else {
            x
        }
    });
    let given: Vec<f32> = given.collect();
    let mut all = vec![
        wide(predictor.log_likelihood(rows).unwrap()),
        wide(predictor.log_marginal(rows).unwrap()),
        wide(predictor.posterior(rows).unwrap()),
        predictor
            .predict(rows)
            .unwrap()
            .into_iter()
            .map(|y| y as u64)
            .collect(),
        wide(predictor.log_joint(rows, &shifts(1)).unwrap()),
        narrow(predictor.impute_mode(rows, None).unwrap()),
        narrow(predictor.impute_mode(rows, class).unwrap()),
        wide(predictor.log_conditional(rows, &given).unwrap()),
    ];
    for class in [None, class] {
        let imputed = predictor.impute_mean(rows, class).unwrap();
        all.extend([narrow(imputed.mean), narrow(imputed.variance)]);
        all.extend(
            predictor
                .responsibilities(rows, class)
                .unwrap()
                .into_iter()
                .map(narrow),
        );
    }
    all
}

#[test]
fn rows_are_answered_alone_as_in_a_batch() {
    for seed in 0..24 {
        let count = 9;
        let (model, rows) = model_and_rows(seed, [1.0, 30.0][seed as usize % 2], count);
        let width = model.structure.width();
        let mut predictor = Predictor::new(model);
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
    let mut predictor = Predictor::new(model);
    let scores = predictor.log_likelihood(&rows).unwrap();
    let means = predictor.impute_mean(&rows, None).unwrap().mean;
    let draws = predictor.sample_given(&rows, None, 5).unwrap();
    let modes = predictor.impute_mode(&rows, None).unwrap();
    let half = 600 * width;
    let k = predictor.model().structure.classes;
    assert_eq!(
        predictor.log_likelihood(&rows[half..]).unwrap(),
        scores[600 * k..]
    );
    assert_eq!(
        predictor.impute_mean(&rows[half..], None).unwrap().mean,
        means[half..]
    );
    assert_eq!(
        predictor.impute_mode(&rows[half..], None).unwrap(),
        modes[half..]
    );
    assert_eq!(
        predictor.sample_given(&rows[..half], None, 5).unwrap(),
        draws[..half]
    );
    assert_ne!(
        predictor.sample_given(&rows[..half], None, 6).unwrap(),
        draws[..half]
    );
    // every row has draws of its own, also in the second piece
    let structure = Structure::sequence(3, 1, 1, 2, &[(3, 2, Sharing::Own)], 2).unwrap();
    let draws = Predictor::new(Model::random(structure, 1.0, 1))
        .sample_given(&[f32::NAN; 3 * 1100], None, 1)
        .unwrap();
    let distinct: std::collections::BTreeSet<Vec<u32>> = draws
        .chunks(3)
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
                let mut predictor = Predictor::new(model.clone());
                let mut all = answers(&mut predictor, &rows);
                let narrow = |values: Vec<f32>| {
                    values
                        .into_iter()
                        .map(|x| x.to_bits().into())
                        .collect::<Vec<u64>>()
                };
                all.push(narrow(predictor.sample_given(&rows, None, 2).unwrap()));
                all.push(narrow(predictor.sample(100, None, 2).unwrap().rows));
                let neuron = Neuron {
                    tree: 0,
                    layer: 1,
                    node: 0,
                    channel: 0,
                };
                all.push(narrow(
                    predictor
                        .explain(
                            neuron,
                            View::Samples {
                                count: 100,
                                seed: 2,
                            },
                        )
                        .unwrap(),
                ));
                all.push(narrow(predictor.explain(neuron, View::Mode).unwrap()));
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
        let mut predictor = Predictor::new(model.clone());
        let row = vec![f32::NAN; model.structure.width()];
        assert_eq!(
            predictor.log_likelihood(&row).unwrap(),
            vec![0.0; model.structure.classes]
        );
        let prior: Vec<f64> = model.log_prior.iter().map(|log| log.exp()).collect();
        assert_eq!(predictor.posterior(&row).unwrap(), prior);
        assert!(predictor.log_marginal(&row).unwrap()[0].abs() < 1e-12);
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
        ..ImageSpec::new(3, 3, 2, (2, 2), 3)
    };
    let structure = Structure::image(&spec, 2).unwrap();
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
    let ours = Predictor::new(model).log_joint(&row, &shifts(2)).unwrap();
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
            Structure::sequence(5, 1, 1, 3, &[(5, 4, Sharing::Own)], 3).unwrap(),
            spread,
            4,
        )
    };
    let rows: Vec<f32> = (0..20 * 5).map(|_| draw.0.normal() as f32).collect();
    let mut members: Vec<Predictor> = [0.5, 1.0, 2.0]
        .map(member)
        .into_iter()
        .map(Predictor::new)
        .collect();
    let each: Vec<Vec<f64>> = members
        .iter_mut()
        .map(|member| member.posterior(&rows).unwrap())
        .collect();
    let mut ensemble = Ensemble::new(members).unwrap();
    let posterior = ensemble.posterior(&rows).unwrap();
    for (i, p) in posterior.iter().enumerate() {
        assert!((p - each.iter().map(|each| each[i]).sum::<f64>() / 3.0).abs() < 1e-12);
    }
    for (y, p) in ensemble
        .predict(&rows)
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
        Structure::sequence(4, 1, 1, 3, &[(4, 4, Sharing::Own)], 3).unwrap(),
        1.0,
        4,
    );
    let message = Ensemble::new(vec![Predictor::new(member(1.0)), Predictor::new(other)])
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
    let structure =
        Structure::columns(&kinds, &[vec![0], vec![1], vec![2]], 2, 2, &[2], 2).unwrap();
    let p = &mut Predictor::new(Model::random(structure, 1.0, 1));
    let says = |result: Result<Vec<f64>, Error>, message: &str| {
        assert_eq!(result.unwrap_err().to_string(), message)
    };
    says(p.posterior(&[0.0; 4]), "numbers: expected rows of 3, got 4");
    says(
        p.log_joint(&[0.0; 3], &[]),
        "expected at least one shift, got none",
    );
    let together = |members: &mut [Predictor]| {
        predict_together(members, &[0.0; 3], &[(0, 0)])
            .unwrap_err()
            .to_string()
    };
    let three = Structure::columns(&kinds, &[vec![0], vec![1], vec![2]], 2, 2, &[2], 3).unwrap();
    let both = [p.model().clone(), Model::random(three, 1.0, 1)];
    assert_eq!(
        together(&mut both.map(Predictor::new)),
        "classes of a model: expected 2, got 3"
    );
    let narrow = Structure::columns(&[Kind::Gaussian], &[vec![0]], 2, 2, &[2], 2).unwrap();
    let both = [p.model().clone(), Model::random(narrow, 1.0, 1)];
    assert_eq!(
        together(&mut both.map(Predictor::new)),
        "numbers in a row of a model: expected 3, got 1"
    );
    assert_eq!(together(&mut []), "expected at least one model, got none");
    let message = "row 0, column 0: expected a finite number or NaN for missing, got inf";
    says(p.log_likelihood(&[f32::INFINITY, 0.0, 0.0]), message);
    says(
        p.log_conditional(&[0.0; 3], &[0.0; 6]),
        "what is given: expected 3 numbers as in the rows, got 6",
    );
    let message = "what is given, row 1, column 1: expected NaN as in the rows, or NaN, got 2";
    says(
        p.log_conditional(
            &[0.0, 1.0, 1.0, 0.0, f32::NAN, 1.0],
            &[0.0, 1.0, 1.0, 0.0, 2.0, 1.0],
        ),
        message,
    );
    let message = "row 0, column 1: expected a whole number from 0 to 2 or NaN for missing, got 3";
    assert_eq!(
        p.impute_mode(&[0.0, 3.0, 0.0], None)
            .unwrap_err()
            .to_string(),
        message
    );
    let class = "class: expected a number from 0 to 1, got 2";
    assert_eq!(
        p.impute_mean(&[0.0; 3], Some(2)).unwrap_err().to_string(),
        class
    );
    assert_eq!(
        p.impute_mode(&[0.0; 3], Some(2)).unwrap_err().to_string(),
        class
    );
    assert_eq!(
        p.responsibilities(&[0.0; 3], Some(2))
            .unwrap_err()
            .to_string(),
        class
    );
    assert_eq!(p.sample(1, Some(2), 0).unwrap_err().to_string(), class);
    assert_eq!(
        p.sample_given(&[0.0; 3], Some(2), 0)
            .unwrap_err()
            .to_string(),
        class
    );
    let probabilities = |p: &mut Predictor, column| {
        p.impute_probabilities(&[0.0; 3], &[column], None)
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
        "neuron's tree: expected a number from 0 to 0, got 1"
    );
    assert_eq!(
        explain(p, 0, 3, 0, 0),
        "neuron's layer: expected a number from 0 to 2, got 3"
    );
    assert_eq!(
        explain(p, 0, 1, 2, 0),
        "neuron's node: expected a number from 0 to 1, got 2"
    );
    assert_eq!(
        explain(p, 0, 1, 0, 2),
        "neuron's channel: expected a number from 0 to 1, got 2"
    );
}

/// A predictor may move to another thread.
#[test]
fn predictors_can_be_sent() {
    fn sent<T: Send>(value: T) -> T {
        value
    }
    let (model, rows) = model_and_rows(2, 1.0, 5);
    let mut predictor = sent(Predictor::new(model));
    let here = predictor.posterior(&rows).unwrap();
    let there = std::thread::scope(|scope| {
        scope
            .spawn(|| predictor.posterior(&rows).unwrap())
            .join()
            .unwrap()
    });
    assert_eq!(here, there);
}

/// No rows are no error.
#[test]
fn nothing_asked_nothing_answered() {
    let (model, _) = model_and_rows(1, 1.0, 0);
    let mut predictor = Predictor::new(model);
    assert!(predictor.posterior(&[]).unwrap().is_empty());
    assert!(predictor.impute_mean(&[], None).unwrap().mean.is_empty());
    assert!(
        predictor
            .impute_probabilities(&[], &[], None)
            .unwrap()
            .is_empty()
    );
    assert!(predictor.sample(0, None, 1).unwrap().rows.is_empty());
    assert!(predictor.sample_given(&[], None, 1).unwrap().is_empty());
    assert!(predictor.impute_mode(&[], None).unwrap().is_empty());
}

/// What the model gives probability zero has no completion: its holes stay, and its posterior is the prior.
#[test]
fn what_cannot_be_stays_missing() {
    let kinds = [Kind::Bernoulli, Kind::Gaussian];
    let structure = Structure::columns(&kinds, &[vec![0], vec![1]], 2, 1, &[1], 2).unwrap();
    let mut model = Model::random(structure, 1.0, 1);
    model.weights.trees[0].families[0].coordinates[0] =
        sumout::layers::leaf::Coordinate::Discrete {
            logits: vec![0.0, f32::NEG_INFINITY],
        };
    let mut predictor = Predictor::new(model);
    let row = [1.0, f32::NAN];
    assert_eq!(predictor.log_marginal(&row).unwrap(), [f64::NEG_INFINITY]);
    assert_eq!(predictor.posterior(&row).unwrap(), [0.5, 0.5]);
    assert!(predictor.impute_mean(&row, None).unwrap().mean[1].is_nan());
    assert!(predictor.sample_given(&row, None, 1).unwrap()[1].is_nan());
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
    sumout::model::model_file::check(&mixture).unwrap();
    let [a, b, both] = [first.clone(), second, mixture]
        .map(|model| Predictor::new(model).log_likelihood(&rows).unwrap());
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
