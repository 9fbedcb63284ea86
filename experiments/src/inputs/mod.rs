//! What goes into an experiment: the images of MNIST, and the holes in them.

pub mod mnist;
pub mod test_masks;
