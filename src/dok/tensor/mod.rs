//! Sparse tensors: see [`DokTensor`].

mod arith;
mod construct;
mod convert;
mod entries;
mod get;

mod maths;
mod matmul;
mod norm;
mod numbers;
mod reduce;
mod reshape;
mod selection;
mod set;

mod softmax;
mod storage;
mod view;

use std::fmt;
use std::sync::Arc;

use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};

pub use construct::{Coo, Csr, Duplicates};

pub use get::Scalar;
pub use maths::Unary;
pub use set::Source;

pub(crate) use storage::check_size;
use storage::{Shared, Storage};
use view::View;

/// A sparse tensor: a dictionary from coordinates to values. What has no entry is zero.
///
/// Reading and writing an element takes the same time whatever the size. Indexing is numpy's:
/// [`get`](Self::get) gives a dense tensor, [`get_sparse`](Self::get_sparse) a sparse one,
/// [`set`](Self::set) takes scalars, dense tensors that broadcast, and sparse ones.
///
/// * Entries are kept by their place in row-major order, one 64-bit number each; a tensor may have up
///   to 2^63 elements, over as many axes as one likes. More is an error.
/// * [`transpose`](Self::transpose), [`permute`](Self::permute), [`select`](Self::select) and
///   [`index_select`](Self::index_select) are views: they share the entries, and what is written
///   through one is seen by all. [`try_clone`](Self::try_clone), [`reshape`](Self::reshape) and
///   everything that calculates give tensors of their own.
/// * Writing zero removes the entry. A zero given to a constructor is an entry, and so is one that
///   comes out of a calculation, until [`prune`](Self::prune).
/// * Dense results beyond [`dense_limit`](Self::dense_limit) (4 GiB) are refused before memory is
///   asked for.
///
/// ```
/// use serrate::dense::{DType, DenseTensor};
/// use serrate::dok::DokTensor;
/// use serrate::index::parse_index;
/// let mut t = DokTensor::new([1_000_000, 1_000_000], DType::F32)?;
/// t.set(&parse_index("[3, 5], [4, -1]")?, 1.5)?;
/// t.set_at(&[0, 0], 2.0)?;
/// assert_eq!((t.nnz()?, t.at(&[5, -1])?.to_string().as_str()), (3, "1.5"));
/// let corner = t.get(&parse_index("2:4, 3:5")?)?;
/// assert_eq!(corner, DenseTensor::from_vec([2, 2], vec![0f32, 0.0, 0.0, 1.5])?);
/// assert!(t.to_dense().unwrap_err().to_string().contains("4000000000000 bytes"));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct DokTensor {
    storage: Arc<Shared>,
    view: View,
    limit: Option<u64>,
}

impl DokTensor {
    fn with_storage(storage: Storage) -> Self {
        let view = View::whole(storage.shape.len());
        let storage = Arc::new(Shared::new(storage));
        Self { storage, view, limit: Some(DenseOptions::DEFAULT_LIMIT) }
    }

    /// Size of every axis.
    pub fn shape(&self) -> Vec<usize> {
        self.view.shape(&self.storage.read())
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.view.ndim()
    }

    /// Type of the values.
    pub fn dtype(&self) -> DType {
        self.storage.read().dtype()
    }

    /// Number of elements, stored or not.
    ///
    /// # Errors
    /// When a view has more than 2^63.
    pub fn num_elements(&self) -> Result<u64> {
        storage::linear_size(&self.shape())
    }

    /// Number of entries: of elements that are stored, be they zero or not.
    ///
    /// # Errors
    /// When a view shows more entries than there can be.
    pub fn nnz(&self) -> Result<usize> {
        if self.view.is_permutation() {
            return Ok(self.storage.read().map.len());
        }
        Ok(self.entries()?.len())
    }

    /// The part of the elements without an entry; 1 of a tensor without elements.
    ///
    /// # Errors
    /// As [`nnz`](Self::nnz).
    pub fn sparsity(&self) -> Result<f64> {
        let elements = self.num_elements()?;
        if elements == 0 {
            return Ok(1.0);
        }
        Ok(1.0 - self.nnz()? as f64 / elements as f64)
    }

    /// Always true.
    pub fn is_sparse(&self) -> bool {
        true
    }

    /// Whether no element has two entries: always, in a dictionary.
    pub fn is_coalesced(&self) -> bool {
        true
    }

    /// The coordinates of all entries, int64 of shape `[ndim, nnz]`, in the order of
    /// [`values`](Self::values), which is that in which they came. [`to_coo`](Self::to_coo) sorts.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn indices(&self) -> Result<DenseTensor> {
        self.entries()?.indices()
    }

    /// The values of all entries, in the order of [`indices`](Self::indices); without a copy, but for
    /// views of a part.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn values(&self) -> Result<DenseTensor> {
        Ok(self.entries()?.values)
    }

    /// Bytes of memory that the entries take, shared by all views.
    pub fn memory(&self) -> usize {
        self.storage.read().map.memory()
    }

    /// Most bytes of a dense result; `None` for no limit.
    pub fn dense_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Sets [`dense_limit`](Self::dense_limit) of this tensor and of views made of it later.
    pub fn set_dense_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// Whether large operations may use all threads of rayon's pool (they may unless told otherwise).
    pub fn set_parallel(&mut self, parallel: bool) {
        self.storage.write().map.set_parallel(parallel);
    }

    /// Makes room for `more` entries.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.storage.write().map.reserve(more)
    }

    /// Gives back the memory that the entries there are do not need.
    ///
    /// # Errors
    /// When there is no memory for the smaller copy.
    pub fn shrink(&mut self) -> Result<()> {
        self.storage.write().map.shrink()
    }

    /// The bytes of a dense result, when they are within the limit.
    fn dense_bytes(&self, elements: u64, dtype: DType, what: &str) -> Result<usize> {
        let options = DenseOptions { limit: self.limit, ..DenseOptions::default() };
        let bytes = u128::from(elements) * dtype.size() as u128;
        options.check_bytes(
            bytes,
            || what.to_owned(),
            || "take a part of it, keep it sparse (`get_sparse`), or set a higher limit".into(),
        )
    }

    /// An axis of the tensor, which may be counted from the end.
    fn axis(&self, axis: i64) -> Result<usize> {
        crate::index::resolve(axis, self.ndim()).ok_or_else(|| Error::NoSuchAxis {
            what: "the tensor".into(),
            axis,
            ndim: self.ndim(),
        })
    }

    /// Axes as flags, each of them at most once; all for `None`.
    fn axes(&self, axes: Option<&[i64]>) -> Result<Vec<bool>> {
        let Some(axes) = axes else { return Ok(vec![true; self.ndim()]) };
        let mut flags = vec![false; self.ndim()];
        for axis in axes {
            let at = self.axis(*axis)?;
            if std::mem::replace(&mut flags[at], true) {
                return Err(Error::invalid(format!("axis {axis} is among the axes twice")));
            }
        }
        Ok(flags)
    }
}

/// Type, shape and number of entries: `float32[3, 4] with 5 entries`.
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
