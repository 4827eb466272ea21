//! Converts Python arguments of [`DokTensor`]: values, operands, axes, shapes.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serrate::dense::{DType, DenseTensor, Fill};
use serrate::dok::{DokTensor as Dok, DokValue, DuplicateEntries, ReducedAxes, RowMap};

use super::DokTensor;
use crate::errors::{make_invalid_error, make_type_error};
use crate::run::run_detached;
use crate::tensor::{
    TensorLibrary, extract_axes, extract_fill, extract_tensor, is_number, is_tensor, is_torch,
};
/// A value to write, or the second operand of an operator.
pub(super) enum OperandValue {
    Number(Fill),
    Dense(DenseTensor),
    Sparse(Dok),
}

impl OperandValue {
    /// Converts a value to write. A sparse tensor must have the shape of the selected elements.
    pub(super) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(sparse) = value.cast::<DokTensor>() {
            return Ok(Self::Sparse(sparse.try_borrow()?.inner.view()));
        }
        if is_coo(value)? {
            return Ok(Self::Sparse(extract_coo(value)?));
        }
        if is_number(value)? && !is_tensor(value)? {
            return Ok(Self::Number(extract_fill(value)?));
        }
        Ok(Self::Dense(extract_tensor(value)?.0))
    }

    pub(super) fn as_value(&self) -> DokValue<'_> {
        match self {
            Self::Number(fill) => DokValue::Scalar(*fill),
            Self::Dense(tensor) => DokValue::Dense(tensor),
            Self::Sparse(tensor) => DokValue::Sparse(tensor),
        }
    }
}

/// Returns whether a value is a sparse torch tensor.
pub(super) fn is_coo(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_torch(value, "Tensor")? && value.getattr("is_sparse")?.is_truthy()?)
}

/// Converts a sparse torch tensor; entries with equal coordinates are added up.
pub(super) fn extract_coo(value: &Bound<'_, PyAny>) -> PyResult<Dok> {
    let (indices, _) = extract_tensor(&value.call_method0("_indices")?)?;
    let (values, _) = extract_tensor(&value.call_method0("_values")?.call_method0("detach")?)?;
    let shape: Vec<usize> = value.getattr("shape")?.extract()?;
    if value.getattr("requires_grad")?.is_truthy()? {
        // `extract_tensor` raises the error for tensors that require a gradient.
        extract_tensor(&value.call_method0("_values")?)?;
    }
    if values.ndim() != 1 {
        return Err(make_invalid_error(
            "the tensor is a hybrid sparse tensor with dense axes, which is not supported; convert it with to_dense().to_sparse()",
        ));
    }
    run_detached(value.py(), || Dok::from_coo(shape, &indices, &values, DuplicateEntries::Sum))
}

/// Converts the second operand of an operator, and returns the library of the operand. Returns
/// `None` if the operand is neither a number nor a tensor.
pub(super) fn extract_operand(
    value: &Bound<'_, PyAny>,
) -> PyResult<Option<(OperandValue, TensorLibrary)>> {
    if let Ok(sparse) = value.cast::<DokTensor>() {
        let sparse = sparse.try_borrow()?;
        return Ok(Some((OperandValue::Sparse(sparse.inner.view()), sparse.library)));
    }
    if is_coo(value)? {
        return Ok(Some((OperandValue::Sparse(extract_coo(value)?), TensorLibrary::Torch)));
    }
    if is_number(value)? {
        return Ok(Some((OperandValue::Number(extract_fill(value)?), TensorLibrary::Numpy)));
    }
    match is_tensor(value)? {
        true => extract_tensor(value)
            .map(|(tensor, library)| Some((OperandValue::Dense(tensor), library))),
        false => Ok(None),
    }
}

/// Converts the axes of a reduction; `None` for all axes.
pub(super) fn extract_reduced_axes(dim: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<i64>>> {
    dim.map(extract_axes).transpose()
}

/// Converts the argument `keepdim` of a reduction.
pub(super) fn to_reduced_axes(keepdim: bool) -> ReducedAxes {
    if keepdim { ReducedAxes::Keep } else { ReducedAxes::Remove }
}

/// Converts the argument `dim` of the function `what`, such as softmax: the axes along which the
/// values of the result add up to 1. Returns an error if `dim` is absent.
pub(super) fn extract_required_axes(
    dim: Option<&Bound<'_, PyAny>>,
    what: &str,
) -> PyResult<Vec<i64>> {
    match dim {
        Some(dim) => extract_axes(dim),
        None => Err(make_type_error(format!(
            "{what} needs the argument dim, the axis along which the values add up to 1"
        ))),
    }
}

pub(super) fn extract_shape(size: &[i64]) -> PyResult<Vec<usize>> {
    let sizes = size.iter().map(|n| {
        usize::try_from(*n).map_err(|_| {
            make_invalid_error(format!("the size {n} is negative; sizes must be 0 or more"))
        })
    });
    sizes.collect()
}

/// Creates a tensor from a map whose keys are coordinates.
pub(super) fn make_tensor_from_map(
    map: &RowMap,
    shape: Option<Vec<usize>>,
) -> serrate::Result<Dok> {
    let (keys, values) = (map.keys()?, map.values()?);
    let [count, ndim] = *keys.shape() else {
        return Err(serrate::Error::invalid(format!(
            "the keys have the shape {:?}, but coordinates must be rows of integers, of shape [entries, axes]",
            keys.shape()
        )));
    };
    let rows = keys.cast(DType::I64)?;
    let rows = rows.as_slice::<i64>()?;
    let by_axis = (0..ndim).flat_map(|a| (0..count).map(move |i| rows[i * ndim + a]));
    let indices = DenseTensor::from_vec([ndim, count], by_axis.collect::<Vec<_>>())?;
    let values = values.reshape([count])?;
    let shape = match shape {
        Some(shape) => shape,
        None => {
            let largest = |a: usize| (0..count).map(|i| rows[i * ndim + a]).max().unwrap_or(-1);
            (0..ndim).map(|a| usize::try_from(largest(a).saturating_add(1)).unwrap_or(0)).collect()
        }
    };
    Dok::from_coo(shape, &indices, &values, DuplicateEntries::Last)
}

/// Converts an argument of a torch function: each `DokTensor` becomes a sparse torch tensor.
pub(super) fn as_coo(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = value.py();
    if let Ok(ours) = value.cast::<DokTensor>() {
        let ours = ours.try_borrow()?;
        return DokTensor::from_inner(ours.inner.view(), TensorLibrary::Torch).to_sparse_coo(py);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let items = list.iter().map(as_coo).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        let items = tuple.iter().map(as_coo).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    Ok(value)
}
