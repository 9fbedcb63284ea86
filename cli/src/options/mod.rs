//! Options that several commands share.

pub mod memory;
pub mod text;
pub mod input;
pub mod device;
pub mod open_model;
pub mod quantiles;
