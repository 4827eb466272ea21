//! The Python class `HetTensor`.

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serrate::arrow::array::Array;
use serrate::dense::{DenseTensor, Fill};
use serrate::het::{HetOperand, HetTensor as Het, HetValue, NestedTensors, NumberOperand, cat};
use serrate::kernels::coords::coords;
use serrate::kernels::elementwise::BinaryOp;
use serrate::kernels::reduce::Reduction;
use serrate::kernels::unary::UnaryOp;

use crate::array::{RaggedArray, parse_dense_options};
use crate::errors::{OrRaise, as_index_error, make_invalid_error};
use crate::run::{run_detached, run_here};
use crate::tensor::{
    TensorLibrary, extract_dtype, extract_fill, extract_tensor, give_tensor, import_torch,
    index_in, is_number, is_tensor,
};

/// A tensor in which the size of dims may vary: a nested list of tensors, without padding.
///
/// Levels of lists and axes of tensors are both dims. A dim whose size is the same everywhere has the type
/// `batch`, a dim whose size varies the type `het`. A result in which no dim varies is a plain tensor.
/// Tensors are torch tensors if the leaves were torch tensors, else numpy arrays. Gradients are not
/// recorded.
///
/// A hole is a slot without a value, for example in `x[:, 1]` for a list of one element. A hole is None in
/// `unbind` and 0 in `to_dense`, and reductions skip it.
///
/// >>> import numpy as np
/// >>> x = serrate.HetTensor([[np.array([1, 2]), np.array([3])], [np.array([4, 5, 6])]])
/// >>> x
/// [[tensor([1, 2]), tensor([3])], tensor([[4, 5, 6]])]
/// >>> x.shape, x.max_shape, x.dim_type
/// ((-1, -1, -1), (2, 2, 3), [het, het, het])
/// >>> x.sum(dim=2)
/// [tensor([3, 3]), tensor([15])]
/// >>> x[:, 0].to_dense()
/// array([[1, 2, 0],
///        [4, 5, 6]])
#[pyclass(frozen, module = "serrate")]
pub(crate) struct HetTensor {
    inner: Het,
    library: TensorLibrary,
}

/// Converts a nested list of tensors given by the caller; None is a hole.
fn extract_nested(
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> PyResult<(NestedTensors, TensorLibrary)> {
    if value.is_none() {
        return Ok((NestedTensors::Hole, TensorLibrary::Numpy));
    }
    if is_tensor(value)? {
        let (tensor, library) = extract_tensor(value)?;
        return Ok((NestedTensors::Tensor(tensor), library));
    }
    if value.cast::<PyList>().is_err() && value.cast::<PyTuple>().is_err() {
        return Err(make_invalid_error(format!(
            "the nested list contains a {}, but its leaves must be torch tensors, numpy arrays or None",
            value.get_type().name()?
        )));
    }
    if depth > 64 {
        return Err(make_invalid_error(
            "the lists are nested more than 64 levels deep, the maximum; remove levels",
        ));
    }
    let mut library = TensorLibrary::Numpy;
    let mut parts = Vec::new();
    for item in value.try_iter()? {
        let (part, of) = extract_nested(&item?, depth + 1)?;
        library = library.prefer_torch(of);
        parts.push(part);
    }
    Ok((NestedTensors::List(parts), library))
}

fn wrap_nested<'py>(
    py: Python<'py>,
    nested: NestedTensors,
    library: TensorLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    match nested {
        NestedTensors::Hole => Ok(py.None().into_bound(py)),
        NestedTensors::Tensor(tensor) => give_tensor(py, tensor, library),
        NestedTensors::List(parts) => {
            let parts = parts.into_iter().map(|part| wrap_nested(py, part, library));
            Ok(PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

/// The second operand of an operator.
enum OwnedHetOperand {
    Het(Het),
    Dense(DenseTensor),
    Number(NumberOperand),
}

impl OwnedHetOperand {
    fn as_operand(&self) -> HetOperand<'_> {
        match self {
            Self::Het(het) => het.into(),
            Self::Dense(tensor) => tensor.into(),
            Self::Number(number) => (*number).into(),
        }
    }
}

fn extract_other(value: &Bound<'_, PyAny>) -> PyResult<Option<(OwnedHetOperand, TensorLibrary)>> {
    if let Ok(het) = value.cast::<HetTensor>() {
        let het = het.get();
        return Ok(Some((OwnedHetOperand::Het(het.inner.clone()), het.library)));
    }
    if is_tensor(value)? {
        let (tensor, library) = extract_tensor(value)?;
        return Ok(Some((OwnedHetOperand::Dense(tensor), library)));
    }
    if is_number(value)? {
        let number = match extract_fill(value)? {
            Fill::Bool(b) => NumberOperand::Bool(b),
            Fill::Int(n) => NumberOperand::Int(n),
            Fill::UInt(n) => {
                return Err(make_invalid_error(format!(
                    "the operand {n} exceeds a signed 64-bit integer; give a float"
                )));
            }
            Fill::Float(x) => NumberOperand::Float(x),
        };
        return Ok(Some((OwnedHetOperand::Number(number), TensorLibrary::Numpy)));
    }
    Ok(None)
}

impl HetTensor {
    fn wrap_result(&self, py: Python<'_>, value: HetValue) -> PyResult<Py<PyAny>> {
        wrap_value(py, value, self.library)
    }

    fn apply_binary(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        op: BinaryOp,
        reverse: bool,
    ) -> PyResult<Py<PyAny>> {
        let Some((other, library)) = extract_other(value)? else { return Ok(py.NotImplemented()) };
        let out = run_detached(py, || match reverse {
            false => self.inner.binary(op, other.as_operand()),
            true => self.inner.binary_reverse(op, other.as_operand()),
        })?;
        wrap_value(py, out, self.library.prefer_torch(library))
    }

    fn apply_unary(&self, py: Python<'_>, function: UnaryOp) -> PyResult<Py<PyAny>> {
        let out = run_detached(py, || self.inner.unary(function))?;
        self.wrap_result(py, out)
    }

    fn reduce_dim(&self, py: Python<'_>, how: Reduction, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        let out = run_detached(py, || self.inner.reduce(how, dim))?;
        self.wrap_result(py, out)
    }
}

/// Returns a plain tensor if no dim varies, else a `HetTensor`.
fn wrap_value(py: Python<'_>, value: HetValue, library: TensorLibrary) -> PyResult<Py<PyAny>> {
    match value {
        HetValue::Dense(tensor) => Ok(give_tensor(py, tensor, library)?.unbind()),
        HetValue::Het(inner) => HetTensor { inner, library }.into_py_any(py),
    }
}

#[pymethods]
impl HetTensor {
    /// Creates a tensor from a nested list of tensors, or from one tensor.
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (nested, library) = extract_nested(data, 0)?;
        Ok(Self { inner: run_detached(data.py(), || Het::from_nested(&nested))?, library })
    }

    /// Creates a tensor from a `RaggedArray`, without a copy. Rows become dim 0, and missing values become
    /// holes.
    ///
    /// >>> serrate.HetTensor.from_ragged(serrate.RaggedArray([[1, 2], [3]])).sum(dim=0)
    /// array([4, 2])
    #[staticmethod]
    fn from_ragged(array: &RaggedArray) -> PyResult<Self> {
        Ok(Self {
            inner: run_here(|| Het::from_ragged(array.as_ragged()))?,
            library: TensorLibrary::Numpy,
        })
    }

    /// Concatenates tensors along a dim.
    ///
    /// >>> import numpy as np
    /// >>> x = serrate.HetTensor([np.array([1, 2]), np.array([3])])
    /// >>> serrate.HetTensor.cat([x, x], dim=1)
    /// [tensor([1, 2, 1, 2]), tensor([3, 3])]
    #[staticmethod]
    #[pyo3(signature = (tensors, dim=0))]
    fn cat(py: Python<'_>, tensors: Vec<Bound<'_, PyAny>>, dim: i64) -> PyResult<Py<PyAny>> {
        let mut library = TensorLibrary::Numpy;
        let mut all = Vec::with_capacity(tensors.len());
        for tensor in &tensors {
            let (het, of) = match tensor.cast::<Self>() {
                Ok(het) => (het.get().inner.clone(), het.get().library),
                Err(_) => {
                    let (tensor, of) = extract_tensor(tensor)?;
                    (run_here(|| Het::from_dense(&tensor))?, of)
                }
            };
            library = library.prefer_torch(of);
            all.push(het);
        }
        let out = run_detached(py, || cat(&all.iter().collect::<Vec<_>>(), dim))?;
        wrap_value(py, out, library)
    }

    /// The type of each dim: `batch` if its size is the same everywhere, `het` if it varies.
    #[getter]
    fn dim_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let class = py.import("serrate.hettensor")?.getattr("DimType")?;
        let kinds = self.inner.dim_types().into_iter().map(|kind| class.call1((kind.to_string(),)));
        PyList::new(py, kinds.collect::<PyResult<Vec<_>>>()?)
    }

    /// Size of every dim; -1 for dims whose size varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let size = |n: Option<usize>| n.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
        self.library.shape(py, self.inner.shape().into_iter().map(size))
    }

    /// Shape of the padded tensor.
    #[getter]
    fn max_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.shape(py, self.inner.max_shape())
    }

    /// Type of the values.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.dtype(py, self.inner.dtype())
    }

    /// Number of dims.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.ndim()
    }

    /// Returns the number of dims.
    fn dim(&self) -> usize {
        self.inner.ndim()
    }

    /// Returns the number of values, without holes.
    fn numel(&self) -> usize {
        self.inner.num_values()
    }

    /// Whether no dim varies and no value is missing.
    #[getter]
    fn is_dense(&self) -> bool {
        self.inner.is_dense()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.inner.max_shape().first().copied();
        first.ok_or_else(|| {
            PyTypeError::new_err(
                "a tensor without dims has no length; insert a dim with unsqueeze(0) first",
            )
        })
    }

    /// Returns nested lists of tensors; each part in which no dim varies is one tensor.
    fn unbind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap_nested(py, run_detached(py, || self.inner.unbind())?, self.library)
    }

    /// Returns the values as nested Python lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::python_lists::to_list(py, &run_here(|| self.inner.to_ragged()?.to_arrow())?)
            .map(Bound::into_any)
    }

    /// Returns a padded tensor of the shape `max_shape`, with 0 (or `fill`) where there is no value.
    #[pyo3(signature = (padding_side="right", fill=None, dtype=None, limit=None))]
    fn to_dense<'py>(
        &self,
        py: Python<'py>,
        padding_side: &str,
        fill: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        limit: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = parse_dense_options(py, padding_side, fill, None, limit)?;
        options.dtype = dtype.map(|d| extract_dtype(d).map(|(d, _)| d)).transpose()?;
        give_tensor(py, run_detached(py, || self.inner.to_dense(&options))?, self.library)
    }

    /// Returns the coordinates and the values: `(indices, values)`, with int64 indices of shape (dims,
    /// values).
    ///
    /// >>> import numpy as np
    /// >>> serrate.HetTensor([np.array([7, 8]), np.array([9])]).to_coo()
    /// (array([[0, 0, 1],
    ///        [0, 1, 0]]), array([7, 8, 9]))
    fn to_coo<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (places, values) = run_detached(py, || {
            let array = self.inner.to_ragged()?;
            let axes = coords(&array)?;
            let valid = array.leaves().logical_nulls();
            let kept = |values: &serrate::arrow::array::ArrayRef| match &valid {
                None => Ok(values.clone()),
                Some(nulls) => {
                    let keep =
                        serrate::arrow::array::BooleanArray::new(nulls.inner().clone(), None);
                    serrate::arrow::compute::filter(values, &keep)
                }
            };
            let mut bytes = Vec::new();
            for axis in &axes {
                let flat = DenseTensor::from_flat(kept(axis.leaves())?.as_ref(), "coordinates")?;
                bytes.extend_from_slice(flat.as_slice::<i64>()?);
            }
            let values = DenseTensor::from_flat(kept(array.leaves())?.as_ref(), "values")?;
            Ok((DenseTensor::from_vec([axes.len(), values.num_elements()], bytes)?, values))
        })?;
        Ok((give_tensor(py, places, self.library)?, give_tensor(py, values, self.library)?))
    }

    /// Returns a sparse torch tensor (COO) of the shape `max_shape`.
    fn to_sparse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let of_torch = Self { inner: self.inner.clone(), library: TensorLibrary::Torch };
        let (places, values) = of_torch.to_coo(py)?;
        let shape = of_torch.max_shape(py)?;
        let options = crate::tensor::make_keyword(py, "is_coalesced", true)?;
        import_torch(py)?.call_method("sparse_coo_tensor", (places, values, shape), Some(&options))
    }

    /// Returns a `RaggedArray` without a copy. Dim 0 becomes the rows, and holes become missing values.
    fn to_ragged(&self) -> PyResult<RaggedArray> {
        Ok(run_here(|| self.inner.to_ragged())?.into())
    }

    /// Returns the elements at an index. An integer removes a dim; slices (with steps and negative
    /// indices), lists of indices and masks keep it.
    ///
    /// In lists of different lengths, a slice selects from each list, and an integer leaves a hole where a
    /// list is too short.
    ///
    /// >>> import numpy as np
    /// >>> x = serrate.HetTensor([np.array([1, 2, 3]), np.array([4])])
    /// >>> x[:, -1], x[:, 1:]
    /// (array([3, 4]), [tensor([2, 3]), tensor([])])
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let index = index_in(index)?;
        let out = run_detached(py, || self.inner.index(&index)).map_err(as_index_error)?;
        self.wrap_result(py, out)
    }

    fn __iter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let rows = (0..slf.get().__len__()?)
            .map(|i| slf.get().__getitem__(py, &i.into_bound_py_any(py)?))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, rows)?.try_iter()?.into_any())
    }

    /// Returns the values at which a mask of the same structure is true; lists become shorter.
    fn filter(&self, py: Python<'_>, mask: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let mask = match extract_other(mask)? {
            Some((OwnedHetOperand::Het(mask), _)) => mask,
            Some((OwnedHetOperand::Dense(mask), _)) => run_here(|| Het::from_dense(&mask))?,
            _ => return Err(crate::errors::make_type_error("a mask must be a tensor of booleans")),
        };
        let out = run_detached(py, || self.inner.filter(&mask))?;
        self.wrap_result(py, out)
    }

    /// Inserts a dim of size 1 before dim `dim` (-1: after the last).
    fn unsqueeze(&self, py: Python<'_>, dim: i64) -> PyResult<Py<PyAny>> {
        let out = run_detached(py, || self.inner.unsqueeze(dim))?;
        self.wrap_result(py, out)
    }

    /// Removes a dim of size 1.
    fn squeeze(&self, py: Python<'_>, dim: i64) -> PyResult<Py<PyAny>> {
        let out = run_detached(py, || self.inner.squeeze(dim))?;
        self.wrap_result(py, out)
    }

    /// Returns the sum along a dim, or of all values. As in all reductions, holes are skipped.
    #[pyo3(signature = (dim=None))]
    fn sum(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Sum, dim)
    }

    /// Returns the mean; integers give float64.
    #[pyo3(signature = (dim=None))]
    fn mean(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Mean, dim)
    }

    /// Returns the product.
    #[pyo3(signature = (dim=None))]
    fn prod(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Prod, dim)
    }

    /// Returns the largest value.
    #[pyo3(signature = (dim=None))]
    fn amax(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Max, dim)
    }

    /// Returns the smallest value.
    #[pyo3(signature = (dim=None))]
    fn amin(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Min, dim)
    }

    /// Returns the number of values.
    #[pyo3(signature = (dim=None))]
    fn count(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        self.reduce_dim(py, Reduction::Count, dim)
    }

    /// Returns the softmax along a dim over the values, without holes.
    fn softmax(&self, py: Python<'_>, dim: i64) -> PyResult<Py<PyAny>> {
        let out = run_detached(py, || self.inner.softmax(dim))?;
        self.wrap_result(py, out)
    }

    /// Returns the same structure with other values: a function converts all values at once, as one flat
    /// array or tensor.
    ///
    /// >>> import numpy as np
    /// >>> serrate.HetTensor([np.array([1, 2]), np.array([3])]).apply(lambda v: v[::-1])
    /// [tensor([3, 2]), tensor([1])]
    fn apply(&self, py: Python<'_>, op: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (library, mut new) = (self.library, self.library);
        let mut failed = None;
        let out = self.inner.apply(|leaves| {
            let call = || -> PyResult<_> {
                let given = DenseTensor::from_flat(leaves.as_ref(), "values").or_raise()?;
                let (made, of) = extract_tensor(&op.call1((give_tensor(py, given, library)?,))?)?;
                if made.ndim() != 1 || made.num_elements() != leaves.len() {
                    return Err(make_invalid_error(format!(
                        "the function returned a tensor of shape {:?} for {} values, but must return one value for each in a flat tensor",
                        made.shape(),
                        leaves.len()
                    )));
                }
                let flat = made.to_flat().or_raise()?;
                let data = flat.to_data().into_builder().nulls(leaves.nulls().cloned()).build();
                Ok((serrate::arrow::array::make_array(data.or_raise()?), of))
            };
            let (array, of) = call().map_err(|e| {
                failed = Some(e);
                serrate::Error::invalid("internal error: the exception of the function was lost; please report it")
            })?;
            new = new.prefer_torch(of);
            Ok(array)
        });
        match (out, failed) {
            (_, Some(e)) => Err(e),
            (out, None) => wrap_value(py, out.or_raise()?, new),
        }
    }

    /// Returns the values converted to another type.
    fn to(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (dtype, library) = extract_dtype(dtype)?;
        let inner = run_detached(py, || self.inner.cast(dtype))?;
        Ok(Self { inner, library: self.library.prefer_torch(library) })
    }

    /// Returns the same tensor with torch tensors as results.
    fn torch(&self) -> Self {
        Self { inner: self.inner.clone(), library: TensorLibrary::Torch }
    }

    /// Returns the same tensor with numpy arrays as results.
    fn numpy(&self) -> Self {
        Self { inner: self.inner.clone(), library: TensorLibrary::Numpy }
    }

    /// Returns the square root of each value.
    fn sqrt(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Sqrt)
    }

    /// Returns e to the power of each value.
    fn exp(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Exp)
    }

    /// Returns the natural logarithm of each value.
    fn log(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Ln)
    }

    /// Returns the absolute value of each value.
    fn abs(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Abs)
    }

    /// Returns the sign of each value: -1, 0 or 1.
    fn sign(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Sign)
    }

    /// Rounds each value up.
    fn ceil(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Ceil)
    }

    /// Rounds each value down.
    fn floor(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Floor)
    }

    /// Rounds each value to a number of decimals, halves to even.
    #[pyo3(signature = (decimals=0))]
    fn round(&self, py: Python<'_>, decimals: i32) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Round(decimals))
    }

    /// Returns the smaller of two values, or NaN if either is NaN.
    fn minimum(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, other, BinaryOp::Minimum, false)
    }

    /// Returns the larger of two values, or NaN if either is NaN.
    fn maximum(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, other, BinaryOp::Maximum, false)
    }

    #[classattr]
    fn __array_ufunc__() -> Option<bool> {
        // None makes numpy call the operators of this class, as in `ndarray + array`.
        None
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Neg)
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Abs)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.apply_unary(py, UnaryOp::Not)
    }

    fn __add__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Add, false)
    }

    fn __radd__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Add, true)
    }

    fn __sub__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Sub, false)
    }

    fn __rsub__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Sub, true)
    }

    fn __mul__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Mul, false)
    }

    fn __rmul__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Mul, true)
    }

    fn __truediv__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Div, false)
    }

    fn __rtruediv__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Div, true)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Pow, false)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Pow, true)
    }

    fn __and__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::And, false)
    }

    fn __or__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Or, false)
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let op = match op {
            CompareOp::Eq => BinaryOp::Eq,
            CompareOp::Ne => BinaryOp::NotEq,
            CompareOp::Lt => BinaryOp::Lt,
            CompareOp::Le => BinaryOp::LtEq,
            CompareOp::Gt => BinaryOp::Gt,
            CompareOp::Ge => BinaryOp::GtEq,
        };
        self.apply_binary(py, value, op, false)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(make_invalid_error(
            "a tensor cannot be used as a condition, because each of its values is true or false; use equals() or a reduction",
        ))
    }

    /// Returns whether the other tensor has the same structure, type and values; NaN equals nothing.
    fn equals(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __repr__(&self) -> String {
        self.inner.to_string()
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'HetTensor'"))
    }

    fn __reduce__<'py>(
        slf: Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let het = slf.get();
        let make = py.import("serrate.hettensor")?.getattr("_restored")?;
        let array = het.to_ragged()?.into_bound_py_any(py)?;
        let torch = (het.library == TensorLibrary::Torch).into_bound_py_any(py)?;
        Ok((make, PyTuple::new(py, [array, torch])?))
    }
}
