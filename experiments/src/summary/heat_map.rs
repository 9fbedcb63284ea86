//! Nets that were trained on one kind of holes and tested on all kinds, as a heat map.

use crate::inputs::test_masks;
use crate::results::{Record, Row, spread};
use crate::summary::cross_trained::{self, is_cross_trained};
use crate::summary::svg;
use std::fmt::Write;

const LEFT: f64 = 96.0;
const TOP: f64 = 62.0;
const CELL: f64 = 46.0;
const LINE: f64 = 26.0;

/// One row for each net, in the order of the plan; none if there are no such nets.
pub fn cross_trained_nets(records: &[Record]) -> Option<String> {
    let record = records
        .iter()
        .find(|record| record.is_on("mnist") && is_cross_trained(record))?;
    let rows = cross_trained::rows_in_order(record);
    let heads = test_masks::names(&record.columns);
    let title = "LeNets trained on one kind of holes (left), tested on all (top): accuracy in %";
    let width = LEFT + CELL * heads.len() as f64 + 8.0;
    let mut drawn = svg::start(width, TOP + LINE * rows.len() as f64 + 8.0, title);
    drawn += &svg::head(8.0, title);
    for (column, head) in heads.iter().enumerate() {
        svg::draw_centred(
            &mut drawn,
            LEFT + CELL * (column as f64 + 0.5),
            TOP - 10.0,
            head,
        );
    }
    for (line, row) in rows.iter().enumerate() {
        draw_row(&mut drawn, row, TOP + LINE * line as f64, heads.len());
    }
    Some(drawn + "</svg>\n")
}

fn draw_row(drawn: &mut String, row: &Row<'_>, top: f64, columns: usize) {
    svg::draw_to(
        drawn,
        LEFT - 8.0,
        top + 17.5,
        &cross_trained::name(&row.name),
    );
    for column in 0..columns {
        let accuracy = spread(&row.runs, column).mean;
        let (left, ink) = (
            LEFT + CELL * column as f64,
            if accuracy < 72.0 { "#fff" } else { "#111" },
        );
        let (width, height, middle) = (CELL - 1.0, LINE - 1.0, left + CELL / 2.0 - 0.5);
        let _ = writeln!(
            drawn,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" fill=\"{ink}\" font-size=\"12\" text-anchor=\"middle\">{accuracy:.1}</text>",
            colour(accuracy),
            top + 17.0
        );
    }
}

/// From dark blue at 10 % over green to yellow at 100 %; most of the scale is for high accuracies.
fn colour(accuracy: f64) -> String {
    const STOPS: [[f64; 3]; 4] = [
        [52.0, 32.0, 92.0],
        [40.0, 96.0, 140.0],
        [70.0, 170.0, 120.0],
        [250.0, 225.0, 80.0],
    ];
    let share = ((accuracy - 10.0) / 90.0).clamp(0.0, 1.0).powi(2) * (STOPS.len() - 1) as f64;
    let stop = (share as usize).min(STOPS.len() - 2);
    let part = share - stop as f64;
    let mixed = |i: usize| STOPS[stop][i] * (1.0 - part) + STOPS[stop + 1][i] * part;
    format!("rgb({:.0},{:.0},{:.0})", mixed(0), mixed(1), mixed(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_from_end_to_end() {
        assert_eq!(colour(0.0), "rgb(52,32,92)");
        assert_eq!(colour(100.0), "rgb(250,225,80)");
        assert_ne!(colour(97.0), colour(99.0));
    }
}
