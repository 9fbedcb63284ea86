//! The layers of the model, each with its forward pass, backward pass and gradient: leaves, mixing, product.
//! They know rows and matrices, but not the tree.
//!
//! Uses: `structure`, `arithmetic`, `rows`.

pub mod scaled_rows;
pub mod product;
pub mod leaf;
pub mod leaf_factors;
pub mod leaf_table;
pub mod leaf_kernel;
pub mod leaf_statistics;
pub(crate) mod softmax;
pub mod mixing;
pub mod simplex;
pub mod mixing_backward;
pub mod mixing_gradient;
pub mod weights;
