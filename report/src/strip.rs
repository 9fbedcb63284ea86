//! The picture of the README: digits from left to right; from top to bottom the image, what the model sees, the exact
//! mean of what is missing, and two exact samples.

use crate::gallery::Completion;
use crate::picture::{Colour, Picture};
use anyhow::Result;
use sumout_data::formats::png::ColorType;
use sumout_data::formats::png::encode;

/// A pixel of a digit becomes so many of the picture, each way.
const ZOOM: usize = 4;

/// Between digits, and around them.
const GAP: usize = 14;

/// Drawn on white paper, which every README can show.
const PAPER: u8 = 255;

/// Draws it as a PNG file.
pub fn draw(completions: &[Completion]) -> Result<Vec<u8>> {
    let side = completions.first().map_or(1, |c| c.original.len().isqrt());
    let column = |c: &Completion| {
        let mut pictures = vec![
            Picture::seen(&c.original, side),
            Picture::seen(&c.holes, side),
        ];
        let filled = std::iter::once(&c.mean).chain(c.samples.iter().take(2));
        pictures.extend(filled.map(|row| Picture::filled(row, &c.holes, side)));
        pictures
    };
    let columns: Vec<Vec<Picture>> = completions.iter().map(column).collect();
    let cell = side * ZOOM + GAP;
    let (width, height) = (
        columns.len() * cell + GAP,
        columns.first().map_or(0, Vec::len) * cell + GAP,
    );
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

/// One digit, enlarged, with a hairline around it.
fn paint(bytes: &mut [u8], width: usize, (top, left): (usize, usize), picture: &Picture) {
    const LINE: Colour = [20, 24, 33, 40];
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
            let opacity = u32::from(colour[3]);
            for (byte, &ink) in bytes[at..at + 3].iter_mut().zip(&colour) {
                *byte =
                    ((u32::from(ink) * opacity + u32::from(PAPER) * (255 - opacity)) / 255) as u8;
            }
        }
    }
}
