//! The paper's 16 kinds of holes in test images, the columns of its tables on MNIST, and eight kinds
//! that no method was trained on. A plan may have others.

use std::ops::Range;
use sumout::masks::{Grid, Missing};
use sumout_data::layout::ImageShape;
use sumout_report::accuracy;

/// All 16: first pixels missing i.i.d., then squares.
pub fn all() -> Vec<Missing> {
    accuracy::kinds().into_iter().map(nothing_is_none).collect()
}

fn nothing_is_none(missing: Missing) -> Missing {
    if missing == Missing::Iid(0.0) {
        Missing::None
    } else {
        missing
    }
}

/// All 16 as a plan writes them.
pub fn all_texts() -> Vec<String> {
    all().iter().map(Missing::to_string).collect()
}

/// Holes that no method was trained on, as a plan writes them.
pub const UNSEEN: [&str; 8] = [
    "stripes:2",
    "stripes:4",
    "half",
    "rows:0.5",
    "rows:0.75",
    "blocks:4x0.5",
    "blocks:4x0.75",
    "blocks:4x0.9",
];

/// The columns of i.i.d. holes.
pub fn iid() -> Range<usize> {
    0..accuracy::IID.len()
}

/// The columns of squares.
pub fn squares() -> Range<usize> {
    accuracy::IID.len()..all().len()
}

/// The head of a column.
pub fn name(missing: &Missing) -> String {
    match missing {
        Missing::None => "0".into(),
        Missing::Stripes(width) => format!("stripes of {width}"),
        Missing::Rows(p) => format!("rows {}", short(*p)),
        Missing::Blocks { width, p } => format!("blocks of {width}² {}", short(*p)),
        other => accuracy::name(other),
    }
}

/// A share without its leading zero.
fn short(p: f64) -> String {
    accuracy::name(&Missing::Iid(p))
}

/// The heads of columns that a plan writes as texts.
pub fn names(texts: &[String]) -> Vec<String> {
    let parsed = texts.iter().filter_map(|text| text.parse().ok());
    parsed.map(|missing| name(&missing)).collect()
}

/// What goes missing together: a pixel, or of two cameras a pixel of one.
pub fn grid(shape: ImageShape) -> Grid {
    let grid = Grid::image(shape.height, shape.width, shape.channels);
    if shape.channels == 2 {
        grid.apart()
    } else {
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rivals/test_holes.py` has the same: two cameras, 2×4 pixels, pixel by pixel; and a sequence.
    #[test]
    fn holes_are_those_of_the_scripts() {
        let cameras = (2, 4, 2);
        for (kind, (height, width, channels), expected) in [
            ("iid:0.5", cameras, "#..##....#...#.."),
            ("rect:1x2", cameras, ".####....####..."),
            ("blocks:4x0.5", (1, 16, 1), "####....####...."),
        ] {
            let grid = grid(ImageShape {
                height,
                width,
                channels,
            });
            let mut row = vec![1.0; grid.numbers()];
            let missing: Missing = kind.parse().unwrap();
            missing.apply(&grid, &mut row, 3, 11).unwrap();
            let mark = |x: &f32| if x.is_nan() { '#' } else { '.' };
            assert_eq!(row.iter().map(mark).collect::<String>(), expected, "{kind}");
        }
    }
}
