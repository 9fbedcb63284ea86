//! LeNet as it comes with Caffe (paper, appendix on ConvNets): the discriminative rival, plain or told what is missing.
//!
//! ```text
//! 5×5 convolution to 20, 2×2 maximum, 5×5 convolution to 50, 2×2 maximum, 500 ReLU, 10       batch 64
//! SGD with momentum; the rate is constant for half of the steps, falls to a tenth in a quarter, to 0 in the last
//! ```
//!
//! ```toml
//! [options]
//! fill = "flag"                  # or "zero", "mean"
//! holes = ["iid:0.9"]            # what nets are trained on, one each
//! recipe = { steps = 20000, batch = 64, rate = 0.01, momentum = 0.9, decay = 5e-4 } # the paper's
//! ```

use crate::columns::{accuracy, with_holes};
use crate::holes::Holes;
use crate::mnist::{Images, Mnist, PIXELS};
use crate::plan::Plan;
use crate::results::{Book, Run, machine, seconds};
use crate::side_by_side::side_by_side;
use anyhow::{Result, bail};
use burn::module::{Initializer, Module};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use sumout::missing::Grid;
use sumout::random::{Purpose, Stream};

const SIDE: usize = 28;
const MAP: usize = 12; // side of the map after the first maximum

/// How a net is trained.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// Batches in all; the paper has 20,000.
    steps: usize,
    /// Images in a batch.
    batch: usize,
    /// Learning rate at the start.
    rate: f64,
    /// Momentum.
    momentum: f64,
    /// Weight of the squared weights.
    decay: f32,
}

impl Recipe {
    fn rate_at(&self, step: usize) -> f64 {
        let quarters = 4.0 * step as f64 / self.steps as f64;
        let part = match quarters {
            q if q < 2.0 => 1.0,
            q if q < 3.0 => 1.0 - 0.9 * (q - 2.0),
            q => 0.1 * (4.0 - q),
        };
        self.rate * part
    }
}

/// What stands where a pixel is missing.
#[derive(Clone, Debug)]
enum Fill {
    /// 0.
    Zero,
    /// The pixel's mean over the training set.
    Mean(Vec<f32>),
    /// 0, and 1 in a second channel that is 0 elsewhere.
    Flag,
}

impl Fill {
    fn channels(&self) -> usize {
        if matches!(self, Self::Flag) { 2 } else { 1 }
    }

    /// A row (784) from 0 to 255 with holes as an image (channels, 28, 28) from 0 to 1.
    fn image(&self, row: &[f32]) -> Vec<f32> {
        let filled = row.iter().enumerate().map(|(pixel, x)| match self {
            Self::Mean(mean) if x.is_nan() => mean[pixel] / 256.0,
            _ if x.is_nan() => 0.0,
            _ => x / 256.0,
        });
        let mut image: Vec<f32> = filled.collect();
        if matches!(self, Self::Flag) {
            image.extend(row.iter().map(|x| f32::from(u8::from(x.is_nan()))));
        }
        image
    }

    /// What the first convolution sees of rows (B, 784): the 5×5 patches under the corners of each 2×2 window of the
    /// maximum, (4, B, 12, 12, channels, 5, 5) as (4·B·144, channels·25).
    fn patches(&self, rows: &[f32], device: &Device) -> Tensor<2> {
        let images: Vec<Vec<f32>> = rows.chunks_exact(PIXELS).map(|row| self.image(row)).collect();
        let (count, size) = (4 * images.len() * MAP * MAP, self.channels() * 25);
        let mut patches = Vec::with_capacity(count * size);
        for (down, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for image in &images {
                for (y, x) in (0..MAP).flat_map(|y| (0..MAP).map(move |x| (2 * y + down, 2 * x + right))) {
                    for channel in image.chunks_exact(PIXELS) {
                        (y..y + 5).for_each(|y| patches.extend_from_slice(&channel[y * SIDE + x..][..5]));
                    }
                }
            }
        }
        Tensor::from_data(TensorData::new(patches, [count, size]), device)
    }
}

/// The layers.
#[derive(Module, Debug)]
struct Layers {
    first: Linear, // a convolution: of patches
    second: Conv2d,
    pool: MaxPool2d,
    hidden: Linear,
    classes: Linear,
}

impl Layers {
    fn new(channels: usize, device: &Device) -> Self {
        let start = Initializer::KaimingUniform { gain: 1.0, fan_out_only: false }; // Caffe's "xavier"
        let convolution = |from, to| Conv2dConfig::new([from, to], [5, 5]).with_initializer(start.clone()).init(device);
        let linear = |from, to| LinearConfig::new(from, to).with_initializer(start.clone()).init(device);
        Self {
            first: linear(25 * channels, 20),
            second: convolution(20, 50),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            hidden: linear(800, 500),
            classes: linear(500, 10),
        }
    }

    /// Classes' scores from patches. The first maximum is taken of whole matrices: burn's own convolution and pooling
    /// of that size would take most of the time.
    fn forward(&self, patches: Tensor<2>) -> Tensor<2> {
        let corners = self.first.forward(patches).chunk(4, 0);
        let map = corners.into_iter().reduce(Tensor::max_pair).expect("four corners"); // (B·144, 20)
        let batch = map.dims()[0] / (MAP * MAP);
        let map = map.reshape([batch, MAP, MAP, 20]).permute([0, 3, 1, 2]); // (B, 20, 12, 12)
        let map = self.pool.forward(self.second.forward(map)); // (B, 50, 4, 4)
        let hidden = relu(self.hidden.forward(map.flatten(1, 3))); // (B, 500)
        self.classes.forward(hidden) // (B, 10)
    }
}

/// A trained net.
#[derive(Debug)]
struct LeNet {
    layers: Layers,
    fill: Fill,
}

impl LeNet {
    /// Trains on images that have fresh holes each time. `heard` gets steps done and the batch's loss, sometimes.
    fn train(
        recipe: &Recipe,
        images: &Images,
        holes: &Holes,
        fill: Fill,
        seed: u64,
        heard: &mut dyn FnMut(usize, f64),
    ) -> Result<Self> {
        let device = Device::flex().autodiff();
        let mut layers = start(&fill, seed, &device);
        let momentum = MomentumConfig::new().with_momentum(recipe.momentum).with_dampening(0.0);
        let decay = WeightDecayConfig::new(recipe.decay);
        let mut rule = SgdConfig::new().with_momentum(Some(momentum)).with_weight_decay(Some(decay)).init();
        let entropy = CrossEntropyLossConfig::new().init(&device);
        let mut order = Order::new(images.labels.len(), seed);
        for step in 0..recipe.steps {
            let rows: Vec<usize> = (0..recipe.batch).map(|_| order.next_row()).collect();
            let mut batch: Vec<f32> =
                rows.iter().flat_map(|&row| &images.values[row * PIXELS..][..PIXELS]).copied().collect();
            holes.apply(&Grid::image(SIDE, SIDE, 1), &mut batch, step * recipe.batch, !seed)?; // not the test's holes
            let labels = rows.iter().map(|&row| images.labels[row]).collect::<Vec<i64>>();
            let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [recipe.batch]), &device);
            let loss = entropy.forward(layers.forward(fill.patches(&batch, &device)), labels);
            if (step + 1) % 100 == 0 {
                heard(step + 1, f64::from(loss.clone().into_scalar::<f32>()));
            }
            let gradients = GradientsParams::from_grads(loss.backward(), &layers);
            layers = rule.step(recipe.rate_at(step), layers, gradients);
        }
        Ok(Self { layers: layers.valid(), fill })
    }

    /// The class of each row.
    fn classify(&self, rows: &[f32]) -> Vec<usize> {
        let device = Device::flex();
        let classes = |rows: &[f32]| {
            let found = self.layers.forward(self.fill.patches(rows, &device)).argmax(1).into_data().convert::<i64>();
            found.try_into_vec::<i64>().expect("whole numbers").into_iter().map(|class| class as usize)
        };
        rows.chunks(100 * PIXELS).flat_map(classes).collect()
    }
}

/// Layers by a seed. Burn has one source of random numbers for all threads and draws a weight when it is first used.
fn start(fill: &Fill, seed: u64, device: &Device) -> Layers {
    static DRAWING: Mutex<()> = Mutex::new(());
    let _alone = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    device.seed(seed);
    let layers = Layers::new(fill.channels(), device);
    layers.forward(fill.patches(&[0.0; PIXELS], device));
    layers
}

/// Rows of the training set, each once an epoch, in an order of the epoch's own.
struct Order {
    rows: usize,
    seed: u64,
    epoch: u32,
    left: Vec<u32>,
}

impl Order {
    fn new(rows: usize, seed: u64) -> Self {
        Self { rows, seed, epoch: 0, left: Vec::new() }
    }

    fn next_row(&mut self) -> usize {
        if self.left.is_empty() {
            self.left = Stream::new(self.seed, Purpose::Shuffle, self.epoch, 0).permutation(self.rows);
            self.epoch += 1;
        }
        self.left.pop().expect("a training set has rows") as usize
    }
}

/// The plan's options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// `zero`, `mean` or `flag`.
    fill: String,
    /// What nets are trained on, one each.
    holes: Vec<String>,
    recipe: Recipe,
}

impl Options {
    fn fill(&self, images: &Images) -> Result<Fill> {
        Ok(match self.fill.as_str() {
            "zero" => Fill::Zero,
            "mean" => Fill::Mean(means(&images.values)),
            "flag" => Fill::Flag,
            other => bail!("fill: expected zero, mean or flag, got {other}"),
        })
    }
}

/// Trains a net on each distribution of holes, so many side by side, each with one thread; asks each about all columns.
pub fn run(plan: &Plan, seed: u64, mnist: &Mnist, book: &Book, jobs: usize) -> Result<()> {
    let options: Options = plan.options()?;
    let row = |name: &str| if options.holes.len() == 1 { String::new() } else { name.to_owned() };
    let left = options.holes.iter().filter(|name| !book.has(&row(name), seed)).collect();
    side_by_side(jobs, left, |name: &String| {
        let start = Instant::now();
        let steps = options.recipe.steps;
        let (holes, fill) = (name.parse()?, options.fill(&mnist.train)?);
        let net = LeNet::train(&options.recipe, &mnist.train, &holes, fill, seed, &mut |step, loss| {
            if step.is_multiple_of(steps.div_ceil(1000) * 100) || step == steps {
                let seconds = start.elapsed().as_secs();
                eprintln!("{} on {name}: step {step} of {steps}, {seconds} s, loss {loss:.3}", plan.name);
            }
        })?;
        let train_seconds = seconds(start.elapsed());
        let start = Instant::now();
        let mut accuracies = Vec::new();
        for missing in plan.missing()? {
            let rows = with_holes(missing, &mnist.test.values, seed)?;
            accuracies.push(accuracy(&net.classify(&rows), &mnist.test.labels));
        }
        book.add(Run {
            row: row(name),
            seed,
            mask_seed: seed,
            train: mnist.train.labels.len(),
            test: mnist.test.labels.len(),
            train_seconds,
            test_seconds: seconds(start.elapsed()),
            machine: format!("one of {}", machine()),
            accuracies,
        })
    })
}

/// Each pixel's mean over rows (n, 784).
fn means(rows: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; PIXELS];
    rows.chunks_exact(PIXELS).for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x)));
    sums.iter().map(|sum| (sum / (rows.len() / PIXELS) as f64) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_cli::datasets::Split;

    fn digits(split: Split) -> Images {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/digits");
        Images::read(folder, split).unwrap()
    }

    /// 150 batches of the digits that come with the program; ten classes are guessed right one time in ten.
    #[test]
    fn learns() {
        let (train, test) = (digits(Split::Train), digits(Split::Test));
        let recipe = Recipe { steps: 150, batch: 32, rate: 0.02, momentum: 0.9, decay: 5e-4 };
        let judge = |holes: &str, fill: Fill| {
            let holes: Holes = holes.parse().unwrap();
            let net = LeNet::train(&recipe, &train, &holes, fill, 1, &mut |_, _| ()).unwrap();
            let mut rows = test.values.clone();
            holes.apply(&Grid::image(SIDE, SIDE, 1), &mut rows, 0, 2).unwrap();
            accuracy(&net.classify(&rows), &test.labels)
        };
        let (whole, half) = (judge("clean", Fill::Zero), judge("iid:0.5", Fill::Flag));
        assert!(whole > 88.0 && half > 75.0, "{whole} {half}");
        assert_eq!(whole, judge("clean", Fill::Zero), "the same seed gives the same net");
    }

    #[test]
    fn the_rate_falls() {
        let recipe = Recipe { steps: 20_000, batch: 64, rate: 0.01, momentum: 0.9, decay: 5e-4 };
        let rates = [0, 9_999, 12_500, 15_000, 17_500].map(|step| recipe.rate_at(step));
        let expected = [0.01, 0.01, 0.0055, 0.001, 0.0005];
        assert!(rates.iter().zip(expected).all(|(rate, e)| (rate - e).abs() < 1e-12), "{rates:?}");
    }

    /// A patch lies where the convolution would see it, and holes are filled as asked.
    #[test]
    fn patches_and_fills() {
        let mut row: Vec<f32> = (0..PIXELS).map(|i| (i % 251) as f32).collect();
        row[0] = f32::NAN;
        let device = Device::flex();
        let patches = |fill: &Fill| fill.patches(&row, &device).into_data().try_into_vec::<f32>().unwrap();
        let zero = patches(&Fill::Zero);
        // The corner (0, 1) of the window (3, 5): the patch from (6, 11), its number (2, 4) is the pixel (8, 15).
        let patch = MAP * MAP + 3 * MAP + 5;
        assert_eq!(zero[patch * 25 + 2 * 5 + 4], row[8 * SIDE + 15] / 256.0);
        assert_eq!(zero[0], 0.0);
        assert_eq!(patches(&Fill::Mean(vec![64.0; PIXELS]))[0], 0.25);
        let flag = patches(&Fill::Flag);
        assert_eq!((flag[0], flag[1], flag[25], flag[26]), (0.0, 1.0 / 256.0, 1.0, 0.0));
    }
}
