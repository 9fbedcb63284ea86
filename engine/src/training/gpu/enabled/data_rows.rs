//! Rows of data on the GPU: all of them, or those of some steps ahead.

use crate::error::{Error, Result};
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::training::data::Data;
use crate::training::gpu::enabled::byte_codes::codes;

/// Bytes of the GPU that are left free beside the data.
const SPARE_BYTES: usize = 1 << 28;

/// Where rows of data lie; 0 for what is not there.
#[derive(Clone, Copy)]
pub(crate) struct RowAddresses {
    pub values: u64,
    pub codes: u64,
    pub labels: u64,
    pub weights: u64,
}

/// Buffers for the rows of some steps.
#[derive(Clone, Copy)]
struct Staged {
    values: Buffer<f32>,
    labels: Buffer<i64>,
    weights: Buffer<f32>,
}

/// Rows of data on the GPU.
pub(crate) struct DataRows {
    width: usize,
    codes: Buffer<f32>,
    staged: Option<Staged>,
    /// All rows, where they are there.
    pub resident: Option<RowAddresses>,
}

impl DataRows {
    pub fn new(gpu: &mut Gpu, width: usize) -> Result<Self> {
        Ok(Self {
            width,
            codes: gpu.allocate(256)?,
            staged: None,
            resident: None,
        })
    }

    /// Keeps all data on the GPU if they fit there and into `max_bytes`; as bytes where they have at most 256 different
    /// values.
    pub fn keep_all(&mut self, gpu: &mut Gpu, data: &Data<'_>, max_bytes: usize) -> Result<()> {
        self.forget();
        let coded = codes(&data.values);
        let bytes_per_value = if coded.is_some() { 1 } else { 4 };
        let all =
            bytes_per_value * data.values.len() + (data.labels.len() + data.weights.len()) * 8;
        if all > max_bytes || all + SPARE_BYTES > gpu.free()? {
            return Ok(()); // they will be sent as they are needed
        }
        let labels = upload_some(gpu, &data.labels)?;
        let weights = upload_some(gpu, &data.weights)?;
        let (values, codes) = match coded {
            Some((bytes, table)) => {
                gpu.send(self.codes, &table)?;
                (gpu.upload(&bytes)?.at, self.codes.at)
            }
            None => (gpu.upload(&data.values[..])?.at, 0),
        };
        self.resident = Some(RowAddresses {
            values,
            codes,
            labels,
            weights,
        });
        Ok(())
    }

    /// Rows are sent as they are needed from now on.
    pub fn forget(&mut self) {
        self.resident = None;
    }

    /// Sends the rows of some steps, at most `max_rows` of them.
    pub fn stage(
        &mut self,
        gpu: &mut Gpu,
        data: &Data<'_>,
        picks: &[u32],
        max_rows: usize,
    ) -> Result<RowAddresses> {
        let width = self.width;
        if self.staged.is_none() {
            self.staged = Some(Staged {
                values: gpu.allocate(max_rows * width)?,
                labels: gpu.allocate(max_rows)?,
                weights: gpu.allocate(max_rows)?,
            });
        }
        let Some(staged) = self.staged else {
            return Err(Error::Device("no buffer for rows".into()));
        };
        let row = |&row: &u32| &data.values[row as usize * width..][..width];
        let rows: Vec<f32> = picks.iter().flat_map(row).copied().collect();
        let labels: Vec<i64> = picks.iter().map(|&row| data.label(row as usize)).collect();
        let weight = |&row: &u32| data.weights.get(row as usize).copied().unwrap_or(1.0);
        let weights: Vec<f32> = picks.iter().map(weight).collect();
        gpu.send(staged.values, &rows)?;
        gpu.send(staged.labels, &labels)?;
        gpu.send(staged.weights, &weights)?;
        Ok(RowAddresses {
            values: staged.values.at,
            codes: 0,
            labels: staged.labels.at,
            weights: staged.weights.at,
        })
    }
}

/// The address of numbers on the GPU; 0 where there are none.
fn upload_some<T: Copy>(gpu: &mut Gpu, numbers: &[T]) -> Result<u64> {
    if numbers.is_empty() {
        return Ok(0);
    }
    Ok(gpu.upload(numbers)?.at)
}
