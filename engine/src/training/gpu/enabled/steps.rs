//! A training run on a card. A step is one recorded graph; the host sends, for some steps ahead, which rows they take
//! and the numbers of the rule, and fetches losses when somebody wants to see them.

use crate::device::Precision;
use crate::error::{Error, Result};
use crate::gpu::enabled::args::{
    Cost, Dropping, FillArgs, FinishArgs, Numbers, RootArgs, RowsArgs, UpdateArgs,
};
use crate::gpu::enabled::circuit::{Circuit, Climb};
use crate::gpu::enabled::device_buffers::{Graph, Room};
use crate::gpu::enabled::layout::{Place, mixing_of, padded_rows};
use crate::layers::weights::{Prepared, Weights};
use crate::model::Model;
use crate::structure::{Kind, Structure};
use crate::training::data::Data;
use crate::training::gpu::enabled::byte_codes::codes;
use crate::training::gpu::enabled::gradients::{Gradients, Moving};
use crate::training::gpu::enabled::leaf_step::Learning;
use crate::training::gpu::enabled::underflow::Guarding;
use crate::training::loss::{Loss, share_of};
use crate::training::optimizer::{Moments, Rule, Step};
use crate::training::settings::Settings;
use std::collections::HashMap;

/// Steps sent at once, at most.
const SLOTS: usize = 64;
/// Numbers of rows that are sent ahead where the data do not stay on the card, at most.
const STAGED: usize = 1 << 26;

/// Rows of data on the card.
#[derive(Clone, Copy)]
struct Values {
    values: u64,
    codes: u64,
    labels: u64,
    weights: u64,
}

/// Addresses and rooms of rows that are sent step by step: values, labels, weights.
type Staged = (Values, Room<f32>, Room<i64>, Room<f32>);

/// A run on a card.
pub struct Training {
    circuit: Circuit,
    settings: Settings,
    width: usize,
    first: Room<f32>,
    second: Room<f32>,
    numbers: Room<Numbers>,
    picks: Room<u32>,
    clock: Room<u32>,
    label: Room<i32>,
    weight: Room<f32>,
    cost: Room<Cost>,
    costs: Room<Cost>,
    doubtful: Room<u8>,
    codes: Room<f32>,
    placing: (Room<i32>, Room<f32>, Room<f32>, usize), // places, offset, scale, shifts
    dropping: Room<Dropping>,
    smooth: Room<u8>, // by channel of an image that is turned: whether it is interpolated; nothing where none is
    gradients: Gradients,
    moving: Room<RowsArgs>,
    moving_rows: usize,
    guard: Guarding,
    leaves: Vec<Learning>, // by tree; empty where leaves stay as they are
    staged: Option<Staged>,
    resident: Option<Values>,
    graphs: HashMap<u64, Graph>, // by where values lie
    slots: usize,                // sent and not yet looked at
}

/// Where numbers of a row go, and how they are scaled.
pub struct Placing<'a> {
    /// (shifts, width): places in the frame, −1 outside.
    pub places: &'a [i32],
    /// (width).
    pub offset: &'a [f32],
    /// (width).
    pub scale: &'a [f32],
}

impl Training {
    /// Puts a run on a card.
    pub fn new(
        device: (usize, Precision),
        model: &Model,
        prepared: &Prepared,
        settings: &Settings,
        placing: &Placing<'_>,
    ) -> Result<Self> {
        let s = &model.structure;
        let keep = (true, settings.leaf_rate > 0.0);
        let mut circuit = Circuit::new(
            device,
            s,
            &model.weights,
            prepared,
            &model.log_prior,
            settings.batch,
            keep,
        )?;
        let (rows, total, width) = (circuit.rows, circuit.places.total, s.width());
        let dropping = drop_rooms(&mut circuit, settings)?;
        circuit.set_top_layers()?;
        let guard = Guarding::new(&mut circuit, settings.batch)?;
        let (gradients, moving) = Gradients::new(&mut circuit)?;
        let card = &mut circuit.card;
        let shifts = placing.places.len() / width;
        let mut training = Self {
            first: card.room(total)?,
            second: card.room(total)?,
            numbers: card.room(SLOTS)?,
            picks: card.room(SLOTS * settings.batch)?,
            clock: card.room(1)?,
            label: card.room(rows)?,
            weight: card.room(rows)?,
            cost: card.room(rows)?,
            costs: card.room(SLOTS)?,
            doubtful: card.room(rows)?,
            codes: card.room(256)?,
            placing: (
                card.keep(placing.places)?,
                card.keep(placing.offset)?,
                card.keep(placing.scale)?,
                shifts,
            ),
            dropping: card.keep(&dropping)?,
            smooth: if settings.turns() {
                card.keep(&smooth_channels(s))?
            } else {
                Room::none()
            },
            gradients,
            moving: Room::none(),
            moving_rows: moving
                .iter()
                .map(|(_, place, _)| place.matrices * place.rows)
                .sum(),
            guard,
            leaves: Vec::new(),
            staged: None,
            resident: None,
            graphs: HashMap::new(),
            slots: 0,
            settings: settings.clone(),
            width,
            circuit,
        };
        training.set_moving(&moving)?;
        Ok(training)
    }

    /// Tells the update kernel what moves. Of each: columns, place, and (first, parts) of its sums.
    fn set_moving(&mut self, moving: &Moving) -> Result<()> {
        let mut before = 0;
        let mut rows = |&(real, place, (sums, parts)): &(usize, Place, (usize, usize))| {
            before += place.matrices * place.rows;
            RowsArgs {
                weights: self.circuit.weights.part(place.first, place.len()).at,
                first: self.first.part(place.first, place.len()).at,
                second: self.second.part(place.first, place.len()).at,
                rounded: self
                    .circuit
                    .rounded
                    .map_or(0, |all| all.part(place.first, place.len()).at),
                sums: self.gradients.sums.part(sums, parts * place.len()).at,
                counts: self.guard.counts.part(place.first, place.len()).at,
                stride: place.len() as u64,
                rows: (place.matrices * place.rows) as i32,
                real: real as i32,
                wide: place.wide as i32,
                parts: parts as i32,
                before: (before - place.matrices * place.rows) as i32,
                padding: 0,
            }
        };
        let all: Vec<RowsArgs> = moving.iter().map(&mut rows).collect();
        self.moving = self.circuit.card.keep(&all)?;
        Ok(())
    }

    /// Puts the rule's memory on the card.
    pub fn set_memory<'a>(
        &self,
        weights: &Weights,
        moments: impl Fn(Option<(usize, usize)>) -> &'a Moments,
    ) -> Result<()> {
        let (places, s) = (&self.circuit.places, &self.circuit.structure);
        let at = |which, m, c, a| mixing_of(weights, which).place(m, c, a);
        let first = places.gather(s, |which, m, c, a| moments(which).first[at(which, m, c, a)]);
        let second = places.gather(s, |which, m, c, a| {
            moments(which).second[at(which, m, c, a)]
        });
        self.circuit.card.send(self.first, &first)?;
        self.circuit.card.send(self.second, &second)
    }

    /// Lets leaves learn. `moments` by tree, family, coordinate.
    pub fn learn_leaves(&mut self, weights: &Weights, moments: &[Vec<Vec<Moments>>]) -> Result<()> {
        let floor = self.settings.leaves.floor;
        for (t, tree) in weights.trees.iter().enumerate().take(moments.len()) {
            self.leaves.push(Learning::new(
                &mut self.circuit,
                t,
                &tree.families,
                &moments[t],
                floor,
            )?);
        }
        Ok(())
    }

    /// Brings leaves and their memory back.
    pub fn fetch_leaves(
        &self,
        weights: &mut Weights,
        moments: &mut [Vec<Vec<Moments>>],
    ) -> Result<()> {
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.fetch(
                &self.circuit,
                t,
                &mut weights.trees[t].families,
                &mut moments[t],
            )?;
        }
        Ok(())
    }

    /// W, first and second moments, through `each(tree and level, place in the panels, W, first, second)`.
    pub fn fetch(
        &self,
        weights: &Weights,
        mut each: impl FnMut(Option<(usize, usize)>, usize, [f32; 3]),
    ) -> Result<()> {
        let (circuit, card) = (&self.circuit, &self.circuit.card);
        let (w, first, second) = (
            card.fetch(circuit.weights)?,
            card.fetch(self.first)?,
            card.fetch(self.second)?,
        );
        circuit
            .places
            .for_each(&circuit.structure, |at, which, m, c, a| {
                each(
                    which,
                    mixing_of(weights, which).place(m, c, a),
                    [w[at], first[at], second[at]],
                );
            });
        Ok(())
    }

    /// Bytes of activations: all, and what of them the way down reads.
    pub fn activation_bytes(&self) -> (usize, usize) {
        self.circuit.activation_bytes()
    }

    /// Keeps the data on the card if they fit there and into `most` bytes, as bytes where they have at most 256 different
    /// values.
    pub fn keep_data(&mut self, data: &Data<'_>, most: usize) -> Result<()> {
        self.forget_data();
        let card = &mut self.circuit.card;
        let coded = codes(data.values);
        let bytes = if coded.is_some() {
            data.values.len()
        } else {
            4 * data.values.len()
        };
        let all = bytes + (data.labels.len() + data.weights.len()) * 8;
        if all > most || all + (1 << 28) > card.free()? {
            return Ok(()); // they will be sent as they are needed
        }
        let labels = if data.labels.is_empty() {
            0
        } else {
            card.keep(&data.labels)?.at
        };
        let weights = if data.weights.is_empty() {
            0
        } else {
            card.keep(data.weights)?.at
        };
        let (values, codes) = match coded {
            Some((bytes, table)) => {
                card.send(self.codes, &table)?;
                (card.keep(&bytes)?.at, self.codes.at)
            }
            None => (card.keep(data.values)?.at, 0),
        };
        self.resident = Some(Values {
            values,
            codes,
            labels,
            weights,
        });
        Ok(())
    }

    /// Rows are sent as they are needed from now on.
    pub fn forget_data(&mut self) {
        self.resident = None;
    }

    /// Steps that can be sent at once.
    pub fn most(&self) -> usize {
        match self.resident {
            Some(_) => SLOTS,
            None => (STAGED / (self.settings.batch * self.width)).clamp(1, SLOTS),
        }
    }

    /// Queues steps from `step` on, each on the rows that `picks` names (steps · B).
    pub fn advance(&mut self, data: &Data<'_>, step: usize, picks: &[u32]) -> Result<()> {
        let batch = self.settings.batch;
        let count = picks.len() / batch;
        let weight_of = |&row: &u32| {
            data.weights
                .get(row as usize)
                .map_or(1.0, |&w| f64::from(w))
        };
        let numbers: Vec<Numbers> = picks
            .chunks_exact(batch)
            .zip(step..)
            .map(|(rows, step)| self.numbers_of(step, rows.iter().map(weight_of).sum()))
            .collect();
        let card = &self.circuit.card;
        card.send(self.numbers, &numbers)?;
        card.send(self.clock, &[0])?;
        let values = match self.resident {
            Some(values) => {
                card.send(self.picks, picks)?;
                values
            }
            None => self.stage(data, picks)?,
        };
        if !self.graphs.contains_key(&values.values) {
            let graph = self.circuit.card.record(|_| self.step(values))?;
            self.graphs.insert(values.values, graph);
        }
        if let Some(graph) = self.graphs.get_mut(&values.values) {
            (0..count).try_for_each(|_| self.circuit.card.replay(graph))?;
        }
        self.slots = count;
        Ok(())
    }

    /// Losses of the steps queued last, and how many of their samples were doubtful.
    pub fn losses(&self) -> Result<Vec<(Loss, usize)>> {
        let costs = self.circuit.card.fetch(self.costs.part(0, self.slots))?;
        let loss = |cost: &Cost| Loss {
            discriminative: cost.discriminative,
            generative: cost.generative,
            correct: cost.correct as usize,
            labelled: cost.labelled as usize,
            rows: self.settings.batch,
            weight: cost.weight,
        };
        Ok(costs
            .iter()
            .map(|cost| (loss(cost), cost.doubtful as usize))
            .collect())
    }

    fn numbers_of(&self, step: usize, weight: f64) -> Numbers {
        let settings = &self.settings;
        let rate = settings.rate * settings.schedule.factor(step, settings.steps);
        let rule = Step::new(settings.rule, rate, settings.penalty, step);
        Numbers {
            step: step as u32,
            rate: rule.rate,
            penalty: rule.penalty,
            from_moment: rule.from_moment,
            from_gradient: rule.from_gradient,
            second: rule.second,
            leaf_rate: (rate * settings.leaf_rate) as f32,
            by: share_of(weight),
        }
    }

    /// Sends the rows themselves.
    fn stage(&mut self, data: &Data<'_>, picks: &[u32]) -> Result<Values> {
        let (width, most) = (self.width, self.most() * self.settings.batch);
        if self.staged.is_none() {
            let card = &mut self.circuit.card;
            let (values, labels, weights) =
                (card.room(most * width)?, card.room(most)?, card.room(most)?);
            let addresses = Values {
                values: values.at,
                codes: 0,
                labels: labels.at,
                weights: weights.at,
            };
            self.staged = Some((addresses, values, labels, weights));
        }
        let Some((addresses, values, labels, weights)) = self.staged else {
            return Err(Error::Device("no room for rows".into()));
        };
        let row = |&row: &u32| &data.values[row as usize * width..][..width];
        let rows: Vec<f32> = picks.iter().flat_map(row).copied().collect();
        let own_labels: Vec<i64> = picks.iter().map(|&row| data.label(row as usize)).collect();
        let own_weights: Vec<f32> = picks
            .iter()
            .map(|&r| data.weights.get(r as usize).copied().unwrap_or(1.0))
            .collect();
        let card = &self.circuit.card;
        card.send(values, &rows)?;
        card.send(labels, &own_labels)?;
        card.send(weights, &own_weights)?;
        card.send(self.picks, &Vec::from_iter(0..picks.len() as u32))?;
        Ok(addresses)
    }

    /// One step.
    fn step(&self, values: Values) -> Result<()> {
        let (circuit, card, settings) = (&self.circuit, &self.circuit.card, &self.settings);
        let (samples, rows) = (settings.batch, padded_rows(settings.batch));
        let threads = if rows > 2048 { 128 } else { 256 }; // fewer where more blocks wait for memory at once
        card.launch(
            "fill",
            &self.fill_args(values, samples, rows),
            rows,
            threads,
        )?;
        let to_leaves = !self.leaves.is_empty();
        circuit.climb(
            samples,
            Climb {
                dense: false,
                leaves: to_leaves,
                others: true,
            },
        )?;
        let root = RootArgs {
            label: self.label.at,
            weight: self.weight.at,
            numbers: self.numbers.at,
            clock: self.clock.at,
            cost: self.cost.at,
            doubtful: self.doubtful.at,
            seeds: 0,
            beta: settings.generative,
            down: 1,
            likelihood: i32::from(settings.rule == Rule::Em),
            ..circuit.root_args(samples)
        };
        circuit.root(&root)?;
        circuit.descend(samples, to_leaves)?;
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.flow(circuit, t, samples)?;
        }
        self.guard.launch(circuit, &root, to_leaves)?;
        self.gradients.launch(circuit, samples)?;
        card.launch(
            "update",
            &self.update_args(),
            self.moving_rows.div_ceil(8),
            256,
        )?;
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.step(circuit, t, samples, self.update_args())?;
        }
        let finish = FinishArgs {
            cost: self.cost.at,
            sums: self.costs.at,
            clock: self.clock.at,
            samples: samples as i32,
        };
        card.launch("finish", &finish, 1, 1024)
    }

    fn fill_args(&self, values: Values, samples: usize, rows: usize) -> FillArgs {
        let (circuit, settings) = (&self.circuit, &self.settings);
        let (places, offset, scale, shifts) = self.placing;
        let image = circuit
            .structure
            .frame
            .as_ref()
            .map_or((0, 0, 0), |f| (f.height, f.width, f.channels));
        FillArgs {
            clock: self.clock.at,
            numbers: self.numbers.at,
            picks: self.picks.at,
            values: values.values,
            codes: values.codes,
            places: places.at,
            offset: offset.at,
            scale: scale.at,
            labels: values.labels,
            weights: values.weights,
            frame: circuit.frame.at,
            label: self.label.at,
            weight: self.weight.at,
            tops: circuit.tops.at,
            dropping: self.dropping.at,
            smooth: self.smooth.at,
            top_count: circuit.tops.len as u64,
            seed: settings.seed,
            drop: settings.drop_inputs,
            rotate: settings.rotate,
            stretch: settings.stretch,
            width: self.width as i32,
            frame_len: circuit.structure.frame_len() as i32,
            samples: samples as i32,
            rows: rows as i32,
            shifts: shifts as i32,
            droppings: self.dropping.len as i32,
            varied: settings.drop_varied.into(),
            image_height: image.0 as i32,
            image_width: image.1 as i32,
            channels: image.2 as i32,
        }
    }

    fn update_args(&self) -> UpdateArgs {
        let (beta1, beta2, rule) = match self.settings.rule {
            Rule::Adam { beta1, beta2 } | Rule::Nadam { beta1, beta2 } => (beta1, beta2, 0),
            Rule::Sgd { momentum } => (momentum, 0.0, 1),
            Rule::Em => (0.0, 0.0, 2),
        };
        UpdateArgs {
            all: self.moving.at,
            numbers: self.numbers.at,
            clock: self.clock.at,
            guarded: self.guard.guarded.at,
            guard_stride: self.circuit.places.total as u64,
            beta1,
            beta2,
            kinds: self.moving.len as i32,
            rows: self.moving_rows as i32,
            rule,
            guards: self.guard.blocks as i32,
        }
    }
}

/// Of each channel of an image, whether its numbers are interpolated when it is turned.
fn smooth_channels(s: &Structure) -> Vec<u8> {
    let channels = s.frame.as_ref().map_or(0, |frame| frame.channels);
    s.row_kinds()[..channels]
        .iter()
        .map(|&kind| (kind == Kind::Gaussian).into())
        .collect()
}

/// Room for the masks of layers that training sums out, and how to draw them.
fn drop_rooms(circuit: &mut Circuit, settings: &Settings) -> Result<Vec<Dropping>> {
    let (mut all, mut first) = (Vec::new(), 0);
    let rows = circuit.rows;
    for tree in &mut circuit.trees {
        for (l, &p) in settings
            .drop_nodes
            .iter()
            .enumerate()
            .filter(|(l, p)| **p > 0.0 && *l < tree.layer_of.len())
        {
            let layer = &mut tree.layers[tree.layer_of[l]];
            layer.drop = circuit.card.room(layer.nodes * rows)?;
            let below = p * 4_294_967_296.0;
            all.push(Dropping {
                drop: layer.drop.at,
                below,
                first,
                nodes: layer.nodes as i32,
            });
            first += layer.nodes as i32;
        }
    }
    Ok(all)
}
