//! The 2×2 windows of the two maxima.

/// Side of the map after the first maximum.
pub const MAP: usize = 12;

/// Side of the map after the second maximum.
pub const TOP: usize = 4;

/// The corners of a window: down, right.
pub const CORNERS: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

/// A window of an image's map.
#[derive(Clone, Copy)]
pub struct Window {
    pub image: usize,
    pub y: usize,
    pub x: usize,
}

/// All windows of all images.
pub fn windows(images: usize, side: usize) -> impl Iterator<Item = Window> {
    (0..images * side * side).map(move |at| Window {
        image: at / (side * side),
        y: at / side % side,
        x: at % side,
    })
}
