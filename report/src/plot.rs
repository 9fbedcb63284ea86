//! Line charts in percent as SVG, readable on a phone: inside a page, or as a file of their own.

use crate::style::{dark, light};
use crate::text::escape;
use std::fmt::Write;

pub(crate) const WIDTH: f64 = 480.0;
pub(crate) const HEIGHT: f64 = 320.0;
pub(crate) const LEFT: f64 = 40.0;
pub(crate) const TOP: f64 = 28.0;
pub(crate) const BOTTOM: f64 = 50.0;

/// Names of lines must be this far apart to be readable.
pub(crate) const NAME_HEIGHT: f64 = 17.0;

/// A letter of a name takes at most this much.
const LETTER: f64 = 8.4;

/// A letter of a tick takes this much, and two ticks must be this far apart.
const TICK_LETTER: f64 = 6.5;
const TICK_GAP: f64 = 8.0;

/// A point of a line.
#[derive(Clone, Debug)]
pub struct Point {
    /// Where it is, as a share of the width from left to right.
    pub share: f64,
    /// Where it is, from 0 at the bottom to 100 at the top.
    pub percent: f64,
    /// Its radius.
    pub radius: f64,
    /// What it says when it is pointed at.
    pub words: String,
}

/// A line, in one or more parts.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its colour: the number of a class `m0`, `m1` or `m2` of the style.
    pub colour: usize,
    /// Stands at its end.
    pub name: String,
    /// Points from left to right.
    pub parts: Vec<Vec<Point>>,
}

/// Words at a place below the chart.
#[derive(Clone, Debug)]
pub struct Tick {
    /// The middle of the words, as a share of the width.
    pub share: f64,
    /// What is written.
    pub words: String,
}

impl Point {
    /// A point of the usual size.
    pub fn new(share: f64, percent: f64, words: impl Into<String>) -> Self {
        Self {
            share,
            percent,
            radius: 3.5,
            words: words.into(),
        }
    }
}

impl Tick {
    /// Words at a share of the width.
    pub fn new(share: f64, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { share, words }
    }
}

/// What a chart shows.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// For those who cannot see it.
    pub title: String,
    /// Values, right below the chart. Those without room are left out.
    pub ticks: Vec<Tick>,
    /// What the values mean, below them.
    pub axis: Vec<Tick>,
    /// Vertical lines.
    pub walls: Vec<f64>,
    /// A line from corner to corner, where percent and share are equal.
    pub diagonal: bool,
    /// The first one is drawn last.
    pub lines: Vec<Line>,
}

/// Keeps points off the edges: 0 and 1 lie a little inside.
pub fn inside(share: f64) -> f64 {
    const SPACE: f64 = 0.04;
    SPACE + (1.0 - 2.0 * SPACE) * share
}

impl Plot {
    /// As a part of a page, which has the style.
    pub fn svg(&self) -> String {
        let title = escape(&self.title);
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>\n",
            self.drawn()
        )
    }

    /// As a file. Its colours are plain, so that programs other than browsers show them too.
    pub fn file(&self) -> String {
        let (title, style) = (escape(&self.title), file_style());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n{}</svg>\n",
            self.drawn()
        )
    }

    fn drawn(&self) -> String {
        let mut svg = String::new();
        self.draw_frame(&mut svg);
        self.draw_ticks(&mut svg);
        for line in self.lines.iter().rev() {
            self.draw_line(line, &mut svg);
        }
        self.draw_names(&mut svg);
        svg
    }

    /// From the left.
    pub(crate) fn x(&self, share: f64) -> f64 {
        LEFT + (WIDTH - LEFT - self.right()) * share
    }

    /// Space for the names of the lines.
    fn right(&self) -> f64 {
        let letters = self.lines.iter().map(|line| line.name.chars().count());
        14.0 + LETTER * letters.max().unwrap_or(0) as f64
    }

    fn draw_frame(&self, svg: &mut String) {
        let end = self.x(1.0);
        for percent in (0..=100).step_by(20) {
            let y = y(percent.into());
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{end:.1}\"/>");
            text(svg, (LEFT - 8.0, y + 4.0), "tick end", &percent.to_string());
        }
        text(svg, (LEFT - 8.0, TOP - 14.0), "axis end", "%");
        for &wall in &self.walls {
            let (x, low) = (self.x(wall), HEIGHT - 2.0);
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{low:.1}\"/>");
        }
        if self.diagonal {
            let (from, to) = (self.x(inside(0.0)), self.x(inside(1.0)));
            let _ = writeln!(
                svg,
                "<path class=\"grid even\" d=\"M{from:.1} {:.1}L{to:.1} {:.1}\"/>",
                y(0.0),
                y(100.0)
            );
        }
    }

    fn draw_ticks(&self, svg: &mut String) {
        let mut free = [0.0; 2]; // each row of names is free from here on
        for tick in &self.ticks {
            let half = TICK_LETTER * tick.words.chars().count() as f64 / 2.0;
            let x = self.x(tick.share);
            let has_room = |from: &f64| x - half > *from;
            let rows = if self.axis.is_empty() { 2 } else { 1 };
            if let Some(row) = free[..rows].iter().position(has_room) {
                let y = HEIGHT - BOTTOM + 20.0 + NAME_HEIGHT * row as f64;
                text(svg, (x, y), "tick mid", &tick.words);
                free[row] = x + half + TICK_GAP;
            }
        }
        for tick in &self.axis {
            let at = (self.x(tick.share), HEIGHT - 8.0);
            text(svg, at, "axis mid", &tick.words);
        }
    }

    fn draw_line(&self, line: &Line, svg: &mut String) {
        let _ = writeln!(svg, "<g class=\"m{}\">", line.colour);
        for part in &line.parts {
            let mut circles = String::new();
            let mut path = Vec::new();
            for point in part {
                let (x, y, r) = (self.x(point.share), y(point.percent), point.radius);
                path.push(format!("{x:.1} {y:.1}"));
                let words = escape(&point.words);
                let _ = writeln!(
                    circles,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"><title>{words}</title></circle>"
                );
            }
            let _ = writeln!(svg, "<path class=\"line\" d=\"M{}\"/>", path.join("L"));
            svg.push_str(&circles);
        }
        svg.push_str("</g>\n");
    }

    /// The names of the lines at their ends.
    fn draw_names(&self, svg: &mut String) {
        let last = |line: &Line| line.parts.last().and_then(|part| part.last().cloned());
        let lines = self
            .lines
            .iter()
            .filter_map(|line| Some((line, last(line)?)));
        let lines: Vec<(&Line, Point)> = lines.collect();
        let ends: Vec<f64> = lines.iter().map(|(_, end)| y(end.percent)).collect();
        for ((line, end), y) in lines.iter().zip(moved_apart(&ends)) {
            let at = (self.x(end.share) + 10.0, y + 4.0);
            text(svg, at, &format!("name m{}", line.colour), &line.name);
        }
    }
}

/// From the top. What is beyond the chart lies on its edge.
pub(crate) fn y(percent: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (100.0 - percent.clamp(0.0, 100.0)) / 100.0
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
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

/// The style of a chart that is a file.
fn file_style() -> String {
    let shapes = "text { font: 13px system-ui, sans-serif; } .mid { text-anchor: middle; } .end { text-anchor: end; }\n\
                  .name { font-weight: 600; } .grid, .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }\n\
                  .grid { stroke-width: 1; } .m0 .line { stroke-width: 3; } circle { stroke-width: 1.5; }\n";
    let (by_day, by_night) = (colour_rules(light), colour_rules(dark));
    format!("{shapes}{by_day}@media (prefers-color-scheme: dark) {{\n{by_night}}}\n")
}

/// What has a colour; `colour` gives that of a name.
fn colour_rules(colour: fn(&str) -> [u8; 3]) -> String {
    let hex = |name: &str| {
        let [r, g, b] = colour(name);
        format!("#{r:02x}{g:02x}{b:02x}")
    };
    let (card, soft, line) = (hex("card"), hex("soft"), hex("line"));
    let mut rules = format!(
        ".back {{ fill: {card}; }} text {{ fill: {soft}; }} .grid {{ stroke: {line}; }} circle {{ stroke: {card}; }}\n"
    );
    for (number, name) in ["accent", "heat", "soft"].into_iter().enumerate() {
        let c = hex(name);
        let _ = writeln!(
            rules,
            ".m{number} .line {{ stroke: {c}; }} .m{number} circle, .name.m{number} {{ fill: {c}; }}"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_where_they_should_and_words_are_escaped() {
        let plot = Plot {
            lines: vec![Line {
                colour: 1,
                name: "x & y".into(),
                parts: vec![
                    [(0.0, 100.0), (0.5, 150.0)]
                        .map(|(x, y)| Point::new(x, y, "a < b"))
                        .to_vec(),
                ],
            }],
            ..Plot::default()
        };
        let svg = plot.svg();
        assert!(svg.contains(&format!("d=\"M{LEFT:.1} {TOP:.1}L")), "{svg}");
        assert!(
            svg.contains("x &amp; y") && svg.contains("a &lt; b"),
            "{svg}"
        );
        let high = svg.matches(&format!("cy=\"{TOP:.1}\"")).count();
        assert_eq!(high, 2, "more than 100 % lies on the edge");
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
    fn ticks_without_room_are_left_out() {
        let axis = vec![Tick::new(0.5, "what")];
        let ticks = [(0.5, "0.50"), (0.52, "0.52"), (0.54, "0.54"), (0.9, "0.90")];
        let ticks = ticks.map(|(share, words)| Tick::new(share, words)).to_vec();
        let one_row = Plot {
            ticks: ticks.clone(),
            axis,
            ..Plot::default()
        };
        let two_rows = Plot {
            ticks,
            ..Plot::default()
        };
        let names = |plot: &Plot| plot.svg().matches("tick mid").count();
        assert_eq!((names(&one_row), names(&two_rows)), (2, 3));
    }

    #[test]
    fn a_file_has_plain_colours_for_light_and_dark() {
        let file = Plot::default().file();
        assert!(
            file.contains(".back { fill: #fffdf9; }") && file.contains(".back { fill: #1b2026; }")
        );
        assert!(!file.contains("var(") && file.contains("xmlns="));
    }
}
