//! Accuracy curves as SVG: every method that has results, by what is missing.

use crate::columns;
use crate::results::Record;
use crate::tables::{compared, mean_and_spread, rows};
use std::fmt::Write;
use std::ops::Range;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 250.0; // room for names
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;

/// Names of lines must be this far apart to be read.
const NAME_HEIGHT: f64 = 17.0;

/// Told apart on white by people who do not see all colours too (Okabe and Ito), and by dashes from then on.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#333333",
];

/// A line of a chart.
struct Line {
    name: String,
    points: Vec<f64>, // percents
}

/// i.i.d. holes.
pub fn iid(records: &[Record]) -> String {
    let iid = 0..columns::IID.len();
    chart(
        "Accuracy in % when each pixel is missing with a probability",
        "probability",
        &lines(records, &iid),
        iid,
    )
}

/// Squares.
pub fn squares(records: &[Record]) -> String {
    let squares = columns::IID.len()..columns::all().len();
    chart(
        "Accuracy in % when squares are missing",
        "number × width²",
        &lines(records, &squares),
        squares,
    )
}

/// Means over seeds, the best over all columns first: a method has the same colour in both charts.
fn lines(records: &[Record], part: &Range<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    for record in &compared(records) {
        for (row, runs) in rows(record) {
            let name = if row.is_empty() {
                record.title.clone()
            } else {
                format!("{}, {row}", record.title)
            };
            let mean = |column: usize| mean_and_spread(&runs, column).0;
            let all: f64 = (0..columns::all().len()).map(mean).sum();
            lines.push((
                all,
                Line {
                    name,
                    points: part.clone().map(mean).collect(),
                },
            ));
        }
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines.into_iter().map(|(_, line)| line).collect()
}

fn chart(title: &str, below: &str, lines: &[Line], part: Range<usize>) -> String {
    let slots = part.len();
    let x = |slot: usize| LEFT + (WIDTH - LEFT - RIGHT) * (slot as f64 + 0.5) / slots as f64;
    let y = |percent: f64| TOP + (HEIGHT - TOP - BOTTOM) * (100.0 - percent) / 100.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"600\">{title}</text>\n"
    );
    for percent in (0..=100).step_by(20) {
        let (y, right) = (y(percent.into()), WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{right:.1}\" stroke=\"#ddd\"/>"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent}</text>",
            LEFT - 6.0,
            y + 4.5
        );
    }
    for (slot, missing) in columns::all()[part].iter().enumerate() {
        let (x, y, name) = (x(slot), HEIGHT - BOTTOM + 18.0, columns::name(missing));
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{name}</text>"
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{below}</text>",
        HEIGHT - 10.0
    );
    let ends: Vec<f64> = lines
        .iter()
        .map(|line| y(*line.points.last().unwrap_or(&0.0)))
        .collect();
    let places = spread(&ends);
    for (i, line) in lines.iter().enumerate().rev() {
        let colour = COLOURS[i % COLOURS.len()];
        let dashes = ["", "6 3", "2 3", "9 3 2 3"][i / COLOURS.len() % 4];
        let points: Vec<String> = line
            .points
            .iter()
            .enumerate()
            .map(|(slot, &p)| format!("{:.1} {:.1}", x(slot), y(p)))
            .collect();
        let stroke =
            format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"");
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" {stroke}/>",
            points.join("L")
        );
        for (slot, &p) in line.points.iter().enumerate() {
            let words = format!("{}: {p:.2} %", line.name);
            let (x, y) = (x(slot), y(p));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{words}</title></circle>"
            );
        }
        let (end, place, name) = (x(slots - 1) + 5.0, places[i], &line.name);
        let text = WIDTH - RIGHT + 22.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{end:.1} {:.1}L{:.1} {place:.1}H{:.1}\" fill=\"none\" {stroke} opacity=\"0.5\"/>",
            ends[i],
            text - 16.0,
            text - 4.0
        );
        let _ = writeln!(
            svg,
            "<text x=\"{text:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            place + 4.5
        );
    }
    svg + "</svg>\n"
}

/// Moves names apart that would overlap, from the top down, then up again from the bottom.
fn spread(wanted: &[f64]) -> Vec<f64> {
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

    #[test]
    fn names_do_not_overlap() {
        let placed = spread(&[100.0, 101.0, 99.0, HEIGHT, HEIGHT]);
        assert_eq!(
            placed[..3],
            [99.0 + NAME_HEIGHT, 99.0 + 2.0 * NAME_HEIGHT, 99.0]
        );
        assert!((placed[3] - placed[4]).abs() >= NAME_HEIGHT && placed.iter().all(|&y| y < HEIGHT));
    }
}
