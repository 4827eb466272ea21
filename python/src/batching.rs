//! The batched functions of `batching_helpers`.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serrate::batching::{
    self as ops, AnyBatch, BatchField, CompactField, IndexOptions, NestedSamples, NonFiniteMeans,
    RaggedBatch as CoreBatch,
};
use serrate::dense::Fill;

use crate::errors::{as_index_error, make_invalid_error, make_type_error};
use crate::ragged_batch::{RaggedBatch, to_ragged_batch};
use crate::run::run_detached;
use crate::tensor::{
    TensorLibrary, check_device, extract_fill, extract_tensor, give_tensor, is_tensor, to_axis,
};

/// Converts an argument that is a `RaggedBatch` or a tensor, and returns the library of its tensors.
fn extract_any_batch(value: &Bound<'_, PyAny>) -> PyResult<(AnyBatch, TensorLibrary)> {
    if let Ok(batch) = value.cast::<RaggedBatch>() {
        let batch = batch.try_borrow()?;
        return Ok((AnyBatch::Ragged(batch.inner.clone()), batch.library));
    }
    let (tensor, library) = extract_tensor(value)?;
    Ok((AnyBatch::Dense(tensor), library))
}

fn wrap_any_batch(
    py: Python<'_>,
    any: AnyBatch,
    library: TensorLibrary,
) -> PyResult<Bound<'_, PyAny>> {
    match any {
        AnyBatch::Dense(tensor) => give_tensor(py, tensor, library),
        AnyBatch::Ragged(batch) => RaggedBatch::from_inner(batch, library).into_bound_py_any(py),
    }
}

fn extract_filler(value: Option<&Bound<'_, PyAny>>) -> PyResult<Fill> {
    value.map_or(Ok(Fill::Int(0)), extract_fill)
}

/// Returns the tensor with `value_to_set` where the mask is False. The axes of the mask are the first axes
/// of the tensor.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import apply_mask_to_tensor
/// >>> apply_mask_to_tensor(np.array([[1, 2], [3, 4]]), np.array([[True, False], [True, True]]), -1)
/// array([[ 1, -1],
///        [ 3,  4]])
#[pyfunction]
#[pyo3(signature = (data, mask, value_to_set=None))]
pub(crate) fn apply_mask_to_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    mask: &Bound<'py, PyAny>,
    value_to_set: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((data, a), (mask, b)) = (extract_tensor(data)?, extract_tensor(mask)?);
    let value = extract_filler(value_to_set)?;
    give_tensor(
        py,
        run_detached(py, || ops::apply_mask_to_tensor(&data, &mask, value))?,
        a.prefer_torch(b),
    )
}

/// Returns the mean of the entries of each sample. A sample without entries gives 0, or NaN if
/// `nans_to_zero` is False.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import average_over_targets
/// >>> batch = serrate.RaggedBatch(np.array([[1.0, 2.0], [4.0, 0.0]]), sample_sizes=np.array([2, 1]))
/// >>> average_over_targets(batch)
/// array([1.5, 4. ])
#[pyfunction]
#[pyo3(signature = (data, nans_to_zero=true))]
pub(crate) fn average_over_targets<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    nans_to_zero: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let data = to_ragged_batch(data, "data")?;
    let non_finite = if nans_to_zero { NonFiniteMeans::Zero } else { NonFiniteMeans::Keep };
    let out = run_detached(py, || ops::average_over_targets(&data.inner, non_finite))?;
    give_tensor(py, out, data.library)
}

/// Returns the sum of the entries of each sample.
#[pyfunction]
pub(crate) fn sum_over_targets<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let data = to_ragged_batch(data, "data")?;
    give_tensor(py, run_detached(py, || ops::sum_over_targets(&data.inner))?, data.library)
}

/// Returns a batch of the entries of each sample where the mask is True.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import batched_bool_indexing
/// >>> mask = np.array([[True, False, True], [False, True, False]])
/// >>> batched_bool_indexing(np.array([[1, 2, 3], [4, 5, 6]]), mask).split()
/// [array([1, 3]), array([5])]
#[pyfunction]
pub(crate) fn batched_bool_indexing(
    py: Python<'_>,
    input_data: &Bound<'_, PyAny>,
    input_mask: &Bound<'_, PyAny>,
) -> PyResult<RaggedBatch> {
    let ((data, a), (mask, b)) = (extract_any_batch(input_data)?, extract_any_batch(input_mask)?);
    Ok(RaggedBatch::from_inner(
        run_detached(py, || ops::batched_bool_indexing(data, mask))?,
        a.prefer_torch(b),
    ))
}

/// Returns a copy of `to_write_into` with the entries of `to_write` written where the mask is True.
#[pyfunction]
pub(crate) fn batched_bool_indexing_write<'py>(
    py: Python<'py>,
    to_write: &Bound<'py, PyAny>,
    output_mask: &Bound<'py, PyAny>,
    to_write_into: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let from = to_ragged_batch(to_write, "to_write")?;
    let ((mask, a), (into, b)) =
        (extract_any_batch(output_mask)?, extract_any_batch(to_write_into)?);
    let out = run_detached(py, || ops::batched_bool_indexing_write(&from.inner, mask, into))?;
    wrap_any_batch(py, out, from.library.prefer_torch(a).prefer_torch(b))
}

/// Returns a batch of the entries at the indices of each sample.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import batched_indexing_access
/// >>> indices = serrate.RaggedBatch(np.array([[2, 0], [1, 0]]), sample_sizes=np.array([2, 1]))
/// >>> batched_indexing_access(np.array([[1, 2, 3], [4, 5, 6]]), indices, filler_value=-1).tensor
/// array([[ 3,  1],
///        [ 5, -1]])
#[pyfunction]
#[pyo3(signature = (input_data, input_indices, filler_value=None, dim_to_index_in=None))]
pub(crate) fn batched_indexing_access(
    py: Python<'_>,
    input_data: &Bound<'_, PyAny>,
    input_indices: &Bound<'_, PyAny>,
    filler_value: Option<&Bound<'_, PyAny>>,
    dim_to_index_in: Option<i64>,
) -> PyResult<RaggedBatch> {
    let (data, library) = extract_any_batch(input_data)?;
    let indices = to_ragged_batch(input_indices, "input_indices")?;
    let (filler, dim) = (extract_filler(filler_value)?, dim_to_index_in.map(to_axis).transpose()?);
    let options = IndexOptions::default();
    let out = run_detached(py, || {
        ops::batched_indexing_access(data, &indices.inner, filler, dim, &options)
    })?;
    Ok(RaggedBatch::from_inner(out, library.prefer_torch(indices.library)))
}

/// Returns a tensor filled with `filler_value`, with the entries of each sample written to its indices.
#[pyfunction]
#[pyo3(signature = (input_data, output_indices, output_num_targets, filler_value=None, dim_to_index_in=None))]
pub(crate) fn batched_inverse_indexing_access<'py>(
    py: Python<'py>,
    input_data: &Bound<'py, PyAny>,
    output_indices: &Bound<'py, PyAny>,
    output_num_targets: i64,
    filler_value: Option<&Bound<'py, PyAny>>,
    dim_to_index_in: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (data, library) = extract_any_batch(input_data)?;
    let indices = to_ragged_batch(output_indices, "output_indices")?;
    let (filler, dim) = (extract_filler(filler_value)?, dim_to_index_in.map(to_axis).transpose()?);
    let (targets, options) = (to_axis(output_num_targets)?, IndexOptions::default());
    let out = run_detached(py, || {
        let to = &indices.inner;
        ops::batched_inverse_indexing_access(data, to, targets, filler, dim, &options)
    })?;
    give_tensor(py, out, library.prefer_torch(indices.library))
}

/// Returns a copy of `to_write_into` with the entries of each sample written to its indices.
#[pyfunction]
#[pyo3(signature = (to_write, output_indices, to_write_into, dim_to_index_in=None))]
pub(crate) fn batched_indexing_write<'py>(
    py: Python<'py>,
    to_write: &Bound<'py, PyAny>,
    output_indices: &Bound<'py, PyAny>,
    to_write_into: &Bound<'py, PyAny>,
    dim_to_index_in: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((from, a), (into, b)) = (extract_any_batch(to_write)?, extract_any_batch(to_write_into)?);
    let indices = to_ragged_batch(output_indices, "output_indices")?;
    let dim = dim_to_index_in.map(to_axis).transpose()?;
    let options = IndexOptions::default();
    let out = run_detached(py, || {
        ops::batched_indexing_write(from, &indices.inner, into, dim, &options)
    })?;
    wrap_any_batch(py, out, a.prefer_torch(b).prefer_torch(indices.library))
}

/// Returns a copy of the target in which the entries at `target_indices` are the entries of the source at
/// `source_indices`.
#[pyfunction]
pub(crate) fn batched_index_mapping<'py>(
    py: Python<'py>,
    source_data: &Bound<'py, PyAny>,
    source_indices: &Bound<'py, PyAny>,
    target_indices: &Bound<'py, PyAny>,
    target_data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((source, a), (target, b)) =
        (extract_any_batch(source_data)?, extract_any_batch(target_data)?);
    let from = to_ragged_batch(source_indices, "source_indices")?;
    let to = to_ragged_batch(target_indices, "target_indices")?;
    let options = IndexOptions::default();
    let out = run_detached(py, || {
        ops::batched_index_mapping(source, &from.inner, &to.inner, target, &options)
    })?;
    wrap_any_batch(py, out, a.prefer_torch(b).prefer_torch(from.library).prefer_torch(to.library))
}

/// Returns a batch of the indices at which each row of a mask is True.
#[pyfunction]
pub(crate) fn get_indices_from_mask(
    py: Python<'_>,
    mask: &Bound<'_, PyAny>,
) -> PyResult<RaggedBatch> {
    let (mask, library) = extract_any_batch(mask)?;
    Ok(RaggedBatch::from_inner(run_detached(py, || ops::get_indices_from_mask(mask))?, library))
}

/// Returns a mask that is True at the indices of each sample.
#[pyfunction]
pub(crate) fn get_mask_from_indices<'py>(
    py: Python<'py>,
    mask_num_targets: i64,
    indices: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (targets, indices) = (to_axis(mask_num_targets)?, to_ragged_batch(indices, "indices")?);
    let out = run_detached(py, || ops::get_mask_from_indices(targets, &indices.inner))?;
    give_tensor(py, out, indices.library)
}

/// Returns the data without axes of size 1, except for the batch axes and the non-uniform axis.
#[pyfunction]
pub(crate) fn squeeze_except_batch_and_sample<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (data, library) = extract_any_batch(data)?;
    wrap_any_batch(py, run_detached(py, || ops::squeeze_except_batch_and_sample(data))?, library)
}

type CompactItems<'py> = Vec<Bound<'py, PyAny>>;

/// Returns the items of `data`, with each tensor replaced by a batch of its entries where the mask is True.
fn compact_tensors<'py>(
    mask: &Bound<'py, PyAny>,
    data: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<CompactItems<'py>> {
    let py = mask.py();
    let (mask, of_mask) = extract_tensor(mask)?;
    let (mut fields, mut libraries) = (Vec::new(), Vec::new());
    for item in data {
        let item = item?;
        let (field, library) = match is_tensor(&item)? {
            true => {
                let (tensor, library) = extract_tensor(&item)?;
                (BatchField::Tensor(tensor), library)
            }
            false => (BatchField::Other(item.unbind()), TensorLibrary::Numpy),
        };
        fields.push(field);
        libraries.push(of_mask.prefer_torch(library));
    }
    // The mask is an index, so raise its errors as index errors.
    let out = run_detached(py, || ops::get_compact_lists(&mask, fields)).map_err(as_index_error)?;
    let each = out.into_iter().zip(libraries).map(|(field, library)| match field {
        CompactField::Batch(batch) => RaggedBatch::from_inner(batch, library).into_bound_py_any(py),
        CompactField::Other(other) => Ok(other.into_bound(py)),
    });
    each.collect()
}

/// Returns a list in which each tensor is replaced by a batch of its entries where the mask is True. Other
/// items stay unchanged.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import get_compact_lists
/// >>> mask = np.array([[True, False, True]])
/// >>> get_compact_lists(mask, [np.array([[1, 2, 3]]), "camera"])
/// [RaggedBatch(shape=(1, 2), non_uniform_dim=1, sample_sizes=[2], dtype=int64), 'camera']
#[pyfunction]
pub(crate) fn get_compact_lists<'py>(
    mask: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<CompactItems<'py>> {
    compact_tensors(mask, data.try_iter()?)
}

/// Applies `get_compact_lists` to the fields of a named tuple. Returns a named tuple of the same class.
#[pyfunction]
pub(crate) fn get_compact_from_named_tuple<'py>(
    mask: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if data.cast::<PyTuple>().is_err() || !data.hasattr("_fields")? {
        return Err(make_type_error(format!(
            "data must be a named tuple, not {}",
            data.get_type().name()?
        )));
    }
    let out = compact_tensors(mask, data.try_iter()?)?;
    data.get_type().call_method1("_make", (PyList::new(data.py(), out)?,))
}

fn extract_samples(
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> PyResult<(NestedSamples, TensorLibrary)> {
    if is_tensor(value)? {
        let (tensor, library) = extract_tensor(value)?;
        return Ok((NestedSamples::Tensor(tensor), library));
    }
    if value.cast::<PyList>().is_err() && value.cast::<PyTuple>().is_err() {
        return Err(make_invalid_error(format!(
            "data_list contains a {}, but must consist of tensors in (nested) lists",
            value.get_type().name()?
        )));
    }
    if depth > 64 {
        return Err(make_invalid_error(
            "the lists are nested more than 64 levels deep, the maximum; remove levels",
        ));
    }
    let (mut library, mut parts) = (TensorLibrary::Numpy, Vec::new());
    for item in value.try_iter()? {
        let (part, of) = extract_samples(&item?, depth + 1)?;
        library = library.prefer_torch(of);
        parts.push(part);
    }
    Ok((NestedSamples::List(parts), library))
}

/// Combines tensors of different sizes, in a list or nested lists, into one batch with filler 0.
///
/// Nested lists are flattened, or each level of lists becomes a batch axis.
///
/// >>> import numpy as np
/// >>> from serrate.batching_helpers import combine_data
/// >>> combine_data([np.array([1, 2]), np.array([3])]).tensor
/// array([[1, 2],
///        [3, 0]])
#[pyfunction]
#[pyo3(signature = (data_list, other_with_same_sample_sizes=None, device=None, flatten_batch_dims=true))]
pub(crate) fn combine_data(
    py: Python<'_>,
    data_list: &Bound<'_, PyAny>,
    other_with_same_sample_sizes: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    flatten_batch_dims: bool,
) -> PyResult<RaggedBatch> {
    check_device(device)?;
    let (samples, library) = extract_samples(data_list, 0)?;
    let other = other_with_same_sample_sizes
        .map(|other| to_ragged_batch(other, "other_with_same_sample_sizes"))
        .transpose()?;
    let sizes: Option<&CoreBatch> = other.as_ref().map(|other| &other.inner);
    let out = run_detached(py, || ops::combine_data(&samples, sizes, flatten_batch_dims))?;
    Ok(RaggedBatch::from_inner(out, library))
}
