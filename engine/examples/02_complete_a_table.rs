//! A table with a third of its cells missing: train on it as it is, then fill its holes and say how sure that is.
//!
//!     cargo run --release -p sumout --example 02_complete_a_table
//!
//! Three columns follow one hidden number t: t, 2t and whether t is positive, with noise. Expect
//!
//!     off by 0.44; by the column's mean 1.20
//!     95 % within 1.64 standard deviations

use sumout::Model;
use sumout::missing::{Grid, Missing};
use sumout::queries::Predictor;
use sumout::random::{Purpose, Stream};
use sumout::structure::{Kind, Structure};
use sumout::train::{Data, Proceed, Settings, Trainer};

fn table(rows: usize, item: u32) -> Vec<f32> {
    let mut random = Stream::new(1, Purpose::Sampling, 0, item);
    let row = |_| {
        let t = random.normal();
        let mut noisy = |x: f64| (x + 0.2 * random.normal()) as f32;
        [noisy(t), noisy(2.0 * t), f32::from(u8::from(t > 0.0))]
    };
    (0..rows).flat_map(row).collect()
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), sumout::Error> {
    let (mut train, truth) = (table(4000, 0), table(1000, 1));
    let mut test = truth.clone();
    let holes = Missing::Iid(1.0 / 3.0);
    holes.apply(&Grid::columns(3), &mut train, 0, 1)?;
    holes.apply(&Grid::columns(3), &mut test, 0, 2)?;

    let kinds = [Kind::Gaussian, Kind::Gaussian, Kind::Bernoulli];
    let structure = Structure::columns(&kinds, &[vec![0], vec![1], vec![2]], 3, 12, &[24], 1)?;
    let settings = Settings { generative: 1.0, leaf_rate: 0.3, steps: 1500, ..Settings::default() };
    let data = Data { values: &train, labels: &[], weights: &[] };
    let mut trainer = Trainer::new(Model::random(structure, 1.0, 1), settings, &data)?;
    trainer.run(&data, None, &mut |_, _| Proceed::Continue)?;

    let filled = Predictor::new(trainer.into_model()).impute_mean(&test, None)?;
    let (mut ours, mut naive, mut within, mut count) = (0.0, 0.0, 0, 0);
    for i in (0..test.len()).filter(|i| i % 3 < 2 && test[*i].is_nan()) {
        let error = (filled.mean[i] - truth[i]).abs();
        ours += error;
        naive += truth[i].abs(); // both columns have mean 0
        within += usize::from(error < 1.64 * filled.variance[i].sqrt());
        count += 1;
    }
    let share = |x: f32| x / count as f32;
    println!("off by {:.2}; by the column's mean {:.2}", share(ours), share(naive));
    println!("{:.0} % within 1.64 standard deviations", 100.0 * within as f32 / count as f32);
    Ok(())
}
