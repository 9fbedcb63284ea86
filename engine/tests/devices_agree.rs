//! The circuit and its training on every device that is there, against the slow evaluator and against the processor.

#![allow(clippy::print_stderr)] // says aloud what was not tested

mod random_models;

use random_models::Draw;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sumout::internals::{Batch, Outputs, Prepared, Scoring, TINY};
use sumout::recipes::preset;
use sumout::reference::Reference;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::training::{Checkpoint, Data, Rule, Schedule};
use sumout::{Device, Model, Precision, Predictor, Rows, Settings, Trainer, internals};

/// The GPU, or nothing, said aloud.
fn card() -> Option<usize> {
    match internals::count() {
        Ok(count) if count > 0 => Some(0),
        Ok(_) => {
            eprintln!("NOT TESTED on a GPU: the driver finds none");
            None
        }
        Err(error) => {
            eprintln!("NOT TESTED on a GPU: {error}");
            None
        }
    }
}

fn data_of<'a>(model: &Structure, values: &'a [f32], numbers: &[i64]) -> Data<'a> {
    let rows = Rows::new(values, model.width()).unwrap();
    Data::new(rows, &sumout::training::labels(numbers))
}

/// A run with the structure and the scaling of a model.
fn start<'a>(model: &Model, settings: &Settings, data: &Data<'a>) -> Trainer<'a> {
    let (structure, scaling) = (model.structure.clone(), model.scaling.clone());
    Trainer::start(structure, scaling, settings.clone(), data.clone()).unwrap()
}

/// This many cases; an eighth where `SUMOUT_FEW_TESTS` is set, for tools that make them slow.
fn cases(count: usize) -> usize {
    if std::env::var_os("SUMOUT_FEW_TESTS").is_some() {
        count / 8
    } else {
        count
    }
}

/// 1e-4 nats, or 1e-6 relative for large values.
fn close(ours: f64, exact: f64) -> bool {
    (ours - exact).abs() <= 1e-4_f64.max(1e-6 * exact.abs())
}

#[test]
fn scores_and_flows_agree_with_the_reference() {
    let Some(ordinal) = card() else { return };
    let (mut trusted, mut all) = (0, 0);
    for seed in 0..cases(60) as u64 {
        let draw = &mut Draw::new(seed);
        let structure = random_models::structure(draw);
        let spread = [0.5, 3.0, 30.0][draw.from(0, 2)];
        let weights = random_models::weights(&structure, spread, draw);
        let rows = draw.from(1, 150);
        let (missing, reach) = (draw.0.uniform(), [3.0, 1e3, 1e6][draw.from(0, 2)]);
        let batch = random_models::batch(&structure, rows, missing, reach, draw);
        let prepared = Prepared::new(&weights);
        let on = (ordinal, Precision::F32);
        let mut scoring = Scoring::new(on, &structure, &weights, &prepared, rows, true).unwrap();
        scoring.load(&batch).unwrap();
        scoring.queue(Outputs::Flows).unwrap();
        let returning = scoring.send_back().unwrap();
        let scores = scoring.scores(returning).unwrap();
        let reference = Reference::new(&structure, &weights);
        let k = structure.classes;
        let seeds: Vec<f32> = (0..rows * k).map(|_| draw.0.uniform() as f32).collect();
        let flows = scoring.flows(&seeds).unwrap();
        for b in 0..rows {
            let up = reference.forward(batch.row(b), &|_, _, _| false);
            let own: Vec<f64> = seeds[b * k..(b + 1) * k]
                .iter()
                .map(|&seed| seed.into())
                .collect();
            let down = reference.flows(&up, &own);
            let mut good = true;
            for y in 0..k {
                let (psi, lost) = (scores.psi[b * k + y], scores.underflow_bound[b]);
                all += 1;
                if !(psi > TINY && lost <= 1e-6 * psi) {
                    good = false;
                    continue;
                }
                trusted += 1;
                let (ours, exact) = (scores.score[b * k + y], up.log_likelihood[y]);
                assert!(
                    close(ours, exact),
                    "model {seed} row {b} class {y}: {ours} against {exact}"
                );
            }
            for (t, tree) in structure.trees.iter().enumerate().filter(|_| good) {
                for i in 0..tree.positions.len() {
                    for d in 0..tree.components {
                        let (ours, exact) = (
                            flows[t][(i * rows + b) * tree.components + d],
                            down.leaves[&(t, i)][d],
                        );
                        let near = (f64::from(ours) - exact).abs() < 1e-4;
                        assert!(
                            near,
                            "model {seed} row {b} position {i}: flow {ours} against {exact}"
                        );
                    }
                }
            }
        }
    }
    eprintln!("{trusted} of {all} scores trusted");
    assert!(
        trusted * 2 > all,
        "only {trusted} of {all} scores are trusted"
    );
}

/// Rows of 784 pixels, most of them black.
fn pixels(rows: usize, draw: &mut Draw) -> Vec<f32> {
    let pixel = |draw: &mut Draw| {
        if draw.0.chance(0.7) {
            0.0
        } else {
            draw.0.below(256) as f32
        }
    };
    (0..rows * 784).map(|_| pixel(draw)).collect()
}

/// Rows of data for a structure.
fn rows_of(structure: &Structure, count: usize, draw: &mut Draw) -> Vec<f32> {
    let kinds = structure.row_kinds();
    let number = |kind: Kind, draw: &mut Draw| match kind {
        _ if draw.0.chance(0.2) => f32::NAN,
        Kind::Gaussian => draw.0.normal() as f32,
        Kind::Bernoulli => draw.0.below(2) as f32,
        Kind::Categorical(n) => draw.0.below(n as usize) as f32,
    };
    (0..count)
        .flat_map(|_| kinds.clone())
        .map(|kind| number(kind, draw))
        .collect()
}

/// The numbers of all leaves.
fn leaves_of(model: &Model) -> Vec<f32> {
    let mut weights = model.weights.clone();
    let families = weights.trees.iter_mut().flat_map(|tree| &mut tree.families);
    families
        .flat_map(|family| &mut family.coordinates)
        .flat_map(|c| c.free_mut())
        .map(|x| *x)
        .collect()
}

/// A step on the card is the step of the processor: loss after loss, and the weights at the end. Returns how many
/// samples were computed again.
fn train_alike(
    model: &Model,
    settings: &Settings,
    data: &Data<'_>,
    steps: usize,
    what: &str,
) -> usize {
    let Some(ordinal) = card() else { return 1 };
    let mut cpu = start(model, settings, data);
    let mut gpu = start(model, settings, data);
    gpu.use_device(Device::Cuda(ordinal), Precision::F32)
        .unwrap();
    for step in 0..steps {
        let (a, b) = (cpu.advance().unwrap(), gpu.advance().unwrap());
        let near = |a: f64, b: f64| (a - b).abs() <= 2e-4 * (1.0 + a.abs());
        assert!(
            near(a.discriminative, b.discriminative) && near(a.generative, b.generative),
            "{what} {step}: {a:?} {b:?}"
        );
        assert_eq!((a.labelled, a.rows), (b.labelled, b.rows), "{what}");
    }
    gpu.sync_from_gpu().unwrap();
    let (a, b) = (
        Prepared::new(&cpu.model().weights),
        Prepared::new(&gpu.model().weights),
    );
    let mut worst = 0.0f32;
    for (t, tree) in model.structure.trees.iter().enumerate() {
        for (l, level) in tree.levels.iter().enumerate() {
            for (m, c) in
                (0..level.matrices()).flat_map(|m| (0..level.channels).map(move |c| (m, c)))
            {
                for x in 0..tree.channels(l) {
                    worst = worst.max(
                        (a.levels[t][l].weight(m, c, x) - b.levels[t][l].weight(m, c, x)).abs(),
                    );
                }
            }
        }
    }
    for (c, x) in (0..model.structure.classes)
        .flat_map(|c| (0..model.structure.root_channels()).map(move |x| (c, x)))
    {
        worst = worst.max((a.classes.weight(0, c, x) - b.classes.weight(0, c, x)).abs());
    }
    // Adam divides a gradient by its own size, so where it is all rounding the sign of a step is too.
    let most = if matches!(settings.rule, Rule::Adam { .. } | Rule::Nadam { .. }) {
        2e-2
    } else {
        2e-3
    };
    assert!(worst < most, "{what}: weights differ by {worst}");
    for (a, b) in leaves_of(&cpu.model()).iter().zip(leaves_of(&gpu.model())) {
        assert!(
            (a - b).abs() < most * (1.0 + a.abs()),
            "{what}: leaves {a} {b}"
        );
    }
    // The bounds are not the same to the last bit; what they catch is.
    assert!(
        cpu.recomputed().abs_diff(gpu.recomputed()) * 5 <= cpu.recomputed(),
        "{what}: {}",
        gpu.recomputed()
    );
    gpu.recomputed()
}

#[test]
fn training_agrees() {
    let rules = [
        (Rule::Sgd { momentum: 0.5 }, 0.3),
        (Rule::adam(), 0.02),
        (
            Rule::Nadam {
                beta1: 0.8,
                beta2: 0.99,
            },
            0.02,
        ),
        (Rule::Em, 0.5),
    ];
    for seed in 0..cases(40) as u64 {
        let draw = &mut Draw::new(1000 + seed);
        let structure = random_models::structure(draw);
        let (rule, rate) = rules[seed as usize % 4];
        let n = draw.from(5, 90);
        let values = rows_of(&structure, n, draw);
        let classes = structure.classes;
        let mut labels: Vec<i64> = (0..n)
            .map(|row| {
                if row % 7 == 6 {
                    -1
                } else {
                    (row % classes) as i64
                }
            })
            .collect();
        labels[..classes]
            .iter_mut()
            .enumerate()
            .for_each(|(y, label)| *label = y as i64);
        let weights: Vec<f32> = if seed % 3 == 0 {
            (0..n).map(|row| 0.5 + row as f32 / n as f32).collect()
        } else {
            vec![]
        };
        let data = data_of(&structure, &values, &labels).weighted(&weights);
        let turns = seed % 2 == 1
            && structure
                .frame
                .is_some_and(|frame| frame.height > 1 && frame.width > 1);
        let settings = Settings {
            rule,
            rate,
            schedule: Schedule::Cosine,
            steps: 10,
            batch: draw.from(1, 100),
            generative: 0.3,
            penalty: if seed % 5 == 0 { 0.01 } else { 0.0 },
            drop_inputs: if seed % 2 == 0 { 0.3 } else { 0.0 },
            drop_varied: seed % 4 == 2,
            rotate: if turns { 40.0 } else { 0.0 },
            stretch: if turns { 0.3 } else { 0.0 },
            drop_nodes: if seed % 3 == 1 {
                vec![0.2, 0.1, 0.1]
            } else {
                vec![]
            },
            shift: usize::from(structure.frame.is_some() && seed % 4 == 1),
            leaf_rate: if seed % 5 < 2 { 0.1 } else { 0.0 },
            seed,
            ..Settings::default()
        };
        let model = Model::random(structure, 1.0, seed);
        train_alike(
            &model,
            &settings,
            &data,
            4,
            &format!("model {seed}, {rule:?}"),
        );
    }
}

/// By how much a step on tensor cores differs from the processor's, its length, and the length of all weights, of which
/// every one is rounded to 24 bits: of each tree's levels.
fn step_differs(
    model: &Model,
    settings: &Settings,
    data: &Data<'_>,
    ordinal: usize,
) -> Vec<[f64; 3]> {
    let stepped = |device: Device| {
        let mut trainer = start(model, settings, data);
        let before = Prepared::new(&trainer.model().weights);
        trainer.use_device(device, Precision::Tf32).unwrap();
        trainer.advance().unwrap();
        trainer.sync_from_gpu().unwrap();
        (before, Prepared::new(&trainer.model().weights))
    };
    let ((before, cpu), (_, gpu)) = (stepped(Device::Cpu), stepped(Device::Cuda(ordinal)));
    let mut all = Vec::new();
    for (t, tree) in model.structure.trees.iter().enumerate() {
        for (l, level) in tree.levels.iter().enumerate() {
            let [mut apart, mut length, mut size] = [0.0f64; 3];
            for (m, c) in
                (0..level.matrices()).flat_map(|m| (0..level.channels).map(move |c| (m, c)))
            {
                for a in 0..tree.channels(l) {
                    let at = |p: &Prepared| f64::from(p.levels[t][l].weight(m, c, a));
                    apart += (at(&cpu) - at(&gpu)).powi(2);
                    length += (at(&cpu) - at(&before)).powi(2);
                    size += at(&cpu).powi(2);
                }
            }
            all.push([apart.sqrt(), length.sqrt(), size.sqrt()]);
        }
    }
    all
}

/// On tensor cores the first level is computed with its leaves.
#[test]
fn steps_on_tensor_cores_are_near() {
    let Some(ordinal) = card() else { return };
    for seed in 0..cases(40) as u64 {
        let draw = &mut Draw::new(3000 + seed);
        let structure = random_models::structure(draw);
        let n = draw.from(5, 90);
        let values = rows_of(&structure, n, draw);
        let labels: Vec<i64> = (0..n).map(|row| (row % structure.classes) as i64).collect();
        let settings = Settings {
            rule: Rule::Sgd { momentum: 0.0 },
            rate: 30.0,
            batch: draw.from(40, 200),
            generative: 0.3,
            drop_nodes: if seed % 3 == 1 {
                vec![0.2, 0.1, 0.1]
            } else {
                vec![]
            },
            seed,
            ..Settings::default()
        };
        let model = Model::random(structure, 1.0, seed);
        let levels = step_differs(
            &model,
            &settings,
            &data_of(&model.structure, &values, &labels),
            ordinal,
        );
        let longest = levels
            .iter()
            .map(|[_, length, _]| *length)
            .fold(1e-3, f64::max);
        for [apart, length, _] in levels {
            assert!(
                apart < 1e-2 * longest,
                "model {seed}: {apart:.1e} of {length:.1e}"
            );
        }
    }
    let preset = preset("mnist-ht").unwrap();
    for rows in [100, cases(4096).max(1024)] {
        let draw = &mut Draw::new(8);
        let values = pixels(rows, draw);
        let labels: Vec<i64> = (0..rows as i64).map(|row| row % 10).collect();
        let mut model = Model::random(preset.structure.clone(), 1.0, 3);
        model.scaling = preset.scaling.clone();
        for drop_inputs in [0.0, 0.5] {
            let rule = Rule::Sgd { momentum: 0.0 };
            let settings = Settings {
                batch: rows,
                rule,
                rate: 30.0,
                drop_inputs,
                ..preset.settings.clone()
            };
            for [apart, length, size] in step_differs(
                &model,
                &settings,
                &data_of(&model.structure, &values, &labels),
                ordinal,
            ) {
                eprintln!(
                    "mnist-ht, {rows} rows, holes {drop_inputs}: a step of {length:.1e} is {apart:.1e} away"
                );
                let most = 1e-2 * length + 4e-7 * size;
                assert!(
                    apart < most,
                    "mnist-ht, {rows} rows, holes {drop_inputs}: {apart} of {length}"
                );
            }
        }
    }
}

/// Samples that underflow spoils are computed again, and training goes on as on the processor.
#[test]
fn doubtful_samples_agree() {
    let mut again = 0;
    for seed in 0..cases(16) as u64 {
        let draw = &mut Draw::new(500 + seed);
        let structure = random_models::structure(draw);
        let n = 40;
        let mut values = rows_of(&structure, n, draw);
        let real = structure.row_kinds();
        for (i, value) in values
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| real[i % real.len()] == Kind::Gaussian)
        {
            if i % 3 == 0 {
                *value *= 300.0; // far from every component
            }
        }
        let labels: Vec<i64> = (0..n).map(|row| (row % structure.classes) as i64).collect();
        let data = data_of(&structure, &values, &labels);
        let rule = if seed % 2 == 0 {
            Rule::Sgd { momentum: 0.0 }
        } else {
            Rule::Em
        };
        let settings = Settings {
            rule,
            rate: 0.2,
            batch: 33,
            spread: 25.0,
            seed,
            ..Settings::default()
        };
        let settings = Settings {
            leaf_rate: if seed % 4 < 2 { 0.01 } else { 0.0 },
            ..settings
        };
        let model = Model::random(structure, 1.0, seed);
        again += train_alike(
            &model,
            &settings,
            &data,
            2,
            &format!("doubtful model {seed}"),
        );
    }
    assert!(again > 0);
}

/// Where class rows are the identity, classes lie far apart, each with a scale of its own: nothing is computed again.
#[test]
fn classes_of_their_own_agree() {
    let Some(ordinal) = card() else { return };
    for (seed, square) in [(1, None), (2, Some(2)), (3, Some(3))] {
        let all = LevelSpec::all(4, Sharing::Own);
        let below = square.map(|side| LevelSpec::square(side, 7, Sharing::Own));
        let levels = below.into_iter().chain([all]).collect();
        let spec = ImageSpec {
            levels,
            components: 40,
            ..ImageSpec::new(20, 20)
        };
        let structure = spec.structure(4).unwrap().with_identity_classes().unwrap();
        let draw = &mut Draw::new(600 + seed);
        let values = rows_of(&structure, 90, draw);
        let labels: Vec<i64> = (0..90).map(|row| row % 4).collect();
        let data = data_of(&structure, &values, &labels);
        let settings = Settings {
            rate: 0.02,
            batch: 70,
            spread: 4.0,
            seed,
            ..Settings::default()
        };
        let settings = Settings {
            drop_nodes: vec![0.1, 0.1, 0.1],
            drop_inputs: 0.2,
            ..settings
        };
        let model = Model::random(structure.clone(), 4.0, seed);
        assert_eq!(train_alike(&model, &settings, &data, 4, "identity"), 0);
        let mut trainer = start(&model, &settings, &data);
        for _ in 0..20 {
            trainer.advance().unwrap();
        }
        questions_alike(trainer.model(), &values, ordinal, "identity");
    }
}

/// All questions on the card, against the processor.
#[test]
fn questions_agree() {
    let Some(ordinal) = card() else { return };
    for seed in 0..cases(25) as u64 {
        let draw = &mut Draw::new(2000 + seed);
        let structure = random_models::structure(draw);
        let spread = [1.0, 3.0, 30.0][seed as usize % 3];
        let weights = random_models::weights(&structure, spread, draw);
        let rows = rows_of(&structure, 70, draw);
        questions_alike(
            Model {
                weights,
                ..Model::random(structure, 0.0, 0)
            },
            &rows,
            ordinal,
            &format!("model {seed}"),
        );
    }
}

/// A trained model and clean rows: the card computes none of them again, and answers as the processor does.
#[test]
fn a_trained_model_needs_no_recheck() {
    let Some(ordinal) = card() else { return };
    let (model, values) = random_models::trained();
    let rows = Rows::new(&values, model.structure.width()).unwrap();
    let mut cpu = Predictor::new(model.clone()).unwrap();
    let expected = cpu.score(rows).unwrap();
    for (precision, within) in [(Precision::F32, 1e-4), (Precision::Tf32, 0.5)] {
        let mut gpu = Predictor::new(model.clone()).unwrap();
        gpu.use_device(Device::Cuda(ordinal), precision).unwrap();
        let ours = gpu.score(rows).unwrap();
        gpu.score_shifted(rows, &sumout::queries::shifts(1))
            .unwrap();
        gpu.log_likelihood(rows).unwrap();
        assert_eq!(gpu.recomputed(), 0, "{precision:?}");
        for (a, b) in ours.log_marginal.iter().zip(&expected.log_marginal) {
            assert!((a - b).abs() <= within, "{precision:?} {a} {b}");
        }
        let labels: Vec<i64> = (0..rows.len() as i64).map(|row| (row + 1) % 4).collect();
        let settings = Settings {
            steps: 5,
            drop_inputs: 0.1,
            ..Settings::default()
        };
        let data = data_of(&model.structure, &values, &labels); // all wrong
        let mut trainer = Trainer::from_model(model.clone(), settings, data).unwrap();
        trainer
            .use_device(Device::Cuda(ordinal), precision)
            .unwrap();
        trainer.run_with(|_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(trainer.recomputed(), 0, "{precision:?}");
    }
    questions_alike(model, &values, ordinal, "trained");
}

fn questions_alike(model: Model, rows: &[f32], ordinal: usize, what: &str) {
    let mut cpu = Predictor::new(model.clone()).unwrap();
    let mut gpu = Predictor::new(model).unwrap();
    gpu.use_device(Device::Cuda(ordinal), Precision::F32)
        .unwrap();
    let (a, b) = (
        cpu.log_likelihood(cpu.model().rows(rows).unwrap())
            .unwrap()
            .into_vec(),
        gpu.log_likelihood(gpu.model().rows(rows).unwrap())
            .unwrap()
            .into_vec(),
    );
    a.iter()
        .zip(&b)
        .for_each(|(a, b)| assert!(close(*b, *a), "{what}: score {b} {a}"));
    let near = |a: &[f32], b: &[f32], which: &str| {
        for (a, b) in a.iter().zip(b) {
            assert!(
                (a - b).abs() < 1e-3 * (1.0 + a.abs()),
                "{what}: {which} {b} {a}"
            );
        }
    };
    let (a, b) = (
        cpu.posterior(cpu.model().rows(rows).unwrap())
            .unwrap()
            .into_vec(),
        gpu.posterior(gpu.model().rows(rows).unwrap())
            .unwrap()
            .into_vec(),
    );
    a.iter()
        .zip(&b)
        .for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{what}: posterior {b} {a}"));
    let (a, b) = (
        cpu.responsibilities(cpu.model().rows(rows).unwrap(), None)
            .unwrap(),
        gpu.responsibilities(gpu.model().rows(rows).unwrap(), None)
            .unwrap(),
    );
    a.iter()
        .zip(&b)
        .for_each(|(a, b)| near(a.as_slice(), b.as_slice(), "responsibility"));
    let (a, b) = (
        cpu.impute_mean(cpu.model().rows(rows).unwrap(), Some(0))
            .unwrap(),
        gpu.impute_mean(gpu.model().rows(rows).unwrap(), Some(0))
            .unwrap(),
    );
    near(a.mean.as_slice(), b.mean.as_slice(), "mean");
    near(a.variance.as_slice(), b.variance.as_slice(), "variance");
    assert_eq!(
        cpu.impute_mode(cpu.model().rows(rows).unwrap(), None)
            .unwrap()
            .into_vec(),
        gpu.impute_mode(gpu.model().rows(rows).unwrap(), None)
            .unwrap()
            .into_vec()
    );
    let (a, b) = (
        cpu.sample_given(cpu.model().rows(rows).unwrap(), None, 3)
            .unwrap()
            .into_vec(),
        gpu.sample_given(gpu.model().rows(rows).unwrap(), None, 3)
            .unwrap()
            .into_vec(),
    );
    let same = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| (*a - *b).abs() < 1e-3 * (1.0 + a.abs()))
        .count();
    assert!(
        same * 100 >= a.len() * 99,
        "{what}: {same} of {} samples alike",
        a.len()
    );
}

/// A run on the card that is stopped goes on to the same bits; `run` and single steps take the same rows.
#[test]
fn a_run_resumes_to_the_same_bits() {
    let Some(ordinal) = card() else { return };
    let draw = &mut Draw::new(77);
    let kinds = [Kind::Gaussian; 6];
    let structure = Structure::table(&kinds)
        .groups([vec![0, 1], vec![2], vec![3, 4], vec![5]])
        .window(2)
        .components(5)
        .channels([7, 9])
        .classes(3)
        .build()
        .unwrap();
    let values: Vec<f32> = (0..90 * 6).map(|_| draw.0.normal() as f32).collect();
    let labels: Vec<i64> = (0..90).map(|row| row % 3).collect();
    let data = data_of(&structure, &values, &labels);
    let settings = Settings {
        steps: 100,
        batch: 40,
        drop_inputs: 0.3,
        leaf_rate: 0.1,
        ..Settings::default()
    };
    let whole = |stop: usize, most: usize| {
        let mut trainer = start(&Model::random(structure.clone(), 1.0, 1), &settings, &data);
        trainer
            .use_device(Device::Cuda(ordinal), Precision::Tf32)
            .unwrap();
        trainer.report_every(stop);
        trainer.limit_gpu_bytes(most);
        let mut bytes = Vec::new();
        trainer
            .run_with(|trainer, progress| {
                if progress.step == stop {
                    bytes = trainer.checkpoint().unwrap();
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        (trainer.checkpoint().unwrap(), bytes)
    };
    let (end, middle) = whole(30, usize::MAX);
    let middle = Checkpoint::from_bytes(&middle).unwrap();
    let mut again = Trainer::resume(middle, data.clone()).unwrap();
    assert_eq!(again.steps_done(), 30);
    again
        .use_device(Device::Cuda(ordinal), Precision::Tf32)
        .unwrap();
    while again.steps_done() < 100 {
        again.advance().unwrap();
    }
    assert!(again.checkpoint().unwrap() == end);
    assert!(
        whole(30, usize::MAX).0 == end,
        "the same seed gives the same bits"
    );
    assert!(
        whole(30, 1000).0 == end,
        "data that do not fit on the card are sent"
    );
}

/// What a run has left on the card is not taken for what comes after it, and rows of no weight move nothing.
#[test]
fn data_may_change_between_steps() {
    let Some(ordinal) = card() else { return };
    let draw = &mut Draw::new(78);
    let structure = Structure::table(&[Kind::Gaussian; 3])
        .window(2)
        .components(4)
        .channels([5, 6])
        .classes(2)
        .build()
        .unwrap();
    let values: Vec<f32> = (0..200 * 3).map(|_| draw.0.normal() as f32).collect();
    let labels: Vec<i64> = (0..200).map(|row| row % 2).collect();
    let (few, many) = (
        data_of(&structure, &values[..60], &labels[..20]),
        data_of(&structure, &values, &labels),
    );
    let mut weights = [0.0; 200];
    weights[199] = 1e-30;
    let light = many.clone().weighted(&weights);
    let settings = Settings {
        steps: 5,
        batch: 32,
        rule: Rule::Sgd { momentum: 0.0 },
        ..Settings::default()
    };
    let last = |device: Device| {
        let mut trainer = start(&Model::random(structure.clone(), 1.0, 1), &settings, &few);
        trainer.use_device(device, Precision::F32).unwrap();
        trainer.run_with(|_, _| ControlFlow::Continue(())).unwrap();
        let losses = [&many, &light, &few].map(|data| {
            trainer.set_data(data.clone()).unwrap();
            trainer.advance().unwrap()
        });
        losses.map(|loss| loss.generative)
    };
    let (cpu, gpu) = (last(Device::Cpu), last(Device::Cuda(ordinal)));
    assert!(
        cpu.iter()
            .zip(gpu)
            .all(|(a, b)| (a - b).abs() < 1e-3 * (1.0 + a.abs())),
        "{cpu:?} {gpu:?}"
    );
}

#[test]
fn a_gpu_that_is_not_there_is_named() {
    let Some(_) = card() else { return };
    let count = internals::count().unwrap();
    let mut predictor =
        Predictor::new(Model::random(preset("mnist-ht").unwrap().structure, 1.0, 1)).unwrap();
    let error = predictor
        .use_device(Device::Cuda(count), Precision::F32)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("cuda:{}, got cuda:{count}", count - 1)),
        "{error}"
    );
}

#[test]
fn activations_are_few() {
    let Some(ordinal) = card() else { return };
    for (name, precision) in [
        ("mnist-ht", Precision::Tf32),
        ("mnist-ht", Precision::F32),
        ("norb-ht", Precision::Tf32),
    ] {
        let preset = preset(name).unwrap();
        let settings = Settings {
            batch: 256,
            ..preset.settings
        };
        let row = vec![0.0; preset.structure.width()];
        let data = data_of(&preset.structure, &row, &[]);
        let model = Model::random(preset.structure, 1.0, 1);
        let mut trainer = Trainer::from_model(model, settings, data).unwrap();
        trainer
            .use_device(Device::Cuda(ordinal), precision)
            .unwrap();
        let (held, read) = trainer.activation_bytes().unwrap();
        eprintln!(
            "{name}, {precision:?}: {} bytes of activations a sample, the way down reads {}",
            held / 256,
            read / 256
        );
        assert!(held <= 2 * read);
    }
}

#[test]
fn the_preset_agrees() {
    let Some(ordinal) = card() else { return };
    let preset = preset("mnist-ht").unwrap();
    let draw = &mut Draw::new(5);
    let values: Vec<f32> = (0..256 * 784)
        .map(|_| {
            if draw.0.chance(0.7) {
                0.0
            } else {
                draw.0.below(256) as f32
            }
        })
        .collect();
    let labels: Vec<i64> = (0..256).map(|row| row % 10).collect();
    let weights = random_models::weights(&preset.structure, 1.0, draw); // components that differ
    let mut model = Model {
        weights,
        ..Model::random(preset.structure.clone(), 1.0, 3)
    };
    model.scaling = preset.scaling;
    let data = data_of(&preset.structure, &values, &labels);
    train_alike(&model, &preset.settings, &data, 3, "mnist-ht");
    let holes = Settings {
        drop_inputs: 0.4,
        drop_varied: true,
        ..preset.settings.clone()
    };
    let turned = Settings {
        rotate: 15.0,
        stretch: 0.2,
        shift: 2,
        ..holes
    };
    train_alike(
        &model,
        &turned,
        &data,
        3,
        "mnist-ht, turned, stretched, moved, with holes",
    );
    let prepared = Prepared::new(&model.weights);
    let reference = Reference::new(&model.structure, &model.weights);
    let many = values.repeat(16);
    for (rows, precision, tolerance) in [
        (100, Precision::F32, 1e-6),
        (100, Precision::Tf32, 1e-3),
        (4096, Precision::F32, 1e-6),
        (4096, Precision::Tf32, 1e-3),
    ] {
        let mut batch = Batch::default();
        internals::fill(&model, &many[..rows * 784], &mut batch);
        let mut scoring = Scoring::new(
            (ordinal, precision),
            &model.structure,
            &model.weights,
            &prepared,
            rows,
            false,
        )
        .unwrap();
        scoring.load(&batch).unwrap();
        let mut worst = 0.0f64;
        for _ in 0..2 {
            scoring.queue(Outputs::Scores).unwrap();
            let returning = scoring.send_back().unwrap();
            let scores = scoring.scores(returning).unwrap().score;
            for b in [0, rows / 2, rows - 67, rows - 1] {
                let up = reference.forward(batch.row(b), &|_, _, _| false);
                for (y, exact) in up.log_likelihood.iter().enumerate() {
                    worst = worst.max((scores[b * 10 + y] - exact).abs() / exact.abs().max(100.0));
                }
            }
        }
        eprintln!("{rows} rows in {precision:?}: worst relative error of a score {worst:e}");
        assert!(
            worst <= tolerance,
            "{rows} rows in {precision:?}: {worst:e}"
        );
    }
}

/// Programs beside this one, ended with it.
struct Others(Vec<Child>);

impl Drop for Others {
    fn drop(&mut self) {
        for other in &mut self.0 {
            other.kill().and_then(|()| other.wait()).unwrap();
        }
    }
}

/// No test of its own: another program that keeps the card busy, for a minute at most.
#[test]
#[ignore = "started by a_busy_card_answers_alike"]
fn keeps_the_card_busy() {
    let Some(ordinal) = card() else { return };
    let preset = preset("mnist-ht").unwrap();
    let values = pixels(4096, &mut Draw::new(8));
    let labels: Vec<i64> = (0..4096).map(|row| row % 10).collect();
    let data = data_of(&preset.structure, &values, &labels);
    let settings = Settings {
        batch: 4096,
        steps: 1_000_000,
        ..preset.settings
    };
    let model = Model::random(preset.structure, 1.0, 3);
    let mut trainer = start(&model, &settings, &data);
    let device = Device::Cuda(ordinal);
    trainer.use_device(device, Precision::Tf32).unwrap();
    let begun = Instant::now();
    trainer.advance().unwrap();
    eprintln!("busy");
    while begun.elapsed() < Duration::from_secs(60) {
        trainer.advance().unwrap();
    }
}

/// Rows reach a model that was just put on a card while other programs keep the card busy: clearing its buffers, which
/// is queued, must not come after the rows, which are copied beside the queue.
#[test]
fn a_busy_card_answers_alike() {
    let Some(ordinal) = card() else { return };
    let busy = || {
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--ignored", "--exact", "keeps_the_card_busy", "--nocapture"]);
        other.stdout(Stdio::null()).stderr(Stdio::piped());
        other.spawn().unwrap()
    };
    let mut others = Others((0..3).map(|_| busy()).collect());
    for other in &mut others.0 {
        let mut line = String::new();
        let mut said = BufReader::new(other.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "busy");
    }
    let (model, values) = random_models::trained();
    for _ in 0..cases(8) {
        questions_alike(model.clone(), &values, ordinal, "on a busy card");
    }
}

/// Large batches take other kernels: larger tiles, sums in parts.
#[test]
fn large_batches_agree() {
    let Some(ordinal) = card() else { return };
    let preset = preset("mnist-ht").unwrap();
    let draw = &mut Draw::new(6);
    let rows = cases(4096).max(1024);
    let values = pixels(rows, draw);
    let labels: Vec<i64> = (0..rows as i64).map(|row| row % 10).collect();
    let mut model = Model::random(preset.structure.clone(), 1.0, 3);
    model.scaling = preset.scaling;
    let data = data_of(&preset.structure, &values, &labels);
    let rule = Rule::Sgd { momentum: 0.5 };
    let settings = Settings {
        batch: rows,
        rule,
        rate: 1.0,
        leaf_rate: 0.01,
        ..preset.settings
    };
    train_alike(&model, &settings, &data, 2, "a large batch");
    let losses = |device: Device, precision: Precision| -> Vec<f64> {
        let mut trainer = start(&model, &settings, &data);
        trainer.use_device(device, precision).unwrap();
        (0..2)
            .map(|_| trainer.advance().unwrap().objective(0.01))
            .collect()
    };
    let (exact, ours) = (
        losses(Device::Cpu, Precision::F32),
        losses(Device::Cuda(ordinal), Precision::Tf32),
    );
    for (exact, ours) in exact.iter().zip(ours) {
        assert!(
            (exact - ours).abs() < 1e-3 * exact.abs(),
            "tf32: {ours} {exact}"
        );
    }
}
