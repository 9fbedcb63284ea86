//! Trains a net on images with holes: SGD with momentum. The rate is constant for half of the
//! steps, falls to a tenth in the third quarter, and to 0 in the last.

use crate::inputs::mnist::{Images, PIXELS, SIDE};
use crate::inputs::train_masks::TrainHoles;
use crate::methods::lenet::enabled::fill::Fill;
use crate::methods::lenet::enabled::layers::{Layers, patches_of_map};
use crate::methods::lenet::enabled::saved_net::{Progress, SavedNet, Unfinished};
use anyhow::Result;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use sumout::masks::Grid;
use sumout::random::{Purpose, Stream};

/// How a net is trained.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Total steps; the paper has 20,000.
    pub steps: usize,
    /// Images in a batch.
    pub batch: usize,
    /// Learning rate at the start.
    pub rate: f64,
    /// Momentum.
    pub momentum: f64,
    /// Weight decay.
    pub decay: f32,
}

impl Recipe {
    /// The learning rate of a step.
    fn rate_at(&self, step: usize) -> f64 {
        let quarters = 4.0 * step as f64 / self.steps as f64;
        let part = match quarters {
            q if q < 2.0 => 1.0,
            q if q < 3.0 => 1.0 - 0.9 * (q - 2.0),
            q => 0.1 * (4.0 - q),
        };
        self.rate * part
    }

    fn optimizer(&self) -> ModuleOptimizer {
        let momentum = MomentumConfig::new()
            .with_momentum(self.momentum)
            .with_dampening(0.0);
        SgdConfig::new()
            .with_momentum(Some(momentum))
            .with_weight_decay(Some(WeightDecayConfig::new(self.decay)))
            .init()
    }
}

/// A trained net.
#[derive(Debug)]
pub struct LeNet {
    layers: Layers,
    fill: Fill,
}

impl LeNet {
    /// The class of each row.
    pub fn classify(&self, rows: &[f32]) -> Vec<usize> {
        let pieces = rows.chunks(100 * PIXELS);
        pieces.flat_map(|rows| self.classify_batch(rows)).collect()
    }

    fn classify_batch(&self, rows: &[f32]) -> Vec<usize> {
        let device = Device::flex();
        let of_map = patches_of_map(rows.len() / PIXELS, &device);
        let scores = self
            .layers
            .forward(self.fill.patches(rows, &device), &of_map);
        let classes = scores.argmax(1).into_data().convert::<i64>();
        let classes = classes.try_into_vec::<i64>().expect("whole numbers");
        classes.into_iter().map(|class| class as usize).collect()
    }
}

/// A net to train.
pub struct Training<'a> {
    pub recipe: &'a Recipe,
    pub images: &'a Images,
    pub holes: TrainHoles,
    pub fill: Fill,
    pub seed: u64,
    /// Where the unfinished net is saved.
    pub saved: Option<SavedNet>,
}

/// Steps between two saves.
const SAVE_EVERY: usize = 500;

/// Steps between two calls of `on_progress`.
const REPORT_EVERY: usize = 100;

impl Training<'_> {
    /// Trains on images that have new holes each time. `on_progress` gets the progress and the
    /// batch's loss. Returns the net and its seconds, with those before it was stopped.
    pub fn run(self, on_progress: &mut dyn FnMut(Progress, f64)) -> Result<(LeNet, f64)> {
        let device = Device::flex().autodiff();
        let recipe = self.recipe;
        let Unfinished {
            progress: before,
            mut layers,
            mut optimizer,
        } = self.begin(&device)?;
        let since = Instant::now();
        let progress = |step| Progress {
            step,
            seconds: before.seconds + since.elapsed().as_secs_f64(),
        };
        let entropy = CrossEntropyLossConfig::new().init(&device);
        let of_map = patches_of_map(recipe.batch, &device);
        let mut order = Order::new(self.images.labels.len(), self.seed);
        order.skip(before.step * recipe.batch);
        for step in before.step..recipe.steps {
            let batch = self.batch(step, &mut order)?;
            let labels = TensorData::new(batch.labels, [recipe.batch]);
            let labels = Tensor::<1, Int>::from_data(labels, &device);
            let patches = self.fill.patches(&batch.values, &device);
            let loss = entropy.forward(layers.forward(patches, &of_map), labels);
            let done = step + 1;
            if done % REPORT_EVERY == 0 {
                let loss = f64::from(loss.clone().into_scalar::<f32>());
                on_progress(progress(done), loss);
            }
            let gradients = GradientsParams::from_grads(loss.backward(), &layers);
            layers = optimizer.step(recipe.rate_at(step), layers, gradients);
            if let Some(saved) = self.saved.as_ref().filter(|_| done % SAVE_EVERY == 0) {
                saved.save(progress(done), layers.clone(), &optimizer)?;
            }
        }
        let net = LeNet {
            layers: layers.valid(),
            fill: self.fill,
        };
        Ok((net, progress(recipe.steps).seconds))
    }

    /// The net at the start, or as it was saved.
    fn begin(&self, device: &Device) -> Result<Unfinished<Layers>> {
        let layers = random_layers(&self.fill, self.seed, device);
        let optimizer = self.recipe.optimizer();
        match &self.saved {
            Some(saved) => saved.load(layers, optimizer),
            None => Ok(Unfinished {
                progress: Progress::default(),
                layers,
                optimizer,
            }),
        }
    }

    /// The images of a step, with holes.
    fn batch(&self, step: usize, order: &mut Order) -> Result<Images> {
        let size = self.recipe.batch;
        let rows: Vec<usize> = (0..size).map(|_| order.next_row()).collect();
        let mut batch = self.images.picked(&rows);
        let grid = Grid::image(SIDE, SIDE, 1);
        let seed = !self.seed; // not the holes of the test
        self.holes
            .apply(&grid, &mut batch.values, step * size, seed)?;
        Ok(batch)
    }
}

/// Layers by a seed. Burn has one source of random numbers for all threads, and it draws a weight
/// when the weight is first used.
fn random_layers(fill: &Fill, seed: u64, device: &Device) -> Layers {
    static DRAWING: Mutex<()> = Mutex::new(());
    let _alone = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    device.seed(seed);
    let layers = Layers::new(fill.channels(), device);
    let black = fill.patches(&[0.0; PIXELS], device);
    layers.forward(black, &patches_of_map(1, device));
    layers
}

/// Rows of the training set, each once per epoch; every epoch has its own order.
struct Order {
    rows: usize,
    seed: u64,
    epoch: u32,
    left: Vec<u32>,
}

impl Order {
    fn new(rows: usize, seed: u64) -> Self {
        Self {
            rows,
            seed,
            epoch: 0,
            left: Vec::new(),
        }
    }

    fn next_row(&mut self) -> usize {
        if self.left.is_empty() {
            self.left =
                Stream::new(self.seed, Purpose::Shuffle, self.epoch, 0).permutation(self.rows);
            self.epoch += 1;
        }
        self.left.pop().expect("a training set has rows") as usize
    }

    fn skip(&mut self, rows: usize) {
        for _ in 0..rows {
            self.next_row();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::layout::Split;

    fn digits(split: Split) -> Images {
        Images::read(sumout_data::digits::NAME, split).unwrap()
    }

    /// 150 batches of the digits that come with the program; ten classes are guessed right one time
    /// in ten.
    #[test]
    fn learns() {
        let (train, test) = (digits(Split::Train), digits(Split::Test));
        let recipe = Recipe {
            steps: 150,
            batch: 32,
            rate: 0.02,
            momentum: 0.9,
            decay: 5e-4,
        };
        let accuracy = |holes: &str, fill: Fill| {
            let holes: TrainHoles = holes.parse().unwrap();
            let training = Training {
                recipe: &recipe,
                images: &train,
                holes: holes.clone(),
                fill,
                seed: 1,
                saved: None,
            };
            let (net, _) = training.run(&mut |_, _| ()).unwrap();
            let mut rows = test.values.clone();
            holes
                .apply(&Grid::image(SIDE, SIDE, 1), &mut rows, 0, 2)
                .unwrap();
            test.accuracy_of(&net.classify(&rows))
        };
        let (whole, half) = (
            accuracy("clean", Fill::Zero),
            accuracy("iid:0.5", Fill::Flag),
        );
        assert!(whole > 88.0 && half > 75.0, "{whole} {half}");
        assert_eq!(
            whole,
            accuracy("clean", Fill::Zero),
            "the same seed gives the same net"
        );
    }

    /// After 600 steps there is a file of the first 500; from there the last 100 are the same
    /// again.
    #[test]
    fn continues_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let images = digits(Split::Train).range(0, 100);
        let saved = |training: &str| SavedNet::new(folder.path().join("a.net"), training.into());
        let train = || {
            let recipe = Recipe {
                steps: 600,
                batch: 4,
                rate: 0.01,
                momentum: 0.9,
                decay: 5e-4,
            };
            let (images, holes) = (&images, "iid:0.5".parse().unwrap());
            let training = Training {
                recipe: &recipe,
                images,
                holes,
                fill: Fill::Flag,
                seed: 1,
                saved: Some(saved("a net")),
            };
            let mut losses = Vec::new();
            training
                .run(&mut |progress, loss| losses.push((progress.step, loss)))
                .unwrap();
            losses
        };
        let (whole, rest) = (train(), train());
        assert_eq!((whole.len(), &whole[5..]), (6, &rest[..]));
        let layers = random_layers(&Fill::Flag, 1, &Device::flex().autodiff());
        let other = saved("another").load(layers, SgdConfig::new().init());
        assert_eq!(other.unwrap().progress, Progress::default());
    }

    #[test]
    fn the_rate_falls() {
        let recipe = Recipe {
            steps: 20_000,
            batch: 64,
            rate: 0.01,
            momentum: 0.9,
            decay: 5e-4,
        };
        let rates = [0, 9_999, 12_500, 15_000, 17_500].map(|step| recipe.rate_at(step));
        let expected = [0.01, 0.01, 0.0055, 0.001, 0.0005];
        assert!(
            rates
                .iter()
                .zip(expected)
                .all(|(rate, e)| (rate - e).abs() < 1e-12),
            "{rates:?}"
        );
    }
}
