//! Accuracy curves as SVG: two small charts, readable on a phone.

use crate::accuracy::{IID, METHODS, Score, WIDTHS, name};
use std::fmt::Write;
use sumout::masks::Missing;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 74.0; // space for the names of the lines
const TOP: f64 = 28.0;
const BOTTOM: f64 = 50.0;

/// Names of lines must be this far apart to be readable.
const NAME_HEIGHT: f64 = 17.0;

/// Names of ticks must be this far apart.
const TICK_WIDTH: f64 = 28.0;

/// Short names, at the end of the lines.
const NAMES: [&str; METHODS.len()] = ["Sumout", "KNN", "mean fill"];

/// Where points are: shares of the width from left to right, and percent from 0 to 100.
#[derive(Clone, Debug)]
pub struct Axes {
    shares: Vec<f64>,
}

impl Axes {
    /// This many places, at equal distances.
    pub fn even(slots: usize) -> Self {
        let share = |slot: usize| (slot as f64 + 0.5) / slots as f64;
        Self {
            shares: (0..slots).map(share).collect(),
        }
    }

    /// Probabilities to scale, with some space at both ends.
    pub fn to_scale(scores: &[Score]) -> Self {
        const SPACE: f64 = 0.04;
        let share = |score: &Score| match score.missing {
            Missing::Iid(p) => SPACE + (1.0 - 2.0 * SPACE) * p,
            _ => SPACE,
        };
        Self {
            shares: scores.iter().map(share).collect(),
        }
    }

    /// From the left.
    pub fn x(&self, slot: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.shares[slot]
    }

    /// From the top.
    pub fn y(&self, percent: f64) -> f64 {
        TOP + (HEIGHT - TOP - BOTTOM) * (100.0 - percent) / 100.0
    }
}

/// Accuracy against the share of missing pixels.
pub fn iid(scores: &[Score]) -> String {
    let axes = &Axes::to_scale(scores);
    let mut svg = start(
        "Accuracy against the probability that a pixel is missing",
        axes,
    );
    let mut free = 0.0; // the next name must be right of this
    for (slot, score) in scores.iter().enumerate() {
        if axes.x(slot) > free {
            text(
                &mut svg,
                (axes.x(slot), HEIGHT - BOTTOM + 20.0),
                "tick mid",
                &name(&score.missing),
            );
            free = axes.x(slot) + TICK_WIDTH;
        }
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    text(
        &mut svg,
        (middle, HEIGHT - 8.0),
        "axis mid",
        "probability that a pixel is missing",
    );
    lines(&mut svg, axes, &[scores]);
    svg + "</svg>\n"
}

/// Accuracy against number and width of missing squares; one line per width.
pub fn squares(scores: &[Score]) -> String {
    let axes = &Axes::even(scores.len());
    let mut svg = start(
        "Accuracy against the number and width of missing squares",
        axes,
    );
    let counts = scores.len() / WIDTHS.len();
    for slot in 0..scores.len() {
        text(
            &mut svg,
            (axes.x(slot), HEIGHT - BOTTOM + 20.0),
            "tick mid",
            &(slot % counts + 1).to_string(),
        );
    }
    for (group, width) in WIDTHS.iter().enumerate() {
        let middle = axes.x(group * counts + counts / 2);
        text(
            &mut svg,
            (middle, HEIGHT - 8.0),
            "axis mid",
            &format!("of {width}×{width}"),
        );
        if group > 0 {
            let x = (axes.x(group * counts - 1) + axes.x(group * counts)) / 2.0;
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{:.1}\"/>",
                HEIGHT - 2.0
            );
        }
    }
    lines(&mut svg, axes, &scores.chunks(counts).collect::<Vec<_>>());
    svg + "</svg>\n"
}

fn start(title: &str, axes: &Axes) -> String {
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    for percent in (0..=100).step_by(20) {
        let y = axes.y(percent.into());
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>",
            WIDTH - RIGHT
        );
        text(
            &mut svg,
            (LEFT - 8.0, y + 4.0),
            "tick end",
            &percent.to_string(),
        );
    }
    text(&mut svg, (LEFT - 8.0, TOP - 14.0), "axis end", "%");
    svg
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
}

/// The lines of all methods, Sumout on top, and their names at the end. Each group has its own
/// line.
fn lines(svg: &mut String, axes: &Axes, groups: &[&[Score]]) {
    for method in (0..METHODS.len()).rev() {
        let _ = writeln!(svg, "<g class=\"m{method}\">");
        let mut slot = 0;
        for group in groups {
            line(svg, axes, slot, group, method);
            slot += group.len();
        }
        svg.push_str("</g>\n");
    }
    let Some(last) = groups.last().and_then(|group| group.last()) else {
        return;
    };
    let end = |method: usize| axes.y(last.percent(method));
    let ends: Vec<f64> = (0..METHODS.len()).map(end).collect();
    for (method, y) in moved_apart(&ends).into_iter().enumerate() {
        let at = (axes.x(axes.shares.len() - 1) + 10.0, y + 4.0);
        text(svg, at, &format!("name m{method}"), NAMES[method]);
    }
}

/// One line with its points, from a slot on.
fn line(svg: &mut String, axes: &Axes, first: usize, scores: &[Score], method: usize) {
    let (mut path, mut points) = (Vec::new(), String::new());
    for (i, score) in scores.iter().enumerate() {
        let (x, y, p) = (
            axes.x(first + i),
            axes.y(score.percent(method)),
            score.percent(method),
        );
        let words = format!("{}, {} missing", METHODS[method], name(&score.missing));
        path.push(format!("{x:.1} {y:.1}"));
        let _ = writeln!(
            points,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{words}: {p:.1} %</title></circle>"
        );
    }
    let _ = writeln!(svg, "<path class=\"line\" d=\"M{}\"/>", path.join("L"));
    svg.push_str(&points);
}

/// Moves names apart that would overlap, from the top down, but not below the chart.
fn moved_apart(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    for pair in 1..order.len() {
        placed[order[pair]] = placed[order[pair]].max(placed[order[pair - 1]] + NAME_HEIGHT);
    }
    let mut limit = HEIGHT - BOTTOM;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(limit);
        limit = placed[i] - NAME_HEIGHT;
    }
    placed
}

/// The numbers as a table, one row per kind of holes.
pub fn table(scores: &[Score]) -> String {
    let first = if scores.len() == IID.len() {
        "share missing"
    } else {
        "squares missing"
    };
    let head = |(m, name): (usize, &&str)| format!("<th class=\"m{m}\">{name}</th>");
    let heads: String = METHODS.iter().enumerate().map(head).collect();
    let mut html = format!("<table><thead><tr><th>{first}</th>{heads}</tr></thead><tbody>\n");
    for score in scores {
        let cells: String = (0..METHODS.len()).map(|m| cell(score, m)).collect();
        let _ = writeln!(html, "<tr><th>{}</th>{cells}</tr>", name(&score.missing));
    }
    html + "</tbody></table>\n"
}

fn cell(score: &Score, method: usize) -> String {
    let is_best = Some(&score.right[method]) == score.right.iter().max();
    let class = if is_best { " class=\"best\"" } else { "" };
    format!("<td{class}>{:.1}</td>", score.percent(method))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::kinds;

    fn scores() -> Vec<Score> {
        kinds()
            .into_iter()
            .map(|missing| Score {
                missing,
                images: 1000,
                right: [1000, 700, 400],
            })
            .collect()
    }

    #[test]
    fn known_points_lie_where_they_should() {
        let scores = scores();
        let axes = Axes::to_scale(&scores[..7]);
        assert_eq!(
            (axes.y(100.0), axes.y(0.0), axes.y(50.0)),
            (TOP, HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2.0)
        );
        let (quarter, half) = (axes.x(1) - axes.x(0), axes.x(2) - axes.x(0));
        assert!(
            (half - 2.0 * quarter).abs() < 1e-9,
            "probabilities are to scale"
        );
        let even = Axes::even(9);
        let step = (WIDTH - LEFT - RIGHT) / 9.0;
        assert!(
            (even.x(0) - LEFT - step / 2.0).abs() < 1e-9
                && (even.x(6) - even.x(5) - step).abs() < 1e-9
        );
        let svg = iid(&scores[..7]);
        let point = format!("<circle cx=\"{:.1}\" cy=\"{:.1}\"", axes.x(3), axes.y(70.0));
        assert!(svg.contains(&point), "{point} in {svg}");
        assert_eq!(
            (
                svg.matches("<circle").count(),
                svg.matches("class=\"line\"").count()
            ),
            (21, 3)
        );
        assert!(svg.contains("KNN, .75 missing: 70.0 %"));
        assert!(
            svg.contains(">.99</text>") && !svg.contains(">.95</text>"),
            "names of ticks do not overlap"
        );
        let svg = squares(&scores[7..]);
        assert_eq!(
            (
                svg.matches("<circle").count(),
                svg.matches("class=\"line\"").count()
            ),
            (27, 9)
        );
    }

    #[test]
    fn names_do_not_overlap() {
        assert_eq!(moved_apart(&[100.0, 50.0, 200.0]), [100.0, 50.0, 200.0]);
        assert_eq!(moved_apart(&[100.0, 101.0, 99.0]), [116.0, 133.0, 99.0]);
        let low = HEIGHT - BOTTOM;
        assert_eq!(
            moved_apart(&[low, low, low - 1.0]),
            [low - NAME_HEIGHT, low, low - 2.0 * NAME_HEIGHT]
        );
    }

    #[test]
    fn the_table_marks_the_best() {
        let html = table(&scores()[..7]);
        assert!(
            html.contains(
                "<tr><th>.25</th><td class=\"best\">100.0</td><td>70.0</td><td>40.0</td></tr>"
            ),
            "{html}"
        );
        assert!(html.contains("share missing") && table(&scores()[7..]).contains("<th>3×15²</th>"));
    }
}
