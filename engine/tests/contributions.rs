//! Steps by contributions of partitions: the ordinary trainer's steps on the same batches, and the reference's slopes.

mod random_models;

use random_models::Draw;
use sumout::internals::Coordinate;
use sumout::random::{Purpose, Stream};
use sumout::recipes::{Fit, RoundOptions, Rounds};
use sumout::reference::Reference;
use sumout::structure::{ClassRows, Kind, Structure};
use sumout::training::{Checkpoint, Contribution, Data, Partitions, Prior, Round, Rule, labels};
use sumout::{Error, Model, Rows, Settings, Trainer};

const KINDS: [Kind; 5] = [
    Kind::Gaussian,
    Kind::Bernoulli,
    Kind::Gaussian,
    Kind::Categorical(3),
    Kind::Gaussian,
];

fn structure(classes: usize) -> Structure {
    let orders = [
        vec![vec![0, 1], vec![2], vec![3, 4]],
        vec![vec![4, 2], vec![0, 3], vec![1]],
    ];
    let table = Structure::table(&KINDS).trees(orders).window(2);
    let table = table.components(3).channels([4, 5]).classes(classes);
    table.build().unwrap()
}

/// Rows with holes, labels and weights.
struct Table {
    values: Vec<f32>,
    labels: Vec<i64>,
    weights: Vec<f32>,
}

impl Table {
    fn random(rows: usize, classes: usize, seed: u64) -> Self {
        let draw = &mut Draw::new(seed);
        let mut values = Vec::new();
        for _ in 0..rows {
            for kind in KINDS {
                let value = match kind {
                    Kind::Gaussian => draw.0.normal() as f32,
                    Kind::Bernoulli => draw.0.below(2) as f32,
                    Kind::Categorical(n) => draw.0.below(n as usize) as f32,
                };
                values.push(if draw.0.chance(0.2) { f32::NAN } else { value });
            }
        }
        let label = |row: usize, draw: &mut Draw| {
            if row < classes {
                row as i64
            } else {
                draw.from(0, classes) as i64 - 1
            }
        };
        let labels = (0..rows).map(|row| label(row, draw)).collect();
        let weights = (0..rows).map(|_| draw.0.uniform() as f32 + 0.1).collect();
        Self {
            values,
            labels,
            weights,
        }
    }

    fn picked(&self, rows: impl Iterator<Item = usize>) -> Self {
        let (mut values, mut labels, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            values.extend_from_slice(&self.values[row * 5..][..5]);
            labels.push(self.labels[row]);
            weights.push(self.weights[row]);
        }
        Self {
            values,
            labels,
            weights,
        }
    }

    fn data(&self, weighted: bool) -> Data<'_> {
        let rows = Rows::new(&self.values, 5).unwrap();
        let data = Data::new(rows, &labels(&self.labels));
        if weighted {
            data.weighted(&self.weights)
        } else {
            data
        }
    }

    /// Cut into partitions whose rows of this epoch are the rows of the ordinary trainer's batch, in its order.
    fn cut(&self, sizes: &[u64], seed: u64, epoch: u32) -> Vec<Self> {
        let rows = self.labels.len();
        let batch = Stream::new(seed, Purpose::Shuffle, epoch, 0).permutation(rows);
        let (mut first, mut cut) = (0, Vec::new());
        for (partition, &size) in sizes.iter().enumerate() {
            let size = size as usize;
            let mut random = Stream::new(seed, Purpose::Shuffle, epoch, partition as u32 + 1);
            let mut of_row = vec![0; size];
            for (place, &row) in random.permutation(size).iter().enumerate() {
                of_row[row as usize] = batch[first + place] as usize;
            }
            cut.push(self.picked(of_row.into_iter()));
            first += size;
        }
        cut
    }
}

fn settings(rule: Rule, rate: f64, batch: usize) -> Settings {
    Settings {
        steps: 6,
        batch,
        rule,
        rate,
        generative: 0.4,
        drop_inputs: 0.3,
        drop_varied: true,
        drop_nodes: vec![0.05, 0.1],
        leaf_rate: 1.0,
        prior: Prior::Uniform,
        ..Settings::default()
    }
}

fn started<'a>(table: &'a Table, settings: &Settings, weighted: bool) -> Trainer<'a> {
    Trainer::from_model(start(), settings.clone(), table.data(weighted)).unwrap()
}

/// A model whose leaves differ.
fn start() -> Model {
    let mut model = Model::random(structure(3), 1.0, 5);
    model.weights = random_models::weights(&model.structure, 1.0, &mut Draw::new(9));
    model
}

/// Three steps by the ordinary trainer and by contributions of the same batches.
fn both(table: &Table, settings: &Settings, sizes: &[u64], weighted: bool) -> (Model, Model) {
    let mut ordinary = started(table, settings, weighted);
    let mut driver = started(table, settings, weighted);
    let partitions = Partitions::new(sizes, table.labels.len() as u64).unwrap();
    for step in 0..3 {
        let expected = ordinary.advance().unwrap();
        let round = Round::from_bytes(&driver.round(&partitions).unwrap()).unwrap();
        assert_eq!(round.step(), step as usize);
        let cut = table.cut(sizes, settings.seed, step);
        let sum = summed(&round, &cut, weighted);
        let loss = driver.apply(&sum).unwrap();
        assert_eq!(
            (loss.rows, loss.correct, loss.labelled),
            (expected.rows, expected.correct, expected.labelled)
        );
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
        assert!(close(loss.generative, expected.generative));
        assert!(close(loss.discriminative, expected.discriminative));
    }
    (ordinary.model(), driver.model())
}

/// The sum of all partitions, the last first, through bytes.
fn summed(round: &Round, partitions: &[Table], weighted: bool) -> Contribution {
    let parts = partitions.iter().enumerate().rev();
    let parts = parts.map(|(p, table)| round.contribution(p, table.data(weighted)).unwrap());
    let through_bytes = |part: Contribution| part.to_bytes().unwrap();
    let mut parts = parts.map(|part| Contribution::from_bytes(&through_bytes(part)).unwrap());
    let mut sum = parts.next().unwrap();
    parts.for_each(|part| sum.add(part).unwrap());
    sum
}

/// Every learned number, and the largest difference of two models' numbers.
fn difference(a: &Model, b: &Model) -> f32 {
    let numbers = |model: &Model| -> Vec<f32> {
        let mut all = Vec::new();
        for tree in &model.weights.trees {
            for coordinate in tree.families.iter().flat_map(|family| &family.coordinates) {
                match coordinate {
                    Coordinate::Gaussian { mean, log_sigma } => {
                        all.extend(mean.iter().chain(log_sigma));
                    }
                    Coordinate::Discrete { logits } => all.extend(logits),
                }
            }
            tree.levels
                .iter()
                .for_each(|mixing| all.extend(&mixing.logits));
        }
        all.extend(&model.weights.classes.logits);
        all
    };
    let pairs = numbers(a).into_iter().zip(numbers(b));
    let finite = pairs.filter(|(a, b)| a.is_finite() || b.is_finite());
    finite.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn rules() -> [(Rule, f64); 3] {
    [
        (Rule::adam(), 0.05),
        (Rule::Sgd { momentum: 0.5 }, 0.1),
        (Rule::Em, 0.5),
    ]
}

/// One partition, 64 rows, no penalty: sums differ from means by a power of two, so not a bit is lost.
#[test]
fn one_partition_is_the_ordinary_step_to_the_bit() {
    for (rule, rate) in rules() {
        let table = Table::random(64, 3, 1);
        let (ordinary, by_contributions) = both(&table, &settings(rule, rate, 64), &[64], false);
        assert_eq!(ordinary, by_contributions, "{rule:?}");
        assert!(difference(&ordinary, &start()) > 0.01);
    }
}

/// Several partitions, weights and a penalty: to rounding.
#[test]
fn many_partitions_are_the_ordinary_step_to_rounding() {
    for (rule, rate) in rules() {
        let table = Table::random(100, 3, 2);
        let mut settings = settings(rule, rate, 100);
        if rule != Rule::Em {
            settings.penalty = 0.01;
        }
        let (ordinary, other) = both(&table, &settings, &[30, 0, 69, 1], true);
        let difference = difference(&ordinary, &other);
        assert!(difference < 2e-4, "{rule:?}: {difference}");
    }
}

/// A step takes 1,200 rows, which do not go through the circuit at once.
#[test]
fn large_partitions_are_the_ordinary_step_to_rounding() {
    let table = Table::random(1_200, 3, 3);
    let settings = settings(Rule::Sgd { momentum: 0.0 }, 0.1, 1_200);
    let (ordinary, other) = both(&table, &settings, &[1_200], false);
    let difference = difference(&ordinary, &other);
    assert!(difference < 2e-4, "{difference}");
}

/// The objective of rows by the reference.
fn objective(model: &Model, table: &Table, beta: f64) -> f64 {
    let reference = Reference::new(&model.structure, &model.weights);
    let (mut sum, mut weight) = (0.0, 0.0);
    for (row, &label) in table.labels.iter().enumerate() {
        let up = reference.forward(&table.values[row * 5..][..5], &|_, _, _| false);
        let joint: Vec<f64> = up
            .log_likelihood
            .iter()
            .map(|log| log - 3f64.ln())
            .collect();
        let marginal = sumout::internals::log_sum_exp(&joint);
        let own = f64::from(table.weights[row]);
        let known = if label < 0 {
            marginal
        } else {
            joint[label as usize]
        };
        sum += own * (marginal - known - beta * marginal);
        weight += own;
    }
    sum / weight
}

/// One step of plain gradient descent by contributions moves logits and means along the reference's slopes.
#[test]
fn contributions_follow_the_slopes_of_the_reference() {
    let table = Table::random(60, 3, 4);
    let rate = 1e-2;
    let settings = Settings {
        drop_inputs: 0.0,
        drop_nodes: Vec::new(),
        ..settings(Rule::Sgd { momentum: 0.0 }, rate, 60)
    };
    let mut driver = started(&table, &settings, true);
    let before = driver.model();
    let partitions = Partitions::new(&[25, 35], 60).unwrap();
    let round = Round::from_bytes(&driver.round(&partitions).unwrap()).unwrap();
    let cut = [table.picked(0..25), table.picked(25..60)];
    let sum = summed(&round, &cut, true);
    let expected = objective(&before, &table, 0.4);
    let got = driver.apply(&sum).unwrap().objective(0.4);
    assert!(
        (got - expected).abs() < 1e-5 * expected.abs(),
        "{got} {expected}"
    );
    let after = driver.model();
    assert_eq!(before.structure.class_rows, ClassRows::Mixing);
    let slope = |change: &dyn Fn(&mut Model, f32)| {
        let at = |by: f32| {
            let mut moved = before.clone();
            change(&mut moved, by);
            objective(&moved, &table, 0.4)
        };
        (at(2e-3) - at(-2e-3)) / 4e-3
    };
    for (t, l, c) in [(0, 0, 1), (0, 1, 4), (1, 0, 3)] {
        let mixing = |model: &Model| model.weights.trees[t].levels[l].clone();
        let (old, new) = (mixing(&before), mixing(&after));
        let place = |a: usize| old.place(0, c, a);
        // Logits are known up to a constant a row, so two of them are compared.
        let moved = |a: usize| f64::from(new.logits[place(a)] - old.logits[place(a)]);
        let by =
            |a: usize| slope(&|model, by| model.weights.trees[t].levels[l].logits[place(a)] += by);
        let (moved, slopes) = (moved(0) - moved(1), by(0) - by(1));
        assert!(
            (moved / -rate - slopes).abs() < 1e-2 * slopes.abs().max(1e-3),
            "{moved} {slopes}"
        );
    }
    let mean = |model: &mut Model, by: f32| {
        let family = &mut model.weights.trees[0].families[0];
        let Coordinate::Gaussian { mean, .. } = &mut family.coordinates[0] else {
            panic!("a number")
        };
        mean[1] += by;
        mean[1]
    };
    let moved = f64::from(mean(&mut after.clone(), 0.0) - mean(&mut before.clone(), 0.0));
    let slopes = slope(&|model, by| {
        mean(model, by);
    });
    assert!(
        (moved / -rate - slopes).abs() < 1e-2 * slopes.abs().max(1e-3),
        "{moved} {slopes}"
    );
}

/// Which partition is computed where, on how many threads and in which order they are added changes no bit.
#[test]
fn threads_change_no_bit() {
    let table = Table::random(90, 3, 5);
    let settings = settings(Rule::adam(), 0.05, 64);
    let partitions = Partitions::new(&[40, 20, 30], 50).unwrap();
    let run = |threads: usize| {
        let mut driver = started(&table, &settings, false);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let cut = [
            table.picked(0..40),
            table.picked(40..60),
            table.picked(60..90),
        ];
        for _ in 0..6 {
            let round = Round::from_bytes(&driver.round(&partitions).unwrap()).unwrap();
            let sum = pool.install(|| summed(&round, &cut, false));
            driver.apply(&sum).unwrap();
        }
        driver.model()
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let table = Table::random(40, 3, 6);
    let settings = settings(Rule::adam(), 0.05, 40);
    let mut driver = started(&table, &settings, false);
    let partitions = Partitions::new(&[20, 20], 40).unwrap();
    let bytes = driver.round(&partitions).unwrap();
    let round = Round::from_bytes(&bytes).unwrap();
    let (left, right) = (table.picked(0..20), table.picked(20..40));
    let message = |result: sumout::Result<Contribution>| result.unwrap_err().to_string();
    let wrong = message(round.contribution(1, table.data(false)));
    assert_eq!(wrong, "partition 1: expected 20 rows, got 40 rows");
    assert!(message(round.contribution(2, left.data(false))).contains("no such partition"));
    let mut odd = table.picked(20..40);
    odd.values[7 * 5 + 3] = 9.0;
    let wrong = message(round.contribution(1, odd.data(false)));
    assert!(
        wrong.starts_with("row index 7, column index 3: expected a whole number"),
        "{wrong}"
    );
    let half = round.contribution(0, left.data(false)).unwrap();
    let wrong = driver.apply(&half).unwrap_err().to_string();
    assert!(wrong.ends_with("got none of partition 1"), "{wrong}");
    let mut whole = half.clone();
    whole
        .add(round.contribution(1, right.data(false)).unwrap())
        .unwrap();
    driver.apply(&whole).unwrap();
    let again = driver.apply(&whole);
    assert!(matches!(again, Err(Error::Contribution(_))), "{again:?}");
    let (other, few) = (Model::random(structure(2), 1.0, 5), table.picked(0..2));
    let mut other = Trainer::from_model(other, settings.clone(), few.data(false)).unwrap();
    assert!(matches!(other.apply(&whole), Err(Error::Contribution(_))));
    for place in (0..bytes.len()).step_by(97) {
        assert!(Round::from_bytes(&bytes[..place]).is_err());
    }
}

/// Rounds to the end; broken off and resumed after this many steps.
fn taught(tables: &[Table], mut rounds: Rounds, break_after: usize) -> Model {
    while !rounds.is_done() {
        if rounds.steps_done() == break_after {
            let bytes = rounds.checkpoint().unwrap();
            rounds = Rounds::resume(Checkpoint::from_bytes(&bytes).unwrap()).unwrap();
        }
        let round = Round::from_bytes(&rounds.round().unwrap()).unwrap();
        let taken: Vec<Table> = round
            .taken()
            .iter()
            .map(|&p| tables[p].picked(0..tables[p].labels.len()))
            .collect();
        rounds.apply(&summed(&round, &taken, false)).unwrap();
    }
    rounds.model()
}

/// A density starts from a sample; passes of EM and rounds over all rows make it likelier, and a fit that was broken
/// off goes on to the same bits.
#[test]
fn rounds_teach_all_rows_and_go_on_to_the_same_bits() {
    let mut draw = Draw::new(12);
    let mut table = Table::random(600, 1, 7);
    for row in table.values.chunks_exact_mut(5) {
        let hidden = draw.0.below(2) as f32;
        (row[0], row[1], row[2]) = (row[0] * 0.2 + hidden, hidden, 3.0 * hidden + row[2] * 0.5);
    }
    table.labels.fill(0);
    let sample = table.picked((0..600).step_by(10));
    let fit = Fit::new().kinds(&KINDS).trees(1).clusters(false).steps(30);
    let rows = Rows::new(&sample.values, 5).unwrap();
    let start = fit.run(rows, &labels(&sample.labels)).unwrap();
    let tables = [
        table.picked(0..256),
        table.picked(256..300),
        table.picked(300..600),
    ];
    let sizes = [256, 44, 300];
    let options = RoundOptions {
        rows: Some(100),
        rounds: Some(12),
        ..RoundOptions::default()
    };
    let rounds = || Rounds::start(start.clone(), &sizes, &[1.0], &options).unwrap();
    assert_eq!(rounds().steps(), 4 + 12);
    let model = taught(&tables, rounds(), usize::MAX);
    let likelihood = |model: &Model| -> f64 {
        let mut predictor = sumout::Predictor::new(model.clone()).unwrap();
        let rows = Rows::new(&table.values, 5).unwrap();
        predictor.log_marginal(rows).unwrap().iter().sum::<f64>() / 600.0
    };
    let (before, after) = (likelihood(&start), likelihood(&model));
    assert!(after > before + 0.05, "{before} {after}");
    for break_after in [1, 4, 7] {
        assert_eq!(taught(&tables, rounds(), break_after), model);
    }
    let whole = RoundOptions {
        whole: true,
        ..options
    };
    let rounds = || Rounds::start(start.clone(), &sizes, &[1.0], &whole).unwrap();
    let model = taught(&tables, rounds(), usize::MAX);
    assert!(likelihood(&model) > before + 0.05);
    assert_eq!(taught(&tables, rounds(), 5), model);
}
