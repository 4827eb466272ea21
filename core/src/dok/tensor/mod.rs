mod arith;
mod axis_view;
mod construct;
mod convert;
mod entries;
mod get;

mod maths;
mod matmul;
mod norm;
mod reduce;
mod reshape;
mod selection;
mod set;
mod wide_numbers;

mod softmax;
mod storage;
mod view;

use std::fmt;
use std::sync::Arc;

use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

pub use construct::{Coo, Csr, DuplicateEntries};

pub use get::DokScalar;
pub use maths::DokUnary;
pub use reduce::ReducedAxes;
pub use set::DokValue;

use axis_view::AxisView;
pub(crate) use storage::check_size;
use storage::{DokStorage, SharedStorage};

/// A sparse tensor: a dictionary from coordinates to values.
///
/// Elements without an entry are zero.
///
/// Reading or writing an element takes constant time. Indexing follows NumPy:
/// [`index`](Self::index) returns a dense tensor, [`index_sparse`](Self::index_sparse) a sparse
/// one; [`set`](Self::set) takes scalars, dense tensors that broadcast, and sparse tensors.
///
/// * The key of an entry is its row-major index. A tensor may have up to 2^63 elements.
/// * [`transpose`](Self::transpose), [`permute`](Self::permute), [`select`](Self::select) and
///   [`index_select`](Self::index_select) return views, which share entries and see all writes.
///   [`try_clone`](Self::try_clone), [`reshape`](Self::reshape) and computations return copies.
/// * Writing zero removes the entry. Zeros given to a constructor, and zeros that a computation
///   yields, remain entries until [`prune`](Self::prune).
/// * A dense result above [`dense_limit`](Self::dense_limit) (4 GiB) is an error before allocation.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, DenseTensor};
/// use serrate::dok::DokTensor;
/// use serrate::index::parse_index;
/// let mut t = DokTensor::new([1_000_000, 1_000_000], DType::F32)?;
/// t.set(&parse_index("[3, 5], [4, -1]")?, 1.5)?;
/// t.set_at(&[0, 0], 2.0)?;
/// assert_eq!((t.nnz()?, t.at(&[5, -1])?.to_string().as_str()), (3, "1.5"));
/// let corner = t.index(&parse_index("2:4, 3:5")?)?;
/// assert_eq!(corner, DenseTensor::from_vec([2, 2], vec![0f32, 0.0, 0.0, 1.5])?);
/// assert!(t.to_dense().unwrap_err().to_string().contains("4000000000000 bytes"));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct DokTensor {
    storage: Arc<SharedStorage>,
    view: AxisView,
    limit: Option<u64>,
}

impl DokTensor {
    fn from_storage(storage: DokStorage) -> Self {
        let view = AxisView::with_all_axes(storage.shape.len());
        let storage = Arc::new(SharedStorage::new(storage));
        Self { storage, view, limit: Some(DenseOptions::DEFAULT_LIMIT) }
    }

    /// Returns the size of every axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.shape(), [2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn shape(&self) -> Vec<usize> {
        self.view.shape(&self.storage.read())
    }

    /// Returns the number of axes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.ndim(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn ndim(&self) -> usize {
        self.view.ndim()
    }

    /// Returns the type of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.dtype(), DType::I32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.storage.read().dtype()
    }

    /// Returns the number of elements, with or without an entry.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 0])?)?;
    /// assert_eq!((t.ndim(), t.num_elements()?, t.sparsity()?), (2, 4, 0.75));
    /// assert_eq!(t.dtype(), DType::I32);
    /// assert_eq!(t.values()?.as_slice::<i32>()?, [5]);
    /// t.set_parallel(false);
    /// t.reserve(10)?;
    /// t.shrink()?;
    /// assert!(t.nbytes() > 0);
    /// t.set_dense_limit(Some(8));
    /// assert_eq!(t.dense_limit(), Some(8));
    /// assert!(t.to_dense().is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a view has more than 2^63 elements.
    pub fn num_elements(&self) -> Result<u64> {
        storage::count_elements(&self.shape())
    }

    /// Returns the number of entries; an entry may have the value zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.nnz()?, 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a view shows more entries than memory can address.
    pub fn nnz(&self) -> Result<usize> {
        if self.view.is_permutation() {
            return Ok(self.storage.read().map.len());
        }
        Ok(self.collect_entries()?.len())
    }

    /// Returns the fraction of elements without an entry; 1 if there are no elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.sparsity()?, 0.5);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`nnz`](Self::nnz).
    pub fn sparsity(&self) -> Result<f64> {
        let elements = self.num_elements()?;
        if elements == 0 {
            return Ok(1.0);
        }
        Ok(1.0 - self.nnz()? as f64 / elements as f64)
    }

    /// Returns the coordinates of all entries, int64 of shape `[ndim, nnz]`, in the order of
    /// [`values`](Self::values) and of insertion.
    ///
    /// [`to_coo`](Self::to_coo) sorts them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.indices()?.shape(), [2, 2]); // two axes, two entries
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn indices(&self) -> Result<DenseTensor> {
        self.collect_entries()?.to_indices()
    }

    /// Returns the values in the order of [`indices`](Self::indices).
    ///
    /// Copies the values only if this tensor is a view that shows a selection of the coordinates.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.values()?.as_slice::<i32>()?, [5, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn values(&self) -> Result<DenseTensor> {
        Ok(self.collect_entries()?.values)
    }

    /// Returns the memory in bytes of the entries, which the tensor and its views share.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert!(t.nbytes() > 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.storage.read().map.nbytes()
    }

    /// Returns the maximum number of bytes of a dense result; `None` for no limit.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.dense_limit(), Some(4 << 30));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dense_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Sets [`dense_limit`](Self::dense_limit) for this tensor and for later views of it.
    ///
    /// Existing views keep their limit.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.set_dense_limit(Some(8));
    /// assert!(t.to_dense().is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn set_dense_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// Sets whether large operations may use all threads of rayon's pool (the default).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.set_parallel(false);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn set_parallel(&mut self, parallel: bool) {
        self.storage.write().map.set_parallel(parallel);
    }

    /// Reserves capacity for `more` entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.reserve(1000)?;
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.storage.write().map.reserve(more)
    }

    /// Releases memory that the current entries do not need.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.reserve(1000)?;
    /// t.shrink()?;
    /// assert_eq!(t.nnz()?, 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the smaller copy cannot be allocated.
    pub fn shrink(&mut self) -> Result<()> {
        self.storage.write().map.shrink()
    }

    /// Returns the number of bytes of a dense result, or an error if this number exceeds
    /// `self.limit`. `what` names the result in the message.
    fn check_dense_bytes(&self, elements: u64, dtype: DType, what: &str) -> Result<usize> {
        self.check_bytes(elements, dtype.size(), what)
    }

    fn check_bytes(&self, elements: u64, size: usize, what: &str) -> Result<usize> {
        let options = DenseOptions { limit: self.limit, ..DenseOptions::default() };
        let bytes = u128::from(elements).saturating_mul(size as u128);
        options.check_bytes(
            bytes,
            || what.to_owned(),
            || "select a part, keep the result sparse, or raise the limit".into(),
        )
    }

    fn resolve_axis(&self, axis: i64) -> Result<usize> {
        crate::index::resolve_position(axis, self.ndim()).ok_or_else(|| Error::NoSuchAxis {
            what: "the tensor".into(),
            axis,
            ndim: self.ndim(),
        })
    }

    /// Returns one flag per axis: true for the axes in `axes`, or for all axes if `axes` is `None`.
    /// Returns an error for an axis that does not exist or is listed twice.
    fn flag_axes(&self, axes: Option<&[i64]>) -> Result<Vec<bool>> {
        let Some(axes) = axes else { return Ok(vec![true; self.ndim()]) };
        let mut flags = vec![false; self.ndim()];
        for axis in axes {
            let at = self.resolve_axis(*axis)?;
            if std::mem::replace(&mut flags[at], true) {
                return Err(Error::invalid(format!(
                    "axis {axis} is listed more than once; list each axis once"
                )));
            }
        }
        Ok(flags)
    }
}

/// Writes type, shape and number of entries: `float32[3, 4] with 5 entries`.
impl fmt::Display for DokTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype(), self.shape())?;
        match self.nnz() {
            Ok(1) => f.write_str(" with 1 entry"),
            Ok(n) => write!(f, " with {n} entries"),
            Err(_) => Ok(()),
        }
    }
}
