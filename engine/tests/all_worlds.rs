//! Every answer against the sum over all worlds that it stands for, on tiny models.

mod random_models;
mod worlds;

use random_models::Draw;
use sumout::internals::values_of;
use sumout::model::Scaling;
use sumout::structure::{Kind, Structure};
use sumout::{Model, Predictor};
use worlds::{Worlds, agrees, complete_rows, tiny, with_holes};

const MODELS: u64 = 60;

fn close(ours: f64, exact: f64) {
    assert!(
        (ours - exact).abs() < 2e-5 * exact.abs().max(1.0),
        "{ours} against {exact}"
    );
}

/// None, then every class.
fn conditions(model: &Model) -> Vec<Option<usize>> {
    std::iter::once(None)
        .chain((0..model.structure.classes).map(Some))
        .collect()
}

/// P(x, y) of every complete row, by listing worlds; the model must say the same of every row and sum to one.
#[test]
fn the_sum_over_all_worlds_is_one() {
    for seed in 0..MODELS {
        let model = tiny(false, &mut Draw::new(seed));
        let worlds = Worlds::new(&model);
        let rows = complete_rows(&model.structure);
        let mut predictor = Predictor::new(model.clone()).unwrap();
        let scores = predictor
            .log_likelihood(predictor.model().rows(&rows.concat()).unwrap())
            .unwrap()
            .into_vec();
        let mut total = 0.0;
        for (row, scores) in rows.iter().zip(scores.chunks(model.structure.classes)) {
            for (y, score) in scores.iter().enumerate() {
                close(*score, worlds.probability(row, Some(y)).ln());
                total += (score + model.log_prior[y]).exp();
            }
        }
        close(total, 1.0);
        close(worlds.all.iter().map(|world| world.prior).sum(), 1.0);
    }
}

/// Marginals, posteriors, conditionals, probabilities and moments of discrete columns, as sums over complete rows.
#[test]
fn discrete_answers_are_sums_over_rows() {
    for seed in 0..MODELS {
        let draw = &mut Draw::new(1000 + seed);
        let model = tiny(false, draw);
        let (worlds, k) = (Worlds::new(&model), model.structure.classes);
        let rows = complete_rows(&model.structure);
        let joint: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                (0..k)
                    .map(|y| worlds.probability(row, Some(y)) * model.log_prior[y].exp())
                    .collect()
            })
            .collect();
        let sum = |observed: &[f32], class: Option<usize>| -> f64 {
            let fitting = rows
                .iter()
                .zip(&joint)
                .filter(|(row, _)| agrees(row, observed));
            fitting
                .map(|(_, p)| class.map_or(p.iter().sum(), |class| p[class]))
                .sum()
        };
        let mut predictor = Predictor::new(model.clone()).unwrap();
        for _ in 0..6 {
            let asked = with_holes(&rows[draw.from(0, rows.len() - 1)], 0.4, draw);
            let given = with_holes(&asked, 0.4, draw);
            close(
                predictor
                    .log_marginal(predictor.model().rows(&given).unwrap())
                    .unwrap()[0],
                sum(&given, None).ln(),
            );
            for (y, p) in predictor
                .posterior(predictor.model().rows(&given).unwrap())
                .unwrap()
                .into_vec()
                .into_iter()
                .enumerate()
            {
                close(p, sum(&given, Some(y)) / sum(&given, None));
            }
            let conditional = predictor
                .log_conditional(
                    predictor.model().rows(&asked).unwrap(),
                    predictor.model().rows(&given).unwrap(),
                )
                .unwrap()[0];
            close(conditional, (sum(&asked, None) / sum(&given, None)).ln());
            for class in conditions(&model) {
                check_discrete(&mut predictor, &given, class, |observed| {
                    sum(observed, class) / sum(&given, class)
                });
            }
        }
    }
}

/// `conditional` gives P(row|given).
fn check_discrete(
    predictor: &mut Predictor,
    given: &[f32],
    class: Option<usize>,
    conditional: impl Fn(&[f32]) -> f64,
) {
    let kinds = predictor.model().structure.row_kinds();
    let imputed = predictor
        .impute_mean(predictor.model().rows(given).unwrap(), class)
        .unwrap();
    let all: Vec<usize> = (0..given.len()).collect();
    let probabilities = predictor
        .impute_probabilities(predictor.model().rows(given).unwrap(), &all, class)
        .unwrap();
    for column in 0..given.len() {
        let with = |v: usize| {
            let mut row = given.to_vec();
            row[column] = v as f32;
            if agrees(&row, given) {
                conditional(&row)
            } else {
                0.0
            }
        };
        let exact: Vec<f64> = (0..values_of(kinds[column]).unwrap()).map(with).collect();
        exact
            .iter()
            .zip(probabilities[column].as_slice())
            .for_each(|(exact, ours)| close((*ours).into(), *exact));
        let (mean, variance) = (
            f64::from(imputed.mean[(0, column)]),
            f64::from(imputed.variance[(0, column)]),
        );
        match kinds[column] {
            _ if !given[column].is_nan() => {
                assert_eq!((imputed.mean[(0, column)], variance), (given[column], 0.0))
            }
            Kind::Bernoulli => {
                close(mean, exact[1]);
                close(variance, exact[1] * (1.0 - exact[1]));
            }
            _ => {
                let most = exact.iter().copied().fold(0.0, f64::max);
                close(exact[mean as usize], most);
                close(variance, 1.0 - most);
            }
        }
    }
}

/// Scores, responsibilities, moments and modes with real columns too, as sums (or the maximum) over worlds.
#[test]
fn real_answers_are_sums_over_worlds() {
    for seed in 0..MODELS {
        let draw = &mut Draw::new(2000 + seed);
        let model = tiny(true, draw);
        let worlds = Worlds::new(&model);
        let mut predictor = Predictor::new(model.clone()).unwrap();
        for _ in 0..4 {
            let given = with_holes(&worlds::row(&model, draw), 0.5, draw);
            close(
                predictor
                    .log_marginal(predictor.model().rows(&given).unwrap())
                    .unwrap()[0],
                worlds.probability(&given, None).ln(),
            );
            for class in conditions(&model) {
                check_real(&mut predictor, &worlds, &given, class);
                check_mode(&mut predictor, &worlds, &given, class);
            }
        }
    }
}

fn check_real(predictor: &mut Predictor, worlds: &Worlds, given: &[f32], class: Option<usize>) {
    let s = &worlds.model.structure;
    let weight: Vec<f64> = worlds
        .of(class)
        .map(|world| world.prior * worlds.density(world, given, false))
        .collect();
    let total: f64 = weight.iter().sum();
    let ours = predictor
        .responsibilities(predictor.model().rows(given).unwrap(), class)
        .unwrap();
    for (t, tree) in s.trees.iter().enumerate() {
        let mut exact = vec![0.0; tree.positions.len() * tree.components];
        for (world, weight) in worlds
            .of(class)
            .zip(&weight)
            .filter(|(world, _)| world.tree == t)
        {
            for (i, d) in world.states[0].iter().enumerate() {
                exact[i * tree.components + d] += weight / total;
            }
        }
        exact
            .iter()
            .zip(ours[t].as_slice())
            .for_each(|(exact, ours)| close((*ours).into(), *exact));
    }
    let imputed = predictor
        .impute_mean(predictor.model().rows(given).unwrap(), class)
        .unwrap();
    let kinds = s.row_kinds();
    for column in (0..given.len()).filter(|&c| given[c].is_nan() && kinds[c] == Kind::Gaussian) {
        let moment = |power: i32| -> f64 {
            let of = |world: &worlds::World| {
                let (family, s, d) = worlds.component(world, column);
                let (first, second) =
                    worlds.model.weights.trees[world.tree].families[family].moments(s, d);
                if power == 1 { first } else { second }
            };
            worlds
                .of(class)
                .zip(&weight)
                .map(|(world, weight)| of(world) * weight / total)
                .sum()
        };
        let scale = f64::from(worlds.model.scaling.scale_of(column));
        close(
            imputed.mean[(0, column)].into(),
            f64::from(worlds.model.scaling.invert(column, moment(1) as f32)),
        );
        close(
            imputed.variance[(0, column)].into(),
            (moment(2) - moment(1).powi(2)) / (scale * scale),
        );
    }
}

/// The completed row must reach, in some world, the largest density there is.
fn check_mode(predictor: &mut Predictor, worlds: &Worlds, given: &[f32], class: Option<usize>) {
    let best = |row: &[f32]| -> f64 {
        worlds
            .of(class)
            .map(|world| world.prior * worlds.density(world, row, true))
            .fold(0.0, f64::max)
    };
    let ours = predictor
        .impute_mode(predictor.model().rows(given).unwrap(), class)
        .unwrap()
        .into_vec();
    assert!(agrees(&ours, given) && ours.iter().all(|x| x.is_finite()));
    close(best(&ours).ln(), best(given).ln());
}

/// One or two real columns: the density integrates to one, a marginal is an integral, and so are mean and variance.
#[test]
fn real_answers_are_integrals() {
    for seed in 0..6 {
        let draw = &mut Draw::new(3000 + seed);
        let kinds = [Kind::Gaussian, Kind::Gaussian];
        let orders = [vec![vec![0], vec![1]], vec![vec![1, 0]]];
        let structure = Structure::table(&kinds)
            .trees(orders)
            .window(2)
            .components(3)
            .channels([2])
            .classes(2)
            .build()
            .unwrap();
        let weights = random_models::weights(&structure, 1.0, draw);
        let mut model = Model {
            weights,
            ..Model::random(structure, 1.0, 0)
        };
        model.set_prior(&[0.3, 0.7]).unwrap();
        model.scaling = Scaling {
            offset: vec![3.0, -1.0],
            scale: vec![0.5, 2.0],
            ..Scaling::default()
        };
        let mut predictor = Predictor::new(model).unwrap();
        // trapezoids: a grid finer than the narrowest component, wider than all of them
        let axis = |column: usize| -> (f64, Vec<f32>) {
            let (middle, reach) = [(3.0, 80.0), (-1.0, 20.0)][column];
            let step = reach / 400.0;
            (
                step,
                (-400..=400)
                    .map(|i| (middle + f64::from(i) * step) as f32)
                    .collect(),
            )
        };
        let (step, xs) = axis(0);
        let (step_1, ys) = axis(1);
        let column: Vec<f64> = ys
            .iter()
            .map(|&y| {
                let rows: Vec<f32> = xs.iter().flat_map(|&x| [x, y]).collect();
                predictor
                    .log_marginal(predictor.model().rows(&rows).unwrap())
                    .unwrap()
                    .iter()
                    .map(|log| log.exp())
                    .sum::<f64>()
                    * step
            })
            .collect();
        let near = |ours: f64, exact: f64| {
            assert!(
                (ours - exact).abs() < 1e-3 * exact.abs().max(1.0),
                "{ours} {exact}"
            )
        };
        near(column.iter().sum::<f64>() * step_1, 1.0);
        let rows: Vec<f32> = ys.iter().flat_map(|&y| [f32::NAN, y]).collect();
        let marginal = predictor
            .log_marginal(predictor.model().rows(&rows).unwrap())
            .unwrap();
        column
            .iter()
            .zip(&marginal)
            .for_each(|(integral, log)| near(log.exp(), *integral));

        let y = ys[390 + draw.from(0, 20)];
        let rows: Vec<f32> = xs.iter().flat_map(|&x| [x, y]).collect();
        let given: Vec<f32> = xs.iter().flat_map(|_| [f32::NAN, y]).collect();
        let density: Vec<f64> = predictor
            .log_conditional(
                predictor.model().rows(&rows).unwrap(),
                predictor.model().rows(&given).unwrap(),
            )
            .unwrap()
            .iter()
            .map(|log| log.exp() * step)
            .collect();
        near(density.iter().sum(), 1.0);
        let mean: f64 = xs
            .iter()
            .zip(&density)
            .map(|(&x, p)| f64::from(x) * p)
            .sum();
        let variance: f64 = xs
            .iter()
            .zip(&density)
            .map(|(&x, p)| (f64::from(x) - mean).powi(2) * p)
            .sum();
        let imputed = predictor
            .impute_mean(predictor.model().rows(&[f32::NAN, y]).unwrap(), None)
            .unwrap();
        near(imputed.mean[(0, 0)].into(), mean);
        near(imputed.variance[(0, 0)].into(), variance);
    }
}
