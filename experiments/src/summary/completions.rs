//! Completions of the same images with holes by several methods, side by side.

use crate::inputs::mnist::{PIXELS, SIDE};
use crate::summary::svg::{self, Square, draw_image};
use anyhow::Result;
use std::path::Path;
use sumout_data::layout::ReadOptions;
use sumout_report::picture::Picture;

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
        let seen = images(&folder.join(format!("seen-{kind}.npy")))?;
        for (line, (method, _)) in METHODS.iter().enumerate() {
            let rows = images(&folder.join(format!("{method}-{kind}.npy")))?;
            let corner = (left, TOP + line * CELL);
            draw_line(&mut drawn, &rows, &seen, corner)?;
        }
    }
    for (line, (_, name)) in METHODS.iter().enumerate() {
        let y = TOP + line * CELL + CELL / 2 + 5;
        svg::draw_to(&mut drawn, LEFT as f64 - 8.0, y as f64, name);
    }
    Ok(drawn + "</svg>\n")
}

/// The images of a file, one after the other; none if there is no such file.
fn images(path: &Path) -> Result<Vec<f32>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let table = sumout_data::read(&path.to_string_lossy(), &ReadOptions::default())?;
    Ok(table.values)
}

/// The first images in a line; what was missing is tinted, or striped if it still is.
fn draw_line(drawn: &mut String, rows: &[f32], seen: &[f32], corner: (usize, usize)) -> Result<()> {
    let pairs = rows.chunks(PIXELS).zip(seen.chunks(PIXELS));
    for (i, (row, seen)) in pairs.take(SHOWN).enumerate() {
        let picture = if row.iter().any(|x| x.is_nan()) {
            Picture::seen(row, SIDE)
        } else {
            Picture::filled(row, seen, SIDE)
        };
        let place = Square {
            x: corner.0 + i * CELL + 1,
            y: corner.1 + 1,
            size: CELL - 2,
        };
        draw_image(drawn, &picture, &place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Two images of one method are drawn, and the names of all.
    #[test]
    fn images_of_files_are_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 784), }".to_owned();
        header += &" ".repeat(117 - header.len());
        header += "\n";
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        for i in 0..2 * PIXELS {
            let value = if i % 3 == 0 {
                f32::NAN
            } else {
                (i % 256) as f32
            };
            bytes.extend(value.to_le_bytes());
        }
        fs::write(folder.path().join("seen-half.npy"), bytes).unwrap();
        let svg = drawn(folder.path()).unwrap();
        assert_eq!(svg.matches("<image").count(), 2);
        assert!(svg.contains(">HT-TMM, ours<") && svg.contains(">a half<"));
    }
}
