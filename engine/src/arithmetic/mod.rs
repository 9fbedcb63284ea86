//! Arithmetic that knows no model: matrix products, elementary functions, the normal distribution, transposes, tasks on threads.
//!
//! Uses: `random` (in tests).

pub mod math;
pub mod normal;
pub mod matmul;
pub mod tasks;
pub mod transpose;
pub mod amx;
