#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::buffer::Buffer;
use bytes::Bytes;
use safetensors::Dtype;

use super::byte_source::{ByteSource, FileAccess};
use super::header::{PREFIX_BYTES, SafetensorsHeader, TensorEntry};
use crate::error::{Error, Result};

/// A safetensors file with a checked header.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, SaveOptions, write_tensors};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let data = [1u8, 2, 3, 4, 5, 6];
/// write_tensors(&path, [("t", Dtype::U8, &[2, 3][..], &data[..])], &SaveOptions::default())?;
///
/// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
/// let t = file.tensor("t")?;
/// assert_eq!((t.dtype(), t.shape()), (Dtype::U8, &[2, 3][..]));
/// assert_eq!(file.read(t)?.as_slice(), data);
/// assert_eq!((file.path(), file.header().tensors().len()), (path.as_path(), 1));
/// assert_eq!(file.source().len(), std::fs::metadata(&path)?.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SafetensorsFile {
    source: ByteSource,
    header: Arc<SafetensorsHeader>,
}

impl SafetensorsFile {
    /// Opens a file and checks its header.
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
    /// assert_eq!((file.path(), file.tensors().len()), (path.as_path(), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`ByteSource::open`], [`SafetensorsHeader::json_len`] and
    /// [`SafetensorsHeader::parse`].
    pub fn open(path: impl AsRef<Path>, access: FileAccess) -> Result<Self> {
        Self::new(ByteSource::open(path, access)?)
    }

    /// Opens a file like [`open`](Self::open) from an open handle; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::fs::File;
    /// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, write_tensors};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// write_tensors(&path, [("t", Dtype::U8, &[2][..], &[1u8, 2][..])], &Default::default())?;
    /// let file = SafetensorsFile::from_file(&path, File::open(&path)?, FileAccess::Map)?;
    /// assert_eq!(file.tensors().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn from_file(path: impl AsRef<Path>, file: File, access: FileAccess) -> Result<Self> {
        Self::new(ByteSource::from_file(path, file, access)?)
    }

    /// Opens a file whose bytes are in memory; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::safetensors::Dtype;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # let data = [1u8, 0, 2, 0];
    /// # let tensors = [("t", Dtype::U16, &[2][..], &data[..])];
    /// # serrate::io::safetensors::write_tensors(&path, tensors, &Default::default())?;
    /// use serrate::io::safetensors::SafetensorsFile;
    /// let file = SafetensorsFile::from_bytes("memory", std::fs::read(&path)?.into())?;
    /// assert_eq!(file.tensor("t")?.shape(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the header fails the checks of [`SafetensorsHeader::json_len`] and
    /// [`SafetensorsHeader::parse`].
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Bytes) -> Result<Self> {
        Self::new(ByteSource::from_bytes(path, bytes))
    }

    fn new(source: ByteSource) -> Result<Self> {
        let prefix = source.read(0..PREFIX_BYTES.min(source.len()))?;
        let len = SafetensorsHeader::json_len(source.path(), &prefix, source.len())?;
        let json = source.read(PREFIX_BYTES..PREFIX_BYTES.saturating_add(len))?;
        let header = SafetensorsHeader::parse(source.path(), &json, source.len())?;
        Ok(Self { source, header: Arc::new(header) })
    }

    #[cfg_attr(not(feature = "object_store"), expect(dead_code, reason = "stores fetch parts"))]
    pub(crate) fn from_header(source: ByteSource, header: Arc<SafetensorsHeader>) -> Self {
        Self { source, header }
    }

    /// Returns the header.
    pub fn header(&self) -> &SafetensorsHeader {
        &self.header
    }

    /// Returns the source of the file's bytes.
    pub fn source(&self) -> &ByteSource {
        &self.source
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Returns the tensors, in the order of their data.
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
    /// let names: Vec<_> = file.tensors().iter().map(|tensor| tensor.name()).collect();
    /// assert_eq!(names, ["t"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tensors(&self) -> &[TensorEntry] {
        self.header.tensors()
    }

    /// Returns a tensor by name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # let data = [1u8, 0, 2, 0];
    /// # let tensors = [("t", Dtype::U16, &[2][..], &data[..])];
    /// # serrate::io::safetensors::write_tensors(&path, tensors, &Default::default())?;
    /// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile};
    /// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
    /// assert_eq!(file.tensor("t")?.dtype(), Dtype::U16);
    /// assert!(file.tensor("x").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Reads all bytes of a tensor, in place if possible (see
    /// [`read_elements`](Self::read_elements)).
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
    /// let values = file.read(file.tensor("t")?)?;
    /// assert_eq!(values.typed_data::<u16>(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file has been truncated, or the tensor belongs to another, longer file.
    pub fn read(&self, tensor: &TensorEntry) -> Result<Buffer> {
        match tensor.element_size() {
            Some(_) => self.read_elements(tensor, 0..tensor.elements()),
            None => self.source.read(tensor.bytes()),
        }
    }

    /// Reads the bytes of a range of elements of the flattened tensor, aligned for their type.
    ///
    /// Copies nothing if the file is mapped or in memory and the bytes are already aligned there.
    ///
    /// BOOL bytes are not checked.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::collections::BTreeMap;
    /// use std::path::Path;
    /// use serrate::io::safetensors::{Dtype, SafetensorsHeader, SafetensorsFile, encode_tensors};
    /// let path = Path::new("t.safetensors");
    /// let encoded = encode_tensors(path, [("t", Dtype::U16, &[2][..], &[1u8, 0, 2, 0][..])], &BTreeMap::new())?;
    /// let mut bytes = Vec::new();
    /// encoded.write_to(&mut bytes)?;
    /// assert_eq!(bytes.len() as u64, encoded.nbytes());
    /// let json = SafetensorsHeader::json_len(path, &bytes[..8], encoded.nbytes())?;
    /// let text = &bytes[8..8 + usize::try_from(json)?];
    /// assert_eq!(SafetensorsHeader::parse(path, text, encoded.nbytes())?.tensors().len(), 1);
    /// let file = SafetensorsFile::from_bytes(path, bytes.into())?;
    /// assert_eq!((file.header().data_start(), file.source().len()), (8 + json, encoded.nbytes()));
    /// assert!(file.header().metadata().is_empty() && !file.source().is_empty());
    /// let t = file.header().get("t").unwrap();
    /// assert_eq!((t.name(), t.elements(), t.nbytes(), t.element_size()), ("t", 2, 4, Some(2)));
    /// assert!(t.is_aligned());
    /// assert_eq!(t.element_bytes(path, 1..2)?.end, t.bytes().end);
    /// assert_eq!(file.read_elements(&file.tensors()[0], 1..2)?.as_slice(), [2, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
