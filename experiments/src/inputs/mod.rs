//! What goes into an experiment: the images of MNIST, and the holes in them.

pub mod mnist;
pub mod test_masks;
#[cfg_attr(
    not(feature = "networks"),
    allow(dead_code, reason = "only LeNet is trained on holes")
)]
pub mod train_masks;
