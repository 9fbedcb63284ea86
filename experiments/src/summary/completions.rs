//! Completions of the same images with holes by several methods, side by side.

use crate::summary::svg::{self, Square, draw_image};
use anyhow::Result;
use std::path::{Path, PathBuf};
use sumout_data::layout::ReadOptions;
use sumout_report::picture::Picture;

/// What a figure shows.
pub struct Completions {
    /// What the names of its files begin with.
    pub prefix: &'static str,
    /// Files and their names in the figure, from top to bottom.
    pub methods: &'static [(&'static str, &'static str)],
    /// Whether 255 is white, as in a photograph, and not ink.
    pub is_photograph: bool,
}

/// MNIST.
pub const DIGITS: Completions = Completions {
    prefix: "",
    methods: &[
        ("seen", "what is seen"),
        ("gsn", "GSN"),
        ("nice", "NICE"),
        ("dpm", "DPM"),
        ("spn-pd", "SPN"),
        ("tmm", "HT-TMM, ours"),
        ("whole", "the image"),
    ],
    is_photograph: false,
};

/// ETH-80.
pub const THINGS: Completions = Completions {
    prefix: "eth80-",
    methods: &[
        ("seen", "what is seen"),
        ("tmm", "HT-TMM, ours"),
        ("whole", "the image"),
    ],
    is_photograph: true,
};

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

impl Completions {
    /// Draws the files `METHOD-KIND.npy` of a folder, (n, pixels) from 0 to 255, missing pixels NaN, without methods that
    /// have none; nothing if there are no such files.
    pub fn drawn(&self, folder: &Path) -> Result<Option<String>> {
        let exists = |method: &str, kind: &str| self.path(folder, method, kind).exists();
        let has_some = |method: &str| KINDS.iter().any(|(kind, _)| exists(method, kind));
        let methods = self.methods.iter().filter(|(method, _)| has_some(method));
        let methods: Vec<_> = methods.collect();
        if methods.is_empty() {
            return Ok(None);
        }
        let block = SHOWN * CELL + GAP;
        let width = LEFT + KINDS.len() * block;
        let title = "Images with holes, completed by several methods";
        let height = TOP + methods.len() * CELL + 8;
        let mut drawn = svg::start(width as f64, height as f64, title);
        for (number, (kind, name)) in KINDS.iter().enumerate() {
            let left = LEFT + number * block;
            let middle = left + SHOWN * CELL / 2;
            svg::draw_centred(&mut drawn, middle as f64, 20.0, name);
            let seen = self.images(folder, "seen", kind)?;
            for (line, (method, _)) in methods.iter().enumerate() {
                let rows = self.images(folder, method, kind)?;
                let corner = (left, TOP + line * CELL);
                let holes = if *method == "whole" { &rows } else { &seen };
                draw_line(&mut drawn, &rows, holes, corner)?;
            }
        }
        for (line, (_, name)) in methods.iter().enumerate() {
            let y = TOP + line * CELL + CELL / 2 + 5;
            svg::draw_to(&mut drawn, LEFT as f64 - 8.0, y as f64, name);
        }
        Ok(Some(drawn + "</svg>\n"))
    }

    /// The file of a method and a kind of holes.
    fn path(&self, folder: &Path, method: &str, kind: &str) -> PathBuf {
        folder.join(format!("{}{method}-{kind}.npy", self.prefix))
    }

    /// The images of a file, as ink from 0 to 255; none if there is no such file.
    fn images(&self, folder: &Path, method: &str, kind: &str) -> Result<Vec<Vec<f32>>> {
        let path = self.path(folder, method, kind);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let table = sumout_data::read(&path.to_string_lossy(), &ReadOptions::default())?;
        let ink = |x: &f32| if self.is_photograph { 255.0 - x } else { *x };
        let rows = table.values.chunks(table.layout.width);
        Ok(rows.map(|row| row.iter().map(ink).collect()).collect())
    }
}

/// The first images in a line; what was missing is tinted, or striped if it still is.
fn draw_line(
    drawn: &mut String,
    rows: &[Vec<f32>],
    seen: &[Vec<f32>],
    corner: (usize, usize),
) -> Result<()> {
    for (i, (row, seen)) in rows.iter().zip(seen).take(SHOWN).enumerate() {
        let side = row.len().isqrt();
        let picture = if row.iter().any(|x| x.is_nan()) {
            Picture::seen(row, side)
        } else {
            Picture::filled(row, seen, side)
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
    use crate::inputs::mnist::PIXELS;
    use std::fs;

    /// Two images of one method are drawn, with its name and no other.
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
        let svg = DIGITS.drawn(folder.path()).unwrap().unwrap();
        assert_eq!(svg.matches("<image").count(), 2);
        assert!(svg.contains(">what is seen<") && !svg.contains(">HT-TMM, ours<"));
        assert!(svg.contains(">a half<"));
        assert!(THINGS.drawn(folder.path()).unwrap().is_none());
    }
}
