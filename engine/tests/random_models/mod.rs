//! Random structures, weights and data with holes, for the tests that compare.

#![allow(dead_code)] // each test uses a part of it

use sumout::internals::{Batch, Coordinate, Weights};
use sumout::random::{Purpose, Stream};
use sumout::structure::{ClassRows, ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::training::Data;
use sumout::{Model, Rows, Settings, Trainer};

/// A model of a random structure with a prior of its own; its weights go down to e^(−3·spread).
pub fn model(spread: f64, draw: &mut Draw) -> Model {
    let structure = structure(draw);
    model_of(structure, spread, draw)
}

/// The same with this structure.
pub fn model_of(structure: Structure, spread: f64, draw: &mut Draw) -> Model {
    let mut model = Model {
        weights: weights(&structure, spread, draw),
        ..Model::random(structure, 0.0, 0)
    };
    let prior: Vec<f64> = (0..model.structure.classes)
        .map(|_| 0.1 + draw.0.uniform())
        .collect();
    model.set_prior(&prior).unwrap();
    model
}

/// Draws from a seed.
pub struct Draw(pub Stream);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Stream::new(seed, Purpose::Masks, 99, 0))
    }

    pub fn from(&mut self, least: usize, most: usize) -> usize {
        least + self.0.below(most - least + 1)
    }
}

/// An image, a sequence or a table, of any depth, with one tree or several.
pub fn structure(draw: &mut Draw) -> Structure {
    let classes = draw.from(1, 4);
    match draw.from(0, 24) {
        0..=7 => image(draw, classes),
        8..=15 => {
            let sharing = [Sharing::Own, Sharing::Shared, Sharing::Pattern(1, 2)][draw.from(0, 2)];
            let levels = [
                (3, draw.from(1, 20), sharing),
                (usize::MAX, draw.from(1, 40), Sharing::Own),
            ];
            levels
                .iter()
                .fold(
                    Structure::sequence(draw.from(2, 12)),
                    |s, &(window, channels, sharing)| s.level(window, channels, sharing),
                )
                .channels(draw.from(1, 2))
                .patch(draw.from(1, 3))
                .components(draw.from(1, 18))
                .classes(classes)
                .build()
                .unwrap()
        }
        16..=23 => table(draw, classes),
        _ => {
            // Wide enough for tile registers, where the machine has them.
            let sharing = [Sharing::Own, Sharing::Shared][draw.from(0, 1)];
            let levels = [
                (2, draw.from(128, 180), sharing),
                (usize::MAX, draw.from(64, 130), Sharing::Own),
            ];
            levels
                .iter()
                .fold(
                    Structure::sequence(draw.from(2, 4)),
                    |s, &(window, channels, sharing)| s.level(window, channels, sharing),
                )
                .components(draw.from(64, 100))
                .classes(classes)
                .build()
                .unwrap()
        }
    }
}

fn image(draw: &mut Draw, classes: usize) -> Structure {
    let (height, width) = (draw.from(1, 6), draw.from(1, 6));
    let (channels, border) = (draw.from(1, 2), draw.from(0, 2));
    let kind = [
        Kind::Gaussian,
        Kind::Gaussian,
        Kind::Bernoulli,
        Kind::Categorical(3),
    ][draw.from(0, 3)];
    let level = |draw: &mut Draw| LevelSpec {
        window: (draw.from(1, 3), draw.from(1, 3)),
        channels: draw.from(1, 34),
        sharing: [Sharing::Own, Sharing::Shared, Sharing::Pattern(2, 2)][draw.from(0, 2)],
    };
    let levels = |draw: &mut Draw| {
        let mut levels: Vec<LevelSpec> = (0..draw.from(0, 2)).map(|_| level(draw)).collect();
        levels.push(LevelSpec::all(draw.from(1, 20), Sharing::Own));
        levels
    };
    let spec = |draw: &mut Draw| ImageSpec {
        frame: (height + border, width + border),
        grid_shift: (
            draw.from(0, (height + border).min(2)),
            draw.from(0, (width + border).min(2)),
        ),
        leaf_sharing: [Sharing::Own, Sharing::Shared][draw.from(0, 1)],
        kind,
        levels: levels(draw),
        channels,
        patch: (draw.from(1, 2), draw.from(1, 2)),
        components: draw.from(1, 20),
        ..ImageSpec::new(height, width)
    };
    let specs: Vec<ImageSpec> = (0..draw.from(1, 2)).map(|_| spec(draw)).collect();
    Structure::images(&specs, classes).unwrap()
}

fn table(draw: &mut Draw, classes: usize) -> Structure {
    let columns = draw.from(1, 9);
    let kinds: Vec<Kind> = (0..columns)
        .map(|_| [Kind::Gaussian, Kind::Bernoulli, Kind::Categorical(4)][draw.from(0, 2)])
        .collect();
    let order = |draw: &mut Draw| -> Vec<Vec<u32>> {
        let order = draw.0.permutation(columns);
        order.chunks(draw.from(1, 3)).map(<[u32]>::to_vec).collect()
    };
    let orders: Vec<_> = (0..draw.from(1, 3)).map(|_| order(draw)).collect();
    let channels = [draw.from(1, 8), draw.from(1, 17)];
    Structure::table(&kinds)
        .trees(orders)
        .window(draw.from(2, 5))
        .components(draw.from(1, 6))
        .channels(channels)
        .classes(classes)
        .build()
        .unwrap()
}

/// Weights whose logits spread so that the smallest are about e⁻¹⁰⁰ at `spread` 30, and leaves of all shapes.
pub fn weights(structure: &Structure, spread: f64, draw: &mut Draw) -> Weights {
    let mut weights = Weights::random(structure, spread, draw.0.next_u32().into());
    for family in weights.trees.iter_mut().flat_map(|t| &mut t.families) {
        for coordinate in &mut family.coordinates {
            let (a, b, scale) = match coordinate {
                Coordinate::Gaussian { mean, log_sigma } => (mean, Some(log_sigma), 1.5),
                Coordinate::Discrete { logits } => (logits, None, spread),
            };
            a.iter_mut()
                .for_each(|x| *x = (scale * draw.0.normal()) as f32);
            b.into_iter()
                .flatten()
                .for_each(|x| *x = (draw.0.normal() - 0.5) as f32);
        }
    }
    assert_eq!(structure.class_rows, ClassRows::Mixing);
    weights
}

/// Rows of the frame with holes of probability `missing`, values up to ±`reach`.
pub fn batch(
    structure: &Structure,
    rows: usize,
    missing: f64,
    reach: f32,
    draw: &mut Draw,
) -> Batch {
    let mut batch = Batch::default();
    batch.clear(structure, rows);
    for (b, place) in
        (0..rows).flat_map(|b| (0..structure.frame_len()).map(move |place| (b, place)))
    {
        if draw.0.chance(missing) {
            continue;
        }
        batch.row_mut(b)[place] = match structure.kinds[place] {
            Kind::Gaussian if draw.0.chance(0.05) => reach * (2.0 * draw.0.uniform() - 1.0) as f32,
            Kind::Gaussian => draw.0.normal() as f32,
            Kind::Bernoulli => draw.0.below(2) as f32,
            Kind::Categorical(n) => draw.0.below(n as usize) as f32,
        };
    }
    batch
}

/// A deep model of 16×16 images in four classes, trained until its weights are far apart, and images with nothing missing:
/// the first half like those it was trained on, the others with every 2×2 square of another class, so that the parts of
/// an image disagree at every level.
pub fn trained() -> (Model, Vec<f32>) {
    let draw = &mut Draw::new(4242);
    let (width, classes, rows) = (256, 4, 400);
    let prototypes: Vec<bool> = (0..classes * width).map(|_| draw.0.chance(0.4)).collect();
    let mut image = |row: usize| -> Vec<f32> {
        let prototype = &prototypes[row % classes * width..][..width];
        let pixel = |&ink: &bool| match (ink, draw.0.chance(0.1)) {
            (true, false) | (false, true) => 0.8 + 0.2 * draw.0.uniform() as f32,
            _ => 0.0,
        };
        prototype.iter().map(pixel).collect()
    };
    let values: Vec<f32> = (0..rows).flat_map(&mut image).collect();
    let labels: Vec<Option<usize>> = (0..rows).map(|row| Some(row % classes)).collect();
    let levels = [16, 24, 32, 40];
    let levels = levels.map(|channels| LevelSpec::square(2, channels, Sharing::Own));
    let spec = ImageSpec {
        levels: levels.to_vec(),
        patch: (1, 1),
        components: 8,
        ..ImageSpec::new(16, 16)
    };
    let settings = Settings {
        steps: 600,
        batch: 64,
        rate: 0.2,
        drop_inputs: 0.1,
        ..Settings::default()
    };
    let rows = Rows::new(&values, width).unwrap();
    let structure = spec.structure(classes).unwrap();
    let data = Data::new(rows, &labels);
    let trainer = Trainer::start(structure, Default::default(), settings, data).unwrap();
    let model = trainer.train().unwrap();
    let mut rows = values.clone();
    for (place, number) in rows.iter_mut().enumerate().skip(values.len() / 2) {
        let (row, pixel) = (place / width, place % width);
        let square = pixel / 32 * 8 + pixel % 16 / 2;
        *number = values[(row + square * 7 % classes) % 400 * width + pixel];
    }
    (model, rows)
}
