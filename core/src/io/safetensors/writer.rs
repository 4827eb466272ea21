//! Writes safetensors files: tensors that grow as data arrives, or tensors in memory.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use serde::Serialize;
use serde::ser::SerializeMap;

use super::header::{
    MAX_FILE_BYTES, MAX_HEADER_BYTES, MAX_RANK, PREFIX_BYTES, compute_tensor_size, element_size,
};
use crate::access;
use crate::error::{Error, Result};
use crate::io::atomic::AtomicFile;

const SPOOL_BUFFER: usize = 1 << 20;

/// Options for writing a safetensors file.
#[derive(Clone, Debug, Default)]
pub struct SaveOptions {
    /// Whether to replace an existing file, which is otherwise an error.
    pub overwrite: bool,
    /// Strings for the entry `__metadata__` of the header; the entry is omitted if there are no
    /// strings.
    pub metadata: BTreeMap<String, String>,
}

/// Handle of a tensor that a [`SafetensorsWriter`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorId(usize);

/// Writes a file whose tensors grow as data arrives.
///
/// The header comes first and has the length of every tensor, so each tensor is collected in an
/// unnamed temporary file on the target's disk; [`finish`](Self::finish) concatenates them. Memory
/// is at most 1 MiB per tensor. The file appears only when it is complete and synced to disk.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile};
/// use serrate::io::safetensors::{SafetensorsWriter, SaveOptions};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let mut writer = SafetensorsWriter::create(&path, &SaveOptions::default())?;
/// let ids = writer.add("ids", Dtype::U16, &[2])?; // rows of 2
/// writer.write(ids, &[1, 0, 2, 0])?;
/// writer.write(ids, &[3, 0, 4, 0])?;
/// writer.finish()?;
/// assert_eq!(SafetensorsFile::open(&path, FileAccess::Map)?.tensor("ids")?.shape(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SafetensorsWriter {
    out: AtomicFile,
    metadata: BTreeMap<String, String>,
    spools: Vec<TensorSpool>,
    /// Whether a write failed; [`finish`](Self::finish) then returns an error.
    failed: bool,
}

impl SafetensorsWriter {
    /// Starts a file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{SafetensorsWriter, SaveOptions};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// SafetensorsWriter::create(&path, &SaveOptions::default())?.finish()?;
    /// let again = SafetensorsWriter::create(&path, &SaveOptions::default());
    /// assert!(again.is_err_and(|e| e.is_exists()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or if its folder cannot be written to.
    pub fn create(path: impl AsRef<Path>, options: &SaveOptions) -> Result<Self> {
        Ok(Self {
            out: AtomicFile::create(path, options.overwrite)?,
            metadata: options.metadata.clone(),
            spools: Vec::new(),
            failed: false,
        })
    }

    /// Adds a tensor that has no rows yet.
    ///
    /// `row_shape` is the shape of one row; it is empty if the tensor has one dimension.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{Dtype, SafetensorsWriter, SaveOptions};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// let mut writer = SafetensorsWriter::create(&path, &SaveOptions::default())?;
    /// writer.add("pairs", Dtype::U16, &[2])?; // rows of 2 values
    /// assert!(writer.add("pairs", Dtype::U8, &[]).is_err()); // the name is taken
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If another tensor has the name, the name is `__metadata__`, or a row is not a number of
    /// whole bytes.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        dtype: Dtype,
        row_shape: &[usize],
    ) -> Result<TensorId> {
        let name = name.into();
        let path = self.out.target();
        if self.spools.iter().any(|s| s.name == name) {
            return Err(make_repeated_name_error(path, &name));
        }
        check_name(path, &name)?;
        check_rank(path, &name, row_shape.len().saturating_add(1))?;
        let row_bytes = element_size(dtype)
            .and_then(|_| compute_tensor_size(dtype, row_shape))
            .map(|(_, bytes)| bytes)
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| {
                Error::file(
                    path,
                    format!(
                        "tensor {name:?}: the size of rows of type {dtype} and shape {row_shape:?} is not a positive number of whole bytes; choose another type or shape"
                    ),
                )
            })?;
        self.spools.push(TensorSpool {
            name,
            dtype,
            row_shape: row_shape.to_vec(),
            row_bytes,
            buffer: Vec::new(),
            file: None,
            len: 0,
        });
        Ok(TensorId(self.spools.len().saturating_sub(1)))
    }

    /// Appends little-endian bytes to a tensor.
    ///
    /// The bytes may end within a row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile};
    /// use serrate::io::safetensors::{SafetensorsWriter, SaveOptions};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// let mut writer = SafetensorsWriter::create(&path, &SaveOptions::default())?;
    /// let t = writer.add("t", Dtype::U16, &[])?;
    /// writer.write(t, &[1, 0, 2])?;
    /// writer.write(t, &[0])?;
    /// writer.finish()?;
    /// assert_eq!(SafetensorsFile::open(&path, FileAccess::Map)?.tensor("t")?.shape(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the disk is full; the file then cannot be finished.
    pub fn write(&mut self, tensor: TensorId, bytes: &[u8]) -> Result<()> {
        let path = self.out.target();
        let spool = self.spools.get_mut(tensor.0).ok_or_else(|| {
            Error::file(
                path,
                format!(
                    "the handle of tensor {} belongs to another file; use a handle of this writer",
                    tensor.0
                ),
            )
        })?;
        let written = spool.write(path, bytes);
        self.failed |= written.is_err();
        written
    }

    /// Returns the final path of the file.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{SafetensorsWriter, SaveOptions};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// let writer = SafetensorsWriter::create(&path, &SaveOptions::default())?;
    /// assert_eq!(writer.target(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn target(&self) -> &Path {
        self.out.target()
    }

    /// Writes the header and all tensors to the file, syncs it to disk and renames it to its final
    /// path.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::safetensors::{Dtype, SafetensorsWriter, SaveOptions};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.safetensors");
    /// let mut writer = SafetensorsWriter::create(&path, &SaveOptions::default())?;
    /// let t = writer.add("t", Dtype::U16, &[])?;
    /// writer.write(t, &[1])?;
    /// assert!(writer.finish().is_err()); // half a value
    /// assert!(!path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If an earlier write failed, a tensor does not end with a whole row, the disk is full, or a
    /// file with the final path has appeared since the start and [`SaveOptions::overwrite`] is
    /// false. No file is left behind.
    pub fn finish(self) -> Result<()> {
        let Self { mut out, metadata, mut spools, failed } = self;
        let path = out.target().to_path_buf();
        if failed {
            return Err(Error::file(
                path,
                "the file is incomplete, because an earlier write failed; create the file again",
            ));
        }
        spools.sort_by(|a, b| compare_tensors((a.dtype, &a.name), (b.dtype, &b.name)));
        let mut items = Vec::with_capacity(spools.len());
        for spool in &spools {
            items.push(TensorItem {
                name: &spool.name,
                dtype: spool.dtype,
                shape: spool.shape(&path)?,
                nbytes: spool.len,
            });
        }
        out.write_all(&encode_header(&path, &metadata, &items)?)
            .map_err(|e| Error::io(&path, e))?;
        drop(items);
        let mut chunk = vec![0u8; SPOOL_BUFFER];
        for spool in spools {
            spool.copy_to(&mut out, &path, &mut chunk)?;
        }
        out.commit()
    }
}

#[derive(Debug)]
struct TensorSpool {
    name: String,
    dtype: Dtype,
    row_shape: Vec<usize>,
    row_bytes: u64,
    /// Bytes of the tensor that are not yet written to its temporary file.
    buffer: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl TensorSpool {
    fn write(&mut self, target: &Path, bytes: &[u8]) -> Result<()> {
        let len = u64::try_from(bytes.len()).ok().and_then(|n| self.len.checked_add(n));
        let len = len.filter(|len| *len <= MAX_FILE_BYTES).ok_or_else(|| {
            Error::file(
                target,
                format!(
                    "tensor {:?} exceeds {MAX_FILE_BYTES} bytes, the maximum file size; divide the data among several files",
                    self.name
                ),
            )
        })?;
        if self.buffer.len().saturating_add(bytes.len()) > SPOOL_BUFFER {
            if self.file.is_none() {
                self.file = Some(create_spool_file(target)?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(&self.buffer).map_err(|e| Error::io(target, e))?;
                self.buffer.clear();
                if bytes.len() >= SPOOL_BUFFER {
                    file.write_all(bytes).map_err(|e| Error::io(target, e))?;
                    self.len = len;
                    return Ok(());
                }
            }
        }
        self.buffer.extend_from_slice(bytes);
        self.len = len;
        Ok(())
    }

    fn shape(&self, target: &Path) -> Result<Vec<usize>> {
        let rows = self.len.checked_rem(self.row_bytes).filter(|rest| *rest == 0);
        let rows = rows
            .and_then(|_| self.len.checked_div(self.row_bytes))
            .and_then(|rows| usize::try_from(rows).ok())
            .ok_or_else(|| {
                Error::file(
                    target,
                    format!(
                        "tensor {:?} has {} bytes, which is not a whole number of rows of {} bytes; write whole rows",
                        self.name, self.len, self.row_bytes
                    ),
                )
            })?;
        Ok(std::iter::once(rows).chain(self.row_shape.iter().copied()).collect())
    }

    fn copy_to(self, out: &mut AtomicFile, target: &Path, chunk: &mut [u8]) -> Result<()> {
        let io = |e| Error::io(target, e);
        if let Some(mut file) = self.file {
            file.rewind().map_err(io)?;
            loop {
                let n = file.read(chunk).map_err(io)?;
                if n == 0 {
                    break;
                }
                out.write_all(chunk.get(..n).unwrap_or_default()).map_err(io)?;
            }
        }
        out.write_all(&self.buffer).map_err(io)
    }
}

/// Creates an unnamed file next to `target`: the system's temporary folder may be too small.
fn create_spool_file(target: &Path) -> Result<File> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    access::create_temporary_file(&folder).map_err(|e| Error::io(folder, e))
}

/// Writes tensors whose data is in memory, each as (name, type, shape, little-endian bytes), in any
/// order.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, SaveOptions, write_tensors};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let t = ("t", Dtype::U8, &[3][..], &[1u8, 2, 3][..]);
/// write_tensors(&path, [t], &SaveOptions::default())?;
/// assert_eq!(SafetensorsFile::open(&path, FileAccess::Map)?.tensor("t")?.elements(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the bytes of a tensor do not match its type and shape, two tensors have the same name, or the
/// file cannot be written. No file is left behind.
pub fn write_tensors<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
    options: &SaveOptions,
) -> Result<()> {
    let path = path.as_ref();
    let encoded = encode_tensors(path, tensors, &options.metadata)?;
    let mut out = AtomicFile::create(path, options.overwrite)?;
    encoded.write_to(&mut out).map_err(|e| Error::io(path, e))?;
    out.commit()
}

/// Writes tensors of known shapes. Calls `write` once per tensor, in the order of the file, not of
/// `tensors`. If `write` fails or writes a wrong number of bytes, no file is left behind.
#[cfg(feature = "parquet")]
pub(crate) fn write_streamed(
    path: &Path,
    tensors: &[(&str, Dtype, &[usize])],
    options: &SaveOptions,
    mut write: impl FnMut(&str, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut tensors = tensors.to_vec();
    tensors.sort_by(|a, b| compare_tensors((a.1, a.0), (b.1, b.0)));
    let mut items = Vec::with_capacity(tensors.len());
    for (name, dtype, shape) in &tensors {
        check_name(path, name)?;
        check_rank(path, name, shape.len())?;
        let (_, nbytes) = compute_tensor_size(*dtype, shape).ok_or_else(|| {
            Error::file(
                path,
                format!(
                    "tensor {name:?}: the type {dtype} and the shape {shape:?} give a size that is too large for a file, or not a whole number of bytes; choose another type or shape"
                ),
            )
        })?;
        items.push(TensorItem { name, dtype: *dtype, shape: shape.to_vec(), nbytes });
    }
    let mut out = AtomicFile::create(path, options.overwrite)?;
    let header = encode_header(path, &options.metadata, &items)?;
    out.write_all(&header).map_err(|e| Error::io(path, e))?;
    for item in &items {
        let mut counted = CountingFile { out: &mut out, bytes: 0 };
        write(item.name, &mut counted)?;
        if counted.bytes != item.nbytes {
            return Err(Error::file(
                path,
                format!(
                    "tensor {:?} of type {} and shape {:?} needs {} bytes, but {} were written; write each of its rows once",
                    item.name, item.dtype, item.shape, item.nbytes, counted.bytes
                ),
            ));
        }
    }
    out.commit()
}

#[cfg(feature = "parquet")]
struct CountingFile<'a> {
    out: &'a mut AtomicFile,
    bytes: u64,
}

#[cfg(feature = "parquet")]
impl Write for CountingFile<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let n = self.out.write(data)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(n).unwrap_or(u64::MAX));
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A safetensors file with an encoded header and borrowed data.
///
/// ```
/// # use serrate_core as serrate;
/// use std::collections::BTreeMap;
/// use std::path::Path;
/// use serrate::io::safetensors::{Dtype, SafetensorsFile, encode_tensors};
/// let tensors = [("t", Dtype::U8, &[2][..], &[1u8, 2][..])];
/// let encoded = encode_tensors(Path::new("memory"), tensors, &BTreeMap::new())?;
/// let mut bytes = Vec::new();
/// encoded.write_to(&mut bytes)?;
/// assert_eq!(bytes.len() as u64, encoded.nbytes());
/// assert_eq!(SafetensorsFile::from_bytes("memory", bytes.into())?.tensors().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EncodedTensors<'a> {
    header: Vec<u8>,
    data: Vec<&'a [u8]>,
}

impl EncodedTensors<'_> {
    /// Returns the size of the file in bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::collections::BTreeMap;
    /// use std::path::Path;
    /// use serrate::io::safetensors::{Dtype, encode_tensors};
    /// let t = ("t", Dtype::U8, &[2][..], &[1u8, 2][..]);
    /// let encoded = encode_tensors(Path::new("memory"), [t], &BTreeMap::new())?;
    /// let mut file = Vec::new();
    /// encoded.write_to(&mut file)?;
    /// assert_eq!(file.len() as u64, encoded.nbytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nbytes(&self) -> u64 {
        let data = self.data.iter().map(|d| d.len());
        std::iter::once(self.header.len())
            .chain(data)
            .fold(0u64, |sum, n| sum.saturating_add(u64::try_from(n).unwrap_or(u64::MAX)))
    }

    /// Writes the bytes of the file to `out`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::collections::BTreeMap;
    /// use std::path::Path;
    /// use serrate::io::safetensors::{Dtype, encode_tensors};
    /// let t = ("t", Dtype::U8, &[2][..], &[1u8, 2][..]);
    /// let encoded = encode_tensors(Path::new("memory"), [t], &BTreeMap::new())?;
    /// let mut file = Vec::new();
    /// encoded.write_to(&mut file)?;
    /// assert!(file.ends_with(&[1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If `out` returns an error.
    pub fn write_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        out.write_all(&self.header)?;
        self.data.iter().try_for_each(|data| out.write_all(data))
    }
}

/// Encodes tensors like [`write_tensors`], without writing a file; `path` is used only in errors.
///
/// ```
/// # use serrate_core as serrate;
/// use std::collections::BTreeMap;
/// use std::path::Path;
/// use serrate::io::safetensors::{Dtype, encode_tensors};
/// let (path, bytes) = (Path::new("memory"), [1u8, 2]);
/// let tensors = |size| [("t", Dtype::U8, size, &bytes[..])];
/// assert!(encode_tensors(path, tensors(&[2][..]), &BTreeMap::new())?.nbytes() > 10);
/// assert!(encode_tensors(path, tensors(&[3][..]), &BTreeMap::new()).is_err()); // 2 bytes
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the bytes of a tensor do not match its type and shape, a tensor is named `__metadata__` or
/// has too many dimensions, or two tensors have the same name.
pub fn encode_tensors<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
    metadata: &BTreeMap<String, String>,
) -> Result<EncodedTensors<'a>> {
    let mut tensors: Vec<_> = tensors.into_iter().collect();
    tensors.sort_by(|a, b| compare_tensors((a.1, a.0), (b.1, b.0)));
    let mut items = Vec::with_capacity(tensors.len());
    for (name, dtype, shape, data) in &tensors {
        check_name(path, name)?;
        let nbytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        check_rank(path, name, shape.len())?;
        let needed = compute_tensor_size(*dtype, shape).map(|(_, bytes)| bytes);
        if needed != Some(nbytes) {
            let need = needed.map_or_else(
                || "do not give a valid size in whole bytes".to_owned(),
                |bytes| format!("need {bytes}"),
            );
            return Err(Error::file(
                path,
                format!(
                    "{nbytes} bytes are given for tensor {name:?}, but the type {dtype} and the shape {shape:?} {need}; correct the shape or the data"
                ),
            ));
        }
        items.push(TensorItem { name, dtype: *dtype, shape: shape.to_vec(), nbytes });
    }
    // Tensors are sorted by type before name, so equal names need not be adjacent in `items`.
    let mut names: Vec<_> = items.iter().map(|i| i.name).collect();
    names.sort_unstable();
    if let Some(name) = names.windows(2).find_map(|w| (w.first() == w.last()).then(|| w.first())) {
        let name = name.copied().unwrap_or_default();
        return Err(make_repeated_name_error(path, name));
    }
    let header = encode_header(path, metadata, &items)?;
    Ok(EncodedTensors { header, data: tensors.into_iter().map(|(_, _, _, data)| data).collect() })
}

fn make_repeated_name_error(path: &Path, name: &str) -> Error {
    Error::file(path, format!("two tensors are named {name:?}; rename one of them"))
}

fn check_name(path: &Path, name: &str) -> Result<()> {
    if name == "__metadata__" {
        return Err(Error::file(path, "a tensor cannot be named \"__metadata__\"; rename it"));
    }
    Ok(())
}

fn check_rank(path: &Path, name: &str, rank: usize) -> Result<()> {
    if rank > MAX_RANK {
        return Err(Error::file(
            path,
            format!(
                "tensor {name:?} has {rank} dimensions, more than the maximum of {MAX_RANK}; reshape it"
            ),
        ));
    }
    Ok(())
}

/// Orders tensors by descending element size, so that the data of every tensor is aligned, then by
/// name.
fn compare_tensors(a: (Dtype, &str), b: (Dtype, &str)) -> std::cmp::Ordering {
    b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1))
}

struct TensorItem<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<usize>,
    nbytes: u64,
}

#[derive(Serialize)]
struct TensorInfo<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    data_offsets: [u64; 2],
}

struct HeaderJson<'a> {
    metadata: &'a BTreeMap<String, String>,
    tensors: Vec<(&'a str, TensorInfo<'a>)>,
}

impl Serialize for HeaderJson<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry("__metadata__", self.metadata)?;
        }
        for (name, info) in &self.tensors {
            map.serialize_entry(name, info)?;
        }
        map.end()
    }
}

/// Encodes the part before the data: the length of the header and the header.
fn encode_header(
    path: &Path,
    metadata: &BTreeMap<String, String>,
    items: &[TensorItem<'_>],
) -> Result<Vec<u8>> {
    let mut end = 0u64;
    let mut tensors = Vec::with_capacity(items.len());
    for item in items {
        let start = end;
        end = start.checked_add(item.nbytes).filter(|end| *end <= MAX_FILE_BYTES).ok_or_else(
            || {
                Error::file(
                    path,
                    format!(
                        "the tensors take more than {MAX_FILE_BYTES} bytes, the maximum file size; divide the data among several files"
                    ),
                )
            },
        )?;
        let info = TensorInfo { dtype: item.dtype, shape: &item.shape, data_offsets: [start, end] };
        tensors.push((item.name, info));
    }
    let mut json = serde_json::to_vec(&HeaderJson { metadata, tensors }).map_err(|e| {
        Error::file(path, format!("the header of the safetensors file cannot be encoded as JSON; correct its metadata and names: {e}"))
    })?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let len = u64::try_from(json.len()).unwrap_or(u64::MAX);
    if len > MAX_HEADER_BYTES || len.checked_add(PREFIX_BYTES).is_none() {
        return Err(Error::file(
            path,
            format!(
                "the header takes {len} bytes, but at most {MAX_HEADER_BYTES} are accepted; write fewer tensors or less metadata"
            ),
        ));
    }
    let mut header = len.to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}
