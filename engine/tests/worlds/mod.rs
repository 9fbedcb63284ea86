//! The second oracle: for tiny models it lists every world, that is class, tree and the state of every hidden variable,
//! each with its probability, straight from the definition of a latent tree. Nothing here sums before it must.

#![allow(dead_code)] // each test file uses a part

use crate::random_models::Draw;
use sumout::Model;
use sumout::internals::Coordinate;
use sumout::model::Scaling;
use sumout::structure::{ClassRows, ImageSpec, Kind, LevelSpec, Sharing, Structure};

/// One assignment of everything hidden in one tree.
pub struct World {
    pub class: usize,
    pub tree: usize,
    /// By layer, node.
    pub states: Vec<Vec<usize>>,
    /// P(class, tree, states).
    pub prior: f64,
}

/// Every world of a model.
pub struct Worlds<'a> {
    pub model: &'a Model,
    pub all: Vec<World>,
}

/// All vectors with entries below the sizes.
pub fn counters(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![vec![]], |all, &size| {
        all.iter()
            .flat_map(|one| (0..size).map(|next| [&one[..], &[next]].concat()))
            .collect()
    })
}

impl<'a> Worlds<'a> {
    pub fn new(model: &'a Model) -> Self {
        let s = &model.structure;
        let mut all = Vec::new();
        let mut left = 0;
        for (t, tree) in s.trees.iter().enumerate() {
            let layers: Vec<usize> = (0..=tree.levels.len()).map(|l| tree.nodes(l)).collect();
            let sizes: Vec<usize> = (0..layers.len())
                .flat_map(|l| vec![tree.channels(l); layers[l]])
                .collect();
            for flat in counters(&sizes) {
                let mut rest = flat.into_iter();
                let states: Vec<Vec<usize>> = layers
                    .iter()
                    .map(|&n| rest.by_ref().take(n).collect())
                    .collect();
                let mut given_top = 1.0;
                for (l, level) in tree.levels.iter().enumerate() {
                    for (p, &j) in level
                        .children
                        .iter()
                        .enumerate()
                        .flat_map(|(p, js)| js.iter().map(move |j| (p, j)))
                    {
                        let row = model.weights.trees[t].levels[l]
                            .log_row(level.weight_of[j as usize] as usize, states[l + 1][p]);
                        given_top *= row[states[l][j as usize]].exp();
                    }
                }
                let top = states[tree.levels.len()][0];
                for class in 0..s.classes {
                    let root = match s.class_rows {
                        ClassRows::Mixing => {
                            model.weights.classes.log_row(0, class)[left + top].exp()
                        }
                        ClassRows::Identity => f64::from(u8::from(top == class)),
                    };
                    let prior = model.log_prior[class].exp() * root * given_top;
                    all.push(World {
                        class,
                        tree: t,
                        states: states.clone(),
                        prior,
                    });
                }
            }
            left += tree.top_channels();
        }
        Self { model, all }
    }

    /// Worlds of one class, or all.
    pub fn of(&self, class: Option<usize>) -> impl Iterator<Item = &World> {
        self.all
            .iter()
            .filter(move |world| class.is_none_or(|class| class == world.class))
    }

    /// (tree's family coordinate, component) that describe a column in a world.
    pub fn component(&self, world: &World, column: usize) -> (usize, usize, usize) {
        let place = self.model.structure.placement((0, 0))[column];
        let positions = self.model.structure.trees[world.tree]
            .positions
            .iter()
            .enumerate();
        let find = |(i, p): (usize, &sumout::structure::Position)| {
            let s = p.inputs.iter().position(|&input| input == place)?;
            Some((p.family as usize, s, world.states[0][i]))
        };
        positions.filter_map(find).next().unwrap()
    }

    /// p(x|world) in the units of the data, holes left out, or filled with their largest density.
    pub fn density(&self, world: &World, row: &[f32], peaks: bool) -> f64 {
        let one = |(column, &x): (usize, &f32)| {
            let (family, s, d) = self.component(world, column);
            let family = &self.model.weights.trees[world.tree].families[family];
            let z = match self.model.structure.row_kinds()[column] {
                Kind::Gaussian => self.model.scaling.apply(column, x),
                _ => x,
            };
            let unit = match self.model.structure.row_kinds()[column] {
                Kind::Gaussian => f64::from(self.model.scaling.scale_of(column)),
                _ => 1.0,
            };
            match (x.is_nan(), peaks) {
                (false, _) => family.log_density(s, d, z).exp() * unit,
                (true, true) => family.mode(s, d).0.exp() * unit,
                (true, false) => 1.0,
            }
        };
        row.iter().enumerate().map(one).product()
    }

    /// P(x_o), or P(x_o|y).
    pub fn probability(&self, row: &[f32], class: Option<usize>) -> f64 {
        let prior = class.map_or(1.0, |class| self.model.log_prior[class].exp());
        self.of(class)
            .map(|world| world.prior * self.density(world, row, false))
            .sum::<f64>()
            / prior
    }
}

/// Every complete row of a model whose columns are all discrete.
pub fn complete_rows(structure: &Structure) -> Vec<Vec<f32>> {
    let values = structure
        .row_kinds()
        .iter()
        .map(|&kind| sumout::internals::values_of(kind).unwrap())
        .collect::<Vec<_>>();
    counters(&values)
        .into_iter()
        .map(|row| row.into_iter().map(|v| v as f32).collect())
        .collect()
}

/// The row with some numbers taken out.
pub fn with_holes(row: &[f32], missing: f64, draw: &mut Draw) -> Vec<f32> {
    row.iter()
        .map(|&x| if draw.0.chance(missing) { f32::NAN } else { x })
        .collect()
}

/// Whether a complete row agrees with what another observes.
pub fn agrees(row: &[f32], observed: &[f32]) -> bool {
    row.iter().zip(observed).all(|(a, b)| b.is_nan() || a == b)
}

/// A tiny model: a table of one to three trees, an image in a frame, or a tree whose channels are the classes; with
/// Gaussian columns too if `real`.
pub fn tiny(real: bool, draw: &mut Draw) -> Model {
    let kind = |draw: &mut Draw| match draw.from(0, if real { 4 } else { 2 }) {
        0 => Kind::Bernoulli,
        1 => Kind::Categorical(2),
        2 => Kind::Categorical(3),
        _ => Kind::Gaussian,
    };
    let classes = draw.from(1, 3);
    let structure = match draw.from(0, 4) {
        0 => {
            let spec = ImageSpec {
                frame: (3, 3),
                kind: kind(draw),
                levels: vec![
                    LevelSpec::square(2, 2, Sharing::Shared),
                    LevelSpec::all(2, Sharing::Own),
                ],
                patch: (2, 1),
                components: 2,
                ..ImageSpec::new(2, 2)
            };
            Structure::images(
                &[
                    spec.clone(),
                    ImageSpec {
                        patch: (2, 2),
                        grid_shift: (1, 1),
                        ..spec
                    },
                ],
                classes,
            )
            .unwrap()
        }
        1 => {
            let kinds: Vec<Kind> = (0..4).map(|_| kind(draw)).collect();
            let groups: Vec<Vec<u32>> = (0..4).map(|column| vec![column]).collect();
            Structure::table(&kinds)
                .groups(groups)
                .window(2)
                .components(2)
                .channels([2, classes])
                .classes(classes)
                .build()
                .unwrap()
                .with_identity_classes()
                .unwrap()
        }
        _ => {
            let columns = draw.from(1, 4);
            let kinds: Vec<Kind> = (0..columns).map(|_| kind(draw)).collect();
            let order = |draw: &mut Draw| -> Vec<Vec<u32>> {
                draw.0
                    .permutation(columns)
                    .chunks(draw.from(1, 2))
                    .map(<[u32]>::to_vec)
                    .collect()
            };
            let orders: Vec<_> = (0..draw.from(1, 3)).map(|_| order(draw)).collect();
            let channels = [draw.from(1, 3), draw.from(1, 3)];
            Structure::table(&kinds)
                .trees(orders)
                .window(draw.from(2, 3))
                .components(draw.from(1, 3))
                .channels(channels)
                .classes(classes)
                .build()
                .unwrap()
        }
    };
    let mut model = Model::random(structure, 1.0, draw.0.next_u32().into());
    for coordinate in model
        .weights
        .trees
        .iter_mut()
        .flat_map(|t| &mut t.families)
        .flat_map(|f| &mut f.coordinates)
    {
        let (first, second) = match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => (mean, Some(log_sigma)),
            Coordinate::Discrete { logits } => (logits, None),
        };
        first
            .iter_mut()
            .for_each(|x| *x = (1.5 * draw.0.normal()) as f32);
        second
            .into_iter()
            .flatten()
            .for_each(|x| *x = (0.4 * draw.0.normal() - 0.3) as f32);
    }
    let prior: Vec<f64> = (0..classes).map(|_| 0.2 + draw.0.uniform()).collect();
    model.set_prior(&prior).unwrap();
    let width = if draw.0.chance(0.5) {
        1
    } else {
        model.structure.width()
    };
    model.scaling = Scaling {
        offset: (0..width).map(|_| draw.0.normal() as f32).collect(),
        scale: (0..width)
            .map(|_| (0.5 + 2.0 * draw.0.uniform()) as f32)
            .collect(),
        ..Scaling::default()
    };
    model.scaling.check(model.structure.width()).unwrap();
    model
}

/// A row of the model's kinds.
pub fn row(model: &Model, draw: &mut Draw) -> Vec<f32> {
    let number = |kind: Kind| match kind {
        Kind::Gaussian => (1.5 * draw.0.normal()) as f32,
        Kind::Bernoulli => draw.0.below(2) as f32,
        Kind::Categorical(n) => draw.0.below(n as usize) as f32,
    };
    model
        .structure
        .row_kinds()
        .into_iter()
        .map(number)
        .collect()
}
