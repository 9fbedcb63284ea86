//! Arithmetic that knows no model: the choice of instructions, matrix products, small triangles, elementary functions, the normal distribution, transposes, tasks on threads.
//!
//! Uses: `random` (in tests).

pub mod instructions;
pub mod math;
pub mod normal;
pub mod matmul;
pub mod tasks;
pub mod transpose;
pub(crate) mod triangle;
pub mod amx;
