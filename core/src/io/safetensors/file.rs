#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::buffer::Buffer;
use bytes::Bytes;
use safetensors::Dtype;

use super::header::{Header, PREFIX_BYTES, TensorEntry};
use super::source::Source;
use crate::error::{Error, Result};

/// A safetensors file with a checked header.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::{Dtype, SafetensorsFile, SaveOptions, write_tensors};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let data = [1u8, 2, 3, 4, 5, 6];
/// write_tensors(&path, [("t", Dtype::U8, &[2, 3][..], &data[..])], &SaveOptions::default())?;
///
/// let file = SafetensorsFile::open(&path, true)?;
/// let t = file.tensor("t")?;
/// assert_eq!((t.dtype(), t.shape()), (Dtype::U8, &[2, 3][..]));
/// assert_eq!(file.read(t)?.as_slice(), data);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SafetensorsFile {
    source: Source,
    header: Arc<Header>,
}

impl SafetensorsFile {
    /// Opens a file and checks its header. `mmap` maps the file; otherwise it is read with
    /// positioned reads (see [`Source`]).
    pub fn open(path: impl AsRef<Path>, mmap: bool) -> Result<Self> {
        Self::new(Source::open(path, mmap)?)
    }

    /// Opens a file like [`open`](Self::open) from an open handle; `path` is used in errors.
    pub fn from_file(path: impl AsRef<Path>, file: File, mmap: bool) -> Result<Self> {
        Self::new(Source::from_file(path, file, mmap)?)
    }

    /// Opens a file whose bytes are in memory; `path` is used in errors.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Bytes) -> Result<Self> {
        Self::new(Source::from_bytes(path, bytes))
    }

    fn new(source: Source) -> Result<Self> {
        let prefix = source.read(0..PREFIX_BYTES.min(source.len()))?;
        let len = Header::json_len(source.path(), &prefix, source.len())?;
        let json = source.read(PREFIX_BYTES..PREFIX_BYTES.saturating_add(len))?;
        let header = Header::parse(source.path(), &json, source.len())?;
        Ok(Self { source, header: Arc::new(header) })
    }

    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn from_header(source: Source, header: Arc<Header>) -> Self {
        Self { source, header }
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the source of the file's bytes.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Returns the tensors, in the order of their data.
    pub fn tensors(&self) -> &[TensorEntry] {
        self.header.tensors()
    }

    /// Returns a tensor by name.
    ///
    /// # Errors
    /// If there is no tensor with this name; the message lists the names.
    pub fn tensor(&self, name: &str) -> Result<&TensorEntry> {
        self.header.get(name).ok_or_else(|| {
            let names: Vec<_> = self.tensors().iter().map(TensorEntry::name).collect();
            Error::file(
                self.path(),
                format!("there is no tensor {name:?}; the tensors are {}", names.join(", ")),
            )
        })
    }

    /// Reads all bytes of a tensor, in place if possible (see [`read_elements`](Self::read_elements)).
    pub fn read(&self, tensor: &TensorEntry) -> Result<Buffer> {
        match tensor.element_size() {
            Some(_) => self.read_elements(tensor, 0..tensor.elements()),
            None => self.source.read(tensor.bytes()),
        }
    }

    /// Reads the bytes of a range of elements (in flattened order), aligned to the element size: a
    /// view of the map if the data is aligned there, otherwise a copy.
    ///
    /// BOOL bytes are not checked.
    ///
    /// # Errors
    /// If the range is not within the tensor.
    pub fn read_elements(&self, tensor: &TensorEntry, range: Range<usize>) -> Result<Buffer> {
        let buffer = self.source.read(tensor.element_bytes(self.path(), range)?)?;
        let align = match tensor.dtype() {
            Dtype::C64 => 4,
            other => other.bitsize().div_ceil(8).max(1),
        };
        if buffer.as_ptr().align_offset(align) == 0 {
            Ok(buffer)
        } else {
            Ok(Buffer::from_slice_ref(buffer.as_slice()))
        }
    }
}
