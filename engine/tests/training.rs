//! Training: gradients of the whole objective, the same bits for any number of threads, stopping and going on.

mod random_models;

use random_models::Draw;
use std::ops::ControlFlow;
use sumout::internals::{Mixing, Weights};
use sumout::model::Scaling;
use sumout::reference::Reference;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::training::{Checkpoint, Data, LeafStart, Prior, Progress, Rule, Schedule};
use sumout::{Error, Model, Rows, Settings, Trainer};

/// Two classes of 6×6 images, a bar that stands or lies, with noise, holes and some labels missing.
fn bars(rows: usize, seed: u64) -> (Vec<f32>, Vec<i64>) {
    let draw = &mut Draw::new(seed);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let (class, at) = (draw.from(0, 1), draw.from(0, 5));
        for (y, x) in (0..6).flat_map(|y| (0..6).map(move |x| (y, x))) {
            let ink = if [y, x][class] == at { 1.0 } else { 0.0 };
            let value = ink + 0.2 * draw.0.normal();
            values.push(if draw.0.chance(0.1) {
                f32::NAN
            } else {
                value as f32
            });
        }
        labels.push(if draw.0.chance(0.1) { -1 } else { class as i64 });
    }
    (values, labels)
}

fn small_structure() -> Structure {
    let spec = ImageSpec {
        frame: (8, 8),
        levels: vec![
            LevelSpec::square(2, 8, Sharing::Pattern(2, 2)),
            LevelSpec::square(2, 12, Sharing::Own),
            LevelSpec::all(16, Sharing::Own),
        ],
        patch: (1, 1),
        components: 4,
        ..ImageSpec::new(6, 6)
    };
    spec.structure(2).unwrap()
}

/// Images of [`bars`] with their labels.
fn data_of<'a>(values: &'a [f32], numbers: &[i64]) -> Data<'a> {
    Data::new(
        Rows::new(values, 36).unwrap(),
        &sumout::training::labels(numbers),
    )
}

/// A run of the small structure.
fn start<'a>(settings: Settings, data: &Data<'a>) -> sumout::Result<Trainer<'a>> {
    Trainer::start(
        small_structure(),
        Scaling::default(),
        settings,
        data.clone(),
    )
}

fn settings() -> Settings {
    Settings {
        steps: 60,
        batch: 100,
        generative: 0.05,
        drop_inputs: 0.3,
        drop_nodes: vec![0.05, 0.2, 0.1],
        shift: 1,
        leaf_rate: 0.1,
        validate_every: 20,
        ..Settings::default()
    }
}

/// Dirichlet-like random logits, random holes, random seeds: one SGD step of rate r moves every free parameter by
/// −r times the derivative, which finite differences of the reference's objective must equal.
#[test]
fn one_step_follows_the_finite_differences_of_the_whole_objective() {
    let kinds = [
        Kind::Gaussian,
        Kind::Bernoulli,
        Kind::Gaussian,
        Kind::Categorical(3),
        Kind::Gaussian,
    ];
    let orders = [
        vec![vec![0, 1], vec![2], vec![3, 4]],
        vec![vec![4, 2], vec![0, 3], vec![1]],
    ];
    let structure = Structure::table(&kinds)
        .trees(orders)
        .window(2)
        .components(3)
        .channels([4, 5])
        .classes(3)
        .build()
        .unwrap();
    let draw = &mut Draw::new(11);
    let batch = random_models::batch(&structure, 40, 0.3, 2.0, draw);
    let labels: Vec<i64> = (0..40)
        .map(|i| if i < 3 { i } else { draw.from(0, 3) as i64 - 1 })
        .collect();
    let row_weights: Vec<f32> = (0..40).map(|_| draw.0.uniform() as f32 + 0.1).collect();
    let mut model = Model::random(structure, 1.0, 5);
    model.weights = random_models::weights(&model.structure, 1.0, draw);
    model.set_prior(&[0.2, 0.5, 0.3]).unwrap();
    let (beta, lambda, rate) = (0.4, 0.01, 1e-2);
    let objective = |model: &Model| {
        let reference = Reference::new(&model.structure, &model.weights);
        let (mut sum, mut weight) = (0.0, 0.0);
        for b in 0..40 {
            let up = reference.forward(batch.row(b), &|_, _, _| false);
            let joint: Vec<f64> = up
                .log_likelihood
                .iter()
                .zip(&model.log_prior)
                .map(|(l, p)| l + p)
                .collect();
            let marginal = joint.iter().map(|j| j.exp()).sum::<f64>().ln();
            let label = usize::try_from(labels[b]).ok();
            let row = label.map_or(0.0, |y| marginal - joint[y]) - beta * marginal;
            sum += f64::from(row_weights[b]) * row;
            weight += f64::from(row_weights[b]);
        }
        let squares = |rows: &Vec<Vec<f64>>| {
            rows.iter()
                .flatten()
                .map(|log| (2.0 * log).exp())
                .sum::<f64>()
        };
        let penalty: f64 = reference
            .log_w
            .iter()
            .flatten()
            .flatten()
            .map(squares)
            .sum::<f64>()
            + squares(&reference.log_w_top);
        sum / weight + lambda * penalty
    };
    let settings = sgd(beta, lambda, rate);
    let values: Vec<f32> = (0..batch.rows)
        .flat_map(|b| batch.row(b).to_vec())
        .collect();
    let rows = model.rows(&values).unwrap();
    let data = Data::new(rows, &sumout::training::labels(&labels)).weighted(&row_weights);
    let trainer = Trainer::from_model(model.clone(), settings, data).unwrap();
    check_step(&model, trainer, rate, &objective);
}

/// One step of plain gradient descent with all 40 rows.
fn sgd(beta: f64, lambda: f64, rate: f64) -> Settings {
    Settings {
        batch: 40,
        rule: Rule::Sgd { momentum: 0.0 },
        rate,
        schedule: Schedule::Constant,
        generative: beta,
        penalty: lambda,
        leaf_rate: 1.0,
        ..Settings::default()
    }
}

/// Moves by one step; every free parameter must have followed the slope of the objective.
fn check_step(
    model: &Model,
    mut trainer: Trainer<'_>,
    rate: f64,
    objective: &dyn Fn(&Model) -> f64,
) {
    trainer.advance().unwrap();
    let moved = &centred(trainer.model().weights, &model.weights);
    let check = |name: &str, before: f32, after: f32, nudge: &dyn Fn(&mut Model, f32)| {
        let at = |by: f32| {
            let mut model = model.clone();
            nudge(&mut model, by);
            objective(&model)
        };
        let slope = (at(2e-3) - at(-2e-3)) / 4e-3;
        let ours = f64::from(before - after) / rate;
        assert!(
            (ours - slope).abs() < 2e-3 * (1.0 + slope.abs()),
            "{name}: {ours} against {slope}"
        );
    };
    for t in 0..model.structure.trees.len() {
        for (l, mixing) in model.weights.trees[t].levels.iter().enumerate() {
            for (matrix, c, a) in triples(mixing) {
                let place = mixing.place(matrix, c, a);
                let after = moved.trees[t].levels[l].logits[place];
                check(
                    &format!("tree {t} level {l} {matrix} {c} {a}"),
                    mixing.logits[place],
                    after,
                    &|model, by| {
                        model.weights.trees[t].levels[l].logits[place] += by;
                    },
                );
            }
        }
        for (f, family) in model.weights.trees[t].families.iter().enumerate() {
            for s in 0..family.coordinates.len() {
                let after = free(&mut moved.trees[t].families[f].coordinates[s].clone());
                for (i, before) in free(&mut family.coordinates[s].clone())
                    .into_iter()
                    .enumerate()
                {
                    check(
                        &format!("tree {t} family {f} {s} {i}"),
                        before,
                        after[i],
                        &|model, by| {
                            *model.weights.trees[t].families[f].coordinates[s].free_mut()[i] += by;
                        },
                    );
                }
            }
        }
    }
    let classes = &model.weights.classes;
    for (_, c, a) in triples(classes) {
        let place = classes.place(0, c, a);
        check(
            "class rows",
            classes.logits[place],
            moved.classes.logits[place],
            &|model, by| {
                model.weights.classes.logits[place] += by;
            },
        );
    }
}

/// The same where the objective is to predict a column, which some rows lack.
#[test]
fn a_step_to_predict_a_column_follows_the_finite_differences() {
    let kinds = [
        Kind::Gaussian,
        Kind::Gaussian,
        Kind::Categorical(3),
        Kind::Gaussian,
    ];
    let structure = Structure::table(&kinds)
        .groups([vec![0], vec![2], vec![3], vec![1]])
        .last_apart()
        .window(2)
        .components(3)
        .channels([4, 5])
        .build()
        .unwrap();
    let draw = &mut Draw::new(12);
    let batch = random_models::batch(&structure, 40, 0.3, 2.0, draw);
    let row_weights: Vec<f32> = (0..40).map(|_| draw.0.uniform() as f32 + 0.1).collect();
    let mut model = Model::random(structure, 1.0, 5);
    model.weights = random_models::weights(&model.structure, 1.0, draw);
    let (beta, rate) = (0.4, 1e-2);
    let objective = |model: &Model| {
        let reference = Reference::new(&model.structure, &model.weights);
        let (mut sum, mut weight) = (0.0, 0.0);
        for b in 0..40 {
            let mut alone = batch.row(b).to_vec();
            alone[1] = f32::NAN;
            let both = reference.scores(batch.row(b))[0];
            let alone = reference.scores(&alone)[0];
            sum += f64::from(row_weights[b]) * (alone - both - beta * alone); // both is alone where y is missing
            weight += f64::from(row_weights[b]);
        }
        sum / weight
    };
    let values: Vec<f32> = (0..batch.rows)
        .flat_map(|b| batch.row(b).to_vec())
        .collect();
    let data = Data::new(model.rows(&values).unwrap(), &[]).weighted(&row_weights);
    let settings = Settings {
        target: Some(1),
        ..sgd(beta, 0.0, rate)
    };
    let trainer = Trainer::from_model(model.clone(), settings, data).unwrap();
    check_step(&model, trainer, rate, &objective);
}

/// Logits are known up to a constant a row: moves those of `after` so that each row keeps the mean it had before.
fn centred(mut after: Weights, before: &Weights) -> Weights {
    let fit = |after: &mut Mixing, before: &Mixing| {
        for (matrix, c) in (0..before.matrices).flat_map(|m| (0..before.rows).map(move |c| (m, c)))
        {
            let places: Vec<usize> = (0..before.columns)
                .map(|a| before.place(matrix, c, a))
                .collect();
            let by: f32 = places
                .iter()
                .map(|&i| before.logits[i] - after.logits[i])
                .sum::<f32>()
                / places.len() as f32;
            places.iter().for_each(|&i| after.logits[i] += by);
        }
    };
    for (after, before) in after.trees.iter_mut().zip(&before.trees) {
        after
            .levels
            .iter_mut()
            .zip(&before.levels)
            .for_each(|(after, before)| fit(after, before));
    }
    fit(&mut after.classes, &before.classes);
    after
}

fn triples(mixing: &sumout::internals::Mixing) -> Vec<(usize, usize, usize)> {
    let (rows, columns) = (mixing.rows, mixing.columns);
    (0..mixing.matrices * rows * columns)
        .map(|i| (i / (rows * columns), i / columns % rows, i % columns))
        .collect()
}

fn free(coordinate: &mut sumout::internals::Coordinate) -> Vec<f32> {
    coordinate
        .free_mut()
        .into_iter()
        .map(|value| *value)
        .collect()
}

fn train(threads: usize, rule: Rule, rate: f64) -> (Model, Vec<u64>) {
    let (values, labels) = bars(300, 1);
    let (other, other_labels) = bars(100, 2);
    let (data, validation) = (data_of(&values, &labels), data_of(&other, &other_labels));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| {
        let settings = Settings {
            rule,
            rate,
            prior: Prior::Labels,
            rotate: 10.0,
            stretch: 0.1,
            ..settings()
        };
        let mut trainer = start(settings, &data).unwrap();
        let mut losses = Vec::new();
        trainer.validate_on(validation).unwrap();
        let report = |_: &Trainer, progress: &Progress| {
            losses.push(progress.objective.to_bits());
            ControlFlow::Continue(())
        };
        trainer.run_with(report).unwrap();
        (trainer.into_model(), losses)
    })
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (rule, rate) in [(Rule::adam(), 0.03), (Rule::Em, 0.2)] {
        let one = train(1, rule, rate);
        assert!(one == train(2, rule, rate), "2 threads differ");
        assert!(one == train(5, rule, rate), "5 threads differ");
    }
}

/// Every rule learns the bars, from data with holes and with some labels missing.
#[test]
fn every_rule_learns() {
    let (values, labels) = bars(600, 3);
    let (test, test_labels) = bars(300, 4);
    let rules = [
        (Rule::adam(), 0.05),
        (
            Rule::Nadam {
                beta1: 0.9,
                beta2: 0.999,
            },
            0.05,
        ),
        (Rule::Sgd { momentum: 0.9 }, 10.0),
        (Rule::Em, 0.3),
    ];
    for (rule, rate) in rules {
        let mut settings = Settings {
            steps: 200,
            rule,
            rate,
            validate_every: 200,
            leaf_rate: 0.02,
            shift: 0,
            ..settings()
        };
        if rule == Rule::Em {
            settings = Settings {
                drop_inputs: 0.0,
                drop_nodes: Vec::new(),
                ..settings
            };
        }
        let data = data_of(&values, &labels);
        let validation = data_of(&test, &test_labels);
        let mut trainer = start(settings, &data).unwrap();
        trainer.validate_on(validation).unwrap();
        let mut accuracy = 0.0;
        trainer.on_progress(|p| accuracy = p.validation.map_or(accuracy, |loss| loss.accuracy()));
        trainer.train().unwrap();
        assert!(accuracy > 0.95, "{rule:?}: {accuracy}");
    }
}

/// EM never lowers the likelihood of the data when a step sees all of it.
#[test]
fn full_batch_em_climbs() {
    let (values, labels) = bars(128, 5);
    let data = data_of(&values, &labels);
    let settings = Settings {
        steps: 30,
        batch: 128,
        rule: Rule::Em,
        rate: 1.0,
        schedule: Schedule::Constant,
        leaf_rate: 1.0,
        drop_inputs: 0.0,
        drop_nodes: Vec::new(),
        shift: 0,
        generative: 1.0,
        ..settings()
    };
    let mut trainer = start(settings, &data).unwrap();
    let mut before = f64::INFINITY;
    for step in 0..30 {
        let now = trainer.advance().unwrap().objective(1.0);
        assert!(now <= before + 1e-3, "step {step}: {before} then {now}");
        before = now;
    }
}

/// Killed at any step and resumed from its checkpoint, a run ends with the same bits, the best model included.
#[test]
fn a_killed_run_goes_on_to_the_same_bits() {
    let (values, labels) = bars(150, 1);
    let (other, other_labels) = bars(100, 2);
    let (data, validation) = (data_of(&values, &labels), data_of(&other, &other_labels));
    for (rule, rate) in [(Rule::adam(), 0.03), (Rule::Em, 0.2)] {
        let settings = Settings {
            rule,
            rate,
            steps: 30,
            validate_every: 7,
            ..settings()
        };
        let start = || start(settings.clone(), &data).unwrap();
        let run = |trainer: &mut Trainer<'_>, stop: usize| {
            let report = |_: &Trainer, p: &Progress| {
                if p.step == stop {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            trainer.run_with(report).unwrap();
        };
        let start = || {
            let mut trainer = start();
            trainer.validate_on(validation.clone()).unwrap();
            trainer
        };
        let mut whole = start();
        run(&mut whole, 30);
        for stop in [1, 7, 13, 29] {
            let mut killed = start();
            run(&mut killed, stop);
            let bytes = killed.checkpoint().unwrap();
            drop(killed);
            let checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
            assert_eq!(checkpoint.model().structure, small_structure());
            let mut resumed = Trainer::resume(checkpoint, data.clone()).unwrap();
            resumed.validate_on(validation.clone()).unwrap();
            assert_eq!(resumed.steps_done(), stop);
            run(&mut resumed, 30);
            assert!(
                resumed.checkpoint().unwrap() == whole.checkpoint().unwrap(),
                "{rule:?} stopped at {stop}"
            );
        }
        let last = model_bytes(&whole.model());
        let best = model_bytes(&whole.into_model());
        assert!(
            sumout::Model::from_bytes(&last).is_ok() && sumout::Model::from_bytes(&best).is_ok()
        );
    }
}

fn model_bytes(model: &Model) -> Vec<u8> {
    model.to_bytes().unwrap()
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    let (values, labels) = bars(50, 1);
    let data = data_of(&values, &labels);
    let trainer = start(settings(), &data).unwrap();
    let bytes = trainer.checkpoint().unwrap();
    let error = |bytes: &[u8]| {
        let checkpoint = Checkpoint::from_bytes(bytes);
        let resumed = checkpoint.and_then(|checkpoint| Trainer::resume(checkpoint, data.clone()));
        resumed.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        error(&model_bytes(&trainer.model())),
        "model file: expected a training checkpoint, got a model without training state"
    );
    let mut checkpoint = sumout::internals::checkpoint_from_bytes(&bytes).unwrap();
    checkpoint.tensors.get_mut("first").unwrap().pop();
    let short = sumout::internals::checkpoint_to_bytes(&checkpoint).unwrap();
    assert_eq!(error(&short), "model file: training state: too few numbers");
    checkpoint
        .tensors
        .get_mut("first")
        .unwrap()
        .extend([0.0; 3]);
    let long = sumout::internals::checkpoint_to_bytes(&checkpoint).unwrap();
    assert_eq!(
        error(&long),
        "model file: training state: 2 numbers too many"
    );
    checkpoint.tensors.remove("second");
    let without = sumout::internals::checkpoint_to_bytes(&checkpoint).unwrap();
    assert_eq!(
        error(&without),
        "model file: training state: 'second' is not there"
    );
    checkpoint.state["step"] = "x".into();
    let nonsense = sumout::internals::checkpoint_to_bytes(&checkpoint).unwrap();
    assert!(
        error(&nonsense).starts_with("model file: training state: invalid type"),
        "{}",
        error(&nonsense)
    );
}

#[test]
fn the_best_model_is_kept_and_a_run_can_be_broken_off() {
    let (values, labels) = bars(200, 6);
    let data = data_of(&values, &labels);
    let mut trainer = start(settings(), &data).unwrap();
    let mut calls = 0;
    trainer.validate_on(data.clone()).unwrap();
    let report = |_: &Trainer, _: &Progress| {
        calls += 1;
        if calls == 25 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    trainer.run_with(report).unwrap();
    assert_eq!((trainer.steps_done(), calls), (25, 25));
    let last = trainer.model().weights;
    assert_ne!(
        trainer.into_model().weights,
        last,
        "validated at step 20, stopped at 25"
    );
}

#[test]
fn what_cannot_be_trained_is_said_before_work_starts() {
    let (values, labels) = bars(20, 7);
    let attempt = |values: &[f32], numbers: &[i64], settings: Settings| {
        let trainer = Rows::new(values, 36).and_then(|rows| {
            Trainer::new(
                small_structure(),
                settings,
                rows,
                &sumout::training::labels(numbers),
            )
            .map(drop)
        });
        trainer.unwrap_err().to_string()
    };
    let ok = settings();
    assert_eq!(
        attempt(&values[..35], &labels[..1], ok.clone()),
        "numbers: expected rows of 36, got 35"
    );
    assert_eq!(
        attempt(&[], &[], ok.clone()),
        "expected at least one row, got none"
    );
    assert_eq!(
        attempt(&values, &labels[..3], ok.clone()),
        "labels: expected 20, got 3"
    );
    let mut wrong = labels.clone();
    wrong[4] = 7;
    assert_eq!(
        attempt(&values, &wrong, ok.clone()),
        "row index 4: expected a label from 0 to 1, or none, got 7"
    );
    let zeros = vec![0; 20];
    assert_eq!(
        attempt(&values, &zeros, ok.clone()),
        "class 1: expected at least one labelled example, got none"
    );
    let mut infinite = values.clone();
    infinite[40] = f32::NEG_INFINITY;
    let expected =
        "row index 1, column index 4: expected a finite number or NaN for missing, got -inf";
    assert_eq!(attempt(&infinite, &labels, ok.clone()), expected);
    let setting = |settings: Settings| attempt(&values, &labels, settings);
    assert_eq!(
        setting(Settings {
            steps: 0,
            ..ok.clone()
        }),
        "steps: expected at least 1, got 0"
    );
    assert_eq!(
        setting(Settings {
            rate: f64::NAN,
            ..ok.clone()
        }),
        "rate: expected a positive number, got NaN"
    );
    assert_eq!(
        setting(Settings {
            drop_inputs: 1.5,
            ..ok.clone()
        }),
        "drop_inputs: expected from 0 to 1, got 1.5"
    );
    assert_eq!(
        setting(Settings {
            rotate: 181.0,
            ..ok.clone()
        }),
        "rotate: expected from 0 to 180, got 181"
    );
    assert_eq!(
        setting(Settings {
            stretch: 1.0,
            ..ok.clone()
        }),
        "stretch: expected from 0 to 0.9, got 1"
    );
    let far = "shift: expected less than the longer side of the image, and 0 where the data are none, got ";
    for shift in [6, usize::MAX] {
        assert_eq!(
            setting(Settings {
                shift,
                ..ok.clone()
            }),
            format!("{far}{shift}")
        );
    }
    let table = Model::random(
        Structure::table(&[Kind::Gaussian; 2])
            .window(2)
            .components(2)
            .channels([2])
            .classes(2)
            .build()
            .unwrap(),
        1.0,
        1,
    );
    let turned = Trainer::from_model(
        table,
        Settings {
            rotate: 5.0,
            ..ok.clone()
        },
        Data::new(Rows::new(&[0.0; 2], 2).unwrap(), &[]),
    )
    .map(|_| ())
    .unwrap_err()
    .to_string();
    assert_eq!(
        turned,
        "rotate and stretch: expected 0 where the data are not images, got 5 and 0"
    );
    let rule = Rule::Sgd { momentum: 1.0 };
    assert_eq!(
        setting(Settings { rule, ..ok.clone() }),
        "decay: expected 0 ≤ decay < 1, got 1"
    );
    let em = Settings {
        rule: Rule::Em,
        rate: 2.0,
        ..ok.clone()
    };
    assert_eq!(setting(em), "rate: expected at most 1 for EM, got 2");
    let prior = Prior::Given(vec![1.0, -1.0]);
    assert!(
        setting(Settings { prior, ..ok })
            .starts_with("class prior: expected weights that are not negative")
    );
}

/// "All of them" is a large number of local structures, for which no room is made.
#[test]
fn leaves_start_from_as_many_structures_as_there_are() {
    let (values, labels) = bars(20, 8);
    let data = data_of(&values, &labels);
    let leaves = |structures: usize| {
        let settings = Settings {
            leaves: LeafStart {
                structures,
                ..LeafStart::default()
            },
            ..settings()
        };
        start(settings, &data).unwrap().into_model().weights
    };
    assert_eq!(leaves(usize::MAX), leaves(1_000_000));
}

#[test]
fn a_batch_of_no_weight_moves_nothing_to_nan() {
    let (values, labels) = bars(20, 8);
    let weights: Vec<f32> = (0..20)
        .map(|row| if row == 0 { 1.0 } else { 0.0 })
        .collect();
    let data = data_of(&values, &labels).weighted(&weights);
    let settings = Settings {
        batch: 1,
        steps: 20,
        leaf_rate: 1.0,
        ..settings()
    };
    let trainer = start(settings, &data).unwrap();
    let mut predictor = sumout::Predictor::new(trainer.train().unwrap()).unwrap();
    assert!(
        predictor
            .log_marginal(predictor.model().rows(&values).unwrap())
            .unwrap()
            .iter()
            .all(|log| log.is_finite())
    );
}

#[test]
fn a_rate_that_explodes_is_an_error() {
    let (values, labels) = bars(64, 8);
    let data = data_of(&values, &labels);
    let settings = Settings {
        rule: Rule::Sgd { momentum: 0.9 },
        rate: 1e38,
        leaf_rate: 1.0,
        ..settings()
    };
    let mut trainer = start(settings, &data).unwrap();
    let result = (0..60).find_map(|_| trainer.advance().err());
    assert!(matches!(result, Some(Error::Diverged { .. })), "{result:?}");
}

/// A row of 4 numbers is wholly missing with probability ∫p⁴dp = 1/5 where every row draws its own p, and 1/16 at p = ½.
#[test]
fn rows_draw_their_own_share_of_holes() {
    let structure = Structure::table(&[Kind::Gaussian; 4])
        .window(2)
        .components(2)
        .channels([2])
        .classes(1)
        .build()
        .unwrap();
    let values: Vec<f32> = (0..40).map(|i| i as f32 / 10.0).collect();
    let rows = Rows::new(&values, 4).unwrap();
    for (drop_varied, expected) in [(true, 1.0 / 5.0), (false, 1.0 / 16.0)] {
        let settings = Settings {
            steps: 2000,
            batch: 1,
            drop_inputs: 0.5,
            drop_varied,
            ..Settings::default()
        };
        let mut trainer = Trainer::new(structure.clone(), settings, rows, &[]).unwrap();
        let empty = (0..2000)
            .filter(|_| trainer.advance().unwrap().generative.abs() < 1e-6)
            .count();
        let share = empty as f64 / 2000.0;
        assert!((share - expected).abs() < 0.03, "{drop_varied}: {share}");
    }
}
