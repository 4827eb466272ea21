//! Reads and writes dense tensors in safetensors files.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::Dtype;

use super::{
    EncodedTensors, FileAccess, SafetensorsFile, SaveOptions, TensorEntry, encode_tensors,
    write_tensors,
};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Writes named tensors as one file.
///
/// The tensors may be given in any order.
///
/// Python's `safetensors.torch.load_file` and `safetensors.numpy.load_file` return the same names,
/// types and shapes. The file appears only when it is complete.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::io::safetensors::{FileAccess, SaveOptions, dense};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("batch.safetensors");
/// let code = DenseTensor::from_vec(vec![2, 3], vec![7i64, 8, 0, 9, 0, 0])?;
/// let mask = DenseTensor::from_bools(vec![2, 3], [true, true, false, true, false, false])?;
/// dense::write(&path, [("code", &code), ("dim1/mask", &mask)], &SaveOptions::default())?;
///
/// let read = dense::read(&path, FileAccess::Map)?;
/// assert_eq!(read[0].0, "code");
/// assert_eq!(read[0].1.as_slice::<i64>()?, code.as_slice::<i64>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If two tensors have the same name, the file exists and `overwrite` is false, or writing fails.
pub fn write<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'a str, &'a DenseTensor)>,
    options: &SaveOptions,
) -> Result<()> {
    let tensors =
        tensors.into_iter().map(|(name, t)| (name, dtype(t.dtype()), t.shape(), t.as_bytes()));
    write_tensors(path, tensors, options)
}

/// Encodes tensors like [`write`](fn@write), without writing a file; `path` is used only in errors.
///
/// ```
/// # use serrate_core as serrate;
/// use std::collections::BTreeMap;
/// use std::path::Path;
/// use serrate::dense::DenseTensor;
/// use serrate::io::safetensors::dense;
/// let code = DenseTensor::from_vec(vec![2, 2], vec![7i64, 8, 9, 0])?;
/// let file = dense::encode(Path::new("a stream"), [("code", &code)], &BTreeMap::new())?;
/// assert!(file.nbytes() > 32); // the header and four int64
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If two tensors have the same name.
pub fn encode<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, &'a DenseTensor)>,
    metadata: &BTreeMap<String, String>,
) -> Result<EncodedTensors<'a>> {
    let tensors =
        tensors.into_iter().map(|(name, t)| (name, dtype(t.dtype()), t.shape(), t.as_bytes()));
    encode_tensors(path, tensors, metadata)
}

/// Reads all tensors of a file, in the order of their data.
///
/// Aligned tensors of a mapped file are not copied.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::io::safetensors::{FileAccess, SaveOptions, dense};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("batch.safetensors");
/// let code = DenseTensor::from_vec(vec![2, 2], vec![7i64, 8, 9, 0])?;
/// dense::write(&path, [("code", &code)], &SaveOptions::default())?;
///
/// let tensors = dense::read(&path, FileAccess::Map)?;
/// assert_eq!(tensors[0].0, "code");
/// assert_eq!(tensors[0].1.shape(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file is not a safetensors file, [`DType`] lacks a type (F8, F4, complex), or a BOOL is
/// not 0 or 1.
pub fn read(path: impl AsRef<Path>, access: FileAccess) -> Result<Vec<(String, DenseTensor)>> {
    let file = SafetensorsFile::open(path, access)?;
    file.tensors().iter().map(|t| Ok((t.name().to_owned(), read_one(&file, t)?))).collect()
}

/// Reads one tensor of a file; see [`read`].
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions, dense};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.safetensors");
/// let t = DenseTensor::from_vec([2], vec![1u8, 2])?;
/// dense::write(&path, [("t", &t)], &SaveOptions::default())?;
/// let file = SafetensorsFile::open(&path, FileAccess::Map)?;
/// assert_eq!(dense::read_one(&file, file.tensor("t")?)?, t);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If [`DType`] lacks the type of the tensor (F8, F4, complex), a BOOL is not 0 or 1, or the file
/// has been truncated. The message names the tensor.
pub fn read_one(file: &SafetensorsFile, tensor: &TensorEntry) -> Result<DenseTensor> {
    let wrong = |message: String| {
        Error::file(file.path(), format!("tensor {:?}: {message}", tensor.name()))
    };
    let dtype = from_dtype(tensor.dtype()).ok_or_else(|| {
        wrong(format!(
            "dense tensors do not support the type {}; create the file again with another type",
            tensor.dtype()
        ))
    })?;
    DenseTensor::try_new(dtype, tensor.shape(), file.read(tensor)?)
        .map_err(|e| wrong(e.to_string()))
}

/// Returns the safetensors type of a dense tensor type.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::io::safetensors::{Dtype, dense};
/// assert_eq!(dense::dtype(DType::BF16), Dtype::BF16);
/// ```
pub fn dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

/// Returns the dense tensor type of a safetensors type, or `None` if dense tensors do not support
/// it.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::io::safetensors::{Dtype, dense};
/// assert_eq!(dense::from_dtype(Dtype::BF16), Some(DType::BF16));
/// assert_eq!(dense::from_dtype(Dtype::F8_E4M3), None);
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn from_dtype(of: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|d| dtype(*d) == of)
}
