//! The container of model files: safetensors, named tensors of f16, f32 or f64 after one table of contents, and one text.
//!
//! ```text
//! n (u64) │ contents: n bytes of JSON, {"__metadata__": {"sumout": text}, name: {dtype, shape, data_offsets}, …} │ data
//! ```
//!
//! The text is a JSON object that begins with a checksum of the rest of it and of all tensors.
//!
//! Writing is the crate's. Reading is done here, because version 0.8.0 of the crate adds offsets up without a check for
//! overflow, lets a name come twice, and does not say which tensor is wrong. Nothing is copied before it is asked for.

use crate::error::{Error, Result};
use half::f16;
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
        Self {
            dtype: Dtype::F32,
            shape: shape.to_vec(),
            bytes: values.flat_map(f32::to_le_bytes).collect(),
        }
    }

    /// Of f16, row-major: each the nearest to the number that is given.
    pub fn halves(shape: &[usize], values: impl Iterator<Item = f32>) -> Self {
        let bytes = |x: f32| f16::from_f32(x).to_le_bytes();
        Self {
            dtype: Dtype::F16,
            shape: shape.to_vec(),
            bytes: values.flat_map(bytes).collect(),
        }
    }

    /// A vector of f64.
    pub fn doubles(values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Self {
            dtype: Dtype::F64,
            shape: vec![values.len()],
            bytes,
        }
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

/// A checksum of words of eight bytes. Whatever happens to one word changes it: every step can be undone.
struct Checksum(u64);

impl Checksum {
    fn of<'a>(text: &str, tensors: impl Iterator<Item = (&'a String, &'a [u8])>) -> String {
        let mut sum = Self(0xcbf2_9ce4_8422_2325);
        sum.add(text.as_bytes());
        for (name, bytes) in tensors {
            sum.add(name.as_bytes());
            sum.add(bytes);
        }
        format!("{:016x}", sum.0)
    }

    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for word in words
            .iter()
            .copied()
            .chain([last, (bytes.len() as u64).to_le_bytes()])
        {
            self.0 = (self.0.rotate_left(23) ^ u64::from_le_bytes(word))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

// What stands before and after the sixteen digits.
const SEAL: (&str, &str) = ("{\"checksum\":\"", "\",");

/// The text of a sealed one, and its checksum; a text that is not sealed stays as it is.
fn unseal(text: &str) -> (String, Option<&str>) {
    let sealed = text
        .strip_prefix(SEAL.0)
        .and_then(|rest| rest.split_at_checked(16));
    match sealed.and_then(|(sum, rest)| Some((sum, rest.strip_prefix(SEAL.1)?))) {
        Some((sum, rest)) => (format!("{{{rest}"), Some(sum)),
        None => (text.to_owned(), None),
    }
}

/// The bytes of a file; the same for the same tensors and text, a JSON object with something in it.
pub fn write(tensors: BTreeMap<String, Tensor>, text: &str) -> Result<Vec<u8>> {
    let sum = Checksum::of(
        text,
        tensors
            .iter()
            .map(|(name, tensor)| (name, &tensor.bytes[..])),
    );
    let text = format!(
        "{}{sum}{}{}",
        SEAL.0,
        SEAL.1,
        text.strip_prefix('{').unwrap_or(text)
    );
    safetensors::serialize(tensors, Some(HashMap::from([(KEY.to_string(), text)]))).map_err(wrong)
}

/// A file taken apart.
pub struct Tensors<'a> {
    /// What the writer said about the tensors.
    pub text: String,
    /// Whether text or tensors are not those that were written. Unknown, and so not, where there is no checksum.
    pub damaged: bool,
    left: BTreeMap<String, (TensorInfo, &'a [u8])>, // not taken yet
}

impl<'a> Tensors<'a> {
    /// Reads the table of contents. Data must fill the file without gap or overlap.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let (length, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| wrong("shorter than 8 bytes"))?;
        let length = u64::from_le_bytes(*length);
        let header = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length));
        let file = bytes.len();
        let sizes = || {
            format!("not a model file, or cut off: a header of {length} bytes in a file of {file}")
        };
        let (header, data) = header.ok_or_else(|| wrong(sizes()))?;
        let mut contents: Contents =
            serde_json::from_slice(header).map_err(|e| wrong(format!("header: {e}")))?;
        let text = contents.metadata.remove(KEY);
        let text = text
            .ok_or_else(|| wrong(format!("no '{KEY}' in the metadata: not a model of Sumout")))?;
        let mut ordered: Vec<_> = contents.tensors.into_iter().collect();
        ordered.sort_by_key(|(_, info)| info.data_offsets);
        let (mut left, mut end) = (BTreeMap::new(), 0);
        for (name, info) in ordered {
            let stretch = stretch(&name, &info, end, data)?;
            end += stretch.len();
            left.insert(name, (info, stretch));
        }
        if end != data.len() {
            return Err(wrong(format!(
                "expected {end} bytes of tensors, got {}",
                data.len()
            )));
        }
        let (text, sum) = unseal(&text);
        let damaged = sum.is_some_and(|sum| {
            sum != Checksum::of(&text, left.iter().map(|(name, (_, data))| (name, *data)))
        });
        Ok(Self {
            text,
            damaged,
            left,
        })
    }

    /// Takes a tensor of f32 or f16, of exactly that shape.
    pub fn floats_or_halves(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let is_half = |(info, _): &(TensorInfo, _)| info.dtype == Dtype::F16;
        if !self.left.get(name).is_some_and(is_half) {
            return self.floats(name, Some(shape));
        }
        let data = self.take(name, Dtype::F16, Some(shape))?;
        let numbers = data.as_chunks().0.iter();
        Ok(numbers
            .map(|&bytes| f16::from_le_bytes(bytes).to_f32())
            .collect())
    }

    /// Takes a tensor of f32, of exactly that shape if one is given.
    pub fn floats(&mut self, name: &str, shape: Option<&[usize]>) -> Result<Vec<f32>> {
        let data = self.take(name, Dtype::F32, shape)?;
        Ok(data
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect())
    }

    /// Takes a tensor of f64, of exactly that shape if one is given.
    pub fn doubles(&mut self, name: &str, shape: Option<&[usize]>) -> Result<Vec<f64>> {
        let data = self.take(name, Dtype::F64, shape)?;
        Ok(data
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| f64::from_le_bytes(bytes))
            .collect())
    }

    /// The shape of a tensor that nobody has taken.
    pub fn shape_of(&self, name: &str) -> Option<&[usize]> {
        self.left.get(name).map(|(info, _)| &info.shape[..])
    }

    /// The names that nobody has taken, and whether each is of f64.
    pub fn left(&self) -> impl Iterator<Item = (&str, bool)> {
        self.left
            .iter()
            .map(|(name, (info, _))| (name.as_str(), info.dtype == Dtype::F64))
    }

    fn take(&mut self, name: &str, dtype: Dtype, shape: Option<&[usize]>) -> Result<&'a [u8]> {
        let (info, data) = self
            .left
            .remove(name)
            .ok_or_else(|| wrong(format!("tensor '{name}' is not there")))?;
        if info.dtype != dtype {
            return Err(wrong(format!(
                "tensor '{name}': expected {dtype}, got {}",
                info.dtype
            )));
        }
        match shape.filter(|&shape| info.shape != shape) {
            Some(shape) => Err(wrong(format!(
                "tensor '{name}': expected shape {shape:?}, got {:?}",
                info.shape
            ))),
            None => Ok(data),
        }
    }
}

/// The bytes of a tensor that starts where the one before it ended.
fn stretch<'a>(name: &str, info: &TensorInfo, end: usize, data: &'a [u8]) -> Result<&'a [u8]> {
    let size = match info.dtype {
        Dtype::F16 => 2,
        Dtype::F32 => 4,
        Dtype::F64 => 8,
        other => {
            return Err(wrong(format!(
                "tensor '{name}': expected F16, F32 or F64, got {other}"
            )));
        }
    };
    let (start, stop) = info.data_offsets;
    let length = info
        .shape
        .iter()
        .try_fold(size, |product: usize, &side| product.checked_mul(side));
    let fits = start == end && length.is_some() && stop.checked_sub(start) == length;
    let (shape, length) = (&info.shape, data.len());
    let misplaced = || {
        format!(
            "tensor '{name}' of shape {shape:?} cannot lie at bytes {start} to {stop} of {length}"
        )
    };
    if fits && stop > data.len() {
        let words = format!("the file is cut off: tensor '{name}' ends at byte {stop} of {length}");
        return Err(wrong(words));
    }
    let bytes = data.get(start..stop).filter(|_| fits);
    bytes.ok_or_else(|| wrong(misplaced()))
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
        let mut contents = Contents {
            metadata: BTreeMap::new(),
            tensors: BTreeMap::new(),
        };
        while let Some(name) = map.next_key::<String>()? {
            let twice = if name == "__metadata__" {
                !std::mem::replace(&mut contents.metadata, map.next_value()?).is_empty()
            } else {
                contents
                    .tensors
                    .insert(name.clone(), map.next_value()?)
                    .is_some()
            };
            if twice {
                return Err(de::Error::custom(format!("'{name}' is there twice")));
            }
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let floats = Tensor::floats(&[1, 2], [0.5, -1.0].into_iter());
        let bytes = write([("x".to_string(), floats)].into(), r#"{"y":1}"#).unwrap();
        let mut tensors = Tensors::open(&bytes).unwrap();
        assert_eq!(tensors.text, r#"{"y":1}"#);
        assert_eq!(tensors.floats("x", Some(&[1, 2])).unwrap(), [0.5, -1.0]);
        assert!(!tensors.damaged);
    }
}
