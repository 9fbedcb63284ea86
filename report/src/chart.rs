//! The accuracy curves of the demo: two small charts, and their numbers as a table.

use crate::accuracy::{IID, METHODS, Score, WIDTHS, name};
use crate::plot::{Line, Plot, Point, Tick, inside};
use std::fmt::Write;
use sumout::masks::Missing;

/// Short names, at the end of the lines.
const NAMES: [&str; METHODS.len()] = ["Sumout", "KNN", "mean fill"];

/// Accuracy against the share of missing pixels, to scale.
pub fn iid(scores: &[Score]) -> String {
    let share = |score: &Score| match score.missing {
        Missing::Iid(p) => inside(p),
        _ => inside(0.0),
    };
    let tick = |score: &Score| Tick::new(share(score), name(&score.missing));
    let shares: Vec<f64> = scores.iter().map(share).collect();
    let plot = Plot {
        title: "Accuracy against the probability that a pixel is missing".into(),
        ticks: scores.iter().map(tick).collect(),
        axis: vec![Tick::new(0.5, "probability that a pixel is missing")],
        lines: lines(&shares, &[scores]),
        ..Plot::default()
    };
    plot.svg()
}

/// Accuracy against number and width of missing squares; one line per width.
pub fn squares(scores: &[Score]) -> String {
    let counts = scores.len() / WIDTHS.len();
    let share = |slot: usize| (slot as f64 + 0.5) / scores.len() as f64;
    let shares: Vec<f64> = (0..scores.len()).map(share).collect();
    let tick = |slot: usize| Tick::new(share(slot), (slot % counts + 1).to_string());
    let width = |group: usize| {
        let words = format!("of {width}×{width}", width = WIDTHS[group]);
        Tick::new(share(group * counts + counts / 2), words)
    };
    let wall = |group: usize| (group * counts) as f64 / scores.len() as f64;
    let groups: Vec<&[Score]> = scores.chunks(counts).collect();
    let plot = Plot {
        title: "Accuracy against the number and width of missing squares".into(),
        ticks: (0..scores.len()).map(tick).collect(),
        axis: (0..WIDTHS.len()).map(width).collect(),
        walls: (1..WIDTHS.len()).map(wall).collect(),
        lines: lines(&shares, &groups),
        ..Plot::default()
    };
    plot.svg()
}

/// The lines of all methods. Each group has a part of its own.
fn lines(shares: &[f64], groups: &[&[Score]]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (method, name) in NAMES.iter().enumerate() {
        let mut shares = shares.iter();
        let part = |scores: &&[Score]| part(&mut shares, scores, method);
        lines.push(Line {
            colour: method,
            name: (*name).into(),
            parts: groups.iter().map(part).collect(),
        });
    }
    lines
}

fn part<'a>(
    shares: &mut impl Iterator<Item = &'a f64>,
    scores: &[Score],
    method: usize,
) -> Vec<Point> {
    let point = |(score, share): (&Score, &f64)| {
        let (missing, percent) = (name(&score.missing), score.percent(method));
        let words = format!("{}, {missing} missing: {percent:.1} %", METHODS[method]);
        Point::new(*share, percent, words)
    };
    scores.iter().zip(shares).map(point).collect()
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
    fn every_score_is_a_point() {
        let scores = scores();
        let svg = iid(&scores[..7]);
        let count = |svg: &str, what: &str| svg.matches(what).count();
        assert_eq!(
            (count(&svg, "<circle"), count(&svg, "class=\"line\"")),
            (21, 3)
        );
        let x = |svg: &str, words: &str| -> f64 {
            let before = svg.split(words).next().unwrap();
            let x = before.rsplit("cx=\"").next().unwrap();
            x.split('"').next().unwrap().parse().unwrap()
        };
        let at = [".25", ".50", ".75"].map(|p| x(&svg, &format!("KNN, {p} missing: 70.0 %")));
        assert!(
            (at[2] - 2.0 * at[1] + at[0]).abs() < 0.2,
            "probabilities are to scale"
        );
        assert!(
            svg.contains(">.99</text>") && !svg.contains(">.95</text>"),
            "names of ticks do not overlap"
        );
        let svg = squares(&scores[7..]);
        assert_eq!(
            (count(&svg, "<circle"), count(&svg, "class=\"line\"")),
            (27, 9)
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
