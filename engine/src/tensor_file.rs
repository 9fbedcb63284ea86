//! The container of model files: safetensors, named tensors of f32 or f64 after one table of contents, and one text.
//!
//! ```text
//! n (u64) │ contents: n bytes of JSON, {"__metadata__": {"sumout": text}, name: {dtype, shape, data_offsets}, …} │ data
//! ```
//!
//! Writing is the crate's. Reading is done here, because version 0.8.0 of the crate adds offsets up without a check for
//! overflow, lets a name come twice, and does not say which tensor is wrong. Nothing is copied before it is asked for.
//!
//! ```
//! use sumout::tensor_file::{Tensor, Tensors, write};
//! let tensors = [("x".to_string(), Tensor::floats(&[1, 2], [0.5, -1.0].into_iter()))];
//! let bytes = write(tensors.into(), "hello".into()).unwrap();
//! let mut tensors = Tensors::open(&bytes).unwrap();
//! assert_eq!(tensors.text, "hello");
//! assert_eq!(tensors.floats("x", Some(&[1, 2])).unwrap(), [0.5, -1.0]);
//! ```

use crate::error::{Error, Result};
use safetensors::tensor::{Dtype, TensorInfo, View};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

const KEY: &str = "sumout";

/// An [`Error::ModelFile`] from anything that prints.
pub(crate) fn wrong(text: impl ToString) -> Error {
    Error::ModelFile(text.to_string())
}

/// A tensor on its way out.
pub struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    /// Of f32, row-major.
    pub fn floats(shape: &[usize], values: impl Iterator<Item = f32>) -> Self {
        Self { dtype: Dtype::F32, shape: shape.to_vec(), bytes: values.flat_map(f32::to_le_bytes).collect() }
    }

    /// A vector of f64.
    pub fn doubles(values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Self { dtype: Dtype::F64, shape: vec![values.len()], bytes }
    }
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// The bytes of a file; the same for the same tensors and text.
pub fn write(tensors: BTreeMap<String, Tensor>, text: String) -> Result<Vec<u8>> {
    safetensors::serialize(tensors, Some(HashMap::from([(KEY.to_string(), text)]))).map_err(wrong)
}

/// A file taken apart.
pub struct Tensors<'a> {
    /// What the writer said about the tensors.
    pub text: String,
    left: BTreeMap<String, (TensorInfo, &'a [u8])>, // not taken yet
}

impl<'a> Tensors<'a> {
    /// Reads the table of contents. Data must fill the file without gap or overlap.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| wrong("shorter than 8 bytes"))?;
        let length = u64::from_le_bytes(*length);
        let header = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let (header, data) =
            header.ok_or_else(|| wrong(format!("a header of {length} bytes in a file of {}", bytes.len())))?;
        let mut contents: Contents = serde_json::from_slice(header).map_err(|e| wrong(format!("header: {e}")))?;
        let text = contents.metadata.remove(KEY);
        let text = text.ok_or_else(|| wrong(format!("no '{KEY}' in the metadata: not a model of Sumout")))?;
        let mut ordered: Vec<_> = contents.tensors.into_iter().collect();
        ordered.sort_by_key(|(_, info)| info.data_offsets);
        let (mut left, mut end) = (BTreeMap::new(), 0);
        for (name, info) in ordered {
            let stretch = stretch(&name, &info, end, data)?;
            end += stretch.len();
            left.insert(name, (info, stretch));
        }
        if end != data.len() {
            return Err(wrong(format!("expected {end} bytes of tensors, got {}", data.len())));
        }
        Ok(Self { text, left })
    }

    /// Takes a tensor of f32, of exactly that shape if one is given.
    pub fn floats(&mut self, name: &str, shape: Option<&[usize]>) -> Result<Vec<f32>> {
        let data = self.take(name, Dtype::F32, shape)?;
        Ok(data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    /// Takes a tensor of f64, of exactly that shape if one is given.
    pub fn doubles(&mut self, name: &str, shape: Option<&[usize]>) -> Result<Vec<f64>> {
        let data = self.take(name, Dtype::F64, shape)?;
        Ok(data.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
    }

    /// The names that nobody has taken, and whether each is of f64.
    pub fn left(&self) -> impl Iterator<Item = (&str, bool)> {
        self.left.iter().map(|(name, (info, _))| (name.as_str(), info.dtype == Dtype::F64))
    }

    fn take(&mut self, name: &str, dtype: Dtype, shape: Option<&[usize]>) -> Result<&'a [u8]> {
        let (info, data) = self.left.remove(name).ok_or_else(|| wrong(format!("tensor '{name}' is not there")))?;
        if info.dtype != dtype {
            return Err(wrong(format!("tensor '{name}': expected {dtype}, got {}", info.dtype)));
        }
        match shape.filter(|&shape| info.shape != shape) {
            Some(shape) => Err(wrong(format!("tensor '{name}': expected shape {shape:?}, got {:?}", info.shape))),
            None => Ok(data),
        }
    }
}

/// The bytes of a tensor that starts where the one before it ended.
fn stretch<'a>(name: &str, info: &TensorInfo, end: usize, data: &'a [u8]) -> Result<&'a [u8]> {
    let size = match info.dtype {
        Dtype::F32 => 4,
        Dtype::F64 => 8,
        other => return Err(wrong(format!("tensor '{name}': expected F32 or F64, got {other}"))),
    };
    let (start, stop) = info.data_offsets;
    let length = info.shape.iter().try_fold(size, |product: usize, &side| product.checked_mul(side));
    let fits = start == end && length.is_some() && stop.checked_sub(start) == length;
    data.get(start..stop).filter(|_| fits).ok_or_else(|| {
        let (shape, length) = (&info.shape, data.len());
        wrong(format!("tensor '{name}' of shape {shape:?} cannot lie at bytes {start} to {stop} of {length}"))
    })
}

/// The table of contents.
struct Contents {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, TensorInfo>,
}

impl<'de> Deserialize<'de> for Contents {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Self, D::Error> {
        source.deserialize_map(ContentsVisitor)
    }
}

struct ContentsVisitor;

impl<'de> Visitor<'de> for ContentsVisitor {
    type Value = Contents;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Contents, A::Error> {
        let mut contents = Contents { metadata: BTreeMap::new(), tensors: BTreeMap::new() };
        while let Some(name) = map.next_key::<String>()? {
            let twice = if name == "__metadata__" {
                !std::mem::replace(&mut contents.metadata, map.next_value()?).is_empty()
            } else {
                contents.tensors.insert(name.clone(), map.next_value()?).is_some()
            };
            if twice {
                return Err(de::Error::custom(format!("'{name}' is there twice")));
            }
        }
        Ok(contents)
    }
}
