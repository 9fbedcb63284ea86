//! Percentages against what is missing: the chart of `sumout evaluate --plot` and of `sumout report`.

use crate::plot::{Line, Plot, Point, Tick, inside};
use sumout::masks::Missing;

/// One line of the chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Stands at its end.
    pub name: &'static str,
    /// The number of its colour.
    pub colour: usize,
    /// For each kind of holes; NaN where there is none.
    pub percents: Vec<f64>,
}

/// The share of missing cells where that is all that a kind of holes says.
fn share_of(missing: &Missing) -> Option<f64> {
    match missing {
        Missing::None => Some(0.0),
        Missing::Iid(p) => Some(*p),
        _ => None,
    }
}

/// Draws curves. Shares of missing cells are to scale; other kinds of holes stand side by side, by name. `cell` is what
/// one number of a row is called.
pub fn plot(title: String, kinds: &[Missing], cell: &str, curves: &[Curve]) -> Plot {
    let shares: Option<Vec<f64>> = kinds.iter().map(share_of).collect();
    let is_scale = shares.is_some();
    let even = |kind: usize| (kind as f64 + 0.5) / kinds.len() as f64;
    let places = match &shares {
        Some(shares) => shares.iter().map(|&share| inside(share)).collect(),
        None => (0..kinds.len()).map(even).collect::<Vec<f64>>(),
    };
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let name = |kind: usize| match shares.as_ref().map(|shares| shares[kind]) {
        Some(share) => share.to_string(),
        None => kinds[kind].to_string(),
    };
    let tick = |&kind: &usize| Tick::new(places[kind], name(kind));
    let axis = Tick::new(0.5, format!("share of missing {cell}s"));
    let mut lines = Vec::new();
    for curve in curves {
        let mut points = Vec::new();
        for &kind in order.iter().filter(|&&kind| !curve.percents[kind].is_nan()) {
            let percent = curve.percents[kind];
            let words = format!("{}, {}: {percent:.1} %", curve.name, kinds[kind]);
            points.push(Point::new(places[kind], percent, words));
        }
        lines.push(Line {
            colour: curve.colour,
            name: curve.name.into(),
            parts: if points.is_empty() {
                Vec::new()
            } else {
                vec![points]
            },
        });
    }
    Plot {
        title,
        ticks: order.iter().map(tick).collect(),
        axis: if is_scale { vec![axis] } else { Vec::new() },
        lines,
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kinds: &[&str], percents: &[f64]) -> Plot {
        let kinds: Vec<Missing> = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
        let curve = Curve {
            name: "accuracy",
            colour: 0,
            percents: percents.to_vec(),
        };
        plot("title".into(), &kinds, "cell", &[curve])
    }

    #[test]
    fn shares_are_to_scale_and_in_order() {
        let plot = drawn(&["iid:0.8", "clean", "iid:0.4"], &[50.0, 90.0, f64::NAN]);
        let names: Vec<&str> = plot.ticks.iter().map(|tick| tick.words.as_str()).collect();
        assert_eq!(names, ["0", "0.4", "0.8"]);
        let [a, b, c] = [0, 1, 2].map(|i| plot.ticks[i].share);
        assert!((b - a - (c - b)).abs() < 1e-9);
        let points = &plot.lines[0].parts[0];
        assert_eq!(points.len(), 2, "no point where there is no number");
        assert_eq!(
            (points[0].percent, points[1].words.as_str()),
            (90.0, "accuracy, iid:0.8: 50.0 %")
        );
    }

    #[test]
    fn other_holes_stand_side_by_side() {
        let plot = drawn(&["rect:2x7", "clean"], &[50.0, 90.0]);
        assert_eq!((plot.ticks[0].share, plot.ticks[1].share), (0.25, 0.75));
        assert_eq!(plot.ticks[0].words, "rect:2x7");
        assert!(plot.axis.is_empty());
    }
}
