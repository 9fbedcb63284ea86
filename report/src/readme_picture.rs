//! The picture of the README, with a column for each digit: the image, the image with holes, the
//! exact mean of the missing pixels, and two exact samples.

use crate::gallery::Completion;
use crate::picture::{Colour, INK, Picture};
use anyhow::Result;
use sumout_data::formats::png::ColorType;
use sumout_data::formats::png::encode;

/// Each pixel of a digit becomes a square of this width.
const ZOOM: usize = 4;

/// Between digits, and around them.
const GAP: usize = 14;

/// White paper, which every README can show.
const PAPER: u8 = 255;

/// Draws it as a PNG file.
pub fn draw(completions: &[Completion]) -> Result<Vec<u8>> {
    let side = completions.first().map_or(1, |c| c.original.len().isqrt());
    let columns: Vec<Vec<Picture>> = completions.iter().map(|c| column(c, side)).collect();
    let cell = side * ZOOM + GAP;
    let width = columns.len() * cell + GAP;
    let height = columns.first().map_or(0, Vec::len) * cell + GAP;
    let mut bytes = vec![PAPER; width * height * 3];
    for (i, pictures) in columns.iter().enumerate() {
        for (j, picture) in pictures.iter().enumerate() {
            paint(&mut bytes, width, (j * cell + GAP, i * cell + GAP), picture);
        }
    }
    let mut file = Vec::new();
    encode(&mut file, (width, height), ColorType::Rgb, &bytes)?;
    Ok(file)
}

fn column(c: &Completion, side: usize) -> Vec<Picture> {
    let mut pictures = vec![
        Picture::seen(&c.original, side),
        Picture::seen(&c.holes, side),
    ];
    let filled = std::iter::once(&c.mean).chain(c.samples.iter().take(2));
    pictures.extend(filled.map(|row| Picture::filled(row, &c.holes, side)));
    pictures
}

/// One digit, enlarged, with a thin line around it.
fn paint(bytes: &mut [u8], width: usize, (top, left): (usize, usize), picture: &Picture) {
    const LINE: Colour = [INK[0], INK[1], INK[2], 40];
    let (tall, wide) = (picture.height * ZOOM, picture.width * ZOOM);
    for y in 0..tall + 2 {
        for x in 0..wide + 2 {
            let edge = y == 0 || x == 0 || y == tall + 1 || x == wide + 1;
            let colour = if edge {
                LINE
            } else {
                picture.pixels[(y - 1) / ZOOM * picture.width + (x - 1) / ZOOM]
            };
            let at = ((top + y - 1) * width + left + x - 1) * 3;
            for (byte, &ink) in bytes[at..at + 3].iter_mut().zip(&colour) {
                *byte = on_paper(ink, colour[3]);
            }
        }
    }
}

/// A colour's channel on paper.
fn on_paper(ink: u8, opacity: u8) -> u8 {
    let (ink, paper, opacity) = (u32::from(ink), u32::from(PAPER), u32::from(opacity));
    ((ink * opacity + paper * (255 - opacity)) / 255) as u8
}
