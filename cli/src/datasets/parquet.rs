//! Parquet, if this build has it: feature `parquet`.

#[cfg_attr(feature = "parquet", path = "parquet/enabled.rs")]
#[cfg_attr(not(feature = "parquet"), path = "parquet/disabled.rs")]
mod chosen;

pub use chosen::{ParquetRecords, ParquetWriter};
