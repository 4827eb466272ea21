//! The Python class `DokTensor`.

mod arguments;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use serrate::dense::{DType, DenseTensor};
use serrate::dok::{DokTensor as Dok, DokUnary, DuplicateEntries, MapOptions, RowMap};

use self::arguments::{
    OperandValue, as_coo, extract_coo, extract_operand, extract_reduced_axes,
    extract_required_axes, extract_shape, is_coo, make_tensor_from_map, to_reduced_axes,
};
use crate::array::RaggedArray;
use crate::errors::{as_index_error, make_invalid_error};
use crate::hashmap::PyHashMap;
use crate::run::{run_detached, run_here};
use crate::tensor::{
    TensorLibrary, check_device, extract_axes, extract_dtype, extract_sizes, extract_tensor,
    find_index_library, give_tensor, import_torch, index_in, make_keyword,
};

/// A sparse tensor, stored as a dictionary from coordinates to values. Elements without an entry are zero.
///
/// Any element is read and written in constant time. Indexing follows numpy, for reading and writing.
/// Reading returns dense tensors: torch tensors if the tensor was created from torch tensors (or with
/// `dtype=torch..`), else numpy arrays. Transposed and selected tensors are views that share entries with
/// the tensor.
///
/// `size` is the shape; `indices` has a row per axis and a column per entry. If entries have equal
/// coordinates, the last one counts; `from_sparse_coo` adds them up instead. Tensors are in main memory,
/// and gradients are not recorded.
///
/// >>> import numpy as np
/// >>> x = serrate.DokTensor(size=(1000, 1000), dtype="float32")
/// >>> diagonal = np.arange(1000)
/// >>> x[diagonal, diagonal] = 1
/// >>> x
/// DokTensor(shape=(1000, 1000), nnz=1000, dtype=float32)
/// >>> x[2:4, [3, 2]]
/// array([[0., 1.],
///        [1., 0.]], dtype=float32)
/// >>> x.T[0, :3], x[0, x.shape[1] - 1]
/// (array([1., 0., 0.], dtype=float32), array(0., dtype=float32))
#[pyclass(module = "serrate")]
pub(crate) struct DokTensor {
    inner: Dok,
    library: TensorLibrary,
}

impl DokTensor {
    fn from_inner(inner: Dok, library: TensorLibrary) -> Self {
        Self { inner, library }
    }

    /// Applies `f` to this tensor. The result has the same library.
    fn map_inner(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Dok) -> serrate::Result<Dok> + Send,
    ) -> PyResult<Self> {
        Ok(Self::from_inner(run_detached(py, || f(&self.inner))?, self.library))
    }

    fn apply_unary(&self, py: Python<'_>, of: DokUnary) -> PyResult<Self> {
        self.map_inner(py, |t| t.map(of))
    }
}

#[pymethods]
#[allow(non_snake_case, reason = "the names that users of sparse_dok know")]
impl DokTensor {
    #[new]
    #[pyo3(signature = (size, indices=None, values=None, device=None, dtype=None, storage=None))]
    fn new(
        py: Python<'_>,
        size: Vec<i64>,
        indices: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        storage: Option<&Bound<'_, PyHashMap>>,
    ) -> PyResult<Self> {
        let on_device = check_device(device)?;
        let mut library = if on_device { TensorLibrary::Torch } else { TensorLibrary::Numpy };
        let dtype = match dtype {
            None => None,
            Some(dtype) => {
                let (dtype, of) = extract_dtype(dtype)?;
                library = library.prefer_torch(of);
                Some(dtype)
            }
        };
        let shape = extract_shape(&size)?;
        if let Some(storage) = storage {
            if indices.is_some() || values.is_some() {
                return Err(make_invalid_error(
                    "entries are given by storage and by indices; give only one of them",
                ));
            }
            let made = Self::from_storage(py, storage, Some(size))?;
            return match dtype {
                None => Ok(made),
                Some(dtype) => made.map_inner(py, |t| t.cast(dtype)),
            };
        }
        let (indices, values) = match (indices, values) {
            (None, None) => {
                let dtype = dtype.unwrap_or(DType::F32);
                return Ok(Self::from_inner(run_here(|| Dok::new(shape, dtype))?, library));
            }
            (Some(indices), Some(values)) => (extract_tensor(indices)?, extract_tensor(values)?),
            _ => return Err(make_invalid_error("give both indices and values, or neither")),
        };
        let library = library.prefer_torch(indices.1).prefer_torch(values.1);
        let inner = run_detached(py, || {
            let values = match dtype {
                Some(dtype) => values.0.cast(dtype)?,
                None => values.0,
            };
            Dok::from_coo(shape, &indices.0, &values, DuplicateEntries::Last)
        })?;
        Ok(Self::from_inner(inner, library))
    }

    /// Creates a tensor from a sparse torch tensor, or from `size`, `indices` and `values`. Values with
    /// equal coordinates are added up.
    ///
    /// >>> import numpy as np
    /// >>> x = serrate.DokTensor.from_sparse_coo((2, 2), np.array([[0, 0], [1, 1]]), np.array([2, 3]))
    /// >>> x.to_dense()
    /// array([[0, 5],
    ///        [0, 0]])
    #[staticmethod]
    #[pyo3(signature = (coo, indices=None, values=None))]
    fn from_sparse_coo(
        py: Python<'_>,
        coo: &Bound<'_, PyAny>,
        indices: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (Some(indices), Some(values)) = (indices, values) else {
            if is_coo(coo)? {
                return Ok(Self::from_inner(extract_coo(coo)?, TensorLibrary::Torch));
            }
            return Err(make_invalid_error(
                "the arguments must be one sparse torch tensor, or a size with indices and values",
            ));
        };
        let shape = extract_shape(&extract_axes(coo)?)?;
        let ((indices, a), (values, b)) = (extract_tensor(indices)?, extract_tensor(values)?);
        let inner =
            run_detached(py, || Dok::from_coo(shape, &indices, &values, DuplicateEntries::Sum))?;
        Ok(Self::from_inner(inner, a.prefer_torch(b)))
    }

    /// Creates a tensor from the nonzero values of a dense tensor.
    #[staticmethod]
    fn from_dense(py: Python<'_>, dense: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (dense, library) = extract_tensor(dense)?;
        Ok(Self::from_inner(run_detached(py, || Dok::from_dense(&dense))?, library))
    }

    /// Creates a tensor from a copy of a hash map, whose keys are coordinates (rows of integers) and whose
    /// values are one number each.
    #[staticmethod]
    #[pyo3(signature = (storage, size=None))]
    fn from_storage(
        py: Python<'_>,
        storage: &Bound<'_, PyHashMap>,
        size: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let storage = storage.try_borrow()?;
        let (map, library) = (&storage.inner, storage.library);
        let shape = size.map(|size| extract_shape(&size)).transpose()?;
        let inner = run_detached(py, || make_tensor_from_map(map, shape))?;
        Ok(Self::from_inner(inner, library))
    }

    /// Creates a tensor from a `RaggedArray`, with each value at its coordinates.
    #[staticmethod]
    fn from_ragged(py: Python<'_>, array: &RaggedArray) -> PyResult<Self> {
        Ok(Self::from_inner(
            run_detached(py, || Dok::from_ragged(array.as_ragged()))?,
            TensorLibrary::Numpy,
        ))
    }

    /// Sizes of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.shape(py, self.inner.shape())
    }

    /// Returns the shape, or the size of one axis.
    #[pyo3(signature = (dim=None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.shape(py)?;
        match dim {
            None => Ok(shape),
            Some(dim) => shape.get_item(dim).map_err(|_| {
                as_index_error(make_invalid_error(format!(
                    "axis {dim} does not exist in a tensor of {} axes",
                    self.ndim()
                )))
            }),
        }
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.ndim()
    }

    /// Returns the number of axes.
    fn dim(&self) -> usize {
        self.inner.ndim()
    }

    /// Type of the values, of torch or numpy.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.dtype(py, self.inner.dtype())
    }

    /// The device of the values, which is always the CPU.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.get_device(py)
    }

    /// Always True.
    #[getter]
    fn is_sparse(&self) -> bool {
        true
    }

    /// Always False: gradients are not recorded.
    #[getter]
    fn requires_grad(&self) -> bool {
        false
    }

    /// Number of entries.
    #[getter]
    fn nnz(&self, py: Python<'_>) -> PyResult<usize> {
        run_detached(py, || self.inner.nnz())
    }

    fn _nnz(&self, py: Python<'_>) -> PyResult<usize> {
        self.nnz(py)
    }

    /// Returns the number of elements, with or without an entry.
    fn numel(&self) -> PyResult<u64> {
        run_here(|| self.inner.num_elements())
    }

    /// Fraction of the elements that have no entry.
    #[getter]
    fn sparsity(&self, py: Python<'_>) -> PyResult<f64> {
        run_detached(py, || self.inner.sparsity())
    }

    /// Maximum size of dense results in bytes; None for no limit.
    #[getter]
    fn dense_limit(&self) -> Option<u64> {
        self.inner.dense_limit()
    }

    #[setter]
    fn set_dense_limit(&mut self, bytes: Option<u64>) {
        self.inner.set_dense_limit(bytes);
    }

    /// Returns True, because no two entries have the same coordinates.
    fn is_coalesced(&self) -> bool {
        true
    }

    /// Returns the coordinates of the entries: int64 of shape (ndim, nnz), in the order of `values()`.
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give_tensor(py, run_detached(py, || self.inner.indices())?, self.library)
    }

    /// Returns the values of the entries, in the order of `indices()`.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give_tensor(py, run_detached(py, || self.inner.values())?, self.library)
    }

    fn _indices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.indices(py)
    }

    fn _values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.values(py)
    }

    /// Returns a copy of the entries as a hash map from coordinates to values.
    fn storage(&self, py: Python<'_>) -> PyResult<PyHashMap> {
        let inner = run_detached(py, || {
            let coo = self.inner.to_coo()?;
            let count = coo.values.num_elements();
            let by_axis = coo.indices.as_slice::<i64>()?;
            let ndim = self.inner.ndim();
            let keys = (0..count).flat_map(|i| (0..ndim).map(move |a| by_axis[a * count + i]));
            let keys = DenseTensor::from_vec([count, ndim], keys.collect::<Vec<_>>())?;
            let values = coo.values.reshape([count, 1])?;
            RowMap::from_rows(&keys, &values, MapOptions::default())
        })?;
        Ok(PyHashMap { inner, library: self.library })
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.inner.shape().first().copied();
        first.ok_or_else(|| {
            PyTypeError::new_err("a tensor without axes has no length; reshape it to [1] first")
        })
    }

    /// Returns the elements at an index as a dense tensor. Indexing follows numpy.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let library = self.library.prefer_torch(find_index_library(index)?);
        let index = index_in(index)?;
        let out = run_detached(py, || self.inner.index(&index)).map_err(as_index_error)?;
        give_tensor(py, out, library)
    }

    /// Returns a copy of the elements at an index as a sparse tensor. Indexing follows numpy.
    fn get_sparse(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let index = index_in(index)?;
        self.map_inner(py, |t| t.index_sparse(&index)).map_err(as_index_error)
    }

    /// Returns the elements at an index that is applied axis by axis: arrays and masks select a grid.
    ///
    /// >>> import numpy as np
    /// >>> x = serrate.DokTensor.from_dense(np.arange(6).reshape(2, 3))
    /// >>> x.get_orthogonal(([0, 1], [0, 2]))
    /// array([[0, 2],
    ///        [3, 5]])
    fn get_orthogonal<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let library = self.library.prefer_torch(find_index_library(index)?);
        let index = index_in(index)?;
        let out =
            run_detached(py, || self.inner.index_orthogonal(&index)).map_err(as_index_error)?;
        give_tensor(py, out, library)
    }

    /// Writes a number, a tensor that is broadcast, or a sparse tensor of the same shape. Zeros remove
    /// entries.
    fn __setitem__(
        &self,
        py: Python<'_>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (index, value) = (index_in(index)?, OperandValue::from_python(value)?);
        let mut view = self.inner.view();
        run_detached(py, || view.set(&index, value.as_value())).map_err(as_index_error)
    }

    /// Writes values like `x[selectors] = values`.
    fn set_values(
        &self,
        py: Python<'_>,
        selectors: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.__setitem__(py, selectors, values)
    }

    /// Returns a view with two axes swapped.
    fn transpose(&self, py: Python<'_>, dim0: i64, dim1: i64) -> PyResult<Self> {
        self.map_inner(py, |t| t.transpose(dim0, dim1))
    }

    /// Swaps two axes of this tensor in place.
    fn transpose_(slf: Bound<'_, Self>, dim0: i64, dim1: i64) -> PyResult<Bound<'_, Self>> {
        let out = run_here(|| slf.borrow().inner.transpose(dim0, dim1))?;
        slf.try_borrow_mut()?.inner = out;
        Ok(slf)
    }

    /// Returns a view whose axis k is axis `ordering[k]` of this tensor.
    #[pyo3(signature = (*ordering))]
    fn permute(&self, py: Python<'_>, ordering: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let order = extract_sizes(ordering)?;
        self.map_inner(py, |t| t.permute(&order))
    }

    /// Reorders the axes of this tensor in place.
    #[pyo3(signature = (*ordering))]
    fn permute_<'py>(
        slf: Bound<'py, Self>,
        ordering: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, Self>> {
        let order = extract_sizes(ordering)?;
        let out = run_here(|| slf.borrow().inner.permute(&order))?;
        slf.try_borrow_mut()?.inner = out;
        Ok(slf)
    }

    /// Returns a view of a matrix with rows and columns swapped.
    fn t(&self, py: Python<'_>) -> PyResult<Self> {
        self.map_inner(py, Dok::t)
    }

    /// A view with the axes in reverse order.
    #[getter]
    fn T(&self, py: Python<'_>) -> PyResult<Self> {
        let order: Vec<i64> =
            (0..self.inner.ndim()).rev().filter_map(|a| i64::try_from(a).ok()).collect();
        self.map_inner(py, |t| t.permute(&order))
    }

    /// Returns a copy with one axis.
    fn flatten(&self, py: Python<'_>) -> PyResult<Self> {
        self.map_inner(py, Dok::flatten)
    }

    /// Returns a copy with another shape; one size may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let shape = extract_sizes(shape)?;
        self.map_inner(py, |t| t.reshape(&shape))
    }

    /// Returns a view of one index of an axis, without this axis.
    fn select(&self, py: Python<'_>, dim: i64, index: i64) -> PyResult<Self> {
        self.map_inner(py, |t| t.select(dim, index))
    }

    /// Returns a view of several indices of an axis, in any order.
    fn index_select(&self, py: Python<'_>, dim: i64, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (index, _) = extract_tensor(index)?;
        self.map_inner(py, |t| {
            let index = index.cast(DType::I64)?;
            t.index_select(dim, index.as_slice::<i64>()?)
        })
    }

    /// Changes the size of this tensor in place; entries outside the new size are removed. Axes with the
    /// size -1 and axes without a given size keep their size.
    #[pyo3(signature = (*new_size))]
    fn resize(&mut self, new_size: &Bound<'_, PyTuple>) -> PyResult<()> {
        let sizes = extract_sizes(new_size)?;
        let inner = &mut self.inner;
        run_detached(new_size.py(), || inner.resize(&sizes))
    }

    /// Returns the sum along axes, or of all elements (as a tensor without axes).
    #[pyo3(signature = (dim=None, keepdim=false))]
    fn sum<'py>(
        &self,
        py: Python<'py>,
        dim: Option<&Bound<'py, PyAny>>,
        keepdim: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dims = extract_reduced_axes(dim)?;
        let out = self.map_inner(py, |t| t.sum(dims.as_deref(), to_reduced_axes(keepdim)))?;
        out.scalar_or_self(py)
    }

    /// Returns the mean along axes, or of all elements; elements without an entry count as zeros.
    #[pyo3(signature = (dim=None, keepdim=false))]
    fn mean<'py>(
        &self,
        py: Python<'py>,
        dim: Option<&Bound<'py, PyAny>>,
        keepdim: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dims = extract_reduced_axes(dim)?;
        let out = self.map_inner(py, |t| t.mean(dims.as_deref(), to_reduced_axes(keepdim)))?;
        out.scalar_or_self(py)
    }

    /// Returns the p-norm along axes, or of all elements.
    #[pyo3(signature = (dim=None, p=2.0, keepdim=false))]
    fn norm<'py>(
        &self,
        py: Python<'py>,
        dim: Option<&Bound<'py, PyAny>>,
        p: f64,
        keepdim: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dims = extract_reduced_axes(dim)?;
        let out = self.map_inner(py, |t| t.norm(p, dims.as_deref(), to_reduced_axes(keepdim)))?;
        out.scalar_or_self(py)
    }

    /// Divides the tensor by its p-norm along an axis, or by `eps` if `eps` is larger.
    #[pyo3(signature = (dim=None, p=2.0, eps=1e-12))]
    fn normalize(
        &self,
        py: Python<'_>,
        dim: Option<&Bound<'_, PyAny>>,
        p: f64,
        eps: f64,
    ) -> PyResult<Self> {
        let dims = extract_reduced_axes(dim)?.unwrap_or_else(|| vec![-1]);
        self.map_inner(py, |t| t.normalize(p, &dims, eps))
    }

    /// Normalizes this tensor in place, like `normalize`.
    #[pyo3(signature = (dim=None, p=2.0, eps=1e-12))]
    fn normalize_<'py>(
        slf: Bound<'py, Self>,
        dim: Option<&Bound<'py, PyAny>>,
        p: f64,
        eps: f64,
    ) -> PyResult<Bound<'py, Self>> {
        let dims = extract_reduced_axes(dim)?.unwrap_or_else(|| vec![-1]);
        let mut view = slf.try_borrow()?.inner.view();
        run_detached(slf.py(), || view.normalize_in_place(p, &dims, eps))?;
        Ok(slf)
    }

    /// Returns the softmax of the entries along an axis. Elements without an entry count as minus
    /// infinity and have no entry in the result.
    #[pyo3(signature = (dim=None))]
    fn softmax(&self, py: Python<'_>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let dims = extract_required_axes(dim, "softmax")?;
        self.map_inner(py, |t| t.softmax(&dims))
    }

    /// Returns the logarithm of `softmax`.
    #[pyo3(signature = (dim=None))]
    fn log_softmax(&self, py: Python<'_>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let dims = extract_required_axes(dim, "log_softmax")?;
        self.map_inner(py, |t| t.log_softmax(&dims))
    }

    /// Returns the absolute value of each value.
    fn abs(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Abs)
    }

    /// Returns the square root of each value.
    fn sqrt(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Sqrt)
    }

    /// Rounds each value up to an integer.
    fn ceil(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Ceil)
    }

    /// Rounds each value down to an integer.
    fn floor(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Floor)
    }

    /// Rounds each value to a number of decimals, halves to even.
    #[pyo3(signature = (decimals=0))]
    fn round(&self, py: Python<'_>, decimals: Option<i32>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Round(decimals.unwrap_or(0)))
    }

    /// Returns the negative of each value.
    fn neg(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Neg)
    }

    /// Returns the sign of each value: -1, 0 or 1.
    fn sign(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Sign)
    }

    /// Rounds each value towards zero to an integer.
    fn trunc(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Trunc)
    }

    /// Returns the square of each value.
    fn square(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Square)
    }

    /// Returns each value, or 0 if it is negative.
    fn relu(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Relu)
    }

    /// Returns the natural logarithm of 1 plus each value.
    fn log1p(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Log1p)
    }

    /// Returns e to the power of each value, minus 1.
    fn expm1(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Expm1)
    }

    /// Returns the sine of each value.
    fn sin(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Sin)
    }

    /// Returns the hyperbolic tangent of each value.
    fn tanh(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, DokUnary::Tanh)
    }

    /// Returns a sparse torch tensor (COO, in order); for numpy, a named tuple `(size, indices, values)`.
    fn to_sparse_coo<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let coo = run_detached(py, || self.inner.to_coo())?;
        let indices = give_tensor(py, coo.indices, self.library)?;
        let values = give_tensor(py, coo.values, self.library)?;
        let size = self.shape(py)?;
        match self.library {
            TensorLibrary::Torch => {
                let options = make_keyword(py, "is_coalesced", true)?;
                import_torch(py)?.call_method(
                    "sparse_coo_tensor",
                    (indices, values, size),
                    Some(&options),
                )
            }
            TensorLibrary::Numpy => {
                let class = py.import("serrate.sparse_dok")?.getattr("Coo")?;
                class.call1((size, indices, values))
            }
        }
    }

    /// Returns a matrix as a sparse torch tensor (CSR); for numpy, a named tuple `(size, crow_indices,
    /// col_indices, values)`.
    fn to_sparse_csr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let csr = run_detached(py, || self.inner.to_csr())?;
        let rows = give_tensor(py, csr.crow_indices, self.library)?;
        let columns = give_tensor(py, csr.col_indices, self.library)?;
        let values = give_tensor(py, csr.values, self.library)?;
        let size = self.shape(py)?;
        match self.library {
            TensorLibrary::Torch => {
                import_torch(py)?.call_method1("sparse_csr_tensor", (rows, columns, values, size))
            }
            TensorLibrary::Numpy => {
                let class = py.import("serrate.sparse_dok")?.getattr("Csr")?;
                class.call1((size, rows, columns, values))
            }
        }
    }

    /// Returns a dense tensor, in which elements without an entry are zero.
    fn to_dense<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give_tensor(py, run_detached(py, || self.inner.to_dense())?, self.library)
    }

    /// Returns a `RaggedArray` of the entries of each row, in order.
    fn to_ragged(&self, py: Python<'_>) -> PyResult<RaggedArray> {
        Ok(run_detached(py, || self.inner.to_ragged())?.into())
    }

    /// Returns the tensor converted to another type.
    fn to(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (dtype, library) = extract_dtype(dtype)?;
        let out = self.map_inner(py, |t| t.cast(dtype))?;
        Ok(Self::from_inner(out.inner, self.library.prefer_torch(library)))
    }

    /// Returns a copy of the tensor; if `deepclone` is False, a view.
    #[pyo3(signature = (deepclone=true))]
    fn clone(&self, py: Python<'_>, deepclone: bool) -> PyResult<Self> {
        match deepclone {
            true => self.map_inner(py, Dok::try_clone),
            false => Ok(Self::from_inner(self.inner.view(), self.library)),
        }
    }

    /// Removes entries whose value is zero.
    fn prune(&self, py: Python<'_>) -> PyResult<()> {
        let mut view = self.inner.view();
        run_detached(py, || view.prune())
    }

    /// Removes all entries.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut view = self.inner.view();
        run_detached(py, || view.clear())
    }

    /// Returns a view of this tensor with torch tensors as dense results.
    fn torch(&self) -> Self {
        Self::from_inner(self.inner.view(), TensorLibrary::Torch)
    }

    /// Returns a view of this tensor with numpy arrays as dense results.
    fn numpy(&self) -> Self {
        Self::from_inner(self.inner.view(), TensorLibrary::Numpy)
    }

    #[classattr]
    fn __array_ufunc__() -> Option<bool> {
        // None makes numpy call the operators of this class, as in `ndarray + array`.
        None
    }

    /// Calls a function of torch with each `DokTensor` converted to a sparse torch tensor.
    #[classmethod]
    #[pyo3(signature = (func, types, args=None, kwargs=None))]
    fn __torch_function__<'py>(
        _class: &Bound<'py, PyType>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: Option<&Bound<'py, PyTuple>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, _) = (func.py(), types);
        let args = match args {
            Some(args) => args.iter().map(as_coo).collect::<PyResult<Vec<_>>>()?,
            None => Vec::new(),
        };
        let named = PyDict::new(py);
        for (name, value) in kwargs.iter().flat_map(|k| k.iter()) {
            named.set_item(name, as_coo(value)?)?;
        }
        func.call(PyTuple::new(py, args)?, Some(&named))
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        self.neg(py)
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Self> {
        self.abs(py)
    }

    /// Adds a tensor. A sparse tensor gives a sparse result, a dense tensor a dense result.
    fn __add__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match extract_operand(value)? {
            Some((OperandValue::Sparse(other), library)) => {
                let out = self.map_inner(py, |t| t.add(&other))?;
                Self::from_inner(out.inner, self.library.prefer_torch(library)).into_py_any(py)
            }
            Some((OperandValue::Dense(other), library)) => {
                let out = run_detached(py, || self.inner.add_dense(&other))?;
                Ok(give_tensor(py, out, self.library.prefer_torch(library))?.unbind())
            }
            Some((OperandValue::Number(_), _)) => Err(make_invalid_error(
                "a sparse tensor plus a number is dense; call to_dense() first",
            )),
            None => Ok(py.NotImplemented()),
        }
    }

    fn __radd__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__add__(py, value)
    }

    fn __sub__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match extract_operand(value)? {
            Some((OperandValue::Sparse(other), library)) => {
                let out = self.map_inner(py, |t| t.sub(&other))?;
                Self::from_inner(out.inner, self.library.prefer_torch(library)).into_py_any(py)
            }
            None => Ok(py.NotImplemented()),
            Some(_) => Err(make_invalid_error(
                "the difference of a sparse tensor and a dense tensor or number is dense; call to_dense() first",
            )),
        }
    }

    /// Multiplies by a number, or element by element by a tensor; the result is sparse.
    fn __mul__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Some((side, library)) = extract_operand(value)? else { return Ok(py.NotImplemented()) };
        let out = self.map_inner(py, |t| match &side {
            OperandValue::Number(by) => t.scale(*by),
            OperandValue::Dense(other) => t.mul_dense(other),
            OperandValue::Sparse(other) => t.mul(other),
        })?;
        Self::from_inner(out.inner, self.library.prefer_torch(library)).into_py_any(py)
    }

    fn __rmul__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__mul__(py, value)
    }

    /// Returns the matrix product. A dense matrix gives a dense result, a sparse matrix a sparse result.
    fn __matmul__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match extract_operand(value)? {
            Some((OperandValue::Sparse(other), library)) => {
                let out = self.map_inner(py, |t| t.matmul(&other))?;
                Self::from_inner(out.inner, self.library.prefer_torch(library)).into_py_any(py)
            }
            Some((OperandValue::Dense(other), library)) => {
                let out = run_detached(py, || self.inner.matmul_dense(&other))?;
                Ok(give_tensor(py, out, self.library.prefer_torch(library))?.unbind())
            }
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a tensor cannot be used as a condition, because each of its elements is true or false; compare a single element or a reduction instead",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = PyTuple::new(py, self.inner.shape())?.repr()?;
        let dtype = self.inner.dtype();
        Ok(format!("DokTensor(shape={shape}, nnz={}, dtype={dtype})", self.nnz(py)?))
    }

    fn __copy__(&self) -> Self {
        Self::from_inner(self.inner.view(), self.library)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.map_inner(py, Dok::try_clone)
    }

    fn __reduce__<'py>(
        slf: Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let this = slf.try_borrow()?;
        let size = PyList::new(py, this.inner.shape())?.into_any();
        let args = [size, this.indices(py)?, this.values(py)?];
        Ok((slf.get_type().into_any(), PyTuple::new(py, args)?))
    }
}

impl DokTensor {
    /// Returns a dense tensor if the result has no axes, else the sparse tensor.
    fn scalar_or_self(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self.inner.ndim() {
            0 => self.to_dense(py),
            _ => self.into_bound_py_any(py),
        }
    }
}
