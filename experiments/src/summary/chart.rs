//! A chart as SVG: one line for each method, with its name at the end.

use crate::summary::svg;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 250.0; // space for names
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;

/// Names of lines must be this far apart to be readable.
const NAME_HEIGHT: f64 = 17.0;

/// Okabe and Ito's colours, which colour-blind people can tell apart; further lines have dashes.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#888888",
];
const DASHES: [&str; 4] = ["", "6 3", "2 3", "9 3 2 3"];

/// A line of a chart.
pub struct Line {
    /// What stands at its end.
    pub name: String,
    /// In percent, one for each head.
    pub points: Vec<f64>,
}

/// One chart without its lines.
pub struct Chart<'a> {
    pub title: &'a str,
    /// What the heads are.
    pub below: &'a str,
    /// One for each point of a line.
    pub heads: Vec<String>,
    /// The head with which columns of another kind begin: lines are broken before it.
    pub broken_at: Option<usize>,
}

impl Chart<'_> {
    /// The chart with its lines.
    pub fn svg(&self, lines: &[Line]) -> String {
        let ends: Vec<f64> = lines
            .iter()
            .map(|line| y(*line.points.last().unwrap_or(&0.0)))
            .collect();
        let places = moved_apart(&ends);
        let mut svg = svg::start(WIDTH, HEIGHT, self.title) + &svg::head(LEFT, self.title);
        self.draw_axes(&mut svg);
        for (i, line) in lines.iter().enumerate().rev() {
            let stroke = Stroke {
                colour: COLOURS[i % COLOURS.len()],
                dashes: DASHES[i / COLOURS.len() % DASHES.len()],
            };
            self.draw_line(&mut svg, line, &stroke);
            self.draw_name(&mut svg, line, &stroke, ends[i], places[i]);
        }
        svg + "</svg>\n"
    }

    fn x(&self, slot: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (slot as f64 + 0.5) / self.heads.len() as f64
    }

    fn draw_axes(&self, svg: &mut String) {
        for percent in (0..=100).step_by(20) {
            let (y, right) = (y(percent.into()), WIDTH - RIGHT);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right:.1}\" class=\"grid\"/>"
            );
            let (left, y) = (LEFT - 6.0, y + 4.5);
            let _ = writeln!(
                svg,
                "<text x=\"{left:.1}\" y=\"{y:.1}\" class=\"ink\" text-anchor=\"end\">{percent}</text>"
            );
        }
        for (slot, head) in self.heads.iter().enumerate() {
            svg::draw_centred(svg, self.x(slot), HEIGHT - BOTTOM + 18.0, head);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg::draw_centred(svg, middle, HEIGHT - 10.0, self.below);
    }

    fn draw_line(&self, svg: &mut String, line: &Line, stroke: &Stroke) {
        let points = line.points.iter().enumerate();
        let points: Vec<String> = points
            .map(|(slot, &p)| format!("{:.1} {:.1}", self.x(slot), y(p)))
            .collect();
        let (first, second) = points.split_at(self.broken_at.unwrap_or(points.len()));
        for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
            let (path, look) = (part.join("L"), stroke.attributes());
            let _ = writeln!(svg, "<path d=\"M{path}\" fill=\"none\" {look}/>");
        }
        for (slot, &p) in line.points.iter().enumerate() {
            let (x, y, colour, name) = (self.x(slot), y(p), stroke.colour, &line.name);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{name}: {p:.2} %</title></circle>"
            );
        }
    }

    /// The name on the right, and a thin line to it from where the curve ends.
    fn draw_name(&self, svg: &mut String, line: &Line, stroke: &Stroke, end: f64, place: f64) {
        let last = self.x(self.heads.len() - 1) + 5.0;
        let text = WIDTH - RIGHT + 22.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{last:.1} {end:.1}L{:.1} {place:.1}H{:.1}\" fill=\"none\" {} opacity=\"0.5\"/>",
            text - 16.0,
            text - 4.0,
            stroke.attributes()
        );
        let (y, colour, name) = (place + 4.5, stroke.colour, &line.name);
        let _ = writeln!(
            svg,
            "<text x=\"{text:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>"
        );
    }
}

struct Stroke {
    colour: &'static str,
    dashes: &'static str,
}

impl Stroke {
    fn attributes(&self) -> String {
        let Self { colour, dashes } = self;
        format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"")
    }
}

fn y(percent: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (100.0 - percent) / 100.0
}

/// Moves names apart that would overlap, first from the top down, then from the bottom up.
fn moved_apart(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut free = 0.0;
    for &i in &order {
        placed[i] = placed[i].max(free);
        free = placed[i] + NAME_HEIGHT;
    }
    let mut limit = HEIGHT - NAME_HEIGHT / 2.0;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(limit);
        limit = placed[i] - NAME_HEIGHT;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many paths a chart of one line has.
    fn paths(broken_at: Option<usize>) -> usize {
        let line = Line {
            name: "a".into(),
            points: vec![10.0, 20.0, 30.0],
        };
        let chart = Chart {
            title: "title",
            below: "below",
            heads: ["1", "2", "3"].map(str::to_owned).to_vec(),
            broken_at,
        };
        chart.svg(&[line]).matches("<path").count()
    }

    #[test]
    fn lines_are_broken_between_kinds_of_columns() {
        assert_eq!(paths(Some(2)), paths(None) + 1);
    }

    #[test]
    fn names_do_not_overlap() {
        let placed = moved_apart(&[100.0, 101.0, 99.0, HEIGHT, HEIGHT]);
        assert_eq!(
            placed[..3],
            [99.0 + NAME_HEIGHT, 99.0 + 2.0 * NAME_HEIGHT, 99.0]
        );
        assert!((placed[3] - placed[4]).abs() >= NAME_HEIGHT && placed.iter().all(|&y| y < HEIGHT));
    }
}
