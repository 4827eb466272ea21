//! Sparse tensors in safetensors files.
//!
//! A file has two tensors, `indices` (int64, `[ndim, nnz]`, entries in row-major order) and
//! `values` (`[nnz]`). Its metadata has `format` (`serrate.dok`) and `shape`, a JSON list of sizes.
//! In Python:
//!
//! ```python
//! with safetensors.safe_open("m.safetensors", "np") as f:
//!     shape = json.loads(f.metadata()["shape"])
//!     matrix = scipy.sparse.coo_array((f.get_tensor("values"), f.get_tensor("indices")), shape)
//! ```

#![deny(clippy::indexing_slicing)]

use std::path::Path;

use arrow::array::ArrayRef;
use bytes::Bytes;

use crate::dense::{DType, DenseTensor};
use crate::dok::{DokTensor, MapOptions};
use crate::error::{Error, Result};
#[cfg(feature = "parquet")]
use crate::io::safetensors::{Dtype, write_streamed};
use crate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions, TensorEntry, dense};

/// Value of `format` in the metadata of a sparse tensor's file.
pub const FORMAT: &str = "serrate.dok";

const INDICES: &str = "indices";
const VALUES: &str = "values";
const SHAPE: &str = "shape";

/// Writes a sparse tensor; the file appears only when it is complete.
///
/// Entries are in row-major order, so equal tensors give equal files however they were built.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::dok::DokTensor;
/// use serrate::io::dok;
/// use serrate::io::safetensors::SaveOptions;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("m.safetensors");
/// let mut t = DokTensor::new([1 << 40, 1000], DType::F32)?;
/// t.set_at(&[12_345, 7], 0.5)?;
/// dok::write(&path, &t, &SaveOptions::default())?;
/// let read = dok::read(&path)?;
/// assert_eq!((read.shape(), read.at(&[12_345, 7])?.to_f64()?), (t.shape(), 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file exists and `overwrite` is false, or it cannot be written.
pub fn write(path: impl AsRef<Path>, tensor: &DokTensor, options: &SaveOptions) -> Result<()> {
    let coo = tensor.to_coo()?;
    write_coo(path, &coo.shape, &coo.indices, &coo.values, options)
}

/// Writes the coordinates `indices` (`[ndim, nnz]`) and their values in the given order.
/// Coordinates must be distinct and within the shape.
pub(crate) fn write_coo(
    path: impl AsRef<Path>,
    shape: &[usize],
    indices: &DenseTensor,
    values: &DenseTensor,
    options: &SaveOptions,
) -> Result<()> {
    let mut options = options.clone();
    options.metadata.insert("format".into(), FORMAT.into());
    options.metadata.insert(SHAPE.into(), format!("{shape:?}"));
    dense::write(path, [(INDICES, indices), (VALUES, values)], &options)
}

/// A function that writes the coordinates of one axis, or all values, as little-endian bytes.
#[cfg(feature = "parquet")]
pub(crate) type WriteEntries<'a> = &'a dyn Fn(&mut dyn std::io::Write) -> Result<()>;

/// Streams a sparse float64 tensor of `count` entries: each of `axes` writes the int64 coordinates
/// of an axis, in row-major order of the entries. Coordinates must be distinct and in the shape.
#[cfg(feature = "parquet")]
pub(crate) fn write_entries(
    path: &Path,
    shape: &[usize],
    count: usize,
    options: &SaveOptions,
    axes: &[WriteEntries<'_>],
    values: WriteEntries<'_>,
) -> Result<()> {
    crate::dok::check_size(shape).map_err(|e| Error::file(path, e.to_string()))?;
    let mut options = options.clone();
    options.metadata.insert("format".into(), FORMAT.into());
    options.metadata.insert(SHAPE.into(), format!("{shape:?}"));
    let (all, flat) = ([axes.len(), count], [count]);
    let tensors = [(INDICES, Dtype::I64, all.as_slice()), (VALUES, Dtype::F64, flat.as_slice())];
    write_streamed(path, &tensors, &options, |name, out| match name {
        INDICES => axes.iter().try_for_each(|axis| axis(out)),
        _ => values(out),
    })
}

/// Reads the file of a sparse tensor into memory.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::dok::DokTensor;
/// use serrate::io::dok;
/// use serrate::io::safetensors::SaveOptions;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("m.safetensors");
/// dok::write(&path, &DokTensor::new([1 << 40, 1000], DType::F32)?, &SaveOptions::default())?;
/// assert_eq!(dok::read(&path)?.shape(), [1 << 40, 1000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`DokFile::open`] and [`DokFile::tensor`].
pub fn read(path: impl AsRef<Path>) -> Result<DokTensor> {
    DokFile::open(path, FileAccess::Map)?.tensor(MapOptions::default())
}

/// A sparse tensor file with a checked header; its entries are read on demand.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, DenseTensor};
/// use serrate::dok::{DokTensor, MapOptions};
/// use serrate::io::dok::{self, DokFile};
/// use serrate::io::safetensors::FileAccess;
/// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// dok::write(&path, &t, &Default::default())?;
/// let file = DokFile::open(&path, FileAccess::Map)?;
/// assert_eq!((file.shape(), file.dtype(), file.nnz()), (&[2, 2][..], DType::I32, 2));
/// assert_eq!(file.coo()?.0.as_slice::<i64>()?, [0, 1, 1, 1]);
/// assert_eq!(file.columns()?.0.len(), 2);
/// assert_eq!(file.tensor(MapOptions::default())?.to_dense()?, t.to_dense()?);
/// assert_eq!(file.file().tensors().len(), 2);
/// let bytes = bytes::Bytes::from(std::fs::read(&path)?);
/// assert_eq!(DokFile::from_bytes("t", bytes)?.nnz(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DokFile {
    file: SafetensorsFile,
    shape: Vec<usize>,
    dtype: DType,
    indices: TensorEntry,
    values: TensorEntry,
}

impl DokFile {
    /// Opens a file and checks its header.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::DokTensor;
    /// use serrate::io::dok::{self, DokFile};
    /// use serrate::io::safetensors::FileAccess;
    /// # let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # dok::write(&path, &t, &Default::default())?;
    /// let file = DokFile::open(&path, FileAccess::Map)?;
    /// assert_eq!((file.shape(), file.nnz()), (&[2, 2][..], 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file is not a safetensors file, if it has tensors other than `indices` and `values`,
    /// or if the shapes of these tensors and the `shape` in the metadata do not match.
    pub fn open(path: impl AsRef<Path>, access: FileAccess) -> Result<Self> {
        Self::new(SafetensorsFile::open(path, access)?)
    }

    /// Opens a file whose bytes are in memory; `path` is used in errors.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::DokTensor;
    /// use serrate::io::dok::{self, DokFile};
    /// # let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # dok::write(&path, &t, &Default::default())?;
    /// let bytes = bytes::Bytes::from(std::fs::read(&path)?);
    /// assert_eq!(DokFile::from_bytes("memory", bytes)?.nnz(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Bytes) -> Result<Self> {
        Self::new(SafetensorsFile::from_bytes(path, bytes)?)
    }

    pub(crate) fn new(file: SafetensorsFile) -> Result<Self> {
        let path = file.path().to_path_buf();
        let wrong = |message: String| Error::file(&path, message);
        let metadata = file.header().metadata();
        if let Some(format) = metadata.get("format")
            && format != FORMAT
        {
            return Err(wrong(format!(
                "the metadata has the format {format:?} instead of {FORMAT:?}, so the file is not a sparse tensor; give another file"
            )));
        }
        let shape = metadata.get(SHAPE).ok_or_else(|| {
            wrong("the metadata has no \"shape\", the list of axis sizes of a sparse tensor; create the file again".into())
        })?;
        let shape: Vec<usize> = serde_json::from_str(shape)
            .map_err(|e| wrong(format!("the shape {shape:?} in the metadata is not a list of sizes; create the file again: {e}")))?;
        crate::dok::check_size(&shape).map_err(|e| wrong(e.to_string()))?;
        if let Some(other) = file.tensors().iter().find(|t| ![INDICES, VALUES].contains(&t.name()))
        {
            return Err(wrong(format!(
                "the file has the tensor {:?}, but the file of a sparse tensor has only the tensors {INDICES:?} and {VALUES:?}; create the file again",
                other.name()
            )));
        }
        let (indices, values) = (file.tensor(INDICES)?.clone(), file.tensor(VALUES)?.clone());
        let dtype = dense::from_dtype(values.dtype()).ok_or_else(|| {
            wrong(format!(
                "the values have the type {}, which sparse tensors do not support; cast them to a number or boolean type",
                values.dtype()
            ))
        })?;
        let (&[ndim, nnz], &[count]) = (indices.shape(), values.shape()) else {
            return Err(wrong(format!(
                "the indices have the shape {:?} and the values have the shape {:?}; create the file again with the shapes [number of axes, number of values] and [number of values]",
                indices.shape(),
                values.shape()
            )));
        };
        if ndim != shape.len() || nnz != count {
            return Err(wrong(format!(
                "the indices have the shape {:?}, but {count} values of a tensor of shape {shape:?} require the shape [{}, {count}]; create the file again",
                indices.shape(),
                shape.len()
            )));
        }
        if !dense::from_dtype(indices.dtype()).is_some_and(DType::is_integer) {
            return Err(wrong(format!(
                "the indices have the type {}, but must be integers; create the file again",
                indices.dtype()
            )));
        }
        Ok(Self { file, shape, dtype, indices, values })
    }

    /// Returns the size of every axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of entries.
    pub fn nnz(&self) -> usize {
        self.values.elements()
    }

    /// Returns the underlying safetensors file.
    pub fn file(&self) -> &SafetensorsFile {
        &self.file
    }

    /// Returns the coordinates (int64, `[ndim, nnz]`), after a check that they are within the
    /// shape, and the values, both in file order.
    ///
    /// Aligned tensors of a mapped file are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::DokTensor;
    /// use serrate::io::dok::{self, DokFile};
    /// use serrate::io::safetensors::FileAccess;
    /// # let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # dok::write(&path, &t, &Default::default())?;
    /// let (indices, values) = DokFile::open(&path, FileAccess::Map)?.coo()?;
    /// assert_eq!(indices.as_slice::<i64>()?, [0, 1, 1, 1]); // (0, 1) and (1, 1)
    /// assert_eq!(values.as_slice::<i32>()?, [5, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a coordinate is out of range, or the file cannot be read.
    pub fn coo(&self) -> Result<(DenseTensor, DenseTensor)> {
        let indices = dense::read_one(&self.file, &self.indices)?;
        let indices = indices.cast(DType::I64)?;
        let count = self.nnz();
        let all = indices.as_slice::<i64>()?;
        for (axis, size) in self.shape.iter().enumerate() {
            let from = axis.saturating_mul(count);
            let row = all.get(from..from.saturating_add(count)).unwrap_or_default();
            let outside = |at: &i64| usize::try_from(*at).map_or(true, |at| at >= *size);
            if let Some(entry) = row.iter().position(outside) {
                return Err(Error::file(
                    self.file.path(),
                    format!(
                        "entry {entry} has the coordinate {} on axis {axis}, where coordinates must be at least 0 and less than the size {size}; create the file again",
                        row.get(entry).copied().unwrap_or_default()
                    ),
                ));
            }
        }
        Ok((indices, dense::read_one(&self.file, &self.values)?))
    }

    /// Returns the entries as Arrow columns: one int64 column per axis, then the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::DokTensor;
    /// use serrate::io::dok::{self, DokFile};
    /// use serrate::io::safetensors::FileAccess;
    /// # let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # dok::write(&path, &t, &Default::default())?;
    /// # use arrow::array::{Int32Array, Int64Array};
    /// let (axes, values) = DokFile::open(&path, FileAccess::Map)?.columns()?;
    /// assert_eq!(axes[0].as_ref(), &Int64Array::from(vec![0, 1]));
    /// assert_eq!(axes[1].as_ref(), &Int64Array::from(vec![1, 1]));
    /// assert_eq!(values.as_ref(), &Int32Array::from(vec![5, 7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`coo`](Self::coo).
    pub fn columns(&self) -> Result<(Vec<ArrayRef>, ArrayRef)> {
        let (indices, values) = self.coo()?;
        let axes = (0..self.shape.len()).map(|axis| indices.row(axis)?.to_flat());
        Ok((axes.collect::<Result<_>>()?, values.to_flat()?))
    }

    /// Reads the tensor into memory.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::DokTensor;
    /// use serrate::io::dok::{self, DokFile};
    /// use serrate::io::safetensors::FileAccess;
    /// # let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.safetensors");
    /// # dok::write(&path, &t, &Default::default())?;
    /// use serrate::dok::MapOptions;
    /// let read = DokFile::open(&path, FileAccess::Map)?.tensor(MapOptions::default())?;
    /// assert_eq!(read.to_dense()?.as_slice::<i32>()?, [0, 5, 0, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`coo`](Self::coo); also if two entries have the same coordinates.
    pub fn tensor(&self, options: MapOptions) -> Result<DokTensor> {
        let (indices, values) = self.coo()?;
        DokTensor::from_unique(self.shape.clone(), &indices, &values, options).map_err(
            |e| match e {
                Error::Invalid(message) => Error::file(self.file.path(), message),
                other => other,
            },
        )
    }
}
