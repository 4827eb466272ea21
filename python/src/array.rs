//! The Python class `RaggedArray`.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyCapsule, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyTuple,
};
use pyo3_arrow::ffi::to_array_pycapsules;
use serrate::array::{Layout, Offsets, RaggedArray as Ragged};
use serrate::arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array};
use serrate::arrow::compute::{CastOptions, cast, cast_with_options};
use serrate::arrow::datatypes::{DataType, Field};
use serrate::dense::{DType, DenseOptions, DenseTensor, Fill};
use serrate::index::{Index, IndexArray};
use serrate::kernels::densify::densify;
use serrate::kernels::elementwise::{self, BinaryOp, Operand};
use serrate::kernels::filter::filter;
use serrate::kernels::reduce::{Reduction, reduce, total};
use serrate::kernels::unary::{UnaryOp, unary};
use serrate::table::{Column, NanComparison, RaggedTable as Table};

use crate::errors::{OrRaise, make_invalid_error, make_type_error};
use crate::numpy_memory::{
    as_numpy, column_to_numpy, dense_pool, flat_from_numpy, make_dense, to_numpy,
};
use crate::python_lists;
use crate::run::{may_share_work, run_alone, run_detached, run_here};
use crate::sql::extract_ragged;
use crate::tensor::{TensorLibrary, give_tensor};

/// One column of nested lists, stored as flat values and the offsets of each axis. Axis 0 has the rows.
///
/// >>> array = serrate.RaggedArray([[1, 2, 3], [4]])
/// >>> array
/// RaggedArray([[1, 2, 3], [4]], shape=(2, None), dtype=int64)
/// >>> (array[:, -2:] * 10).to_list()
/// [[20, 30], [40]]
/// >>> array[array > 1].to_list()
/// [[2, 3], [4]]
/// >>> array.max(axis=-1).numpy(), array.leaves
/// (array([3, 4]), array([1, 2, 3, 4]))
/// >>> array.to_packed()
/// (array([1, 2, 3, 4]), array([0, 3, 4], dtype=int32))
#[pyclass(frozen, module = "serrate", sequence)]
pub(crate) struct RaggedArray {
    inner: Ragged,
}

impl From<Ragged> for RaggedArray {
    fn from(inner: Ragged) -> Self {
        Self { inner }
    }
}

impl RaggedArray {
    pub(crate) fn as_ragged(&self) -> &Ragged {
        &self.inner
    }
}

/// Name of the only column when an array is indexed as a table.
const COLUMN: &str = "values";

/// Converts an array to a table of one column.
pub(crate) fn as_table(array: &Ragged) -> serrate::Result<Table> {
    let axes = array.axes().iter().map(|a| (None, a.layout().clone())).collect();
    let nulls = array.axes().iter().map(|a| a.nulls().cloned()).collect();
    let column =
        Column::new(COLUMN, array.ndim() - 1, array.leaves().clone()).with_list_nulls(nulls);
    Table::try_new(array.len(), None, axes, vec![column])
}

/// Converts the argument `equal_nan` of a comparison.
pub(crate) fn to_nan_comparison(equal_nan: bool) -> NanComparison {
    if equal_nan { NanComparison::Equal } else { NanComparison::Unequal }
}

/// Converts the index expression between the brackets of `x[..]`.
pub(crate) fn extract_index(index: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| extract_index_item(&item)).collect(),
        Err(_) => Ok(vec![extract_index_item(index)?]),
    }
}

fn extract_index_item(item: &Bound<'_, PyAny>) -> PyResult<Index> {
    let py = item.py();
    if item.is_none() {
        return Ok(Index::NewAxis);
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(Index::Rest);
    }
    if item.is_instance_of::<PySlice>() {
        let part = |name| -> PyResult<Option<i64>> {
            let value = item.getattr(name)?;
            match value.is_none() {
                true => Ok(None),
                false => Ok(Some(value.call_method0("__index__")?.extract()?)),
            }
        };
        return Ok(Index::Slice {
            start: part("start")?,
            stop: part("stop")?,
            step: part("step")?,
        });
    }
    if !item.is_instance_of::<PyBool>()
        && let Ok(at) = item.extract::<i64>()
    {
        return Ok(Index::At(at));
    }
    let numpy = py.import(intern!(py, "numpy"))?;
    let source = match item.cast::<RaggedArray>() {
        Ok(ours) => ours.get().numpy(py)?,
        Err(_) => item.clone(),
    };
    let array = numpy.call_method1(intern!(py, "asarray"), (source,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let flat = array.call_method1("reshape", (-1,))?;
    let empty = shape.contains(&0) && item.is_instance_of::<PyList>();
    match kind.as_str() {
        "b" => Ok(Index::Mask(
            IndexArray::try_new(shape, flat.call_method0("tolist")?.extract()?).or_raise()?,
        )),
        "i" | "u" => Ok(Index::Array(
            IndexArray::try_new(shape, flat.call_method0("tolist")?.extract()?).or_raise()?,
        )),
        _ if empty => Ok(Index::Array(IndexArray::try_new(shape, Vec::new()).or_raise()?)),
        _ => Err(make_type_error(format!(
            "an index cannot be of type {}; use integers, slices, arrays of integers or booleans, ... or None",
            item.get_type().name()?
        ))),
    }
}

/// Returns a ragged array of booleans, which selects elements and keeps their lists; `None` for other
/// indices.
fn extract_list_mask(index: &Bound<'_, PyAny>) -> Option<Ragged> {
    let mask = &index.cast::<RaggedArray>().ok()?.get().inner;
    (mask.ndim() > 1 && mask.leaf_type() == &DataType::Boolean).then(|| mask.clone())
}

/// The second operand of an operator, converted from Python.
enum OwnedOperand {
    Array(Ragged),
    Scalar(ArrayRef),
}

impl OwnedOperand {
    fn as_operand(&self) -> Operand<'_> {
        match self {
            Self::Array(a) => Operand::Array(a),
            Self::Scalar(s) => Operand::Scalar(s),
        }
    }
}

/// Converts the second operand of an operator whose first operand has leaves of type `leaf`. Returns `None`
/// for a value of an unsupported type.
fn convert_operand(value: &Bound<'_, PyAny>, leaf: &DataType) -> PyResult<Option<OwnedOperand>> {
    if let Ok(ours) = value.cast::<RaggedArray>() {
        return Ok(Some(OwnedOperand::Array(ours.get().inner.clone())));
    }
    let py = value.py();
    if value.is_instance_of::<PyBool>() {
        let value: bool = value.extract()?;
        return Ok(Some(OwnedOperand::Scalar(Arc::new(BooleanArray::from(vec![value])))));
    }
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        let array: ArrayRef = match value.is_instance_of::<PyFloat>() {
            true => Arc::new(Float64Array::from(vec![value.extract::<f64>()?])),
            false => Arc::new(Int64Array::from(vec![value.extract::<i64>()?])),
        };
        // If the leaves are floats, a Python number gets their type, as in numpy.
        let array = match leaf.is_floating() {
            true => cast(&array, leaf).or_raise()?,
            false => array,
        };
        return Ok(Some(OwnedOperand::Scalar(array)));
    }
    let has_shape = value.hasattr(intern!(py, "shape"))?;
    if has_shape {
        let shape: Vec<usize> = value.getattr(intern!(py, "shape"))?.extract()?;
        if shape.is_empty() {
            return convert_operand(&value.call_method0("item")?, leaf);
        }
        return Ok(Some(OwnedOperand::Array(extract_ragged(value, "the other operand")?)));
    }
    if value.is_instance_of::<PyList>() {
        return Ok(Some(OwnedOperand::Array(extract_ragged(value, "the other operand")?)));
    }
    if value.is_instance_of::<pyo3::types::PyString>() || value.hasattr("isoformat")? {
        let one = PyList::new(py, [value])?;
        return Ok(Some(OwnedOperand::Scalar(
            python_lists::parse_lists(one.as_any(), "the other operand", None)?.into_flat()?,
        )));
    }
    Ok(None)
}

fn as_floats(array: &Ragged) -> serrate::Result<Ragged> {
    match array.leaf_type().is_integer() || array.leaf_type() == &DataType::Boolean {
        true => array.with_leaves(cast(array.leaves(), &DataType::Float64)?),
        false => Ok(array.clone()),
    }
}

/// Returns the remainder with the sign of the divisor, as in Python.
fn compute_modulo(a: Operand<'_>, b: &OwnedOperand) -> serrate::Result<Ragged> {
    let rest = elementwise::binary(BinaryOp::Rem, a, b.as_operand())?;
    let above = elementwise::binary(BinaryOp::Add, Operand::Array(&rest), b.as_operand())?;
    elementwise::binary(BinaryOp::Rem, Operand::Array(&above), b.as_operand())
}

impl RaggedArray {
    fn apply_binary<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        op: BinaryOp,
        reverse: bool,
    ) -> PyResult<Py<PyAny>> {
        let Some(other) = convert_operand(value, self.inner.leaf_type())? else {
            return Ok(py.NotImplemented());
        };
        let out = run_detached(py, || match reverse {
            false => elementwise::binary(op, Operand::Array(&self.inner), other.as_operand()),
            true => elementwise::binary(op, other.as_operand(), Operand::Array(&self.inner)),
        })?;
        Self::from(out).into_py_any(py)
    }

    fn divide_by<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        reverse: bool,
    ) -> PyResult<Py<PyAny>> {
        let floats = run_alone(py, || as_floats(&self.inner))?;
        let Some(other) = convert_operand(value, floats.leaf_type())? else {
            return Ok(py.NotImplemented());
        };
        let other = match other {
            OwnedOperand::Array(a) => OwnedOperand::Array(run_alone(py, || as_floats(&a))?),
            scalar => scalar,
        };
        let out = run_detached(py, || match reverse {
            false => {
                elementwise::binary(BinaryOp::Div, Operand::Array(&floats), other.as_operand())
            }
            true => elementwise::binary(BinaryOp::Div, other.as_operand(), Operand::Array(&floats)),
        })?;
        Self::from(out).into_py_any(py)
    }

    fn reduce_axis<'py>(
        &self,
        py: Python<'py>,
        how: Reduction,
        axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match axis {
            None => {
                let out = run_detached(py, || total(&self.inner, how))?;
                python_lists::to_list(py, out.leaves())?.get_item(0)
            }
            Some(_) => {
                let out = run_detached(py, || reduce(&self.inner, how, axis))?;
                Self::from(out).into_bound_py_any(py)
            }
        }
    }

    fn apply_unary(&self, py: Python<'_>, function: UnaryOp) -> PyResult<Self> {
        Ok(run_detached(py, || unary(function, &self.inner))?.into())
    }

    /// Returns the offsets of the rows in the leaves, starting at 0.
    fn row_ends(&self) -> serrate::Result<Vec<usize>> {
        let mut ends: Vec<usize> = (0..=self.inner.len()).collect();
        for axis in self.inner.axes() {
            let offsets = axis.layout().to_offsets()?.rebased();
            for end in &mut ends {
                *end = offsets.at(*end);
            }
        }
        Ok(ends)
    }
}

pub(crate) fn parse_dense_options(
    py: Python<'_>,
    side: &str,
    fill: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    limit: Option<u64>,
) -> PyResult<DenseOptions> {
    let fill = match fill {
        None => None,
        Some(v) if v.is_instance_of::<PyBool>() => Some(Fill::Bool(v.extract()?)),
        Some(v) => match (v.extract::<i64>(), v.extract::<u64>()) {
            (Ok(int), _) => Some(Fill::Int(int)),
            (_, Ok(int)) => Some(Fill::UInt(int)),
            _ => Some(Fill::Float(v.extract()?)),
        },
    };
    let dtype = match dtype {
        None => None,
        Some(d) => {
            let arrow = python_lists::parse_dtype(d)?;
            Some(DType::from_arrow(&arrow).ok_or_else(|| {
                make_invalid_error(format!(
                    "a dense tensor cannot have the type {arrow}; choose a number type or bool"
                ))
            })?)
        }
    };
    let (parallel, pool) = (may_share_work(py)?, Some(dense_pool(py)));
    Ok(DenseOptions { side: side.parse().or_raise()?, fill, dtype, limit, parallel, pool })
}

#[pymethods]
impl RaggedArray {
    /// Creates an array from nested lists, a numpy array, a tensor or nested tensor of torch, or an object with
    /// an Arrow interface.
    #[new]
    #[pyo3(signature = (values, dtype=None))]
    fn new(values: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let dtype = dtype.map(python_lists::parse_dtype).transpose()?;
        let is_list = values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>();
        if is_list {
            return Ok(python_lists::parse_lists(values, "the values", dtype.as_ref())?
                .into_ragged()
                .into());
        }
        let array = extract_ragged(values, "the values")?;
        let Some(dtype) = dtype else { return Ok(array.into()) };
        let strict = CastOptions { safe: false, ..Default::default() };
        let cast = || array.with_leaves(cast_with_options(array.leaves(), &dtype, &strict)?);
        Ok(run_alone(values.py(), cast)?.into())
    }

    /// Creates an array from flat values and, for each axis after the rows, the offsets of its lists: one
    /// more than there are lists.
    #[staticmethod]
    fn from_parts(values: &Bound<'_, PyAny>, offsets: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = values.py();
        let numpy = py.import(intern!(py, "numpy"))?;
        let flat = match values.cast::<RaggedArray>() {
            Ok(ours) => ours.get().inner.leaves().clone(),
            Err(_) => flat_from_numpy(&as_numpy(values)?)?,
        };
        let mut axes = Vec::new();
        for each in offsets.try_iter()? {
            let each: Vec<i64> =
                numpy.call_method1("asarray", (each?,))?.call_method0("tolist")?.extract()?;
            axes.push(run_alone(py, move || Offsets::try_new::<i64>(each))?);
        }
        let rows = axes.first().map_or(flat.len(), Offsets::lists);
        let axes = axes.into_iter().map(Into::into).collect();
        Ok(run_alone(py, move || Ragged::try_new(rows, axes, flat))?.into())
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Number of axes, including the rows.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.ndim()
    }

    /// Sizes of the axes; None for an axis whose lists differ in length.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.shape())
    }

    /// Sizes of the padded array: the length of the longest list of each axis.
    #[getter]
    fn max_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.max_shape())
    }

    /// numpy type of the values.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let none = serrate::arrow::array::new_empty_array(self.inner.leaf_type());
        crate::numpy_memory::flat_to_numpy(py, &none)?.getattr("dtype")
    }

    /// The values without their lists, as a flat, read-only numpy array.
    #[getter]
    fn leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column_to_numpy(py, self.inner.leaves())
    }

    /// For each axis after the rows, the offsets of its lists, starting at 0: one more than there are
    /// lists. Offsets that are stored so in 64 bits are read-only views; others are copies.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut out = Vec::with_capacity(self.inner.axes().len());
        for axis in self.inner.axes() {
            let offsets = run_alone(py, || Ok(axis.layout().to_offsets()?.to_i64()))?;
            let from_zero = Int64Array::new(offsets.into_inner(), None);
            out.push(column_to_numpy(py, &(Arc::new(from_zero) as ArrayRef))?);
        }
        PyList::new(py, out)
    }

    /// Returns the lengths of the lists of an axis; negative axes count from the innermost.
    #[pyo3(signature = (axis=-1))]
    fn lengths<'py>(&self, py: Python<'py>, axis: i64) -> PyResult<Bound<'py, PyAny>> {
        let lengths = run_alone(py, || self.inner.lengths(axis))?;
        let lengths = Int64Array::from_iter_values(
            lengths.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        );
        column_to_numpy(py, &(Arc::new(lengths) as ArrayRef))
    }

    /// Returns whether each value is missing, as an array of booleans.
    fn is_null(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::IsNull)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(mask) = extract_list_mask(index) {
            let kept = run_detached(py, || filter(&self.inner, &mask))?;
            return Self::from(kept).into_bound_py_any(py);
        }
        let index = extract_index(index)?;
        let table = run_alone(py, || as_table(&self.inner)?.index(&index))?;
        match table.array(COLUMN) {
            Ok(array) => Self::from(array).into_bound_py_any(py),
            Err(_) => {
                let scalar = run_here(|| table.scalar(COLUMN).cloned())?;
                python_lists::to_list(py, scalar.value())?.get_item(0)
            }
        }
    }

    fn __iter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let rows = (0..slf.get().inner.len())
            .map(|i| {
                let index = i.into_bound_py_any(py)?;
                slf.get().__getitem__(py, &index)
            })
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, rows)?.try_iter()?.into_any())
    }

    #[classattr]
    fn __array_ufunc__() -> Option<bool> {
        // None makes numpy call the operators of this class, as in `ndarray + array`.
        None
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
        self.divide_by(py, value, false)
    }

    fn __rtruediv__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.divide_by(py, value, true)
    }

    fn __mod__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Some(other) = convert_operand(value, self.inner.leaf_type())? else {
            return Ok(py.NotImplemented());
        };
        let out = run_detached(py, || compute_modulo(Operand::Array(&self.inner), &other))?;
        Self::from(out).into_py_any(py)
    }

    fn __floordiv__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Some(other) = convert_operand(value, self.inner.leaf_type())? else {
            return Ok(py.NotImplemented());
        };
        let out = run_detached(py, || {
            let rest = compute_modulo(Operand::Array(&self.inner), &other)?;
            let whole = elementwise::binary(
                BinaryOp::Sub,
                Operand::Array(&self.inner),
                Operand::Array(&rest),
            )?;
            let out =
                elementwise::binary(BinaryOp::Div, Operand::Array(&whole), other.as_operand())?;
            match out.leaf_type().is_floating() {
                true => unary(UnaryOp::Round(0), &out),
                false => Ok(out),
            }
        })?;
        Self::from(out).into_py_any(py)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Pow, false)
    }

    fn __and__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::And, false)
    }

    fn __or__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Or, false)
    }

    fn __xor__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.apply_binary(py, value, BinaryOp::Xor, false)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Not)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Neg)
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Abs)
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
            "an array cannot be used as a condition, because each of its values is true or false; use .any() or .all()",
        ))
    }

    /// Returns whether the other array has the same type, lists and values. If `equal_nan` is True, NaN
    /// equals NaN.
    #[pyo3(signature = (other, equal_nan=false))]
    fn equals(&self, py: Python<'_>, other: &Self, equal_nan: bool) -> PyResult<bool> {
        run_alone(py, || {
            as_table(&self.inner)?.equals(&as_table(&other.inner)?, to_nan_comparison(equal_nan))
        })
    }

    /// Returns the square root of each value.
    fn sqrt(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Sqrt)
    }

    /// Returns e to the power of each value.
    fn exp(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Exp)
    }

    /// Returns the natural logarithm of each value.
    fn log(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Ln)
    }

    /// Rounds each value to a number of decimals, halves to even.
    #[pyo3(signature = (decimals=0))]
    fn round(&self, py: Python<'_>, decimals: i32) -> PyResult<Self> {
        self.apply_unary(py, UnaryOp::Round(decimals))
    }

    /// Returns the sum of all values, or the sums along an axis. Missing values are skipped.
    #[pyo3(signature = (axis=None))]
    fn sum<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Sum, axis)
    }

    /// Returns the product of all values, or the products along an axis. Missing values are skipped.
    #[pyo3(signature = (axis=None))]
    fn prod<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Prod, axis)
    }

    /// Returns the mean; None if there are no values.
    #[pyo3(signature = (axis=None))]
    fn mean<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Mean, axis)
    }

    /// Returns the smallest value; None if there are no values.
    #[pyo3(signature = (axis=None))]
    fn min<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Min, axis)
    }

    /// Returns the largest value; None if there are no values.
    #[pyo3(signature = (axis=None))]
    fn max<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Max, axis)
    }

    /// Returns whether any value is true.
    #[pyo3(signature = (axis=None))]
    fn any<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Any, axis)
    }

    /// Returns whether all values are true.
    #[pyo3(signature = (axis=None))]
    fn all<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::All, axis)
    }

    /// Returns the variance, with `ddof` as in numpy.
    #[pyo3(signature = (axis=None, ddof=0))]
    fn var<'py>(
        &self,
        py: Python<'py>,
        axis: Option<i64>,
        ddof: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Var { ddof }, axis)
    }

    /// Returns the standard deviation, with `ddof` as in numpy.
    #[pyo3(signature = (axis=None, ddof=0))]
    fn std<'py>(
        &self,
        py: Python<'py>,
        axis: Option<i64>,
        ddof: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Std { ddof }, axis)
    }

    /// Returns the median; None if there are no values.
    #[pyo3(signature = (axis=None))]
    fn median<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Median, axis)
    }

    /// Returns the index of the first smallest value.
    #[pyo3(signature = (axis=None))]
    fn argmin<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::ArgMin, axis)
    }

    /// Returns the index of the first largest value.
    #[pyo3(signature = (axis=None))]
    fn argmax<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::ArgMax, axis)
    }

    /// Returns the number of values that are not missing.
    #[pyo3(signature = (axis=None))]
    fn count<'py>(&self, py: Python<'py>, axis: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_axis(py, Reduction::Count, axis)
    }

    /// Returns the array with its values converted to another type. Raises an error if a value does not
    /// fit.
    fn astype(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let dtype = python_lists::parse_dtype(dtype)?;
        let strict = CastOptions { safe: false, ..Default::default() };
        let out = run_detached(py, || {
            self.inner.with_leaves(cast_with_options(self.inner.leaves(), &dtype, &strict)?)
        })?;
        Ok(out.into())
    }

    /// Returns a padded copy as a writable numpy array.
    #[pyo3(signature = (padding_side="right", fill=None, sizes=None, dtype=None, limit=None))]
    fn to_dense<'py>(
        &self,
        py: Python<'py>,
        padding_side: &str,
        fill: Option<&Bound<'py, PyAny>>,
        sizes: Option<Vec<usize>>,
        dtype: Option<&Bound<'py, PyAny>>,
        limit: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = parse_dense_options(py, padding_side, fill, dtype, limit)?;
        let make = || densify(&self.inner, sizes.as_deref(), &options);
        give_tensor(py, make_dense(py, &options, make)?, TensorLibrary::Numpy)
    }

    /// Returns a boolean numpy array: True where the padded array has an element. `axis` limits the mask to
    /// the axes up to this one.
    #[pyo3(signature = (padding_side="right", axis=None))]
    fn mask<'py>(
        &self,
        py: Python<'py>,
        padding_side: &str,
        axis: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let axis = axis.unwrap_or(self.inner.ndim().saturating_sub(1));
        if axis == 0 || axis >= self.inner.ndim() {
            return Err(make_invalid_error(format!(
                "the array has no lists on axis {axis}; a mask needs an axis of lists, from 1 to ndim - 1"
            )));
        }
        // A mask depends only on the lists, so the values of the leaves do not matter.
        let elements = run_alone(py, || {
            let axes = self.inner.axes()[..axis].to_vec();
            let length = self.inner.axis_len(axis)?;
            let ones: ArrayRef = Arc::new(BooleanArray::from(vec![true; length]));
            Ragged::try_new(self.inner.len(), axes, ones)
        })?;
        let options = parse_dense_options(py, padding_side, None, None, None)?;
        let make = || densify(&elements, None, &options);
        give_tensor(py, make_dense(py, &options, make)?, TensorLibrary::Numpy)
    }

    /// Returns the flat values and the offsets of the rows (int32, from 0): `(values, cu_seqlens)`.
    fn to_packed<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let ends = run_alone(py, || self.row_ends())?;
        let ends =
            ends.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>().map_err(|_| {
                make_invalid_error("the array has more than 2^31 - 1 values, the maximum of int32 offsets; convert fewer rows at a time")
            })?;
        let ends = DenseTensor::from_vec([ends.len()], ends).or_raise()?;
        Ok((self.leaves(py)?, to_numpy(py, &ends)?.call_method0("copy")?))
    }

    /// Returns a numpy array. The lists of each axis must have equal lengths.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let flat = column_to_numpy(py, self.inner.leaves())?;
        if self.inner.ndim() == 1 {
            return Ok(flat);
        }
        let mut shape = vec![self.inner.len()];
        for axis in self.inner.axes() {
            let layout = axis.layout();
            let size = layout.max_length();
            let uniform = match layout {
                Layout::Uniform { .. } => true,
                Layout::Ragged(o) => o.lengths().all(|n| n == size),
            };
            if !uniform || axis.nulls().is_some() {
                return Err(make_invalid_error(
                    "the array has lists of different lengths (or missing lists), which a numpy array cannot hold; pad them with to_dense(), or take the flat values from .leaves",
                ));
            }
            shape.push(size);
        }
        flat.call_method1("reshape", (PyTuple::new(py, shape)?,))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut array = self.numpy(py)?;
        if let Some(dtype) = dtype {
            array = array.call_method1("astype", (dtype,))?;
        } else if copy == Some(true) {
            array = array.call_method0("copy")?;
        }
        Ok(array)
    }

    /// Returns nested Python lists.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        python_lists::to_list(py, &run_alone(py, || self.inner.to_arrow())?)
    }

    /// Returns nested Python lists, like `to_list`.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.to_list(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let array = run_alone(py, || self.inner.to_arrow())?;
        let field = Field::new("", array.data_type().clone(), true);
        Ok(to_array_pycapsules(py, Arc::new(field), array.as_ref(), requested_schema)?)
    }

    fn __reduce__<'py>(
        slf: Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let array = slf.get();
        if array.has_nulls() || DType::from_arrow(array.inner.leaf_type()).is_none() {
            let args = PyTuple::new(py, [array.to_list(py)?.into_any(), array.dtype(py)?])?;
            return Ok((slf.get_type().into_any(), args));
        }
        let args = PyTuple::new(
            py,
            [array.leaves(py)?.call_method0("copy")?, array.offsets(py)?.into_any()],
        )?;
        Ok((slf.get_type().getattr("from_parts")?, args))
    }

    fn __repr__(&self) -> PyResult<String> {
        let text = run_here(|| {
            let array = self.inner.to_arrow()?;
            Ok(crate::display::format_value(&array)?)
        })?;
        let shape: Vec<String> =
            self.inner.shape().iter().map(|n| n.map_or("None".into(), |n| n.to_string())).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let kind = crate::display::type_name(self.inner.leaf_type());
        Ok(format!("RaggedArray({text}, shape=({}{comma}), dtype={kind})", shape.join(", ")))
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'RaggedArray'"))
    }

    /// Whether any value or list is missing.
    #[getter]
    fn has_nulls(&self) -> bool {
        self.inner.leaves().logical_null_count() > 0
            || self.inner.axes().iter().any(|a| a.nulls().is_some_and(|n| n.null_count() > 0))
    }

    /// Returns a dict of the arguments of `from_parts`: flat values and offsets.
    fn to_parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        out.set_item("values", self.leaves(py)?)?;
        out.set_item("offsets", self.offsets(py)?)?;
        Ok(out)
    }
}
