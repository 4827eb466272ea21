//! Supports the Python class `JointNestedRaggedTensorDict`: files that are read lazily, tensors as files
//! store them, and stacks of tables. Nothing here uses threads, so that it works in a forked process.

use std::ops::Range;
use std::path::PathBuf;

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PySlice, PyTuple};
use serrate::array::Offsets;
use serrate::arrow::datatypes::DataType;
use serrate::dense::{DenseOptions, DenseTensor};
use serrate::io::nrt::{NrtFile, ReadOptions};
use serrate::io::safetensors::{SaveOptions, dense};
use serrate::loader::{StackTensor, TableStack};
use serrate::table::{Column, RaggedTable as Table};

use crate::errors::{OrRaise, make_invalid_error};
use crate::numpy_memory::{dense_pool, from_numpy, make_dense};
use crate::run::{may_share_work, run_alone, run_here};
use crate::table::{RaggedTable, copy_integers, copy_values, remove_scalars};
use crate::tensor::{TensorLibrary, give_tensor};

/// A memory-mapped `.nrt` file, with all or some of its columns.
#[pyclass(frozen, module = "serrate._serrate")]
pub(crate) struct JointFile {
    file: NrtFile,
    /// Names of the visible columns; `None` for all.
    columns: Option<Vec<String>>,
    /// Names of the visible tensors, sorted.
    names: Vec<String>,
    /// Number of dimensions of the deepest visible tensor.
    max_ndim: usize,
    /// Whether there are visible columns, and all of them are on axis 1 or deeper.
    is_below_rows: bool,
}

fn format_tensor_name(axis: usize, column: &str) -> String {
    let prefix = format!("dim{axis}/");
    // If names of columns collide, the reader has already given the column its full name.
    if column.starts_with(&prefix) { column.to_owned() } else { prefix + column }
}

#[pymethods]
impl JointFile {
    #[new]
    #[pyo3(signature = (path, keys=None))]
    fn new(path: PathBuf, keys: Option<Vec<String>>) -> PyResult<Self> {
        let options = ReadOptions { mmap: true, large_lists: true };
        let file = run_here(|| NrtFile::open(&path, &options))?;
        let seen = |name: &str| {
            let key =
                name.split_once('/').filter(|(d, _)| d.starts_with("dim")).map_or(name, |(_, k)| k);
            keys.as_ref().is_none_or(|keys| keys.iter().any(|k| k == name || k == key))
        };
        let found: Vec<_> = file.columns().iter().filter(|c| seen(c.name())).collect();
        let deepest = match keys {
            Some(_) => found.iter().map(|c| c.axis()).max().unwrap_or(0),
            None => file.ndim().saturating_sub(1),
        };
        let mut names: Vec<String> =
            found.iter().map(|c| format_tensor_name(c.axis(), c.name())).collect();
        names.extend((1..=deepest).map(|axis| format!("dim{axis}/bounds")));
        names.sort();
        let is_below_rows = !found.is_empty() && found.iter().all(|c| c.axis() > 0);
        let columns = keys.is_some().then(|| found.iter().map(|c| c.name().to_owned()).collect());
        let last =
            names.iter().filter_map(|n| n.strip_prefix("dim")?.split('/').next()?.parse().ok());
        let max_ndim = last.max().map_or(1, |d: usize| d + 1);
        Ok(Self { file, columns, names, max_ndim, is_below_rows })
    }

    /// Names of the tensors, sorted.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn __len__(&self) -> usize {
        self.file.num_rows()
    }

    /// Returns name, axis and type of every column, like `RaggedTable._kinds`.
    fn kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let none = self.read(0..0)?;
        Bound::new(py, RaggedTable::from(none))?.call_method0("_kinds")
    }

    /// Returns all rows as a table over the mapped file.
    fn table(&self) -> PyResult<RaggedTable> {
        Ok(self.read(0..self.file.num_rows())?.into())
    }

    /// Returns the rows and elements at an index; see [`take_elements`].
    fn take(&self, index: &Bound<'_, PyAny>) -> PyResult<(RaggedTable, usize)> {
        if let Some(elements) = self.take_elements(index)? {
            return Ok((elements.into(), 1));
        }
        take_elements(index, self.file.num_rows(), self.max_ndim, &|range| self.read(range))
    }
}

impl JointFile {
    fn read(&self, range: Range<usize>) -> PyResult<Table> {
        let columns = self.column_names();
        run_here(|| self.file.read(range, columns.as_deref()))
    }

    fn column_names(&self) -> Option<Vec<&str>> {
        self.columns.as_ref().map(|columns| columns.iter().map(String::as_str).collect())
    }

    /// If the index consists of the number of a row and a slice, and no visible column is on axis
    /// 0, returns the elements of the slice in this row. Reads only the bounds and the values of
    /// these elements. Returns `None` for any other index.
    fn take_elements(&self, index: &Bound<'_, PyAny>) -> PyResult<Option<Table>> {
        let Ok(items) = index.cast::<PyTuple>() else { return Ok(None) };
        if !self.is_below_rows || items.len() != 2 {
            return Ok(None);
        }
        let (row, within) = (items.get_item(0)?, items.get_item(1)?);
        let Ok(within) = within.cast::<PySlice>() else { return Ok(None) };
        let Some(row) = extract_integer(&row) else { return Ok(None) };
        let row = resolve_position(row, 0, self.file.num_rows())?;
        let first = run_here(|| self.file.elements_before(row, 1))?;
        let last = run_here(|| self.file.elements_before(row + 1, 1))?;
        // The bounds of a damaged file may decrease. Returns `None`, so that the caller reads the
        // whole row, which reports the damage.
        let Some(size) = last.checked_sub(first) else { return Ok(None) };
        let part = resolve_span(within, size)?;
        let columns = self.column_names();
        let elements = first + part.start..first + part.end;
        run_here(|| self.file.read_elements(elements, columns.as_deref())).map(Some)
    }
}

fn make_range_error(index: i64, axis: usize, size: usize) -> PyErr {
    // The class and the message are those of nested_ragged_tensors, because its users and tests rely on them.
    PyIndexError::new_err(format!("Index {index} is out of range at dim {axis} (length {size})."))
}

/// Resolves an index; a negative index counts from the end.
fn resolve_position(index: i64, axis: usize, size: usize) -> PyResult<usize> {
    let length = i64::try_from(size).unwrap_or(i64::MAX);
    let at = if index < 0 { index.saturating_add(length) } else { index };
    usize::try_from(at)
        .ok()
        .filter(|at| *at < size)
        .ok_or_else(|| make_range_error(index, axis, size))
}

/// Returns the positions of a slice, clipped to `size` elements.
fn resolve_span(slice: &Bound<'_, PySlice>, size: usize) -> PyResult<Range<usize>> {
    let step = slice.getattr(intern!(slice.py(), "step"))?;
    if !step.is_none() && !step.extract::<i64>().is_ok_and(|s| s == 1) {
        return Err(PyValueError::new_err(format!(
            "Only slices with step size of None or 1 are supported; got {step}"
        )));
    }
    let range = slice.indices(isize::try_from(size).unwrap_or(isize::MAX))?;
    let start = usize::try_from(range.start).unwrap_or(0);
    let stop = usize::try_from(range.stop).unwrap_or(0);
    Ok(start..stop.max(start))
}

/// Extracts an integer as nested_ragged_tensors does: a Python integer, or a numpy array without axes.
fn extract_integer(item: &Bound<'_, PyAny>) -> Option<i64> {
    if item.is_instance_of::<pyo3::types::PyInt>() || item.is_instance_of::<PyBool>() {
        return item.extract().ok();
    }
    let scalar = item.getattr("ndim").ok()?.extract::<usize>().ok()? == 0;
    let kind: String = item.getattr("dtype").ok()?.getattr("kind").ok()?.extract().ok()?;
    (scalar && matches!(kind.as_str(), "i" | "u")).then(|| item.extract().ok()).flatten()
}

/// Returns the elements at an index, and the number of axes that the index removes.
fn take_elements(
    index: &Bound<'_, PyAny>,
    rows: usize,
    max_ndim: usize,
    read: &dyn Fn(Range<usize>) -> PyResult<Table>,
) -> PyResult<(RaggedTable, usize)> {
    if let Some(at) = extract_integer(index) {
        let at = resolve_position(at, 0, rows)?;
        let row = read(at..at + 1)?;
        return Ok((run_here(|| row.squeeze(0))?.into(), 1));
    }
    if let Ok(slice) = index.cast::<PySlice>() {
        return Ok((read(resolve_span(slice, rows)?)?.into(), 0));
    }
    if let Ok(items) = index.cast::<PyTuple>() {
        return take_path(items, rows, max_ndim, read);
    }
    let unsupported = || {
        Err(PyTypeError::new_err(format!(
            "{} not supported for JointNestedRaggedTensorDict slicing",
            index.get_type().repr()?
        )))
    };
    let is_array = index.hasattr("dtype")? && index.hasattr("tolist")?;
    if !is_array || index.getattr("ndim")?.extract::<usize>()? != 1 {
        return unsupported();
    }
    let kind: String = index.getattr("dtype")?.getattr("kind")?.extract()?;
    if !matches!(kind.as_str(), "i" | "u") {
        return unsupported();
    }
    let wanted: Vec<i64> = index.call_method0("tolist")?.extract()?;
    let at =
        wanted.into_iter().map(|i| resolve_position(i, 0, rows)).collect::<PyResult<Vec<_>>>()?;
    if at.is_empty() {
        return Ok((read(0..0)?.into(), 0));
    }
    let each = at.into_iter().map(|i| read(i..i + 1)).collect::<PyResult<Vec<_>>>()?;
    Ok((run_here(|| Table::concat(&each))?.into(), 0))
}

/// Applies a tuple of integers, one per axis, optionally followed by one slice.
fn take_path(
    items: &Bound<'_, PyTuple>,
    rows: usize,
    max_ndim: usize,
    read: &dyn Fn(Range<usize>) -> PyResult<Table>,
) -> PyResult<(RaggedTable, usize)> {
    let mut table: Option<Table> = None;
    let mut gone = 0;
    let mut sliced = false;
    for (axis, item) in items.iter().enumerate() {
        if sliced {
            return Err(PyValueError::new_err("Multi-level non-int slicing is not supported."));
        }
        let size = table.as_ref().map_or(rows, Table::num_rows);
        if axis >= max_ndim || table.as_ref().is_some_and(|t| t.ndim() == 0) {
            return Err(PyIndexError::new_err(format!(
                "Too many indices for JointNestedRaggedTensorDict: got {} indices but max_n_dims is {max_ndim}.",
                items.len()
            )));
        }
        let whole = |range: Range<usize>| match &table {
            None => read(range),
            Some(t) => run_here(|| t.slice(range.start, range.len())),
        };
        if let Some(at) = extract_integer(&item) {
            let at = resolve_position(at, axis, size)?;
            // Drops the scalars that the previous integer index left.
            let row = remove_scalars(whole(at..at + 1)?)?;
            table = Some(run_here(|| row.squeeze(0))?);
            gone += 1;
        } else if let Ok(slice) = item.cast::<PySlice>() {
            table = Some(whole(resolve_span(slice, size)?)?);
            sliced = true;
        } else {
            return Err(PyTypeError::new_err(format!(
                "{} at index {axis} not supported for JointNestedRaggedTensorDict tuple slicing",
                item.get_type().repr()?
            )));
        }
    }
    match table {
        Some(table) => Ok((table.into(), gone)),
        None => Ok((read(0..rows)?.into(), 0)),
    }
}

/// Returns the rows and elements of a table in memory at an index.
#[pyfunction]
pub(crate) fn take_table(
    table: &Bound<'_, RaggedTable>,
    index: &Bound<'_, PyAny>,
) -> PyResult<(RaggedTable, usize)> {
    let inner = &remove_scalars(table.get().as_table().clone())?;
    let deepest = inner.max_ndim().unwrap_or(0).max(1);
    take_elements(index, inner.num_rows(), deepest, &|range| {
        run_here(|| inner.slice(range.start, range.len()))
    })
}

/// Returns the slice `index` of `table.flatten(1)`. Merges only the lists that have elements in
/// this slice.
#[pyfunction]
pub(crate) fn take_merged(
    table: &Bound<'_, RaggedTable>,
    index: &Bound<'_, PySlice>,
) -> PyResult<RaggedTable> {
    let inner = table.get().as_table();
    let range = resolve_span(index, run_here(|| inner.axis_len(1))?)?;
    Ok(run_here(|| merge_range(inner, range))?.into())
}

/// Merges axis 1 into the rows, and returns a range of the merged rows.
fn merge_range(table: &Table, range: Range<usize>) -> serrate::Result<Table> {
    let layout = table.layout(1)?;
    let first = partition_point(layout.lists(), |list| layout.range(list).end <= range.start);
    let last = partition_point(layout.lists(), |list| layout.range(list).start < range.end);
    if last <= first {
        return table.slice(0, 0)?.flatten(1);
    }
    let before = layout.range(first).start;
    table.slice(first, last - first)?.flatten(1)?.slice(range.start - before, range.len())
}

/// Returns the number of indices below `len` for which `is_before` is true. All of them must be
/// smaller than the indices for which it is false.
fn partition_point(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns whether tables have the same columns of the same types on the same axes.
#[pyfunction]
pub(crate) fn same_kinds(tables: Vec<PyRef<'_, RaggedTable>>, stack: bool) -> bool {
    let Some((first, rest)) = tables.split_first() else { return true };
    let first = first.as_table();
    rest.iter().map(|t| t.as_table()).all(|t| {
        let scalars = stack
            || (t.scalars().len() == first.scalars().len()
                && t.scalars()
                    .iter()
                    .zip(first.scalars())
                    .all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type()));
        scalars
            && t.ndim() == first.ndim()
            && t.axes().len() == first.axes().len()
            && t.columns().len() == first.columns().len()
            && t.columns().iter().zip(first.columns()).all(|(a, b)| {
                a.name() == b.name() && a.axis() == b.axis() && a.data_type() == b.data_type()
            })
    })
}

/// Returns a table with the rows of all tables or, if `stack`, with every table as one row. Scalars left by
/// indexing are dropped.
#[pyfunction]
pub(crate) fn concat_tables(
    py: Python<'_>,
    tables: Vec<PyRef<'_, RaggedTable>>,
    stack: bool,
) -> PyResult<RaggedTable> {
    let tables = tables
        .iter()
        .map(|t| remove_scalars(t.as_table().clone()))
        .collect::<PyResult<Vec<_>>>()?;
    let joined = run_alone(py, || match stack {
        true => Table::vstack(&tables),
        false => Table::concat(&tables),
    })?;
    Ok(joined.into())
}

/// Returns a dict of the tensors `wanted` of a stack. Each element of `wanted` has a key of the dict and
/// says which tensor it holds.
fn make_arrays<'py>(
    py: Python<'py>,
    stack: &TableStack<'_>,
    wanted: &[(String, StackTensor<'_>)],
    side: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let options = DenseOptions {
        side: side.parse().or_raise()?,
        limit: None,
        parallel: may_share_work(py)?,
        pool: Some(dense_pool(py)),
        ..Default::default()
    };
    let tensors: Vec<StackTensor<'_>> = wanted.iter().map(|(_, tensor)| *tensor).collect();
    let made = make_dense(py, &options, || stack.to_tensors(&tensors, &options))?;
    let out = PyDict::new(py);
    for ((name, _), tensor) in wanted.iter().zip(made) {
        out.set_item(name, give_tensor(py, tensor, TensorLibrary::Numpy)?)?;
    }
    Ok(out)
}

fn drop_scalars(tables: &[PyRef<'_, RaggedTable>]) -> PyResult<Vec<Table>> {
    tables.iter().map(|t| remove_scalars(t.as_table().clone())).collect()
}

fn has_values(tables: &[Table], column: &str) -> bool {
    tables.iter().any(|t| t.column(column).is_ok_and(|c| !c.values().is_empty()))
}

/// Stacks tables, and returns what `to_dense` returns for the stack, but without building the
/// stack. Returns `None` if [`TableStack`] does not support the tables.
#[pyfunction]
pub(crate) fn dense_stack<'py>(
    py: Python<'py>,
    tables: Vec<PyRef<'_, RaggedTable>>,
    side: &str,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let tables = drop_scalars(&tables)?;
    let Some(stack) = run_here(|| TableStack::new(&tables))? else { return Ok(None) };
    let columns: &[Column] = tables.first().map_or(&[], |table| table.columns());
    if columns.iter().any(|c| c.name().ends_with("/mask")) {
        return Ok(None);
    }
    let deepest = columns.iter().map(Column::axis).max();
    let mut wanted = Vec::new();
    for axis in deepest.map_or(0..0, |deepest| 0..deepest + 1) {
        let mut at_axis = columns.iter().filter(|c| c.axis() == axis).peekable();
        if at_axis.peek().is_some() {
            wanted.push((format!("dim{}/mask", axis + 1), StackTensor::Mask(axis + 1)));
        }
        // nested_ragged_tensors has no tensor for a column without values.
        for column in at_axis.filter(|c| has_values(&tables, c.name())) {
            wanted.push((column.name().to_owned(), StackTensor::Values(column.name())));
        }
    }
    make_arrays(py, &stack, &wanted, side).map(Some)
}

/// Returns the dynamic tensors of a batch of meds-torch-data; `None` if the tables do not have the
/// columns and types of its tensorized cohorts.
#[pyfunction]
pub(crate) fn collate_stack<'py>(
    py: Python<'py>,
    tables: Vec<PyRef<'_, RaggedTable>>,
    side: &str,
    event_mask: bool,
    time_delta: bool,
    numeric_value: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let tables = drop_scalars(&tables)?;
    let Some(stack) = run_here(|| TableStack::new(&tables))? else { return Ok(None) };
    let Some(first) = tables.first() else { return Ok(None) };
    let has_type = |name: &str, fits: fn(&DataType) -> bool| {
        first.column(name).is_ok_and(|c| fits(c.data_type())) && has_values(&tables, name)
    };
    let is_token = |t: &DataType| t.is_integer() && *t != DataType::UInt64;
    let is_float = |t: &DataType| *t == DataType::Float32;
    if !has_type("code", is_token)
        || (event_mask && first.columns_at(0).next().is_none())
        || (time_delta && !has_type("time_delta_days", is_float))
        || (numeric_value && !has_type("numeric_value", is_float))
    {
        return Ok(None);
    }
    let mut wanted = vec![("code".to_owned(), StackTensor::Tokens("code"))];
    if event_mask {
        wanted.push(("event_mask".to_owned(), StackTensor::Mask(1)));
    }
    if time_delta {
        let name = "time_delta_days";
        wanted.push((name.to_owned(), StackTensor::Finite(name)));
    }
    if numeric_value {
        let name = "numeric_value";
        wanted.push((format!("{name}_mask"), StackTensor::IsNumber(name)));
        wanted.push((name.to_owned(), StackTensor::Finite(name)));
    }
    make_arrays(py, &stack, &wanted, side).map(Some)
}

/// Returns copies of the tensors with which a `.nrt` file stores the table.
pub(crate) fn copy_tensors<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let mut next = 1;
    let mut bounds = |out: &Bound<'py, PyDict>, to: usize| -> PyResult<()> {
        while next <= to {
            let offsets = run_here(|| Ok(table.layout(next)?.to_offsets()?.to_i64()))?;
            let base = offsets.first().copied().unwrap_or(0);
            let ends = offsets.iter().skip(1).map(|o| o - base).collect();
            out.set_item(format!("dim{next}/bounds"), copy_integers(py, ends)?)?;
            next += 1;
        }
        Ok(())
    };
    for column in table.columns() {
        bounds(&out, column.axis())?;
        out.set_item(
            format_tensor_name(column.axis(), column.name()),
            copy_values(py, column.values())?,
        )?;
    }
    bounds(&out, table.axes().len())?;
    for scalar in table.scalars() {
        out.set_item(format!("dim-1/{}", scalar.name()), copy_values(py, scalar.value())?)?;
    }
    Ok(out)
}

/// Splits the name of a tensor into its axis and key.
fn split_tensor_name(name: &str) -> PyResult<(i64, &str)> {
    name.strip_prefix("dim")
        .and_then(|rest| rest.split_once('/'))
        .and_then(|(axis, key)| Some((axis.parse().ok()?, key)))
        .ok_or_else(|| {
            make_invalid_error(format!("the tensor name {name:?} is invalid; names must be dim0/KEY, dim1/bounds, dim1/KEY, .."))
        })
}

/// Creates a table from the tensors of a file. Tensors of negative axes are omitted.
#[pyfunction]
pub(crate) fn build_stored_table(tensors: &Bound<'_, PyDict>) -> PyResult<RaggedTable> {
    let mut axes: Vec<(usize, Offsets)> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    for (name, values) in tensors.iter() {
        let name: String = name.extract()?;
        let (axis, key) = split_tensor_name(&name)?;
        let Ok(axis) = usize::try_from(axis) else { continue };
        let values = from_numpy(&values)?;
        if values.ndim() != 1 {
            return Err(make_invalid_error(format!(
                "tensor {name:?} has {} axes, but must have one",
                values.ndim()
            )));
        }
        if key == "bounds" {
            let bounds = values.cast(serrate::dense::DType::I64).or_raise()?;
            let bounds: Vec<i64> = bounds.as_slice().or_raise()?.to_vec();
            axes.push((axis, run_here(|| Offsets::from_bounds(bounds, &name))?));
        } else {
            columns.push(Column::new(key, axis, values.to_flat().or_raise()?));
        }
    }
    axes.sort_by_key(|(axis, _)| *axis);
    for (expected, (axis, _)) in (1..).zip(&axes) {
        if *axis != expected {
            return Err(make_invalid_error(format!(
                "the tensors have dim{axis}/bounds, but lack dim{expected}/bounds; add the bounds of every axis"
            )));
        }
    }
    let rows = match axes.first() {
        Some((_, offsets)) => offsets.lists(),
        None => columns.first().map_or(0, |c| c.values().len()),
    };
    let axes = axes.into_iter().map(|(_, offsets)| (None, offsets.into())).collect();
    Ok(run_here(|| Table::try_new(rows, None, axes, columns))?.into())
}

/// Writes tensors to a safetensors file, replacing an existing file.
#[pyfunction]
pub(crate) fn save_stored(
    py: Python<'_>,
    path: PathBuf,
    tensors: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let mut read: Vec<(String, DenseTensor)> = Vec::with_capacity(tensors.len());
    for (name, values) in tensors.iter() {
        read.push((name.extract()?, from_numpy(&values)?));
    }
    run_alone(py, || {
        let each = read.iter().map(|(name, tensor)| (name.as_str(), tensor));
        let options = SaveOptions { overwrite: true, ..Default::default() };
        dense::write(&path, each, &options)
    })
}
