//! What a node stands for: its most used channels, and samples of what is below each.

use crate::problem::Problem;
use http::StatusCode;
use sumout::Predictor;
use sumout::queries::{Neuron, View};
use sumout::random::seed_at;

/// A node, and what to show of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeQuestion {
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
    /// Samples of each.
    pub count: usize,
    /// The most likely assignment instead of samples.
    pub mode: bool,
    /// Seed of the samples.
    pub seed: u64,
}

impl NodeQuestion {
    fn neuron(&self, channel: usize) -> Neuron {
        Neuron {
            tree: self.tree,
            layer: self.level,
            node: self.node,
            channel,
        }
    }

    /// Each channel has a seed of its own: with one seed for all, samples would look alike.
    fn view(&self, channel: usize) -> View {
        if self.mode {
            return View::Mode;
        }
        View::Samples {
            count: self.count,
            seed: seed_at(self.seed, channel),
        }
    }
}

/// One channel of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelView {
    /// Which.
    pub channel: usize,
    /// How often it is used.
    pub probability: f64,
    /// (count, width); NaN for numbers that are not below it.
    pub rows: Vec<f32>,
}

/// Samples of the most used channels of a node, or of one channel.
pub fn explain(predictor: &mut Predictor, ask: &NodeQuestion) -> Result<Vec<ChannelView>, Problem> {
    // Errors about the node come before its usage is computed.
    let channel = ask.channel.unwrap_or(0);
    let first = predictor.explain(ask.neuron(channel), ask.view(channel));
    let first = first.map_err(|error| Problem::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let usage = predictor.channel_usage(ask.neuron(channel))?;
    if let Some(channel) = ask.channel {
        return Ok(vec![ChannelView {
            channel,
            probability: usage[channel],
            rows: first.into_vec(),
        }]);
    }
    let mut order: Vec<usize> = (0..usage.len()).collect();
    order.sort_by(|&a, &b| usage[b].total_cmp(&usage[a]));
    let mut views = Vec::new();
    for channel in order.into_iter().take(ask.channels) {
        let rows = predictor.explain(ask.neuron(channel), ask.view(channel))?;
        views.push(ChannelView {
            channel,
            probability: usage[channel],
            rows: rows.into_vec(),
        });
    }
    Ok(views)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::pets;

    /// Three samples of each of the two most used channels of the first node of a level.
    fn question(level: usize) -> NodeQuestion {
        NodeQuestion {
            tree: 0,
            level,
            node: 0,
            channel: None,
            channels: 2,
            count: 3,
            mode: false,
            seed: 1,
        }
    }

    #[test]
    fn channels_draw_their_own() {
        let ask = question(0);
        let mut predictor = Predictor::new(pets()).unwrap();
        let views = explain(&mut predictor, &ask).unwrap();
        // Of samples mean + deviation × noise, this is the same in two channels only if the noise is.
        let shape =
            |view: &ChannelView| (view.rows[0] - view.rows[4]) / (view.rows[4] - view.rows[8]);
        assert!(
            (shape(&views[0]) - shape(&views[1])).abs() > 1e-3,
            "{views:?}"
        );
        let again = explain(
            &mut predictor,
            &NodeQuestion {
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
        let ask = question(1);
        let views = explain(&mut predictor, &ask).unwrap();
        assert_eq!((views.len(), views[0].rows.len()), (2, 12));
        assert!(views[0].probability >= views[1].probability);
        assert!(
            views[0].rows[2].is_nan() && views[0].rows[0].is_finite(),
            "node 0 of level 1 joins columns 0 and 1"
        );
        let one = explain(
            &mut predictor,
            &NodeQuestion {
                channel: Some(2),
                mode: true,
                ..ask.clone()
            },
        )
        .unwrap();
        assert_eq!((one.len(), one[0].channel, one[0].rows.len()), (1, 2, 4));
        let problem = explain(&mut predictor, &NodeQuestion { node: 9, ..ask }).unwrap_err();
        assert_eq!(
            problem.message,
            "node: expected a number from 0 to 1, got 9"
        );
    }
}
