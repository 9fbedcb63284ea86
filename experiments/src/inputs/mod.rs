//! What goes into an experiment: examples of a data set, the holes in them, and what a model sees of both.

pub mod test_masks;
pub mod examples;
pub mod mnist;
pub mod norb;
pub mod eth80;
mod phones;
pub mod speech;
mod log_mel;
pub mod front_end;
pub mod sets;
