//! The header of a safetensors file: parsed from JSON, and checked.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::path::Path;

use safetensors::Dtype;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::{Error, Result};

/// Maximum length of a header in bytes. The parsed JSON takes several times as many bytes in
/// memory.
pub(super) const MAX_HEADER_BYTES: u64 = 25_000_000;

pub(super) const MAX_RANK: usize = 32;

pub(super) const MAX_FILE_BYTES: u64 = 1 << 47;

/// Size in bytes of the little-endian integer at the start of a file: the length of the JSON.
pub(super) const PREFIX_BYTES: u64 = 8;

/// Name, type, shape and byte range of a tensor in a file.
///
/// [`SafetensorsHeader::parse`] has checked that the byte range is in the file and fits the type
/// and shape.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, SaveOptions, write_tensors};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let data = [1u8, 0, 2, 0];
/// write_tensors(&path, [("t", Dtype::U16, &[2][..], &data[..])], &SaveOptions::default())?;
/// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
/// let t = file.tensor("t")?;
/// assert_eq!((t.name(), t.dtype(), t.shape()), ("t", Dtype::U16, &[2][..]));
/// assert_eq!((t.elements(), t.element_size(), t.nbytes()), (2, Some(2), 4));
/// assert!(t.is_aligned());
/// // The second element has the last two bytes of the tensor.
/// let bytes = t.bytes();
/// assert_eq!(t.element_bytes(&path, 1..2)?, bytes.end - 2..bytes.end);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TensorEntry {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    elements: usize,
    bytes: Range<u64>,
}

impl TensorEntry {
    /// Returns the name of the tensor.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the size of every dimension, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements, the product of the shape.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the byte range of the tensor in the file.
    pub fn bytes(&self) -> Range<u64> {
        self.bytes.clone()
    }

    /// Returns the size of the tensor in bytes.
    pub fn nbytes(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }

    /// Returns the size of one element in bytes; `None` for types smaller than a byte (F4, F6).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, write_tensors};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// let t = ("t", Dtype::BF16, &[2][..], &[0u8; 4][..]);
    /// write_tensors(&path, [t], &Default::default())?;
    /// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
    /// assert_eq!(file.tensor("t")?.element_size(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn element_size(&self) -> Option<usize> {
        element_size(self.dtype)
    }

    /// Returns whether the tensor starts at a multiple of its element size, so that a memory map
    /// can be used in place.
    ///
    /// The writers of this crate and of Python's `safetensors` align all tensors, but the format
    /// does not require it.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// // The data starts after a length of 8 bytes and the JSON.
    /// let json = r#"{"t":{"dtype":"U16","shape":[1],"data_offsets":[0,2]}}"#;
    /// for json in [json.to_owned(), format!("{json} ")] {
    ///     let start = 8 + json.len() as u64;
    ///     let header = SafetensorsHeader::parse(Path::new("t"), json.as_bytes(), start + 2)?;
    ///     assert_eq!(header.tensors()[0].is_aligned(), start % 2 == 0);
    /// }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_aligned(&self) -> bool {
        // Complex numbers are aligned like their parts.
        let align = match self.dtype {
            Dtype::C64 => 4,
            other => other.bitsize().div_ceil(8),
        };
        u64::try_from(align).is_ok_and(|align| self.bytes.start.is_multiple_of(align))
    }

    /// Returns the byte range of the elements `range` in the file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::safetensors::Dtype;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # let data = [1u8, 0, 2, 0];
    /// # let tensors = [("t", Dtype::U16, &[2][..], &data[..])];
    /// # serrate::io::safetensors::write_tensors(&path, tensors, &Default::default())?;
    /// use serrate::io::safetensors::{FileAccess, SafetensorsFile};
    /// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
    /// let (t, start) = (file.tensor("t")?, file.header().data_start());
    /// assert_eq!(t.element_bytes(&path, 1..2)?, start + 2..start + 4);
    /// assert!(t.element_bytes(&path, 1..3).is_err()); // the tensor has 2 elements
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the range is not within the tensor, or its elements are smaller than a byte.
    pub fn element_bytes(&self, path: &Path, range: Range<usize>) -> Result<Range<u64>> {
        if range.start > range.end || range.end > self.elements {
            return Err(Error::file(
                path,
                format!(
                    "elements {}..{} of tensor {:?} were requested, but its elements are 0..{}; request a range within them",
                    range.start, range.end, self.name, self.elements
                ),
            ));
        }
        let position = |index: usize| {
            let offset = u64::try_from(index.checked_mul(self.element_size()?)?).ok()?;
            self.bytes.start.checked_add(offset)
        };
        match (position(range.start), position(range.end)) {
            (Some(start), Some(end)) if end <= self.bytes.end => Ok(start..end),
            _ => Err(Error::file(
                path,
                format!(
                    "tensor {:?} has the type {}, whose elements are smaller than a byte, so they have no bytes of their own; read the bytes of the whole tensor",
                    self.name, self.dtype
                ),
            )),
        }
    }
}

pub(super) fn element_size(dtype: Dtype) -> Option<usize> {
    let bits = dtype.bitsize();
    bits.is_multiple_of(8).then(|| bits.div_euclid(8))
}

/// The header of a safetensors file: its tensors, in the order of their data, and metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SafetensorsHeader {
    data_start: u64,
    tensors: Vec<TensorEntry>,
    by_name: HashMap<String, usize>,
    metadata: BTreeMap<String, String>,
}

impl SafetensorsHeader {
    /// Returns the length of the JSON, given the first 8 bytes of a file of `file_len` bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// let prefix = 10u64.to_le_bytes();
    /// assert_eq!(SafetensorsHeader::json_len(Path::new("t"), &prefix, 100)?, 10);
    /// assert!(SafetensorsHeader::json_len(Path::new("t"), &prefix, 12).is_err()); // 10 bytes do not fit
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the length exceeds the file or `MAX_HEADER_BYTES`. `path` is used in errors.
    pub fn json_len(path: &Path, prefix: &[u8], file_len: u64) -> Result<u64> {
        let prefix = prefix
            .first_chunk::<8>()
            .filter(|_| file_len >= PREFIX_BYTES)
            .ok_or_else(|| Error::file(path, format!("the file has {file_len} bytes, too few for a safetensors file, which starts with the 8-byte length of its header; give another file")))?;
        if file_len > MAX_FILE_BYTES {
            return Err(Error::file(
                path,
                format!(
                    "the file has {file_len} bytes, but at most {MAX_FILE_BYTES} are accepted; divide it into several files"
                ),
            ));
        }
        let len = u64::from_le_bytes(*prefix);
        if len > MAX_HEADER_BYTES {
            return Err(Error::file(
                path,
                format!(
                    "the first 8 bytes declare a header of {len} bytes, but at most {MAX_HEADER_BYTES} are accepted; check that the file is a safetensors file"
                ),
            ));
        }
        match len.checked_add(PREFIX_BYTES) {
            Some(end) if end <= file_len => Ok(len),
            _ => Err(Error::file(
                path,
                format!(
                    "the first 8 bytes declare a header of {len} bytes, but the file has only {file_len}; it is truncated or not a safetensors file, so create it again"
                ),
            )),
        }
    }

    /// Parses the JSON (without the 8 bytes before it) of a file of `file_len` bytes.
    ///
    /// Checks that every tensor has the number of bytes given by its type and shape, that tensors
    /// follow each other without gaps or overlaps, that the last one ends with the file, and that
    /// no name occurs twice.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// let json = br#"{"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
    /// let start = 8 + json.len() as u64;
    /// let header = SafetensorsHeader::parse(Path::new("t"), json, start + 2)?;
    /// assert_eq!(header.tensors()[0].bytes(), start..start + 2);
    /// assert!(SafetensorsHeader::parse(Path::new("t"), json, start + 3).is_err()); // a byte without a tensor
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the header is longer than the file, is not UTF-8 or not JSON of the format, or fails one
    /// of these checks; the message names the tensor. `path` is used in errors.
    pub fn parse(path: &Path, json: &[u8], file_len: u64) -> Result<Self> {
        let json_len = u64::try_from(json.len()).unwrap_or(u64::MAX);
        let (data_start, data_len) = PREFIX_BYTES
            .checked_add(json_len)
            .and_then(|start| Some((start, file_len.checked_sub(start)?)))
            .ok_or_else(|| {
                Error::file(
                    path,
                    format!(
                        "the header of {json_len} bytes does not fit in the file of {file_len} bytes, which is damaged or truncated; create it again"
                    ),
                )
            })?;
        let text = std::str::from_utf8(json).map_err(|e| {
            Error::file(path, format!("the header is not UTF-8 at its byte {}, so the file is damaged; create it again", e.valid_up_to()))
        })?;
        let mut raw: RawHeader = serde_json::from_str(text).map_err(|e| {
            Error::file(
                path,
                format!(
                    "the header of the safetensors file cannot be read; create the file again: {e}"
                ),
            )
        })?;
        // Sort by the order of the data, which may differ from the order in the header.
        raw.tensors.sort_by_key(|(_, info)| info.data_offsets);

        let mut header = Self { data_start, metadata: raw.metadata, ..Self::default() };
        let mut end = 0u64;
        for (name, info) in raw.tensors {
            let wrong = |message: String| Error::file(path, format!("tensor {name:?}: {message}"));
            let [from, to] = info.data_offsets;
            check_offsets([from, to], data_len, end, header.tensors.last()).map_err(wrong)?;
            let elements = check_size(&info).map_err(wrong)?;
            let bytes = data_start
                .checked_add(from)
                .zip(data_start.checked_add(to))
                .map(|(from, to)| from..to)
                .ok_or_else(|| wrong("the tensor ends past byte 2^64 - 1, so the file is damaged; create it again".to_owned()))?;
            if header.by_name.insert(name.clone(), header.tensors.len()).is_some() {
                return Err(wrong(
                    "another tensor of the header has the same name; create the file again with unique tensor names".to_owned(),
                ));
            }
            end = to;
            let shape = info.shape.0;
            header.tensors.push(TensorEntry { name, dtype: info.dtype, shape, elements, bytes });
        }
        if end != data_len {
            return Err(Error::file(
                path,
                format!(
                    "the tensors end at byte {end} of the data, but the file has {data_len} bytes of data; the rest of the data belongs to no tensor, so create the file again"
                ),
            ));
        }
        Ok(header)
    }

    /// Returns the tensors, in the order of their data.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// let json = br#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},
    ///     "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    /// let header = SafetensorsHeader::parse(Path::new("t"), json, 8 + json.len() as u64 + 2)?;
    /// let names: Vec<_> = header.tensors().iter().map(|tensor| tensor.name()).collect();
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn tensors(&self) -> &[TensorEntry] {
        &self.tensors
    }

    /// Returns the entry of the tensor `name`, or `None` if the file has no such tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::safetensors::Dtype;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # let data = [1u8, 0, 2, 0];
    /// # let tensors = [("t", Dtype::U16, &[2][..], &data[..])];
    /// # serrate::io::safetensors::write_tensors(&path, tensors, &Default::default())?;
    /// use serrate::io::safetensors::{FileAccess, SafetensorsFile};
    /// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
    /// assert_eq!(file.header().get("t").map(|t| t.elements()), Some(2));
    /// assert!(file.header().get("x").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, name: &str) -> Option<&TensorEntry> {
        self.tensors.get(*self.by_name.get(name)?)
    }

    /// Returns the strings of `__metadata__`, or an empty map.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// let json = br#"{"__metadata__":{"task":"readmission"}}"#;
    /// let header = SafetensorsHeader::parse(Path::new("t"), json, 8 + json.len() as u64)?;
    /// assert_eq!(header.metadata()["task"], "readmission");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Returns the byte offset of the data in the file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::path::Path;
    /// use serrate::io::safetensors::SafetensorsHeader;
    /// assert_eq!(SafetensorsHeader::parse(Path::new("t"), b"{}", 10)?.data_start(), 10); // no tensors
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn data_start(&self) -> u64 {
        self.data_start
    }
}

/// Returns the number of elements and of bytes of a tensor; `None` if one of the two overflows, or
/// the size is not a whole number of bytes.
pub(super) fn compute_tensor_size(dtype: Dtype, shape: &[usize]) -> Option<(usize, u64)> {
    // An empty tensor also gives `None` if the product of the sizes before the first 0 overflows.
    let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    let bits = u64::try_from(elements).ok()?.checked_mul(u64::try_from(dtype.bitsize()).ok()?)?;
    bits.is_multiple_of(8).then(|| (elements, bits.div_euclid(8)))
}

/// The parsed JSON of a header, before checks. The tensors are in the order of the JSON.
#[derive(Default)]
struct RawHeader {
    metadata: BTreeMap<String, String>,
    tensors: Vec<(String, RawTensor)>,
}

#[derive(serde::Deserialize)]
struct RawTensor {
    dtype: Dtype,
    shape: BoundedShape,
    data_offsets: [u64; 2],
}

struct BoundedShape(Vec<usize>);

/// Checks that the data of a tensor begins at `end`, where the data of the previous tensor ends,
/// and is in the file.
fn check_offsets(
    [from, to]: [u64; 2],
    data_len: u64,
    end: u64,
    previous: Option<&TensorEntry>,
) -> std::result::Result<(), String> {
    if from > to {
        return Err(format!(
            "the data_offsets are [{from}, {to}], but the second number must not be smaller than the first; create the file again"
        ));
    }
    if to > data_len {
        return Err(format!(
            "the tensor ends at byte {to} of the data, but the file has only {data_len} bytes of data, so the file is truncated; create it again"
        ));
    }
    if from != end {
        let required_start = previous.map_or_else(
            || "the first tensor must start at byte 0".to_owned(),
            |t| format!("the previous tensor {:?} ends at byte {end}", t.name),
        );
        return Err(format!(
            "the tensor starts at byte {from} of the data, but {required_start}; create the file again with tensors that neither overlap nor leave gaps"
        ));
    }
    Ok(())
}

/// Checks that the type and the shape of a tensor take as many bytes as its data; returns the
/// number of elements.
fn check_size(info: &RawTensor) -> std::result::Result<usize, String> {
    let (dtype, shape, [from, to]) = (info.dtype, &info.shape.0, info.data_offsets);
    let (elements, needed) = compute_tensor_size(dtype, shape).ok_or_else(|| {
        format!("the type {dtype} and the shape {shape:?} do not give a valid size in whole bytes; create the file again")
    })?;
    let held = to.saturating_sub(from);
    if needed != held {
        return Err(format!(
            "the type {dtype} and the shape {shape:?} take {needed} bytes, but the data_offsets [{from}, {to}] hold {held} bytes; create the file again"
        ));
    }
    Ok(elements)
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;
        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = RawHeader;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensor names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut header = RawHeader::default();
                let mut metadata = false;
                while let Some(name) = map.next_key::<String>()? {
                    let wrong = |e: A::Error| A::Error::custom(format!("{name:?}: {e}"));
                    if name == "__metadata__" {
                        if std::mem::replace(&mut metadata, true) {
                            return Err(A::Error::custom(
                                "the key __metadata__ occurs twice in the header; create the file again with this key once",
                            ));
                        }
                        header.metadata = map
                            .next_value::<Option<BTreeMap<String, String>>>()
                            .map_err(wrong)?
                            .unwrap_or_default();
                    } else {
                        let info = map.next_value().map_err(wrong)?;
                        header.tensors.push((name, info));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(HeaderVisitor)
    }
}

impl<'de> Deserialize<'de> for BoundedShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShapeVisitor;
        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = BoundedShape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a shape of at most {MAX_RANK} sizes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BoundedShape, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = seq.next_element::<usize>()? {
                    if sizes.len() == MAX_RANK {
                        return Err(A::Error::custom(format!(
                            "reshape the tensor, because its shape has more than {MAX_RANK} dimensions"
                        )));
                    }
                    sizes.push(size);
                }
                Ok(BoundedShape(sizes))
            }
        }
        deserializer.deserialize_seq(ShapeVisitor)
    }
}
