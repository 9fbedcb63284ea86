//! Arithmetic that knows no model: matrix products, elementary functions, transposes, tasks on threads.
//!
//! Uses: `random` (in tests).

pub mod math;
pub mod matmul;
pub mod tasks;
pub mod transpose;
pub mod amx;
