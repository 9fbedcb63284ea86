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

mod kept;

use crate::columns::{accuracy, with_holes};
use crate::holes::Holes;
use crate::mnist::{Images, Mnist, PIXELS};
use crate::plan::Plan;
use crate::results::{Book, Run, machine, seconds};
use crate::side_by_side::side_by_side;
use anyhow::{Result, bail};
use burn::module::{Initializer, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use kept::{Kept, Progress};
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use sumout::masks::Grid;
use sumout::random::{Purpose, Stream};

const SIDE: usize = 28;
const MAP: usize = 12; // side of the map after the first maximum
const TOP: usize = 4; // side of the map after the second
const CORNERS: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)]; // of a 2×2 window of a maximum

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

    /// What the first convolution sees of rows (B, 784), by the corners of each 2×2 window of the maximum: 5×5 patches,
    /// (B, 12, 12, channels, 5, 5) as (B·144, channels·25).
    fn patches(&self, rows: &[f32], device: &Device) -> [Tensor<2>; 4] {
        let images: Vec<Vec<f32>> = rows
            .chunks_exact(PIXELS)
            .map(|row| self.image(row))
            .collect();
        let (count, size) = (images.len() * MAP * MAP, self.channels() * 25);
        CORNERS.map(|(down, right)| {
            let mut patches = Vec::with_capacity(count * size);
            for (image, y, x) in each(images.len(), MAP) {
                let (y, x) = (2 * y + down, 2 * x + right);
                for channel in images[image].chunks_exact(PIXELS) {
                    (y..y + 5)
                        .for_each(|y| patches.extend_from_slice(&channel[y * SIDE + x..][..5]));
                }
            }
            Tensor::from_data(TensorData::new(patches, [count, size]), device)
        })
    }
}

/// The layers. Convolutions are products with patches, and a maximum is taken of whole matrices: burn's own
/// convolutions and pooling would take most of the time.
#[derive(Module, Debug)]
struct Layers {
    first: Linear,
    second: Linear,
    hidden: Linear,
    classes: Linear,
}

impl Layers {
    fn new(channels: usize, device: &Device) -> Self {
        let start = Initializer::KaimingUniform {
            gain: 1.0,
            fan_out_only: false,
        }; // Caffe's "xavier"
        let linear = |from, to| {
            LinearConfig::new(from, to)
                .with_initializer(start.clone())
                .init(device)
        };
        Self {
            first: linear(25 * channels, 20),
            second: linear(25 * 20, 50),
            hidden: linear(TOP * TOP * 50, 500),
            classes: linear(500, 10),
        }
    }

    /// Classes' scores from patches of images, and where the patches of the first map lie.
    fn forward(&self, patches: [Tensor<2>; 4], of_map: &[Tensor<1, Int>; 4]) -> Tensor<2> {
        let map = maximum(patches.map(|patches| self.first.forward(patches))); // (B·144, 20)
        let batch = map.dims()[0] / (MAP * MAP);
        let patches = of_map.clone().map(|places| map.clone().select(0, places));
        let map =
            maximum(patches.map(|patches| self.second.forward(patches.reshape([-1, 25 * 20])))); // (B·16, 50)
        let hidden = relu(self.hidden.forward(map.reshape([batch, TOP * TOP * 50]))); // (B, 500)
        self.classes.forward(hidden) // (B, 10)
    }
}

/// The greatest of each window's corners.
fn maximum(corners: [Tensor<2>; 4]) -> Tensor<2> {
    corners
        .into_iter()
        .reduce(|a, b| a.clone() + relu(b - a))
        .expect("four corners")
}

/// What the second convolution sees of maps (B, 12, 12), by corners: the places of (B, 4, 4, 5, 5).
fn patches_of_map(batch: usize, device: &Device) -> [Tensor<1, Int>; 4] {
    CORNERS.map(|(down, right)| {
        let corner = |(image, y, x)| (image * MAP + 2 * y + down) * MAP + 2 * x + right;
        let patch =
            |corner| (0..25).map(move |place| (corner + place / 5 * MAP + place % 5) as i64);
        let places: Vec<i64> = each(batch, TOP).map(corner).flat_map(patch).collect();
        let count = places.len();
        Tensor::from_data(TensorData::new(places, [count]), device)
    })
}

/// Images and the windows of their maps.
fn each(images: usize, side: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..images * side * side).map(move |at| (at / (side * side), at / side % side, at % side))
}

/// A trained net.
#[derive(Debug)]
struct LeNet {
    layers: Layers,
    fill: Fill,
}

/// What a net is trained on.
struct Training<'a> {
    recipe: &'a Recipe,
    images: &'a Images,
    holes: Holes,
    fill: Fill,
    seed: u64,
    kept: Option<Kept>, // where it is kept on its way
}

const KEEP_EVERY: usize = 500; // steps

impl Training<'_> {
    /// Trains on images that have fresh holes each time. `heard` gets how far it is and the batch's loss, sometimes.
    /// Returns how long it took, with what was done before it was stopped.
    fn run(self, heard: &mut dyn FnMut(Progress, f64)) -> Result<(LeNet, f64)> {
        let Self {
            recipe,
            images,
            holes,
            fill,
            seed,
            kept,
        } = self;
        let device = Device::flex().autodiff();
        let layers = start(&fill, seed, &device);
        let momentum = MomentumConfig::new()
            .with_momentum(recipe.momentum)
            .with_dampening(0.0);
        let decay = WeightDecayConfig::new(recipe.decay);
        let rule = SgdConfig::new()
            .with_momentum(Some(momentum))
            .with_weight_decay(Some(decay))
            .init();
        let (before, mut layers, mut rule) = match &kept {
            Some(kept) => kept.load(layers, rule)?,
            None => (Progress::default(), layers, rule),
        };
        let since = Instant::now();
        let progress = |step| Progress {
            step,
            seconds: before.seconds + since.elapsed().as_secs_f64(),
        };
        let entropy = CrossEntropyLossConfig::new().init(&device);
        let of_map = patches_of_map(recipe.batch, &device);
        let mut order = Order::new(images.labels.len(), seed);
        order.skip(before.step * recipe.batch);
        for step in before.step..recipe.steps {
            let rows: Vec<usize> = (0..recipe.batch).map(|_| order.next_row()).collect();
            let mut batch: Vec<f32> = rows
                .iter()
                .flat_map(|&row| &images.values[row * PIXELS..][..PIXELS])
                .copied()
                .collect();
            holes.apply(
                &Grid::image(SIDE, SIDE, 1),
                &mut batch,
                step * recipe.batch,
                !seed,
            )?; // not the test's holes
            let labels = rows
                .iter()
                .map(|&row| images.labels[row])
                .collect::<Vec<i64>>();
            let labels =
                Tensor::<1, Int>::from_data(TensorData::new(labels, [recipe.batch]), &device);
            let loss = entropy.forward(
                layers.forward(fill.patches(&batch, &device), &of_map),
                labels,
            );
            if (step + 1) % 100 == 0 {
                heard(
                    progress(step + 1),
                    f64::from(loss.clone().into_scalar::<f32>()),
                );
            }
            let gradients = GradientsParams::from_grads(loss.backward(), &layers);
            layers = rule.step(recipe.rate_at(step), layers, gradients);
            if let Some(kept) = kept.as_ref().filter(|_| (step + 1) % KEEP_EVERY == 0) {
                kept.save(progress(step + 1), layers.clone(), &rule)?;
            }
        }
        Ok((
            LeNet {
                layers: layers.valid(),
                fill,
            },
            progress(recipe.steps).seconds,
        ))
    }
}

impl LeNet {
    /// The class of each row.
    fn classify(&self, rows: &[f32]) -> Vec<usize> {
        let device = Device::flex();
        let classes = |rows: &[f32]| {
            let of_map = patches_of_map(rows.len() / PIXELS, &device);
            let found = self
                .layers
                .forward(self.fill.patches(rows, &device), &of_map)
                .argmax(1)
                .into_data()
                .convert::<i64>();
            found
                .try_into_vec::<i64>()
                .expect("whole numbers")
                .into_iter()
                .map(|class| class as usize)
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
    layers.forward(
        fill.patches(&[0.0; PIXELS], device),
        &patches_of_map(1, device),
    );
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
    let row = |name: &str| {
        if options.holes.len() == 1 {
            String::new()
        } else {
            name.to_owned()
        }
    };
    let left = options
        .holes
        .iter()
        .filter(|name| !book.has(&row(name), seed))
        .collect();
    side_by_side(jobs, left, |name: &String| {
        let (recipe, steps) = (&options.recipe, options.recipe.steps);
        let (holes, fill) = (name.parse()?, options.fill(&mnist.train)?);
        let what = format!(
            "{recipe:?}, {} on {name} of {}, seed {seed}",
            options.fill,
            mnist.train.labels.len()
        );
        let kept = || {
            Kept::new(
                book.beside(&format!("{}-{seed}.net", name.replace(':', "-"))),
                what.clone(),
            )
        };
        let training = Training {
            recipe,
            images: &mnist.train,
            holes,
            fill,
            seed,
            kept: Some(kept()),
        };
        let (net, train_seconds) = training.run(&mut |progress, loss| {
            let Progress { step, seconds } = progress;
            if step.is_multiple_of(steps.div_ceil(1000) * 100) || step == steps {
                eprintln!(
                    "{} on {name}: step {step} of {steps}, {seconds:.0} s, loss {loss:.3}",
                    plan.name
                );
            }
        })?;
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
            train_seconds: seconds(Duration::from_secs_f64(train_seconds)),
            test_seconds: seconds(start.elapsed()),
            machine: format!("one of {}", machine()),
            accuracies,
        })?;
        kept().remove();
        Ok(())
    })
}

/// Each pixel's mean over rows (n, 784).
fn means(rows: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; PIXELS];
    rows.chunks_exact(PIXELS).for_each(|row| {
        sums.iter_mut()
            .zip(row)
            .for_each(|(sum, &x)| *sum += f64::from(x))
    });
    sums.iter()
        .map(|sum| (sum / (rows.len() / PIXELS) as f64) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::layout::Split;

    fn digits(split: Split) -> Images {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits");
        Images::read(folder, split).unwrap()
    }

    /// 150 batches of the digits that come with the program; ten classes are guessed right one time in ten.
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
        let judge = |holes: &str, fill: Fill| {
            let holes: Holes = holes.parse().unwrap();
            let training = Training {
                recipe: &recipe,
                images: &train,
                holes: holes.clone(),
                fill,
                seed: 1,
                kept: None,
            };
            let (net, _) = training.run(&mut |_, _| ()).unwrap();
            let mut rows = test.values.clone();
            holes
                .apply(&Grid::image(SIDE, SIDE, 1), &mut rows, 0, 2)
                .unwrap();
            accuracy(&net.classify(&rows), &test.labels)
        };
        let (whole, half) = (judge("clean", Fill::Zero), judge("iid:0.5", Fill::Flag));
        assert!(whole > 88.0 && half > 75.0, "{whole} {half}");
        assert_eq!(
            whole,
            judge("clean", Fill::Zero),
            "the same seed gives the same net"
        );
    }

    /// After 600 steps there is a file of the first 500; from there the last 100 are the same again.
    #[test]
    fn goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let images = digits(Split::Train).some(0, 100);
        let kept = |training: &str| Kept::new(folder.path().join("a.net"), training.into());
        let train = || {
            let recipe = Recipe {
                steps: 600,
                batch: 4,
                rate: 0.01,
                momentum: 0.9,
                decay: 5e-4,
            };
            let (images, holes, kept) = (&images, "iid:0.5".parse().unwrap(), Some(kept("a net")));
            let training = Training {
                recipe: &recipe,
                images,
                holes,
                fill: Fill::Flag,
                seed: 1,
                kept,
            };
            let mut heard = Vec::new();
            training
                .run(&mut |progress, loss| heard.push((progress.step, loss)))
                .unwrap();
            heard
        };
        let (whole, rest) = (train(), train());
        assert_eq!((whole.len(), &whole[5..]), (6, &rest[..]));
        let layers = start(&Fill::Flag, 1, &Device::flex().autodiff());
        let (progress, ..) = kept("another")
            .load(layers, SgdConfig::new().init())
            .unwrap();
        assert_eq!(progress, Progress::default());
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

    /// A patch lies where the convolution would see it, and holes are filled as asked.
    #[test]
    fn patches_and_fills() {
        let mut row: Vec<f32> = (0..PIXELS).map(|i| (i % 251) as f32).collect();
        row[0] = f32::NAN;
        let device = Device::flex();
        let patches = |fill: &Fill, corner: usize| {
            fill.patches(&row, &device)[corner]
                .clone()
                .into_data()
                .try_into_vec::<f32>()
                .unwrap()
        };
        // The corner (0, 1) of the window (3, 5): the patch from (6, 11), its number (2, 4) is the pixel (8, 15).
        let patch = 3 * MAP + 5;
        assert_eq!(
            patches(&Fill::Zero, 1)[patch * 25 + 2 * 5 + 4],
            row[8 * SIDE + 15] / 256.0
        );
        assert_eq!(patches(&Fill::Zero, 0)[0], 0.0);
        assert_eq!(patches(&Fill::Mean(vec![64.0; PIXELS]), 0)[0], 0.25);
        let flag = patches(&Fill::Flag, 0);
        assert_eq!(
            (flag[0], flag[1], flag[25], flag[26]),
            (0.0, 1.0 / 256.0, 1.0, 0.0)
        );
    }
}
