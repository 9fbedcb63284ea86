//! What suits given data: structures, settings and scalings for tables and images, and models by name.
//!
//! Uses: all folders above.

pub mod presets;
pub mod column_order;
pub mod tables;
pub mod images;
