//! Completions of the same images with holes by several methods, side by side.

use crate::inputs::mnist::PIXELS;
use crate::summary::svg::{self, Square, draw_image};
use anyhow::Result;
use std::path::Path;
use sumout_data::layout::ReadOptions;

/// Files of completions and their names in the figure, from top to bottom.
const METHODS: [(&str, &str); 6] = [
    ("seen", "what is seen"),
    ("gsn", "GSN"),
    ("nice", "NICE"),
    ("dpm", "DPM"),
    ("tmm", "HT-TMM, ours"),
    ("whole", "the image"),
];

/// Kinds of holes and their names in the figure, from left to right.
const KINDS: [(&str, &str); 3] = [
    ("iid-0.75", "three of four pixels"),
    ("rect-2x11", "two squares of 11×11"),
    ("half", "a half"),
];

const SHOWN: usize = 6;
const CELL: usize = 40;
const LEFT: usize = 104;
const TOP: usize = 30;
const GAP: usize = 16;

/// Draws the files `METHOD-KIND.npy` of a folder, (n, 784) from 0 to 255, missing pixels NaN.
pub fn drawn(folder: &Path) -> Result<String> {
    let block = SHOWN * CELL + GAP;
    let width = LEFT + KINDS.len() * block;
    let title = "Images with holes, completed by several methods";
    let height = TOP + METHODS.len() * CELL + 8;
    let mut drawn = svg::start(width as f64, height as f64, title);
    for (number, (kind, name)) in KINDS.iter().enumerate() {
        let left = LEFT + number * block;
        let middle = left + SHOWN * CELL / 2;
        svg::draw_centred(&mut drawn, middle as f64, 20.0, name);
        for (line, (method, _)) in METHODS.iter().enumerate() {
            let path = folder.join(format!("{method}-{kind}.npy"));
            let corner = (left, TOP + line * CELL);
            draw_images(&mut drawn, &path, corner)?;
        }
    }
    for (line, (_, name)) in METHODS.iter().enumerate() {
        let y = TOP + line * CELL + CELL / 2 + 5;
        svg::draw_to(&mut drawn, LEFT as f64 - 8.0, y as f64, name);
    }
    Ok(drawn + "</svg>\n")
}

/// The first images of a file in a line; nothing if there is no such file.
fn draw_images(drawn: &mut String, path: &Path, corner: (usize, usize)) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let name = path.to_string_lossy();
    let table = sumout_data::read(&name, &ReadOptions::default())?;
    for (i, row) in table.values.chunks(PIXELS).take(SHOWN).enumerate() {
        let place = Square {
            x: corner.0 + i * CELL + 1,
            y: corner.1 + 1,
            size: CELL - 2,
        };
        draw_image(drawn, row, &place)?;
    }
    Ok(())
}
