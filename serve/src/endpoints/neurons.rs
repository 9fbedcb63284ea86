//! What a node stands for: its most used channels, and draws of what is below each.
//!
//! ```text
//! P(root = a)   = Σ_y P(y) W_top[y,a]
//! P(child = a)  = Σ_c P(parent = c) W[c,a]                   how often a channel is used, nothing being observed
//! ```

use crate::problem::Problem;
use axum::http::StatusCode;
use sumout::queries::Neuron;
use sumout::random::seed_at;
use sumout::{Model, Predictor};

/// A node, and what is asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Which tree.
    pub tree: usize,
    /// 0 for the leaves.
    pub level: usize,
    /// Which node of the level.
    pub node: usize,
    /// One channel; else the most used ones.
    pub channel: Option<usize>,
    /// How many channels, if none is named.
    pub channels: usize,
    /// Draws of each.
    pub count: usize,
    /// The most likely assignment instead of draws.
    pub mode: bool,
    /// Of the draws.
    pub seed: u64,
}

/// One channel of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Which.
    pub channel: usize,
    /// How often it is used.
    pub probability: f64,
    /// (count, width); NaN for numbers that are not below it.
    pub rows: Vec<f32>,
}

/// Shows the node.
pub fn explain(predictor: &mut Predictor, ask: &Ask) -> Result<Vec<View>, Problem> {
    let neuron = |channel| Neuron {
        tree: ask.tree,
        layer: ask.level,
        node: ask.node,
        channel,
    };
    // Each channel draws its own: with one seed for all, they would look alike.
    let view = |channel| match ask.mode {
        true => sumout::queries::View::Mode,
        false => sumout::queries::View::Samples {
            count: ask.count,
            seed: seed_at(ask.seed, channel),
        },
    };
    // Whatever is wrong with the node is said before its usage is computed.
    let channel = ask.channel.unwrap_or(0);
    let first = predictor.explain(neuron(channel), view(channel));
    let first = first.map_err(|error| Problem::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let usage = usage(predictor.model(), ask.tree, ask.level, ask.node);
    if let Some(channel) = ask.channel {
        return Ok(vec![View {
            channel,
            probability: usage[channel],
            rows: first.into_vec(),
        }]);
    }
    let mut order: Vec<usize> = (0..usage.len()).collect();
    order.sort_by(|&a, &b| usage[b].total_cmp(&usage[a]));
    let show = |channel: usize| {
        let rows = predictor
            .explain(neuron(channel), view(channel))?
            .into_vec();
        Ok(View {
            channel,
            probability: usage[channel],
            rows,
        })
    };
    order.into_iter().take(ask.channels).map(show).collect()
}

/// How often each channel of a node is used.
fn usage(model: &Model, t: usize, layer: usize, node: usize) -> Vec<f64> {
    let tree = &model.structure.trees[t];
    let mixed = |parents: &[f64], log_row: &dyn Fn(usize) -> Vec<f64>| {
        let mut sums = Vec::new();
        for (c, p) in parents.iter().enumerate() {
            let row = log_row(c);
            sums.resize(row.len(), 0.0);
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, log)| *sum += p * log.exp());
        }
        sums
    };
    if layer == tree.levels.len() {
        let prior: Vec<f64> = model.log_prior.iter().map(|log| log.exp()).collect();
        let before: usize = model.structure.trees[..t]
            .iter()
            .map(|tree| tree.top_channels())
            .sum();
        let tops = mixed(&prior, &|y| model.weights.classes.log_row(0, y));
        return tops[before..before + tree.top_channels()].to_vec();
    }
    let above = &tree.levels[layer];
    let parent = above
        .children
        .iter()
        .position(|children| children.contains(&(node as u32)))
        .unwrap_or(0);
    let parents = usage(model, t, layer + 1, parent);
    let (matrix, mixing) = (
        above.weight_of[node] as usize,
        &model.weights.trees[t].levels[layer],
    );
    mixed(&parents, &|c| mixing.log_row(matrix, c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::tests::pets;

    #[test]
    fn usage_is_what_responsibilities_say_of_nothing() {
        let mut predictor = Predictor::new(pets()).unwrap();
        let nothing = [f32::NAN; 4];
        let nothing = predictor.model().rows(&nothing).unwrap();
        let expected = predictor.responsibilities(nothing, None).unwrap();
        for node in 0..4 {
            let usage = usage(predictor.model(), 0, 0, node);
            let same = |(d, p): (usize, &f64)| {
                (p - f64::from(expected[0][(0, node * usage.len() + d)])).abs() < 1e-5
            };
            assert!(usage.iter().enumerate().all(same), "{node}");
        }
    }

    #[test]
    fn channels_draw_their_own() {
        let ask = Ask {
            tree: 0,
            level: 0,
            node: 0,
            channel: None,
            channels: 2,
            count: 3,
            mode: false,
            seed: 1,
        };
        let mut predictor = Predictor::new(pets()).unwrap();
        let views = explain(&mut predictor, &ask).unwrap();
        // Of draws mean + deviation × noise, this is the same in two channels only if the noise is.
        let shape = |view: &View| (view.rows[0] - view.rows[4]) / (view.rows[4] - view.rows[8]);
        assert!(
            (shape(&views[0]) - shape(&views[1])).abs() > 1e-3,
            "{views:?}"
        );
        let again = explain(
            &mut predictor,
            &Ask {
                channel: Some(views[1].channel),
                ..ask
            },
        )
        .unwrap();
        assert_eq!(
            again[0].rows[0], views[1].rows[0],
            "asked for alone, it draws the same"
        );
    }

    #[test]
    fn channels_come_in_order() {
        let mut predictor = Predictor::new(pets()).unwrap();
        let ask = Ask {
            tree: 0,
            level: 1,
            node: 0,
            channel: None,
            channels: 2,
            count: 3,
            mode: false,
            seed: 1,
        };
        let views = explain(&mut predictor, &ask).unwrap();
        assert_eq!((views.len(), views[0].rows.len()), (2, 12));
        assert!(views[0].probability >= views[1].probability);
        assert!(
            views[0].rows[2].is_nan() && views[0].rows[0].is_finite(),
            "node 0 of level 1 joins columns 0 and 1"
        );
        let one = explain(
            &mut predictor,
            &Ask {
                channel: Some(2),
                mode: true,
                ..ask.clone()
            },
        )
        .unwrap();
        assert_eq!((one.len(), one[0].channel, one[0].rows.len()), (1, 2, 4));
        let problem = explain(&mut predictor, &Ask { node: 9, ..ask }).unwrap_err();
        assert_eq!(
            problem.message,
            "neuron's node: expected a number from 0 to 1, got 9"
        );
    }
}
