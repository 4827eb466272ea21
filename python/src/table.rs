//! The Python class `RaggedTable`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};
use serrate::arrow::array::{RecordBatch, RecordBatchIterator};
use serrate::arrow::compute::concat_batches;
use serrate::dense::{AxisSize, DenseOptions, DenseTensor, TableDenseOptions};
use serrate::io::{arrow_ipc, json, nrt, parquet};
use serrate::table::{Column, FlattenFill, NestOptions, RaggedTable as Table, SortKey};

use crate::array::{RaggedArray, extract_index, parse_dense_options, to_nan_comparison};
use crate::errors::{OrRaise, make_invalid_error, make_type_error};
use crate::numpy_memory::{dense_pool, make_dense};
use crate::python_lists;
use crate::run::{may_share_work, run_alone, run_detached, run_here};
use crate::sql::{export_stream, extract_batches, extract_ragged};
use crate::tensor::{TensorLibrary, give_tensor};

/// Columns that share their lists. Each column is a flat array on one axis; axis 0 has the rows.
///
/// >>> table = serrate.RaggedTable({"age": [71, 38], "code": [[1, 2, 3], [4]]})
/// >>> len(table), table.axes
/// (2, {'age': 0, 'code': 1})
/// >>> table["code"].sum(axis=-1).to_list()
/// [6, 4]
/// >>> table[0, 1:].to_dict()
/// {'code': [2, 3]}
/// >>> table.to_dense(masks=False)
/// {'age': array([71, 38]), 'code': array([[1, 2, 3],
///        [4, 0, 0]])}
#[pyclass(frozen, module = "serrate")]
pub(crate) struct RaggedTable {
    inner: Table,
}

impl From<Table> for RaggedTable {
    fn from(inner: Table) -> Self {
        Self { inner }
    }
}

impl RaggedTable {
    pub(crate) fn as_table(&self) -> &Table {
        &self.inner
    }
}

/// Converts a table to padded, writable numpy arrays.
pub(crate) fn build_dense_dict<'py>(
    py: Python<'py>,
    table: &Table,
    options: &TableDenseOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let tensors = make_dense(py, &options.dense, || table.to_dense_with(options))?;
    let out = PyDict::new(py);
    for (name, tensor) in tensors {
        out.set_item(name, give_tensor(py, tensor, TensorLibrary::Numpy)?)?;
    }
    Ok(out)
}

/// Creates a table from a dict of columns, which must have the same lists.
pub(crate) fn build_table_of_dict(
    columns: &Bound<'_, PyDict>,
    schema: Option<&Bound<'_, PyDict>>,
) -> PyResult<Table> {
    let mut rows = None;
    let mut axes = Vec::new();
    let mut made = Vec::with_capacity(columns.len());
    let mut set_by: Vec<String> = Vec::new();
    for (name, value) in columns.iter() {
        let name: String = name.extract()?;
        let dtype = match schema {
            Some(schema) => schema.get_item(&name)?,
            None => None,
        };
        let array = match dtype {
            Some(dtype) => {
                let dtype = python_lists::parse_dtype(&dtype)?;
                let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
                match is_list {
                    true => python_lists::parse_lists(&value, &name, Some(&dtype))?.into_ragged(),
                    false => {
                        let array = extract_ragged(&value, &name)?;
                        let strict = serrate::arrow::compute::CastOptions {
                            safe: false,
                            ..Default::default()
                        };
                        run_here(|| {
                            let leaves = serrate::arrow::compute::cast_with_options(
                                array.leaves(),
                                &dtype,
                                &strict,
                            )?;
                            array.with_leaves(leaves)
                        })?
                    }
                }
            }
            None => extract_ragged(&value, &name)?,
        };
        let first = *rows.get_or_insert(array.len());
        if first != array.len() {
            return Err(make_invalid_error(format!(
                "column {name:?} has {} rows, but the columns before it have {first}; all columns must have the same number of rows",
                array.len()
            )));
        }
        for (level, axis) in array.axes().iter().enumerate() {
            let Some((_, layout)) = axes.get(level) else {
                axes.push((None, axis.layout().clone()));
                set_by.push(name.clone());
                continue;
            };
            if let Some(list) = serrate::array::Layout::first_difference(layout, axis.layout()) {
                return Err(crate::errors::to_py_err(&serrate::Error::Disagree {
                    left: set_by[level].clone(),
                    right: name,
                    axis: level + 1,
                    list,
                    left_len: if list < layout.lists() { layout.length(list) } else { 0 },
                    right_len: if list < axis.layout().lists() {
                        axis.layout().length(list)
                    } else {
                        0
                    },
                }));
            }
        }
        let nulls = array.axes().iter().map(|a| a.nulls().cloned()).collect();
        made.push(
            Column::new(name, array.ndim() - 1, array.leaves().clone()).with_list_nulls(nulls),
        );
    }
    run_here(|| Table::try_new(rows.unwrap_or(0), None, axes, made))
}

/// Converts sizes of padded axes: None for the longest list, a number, or `("at_most", number)`.
pub(crate) fn parse_sizes(sizes: &Bound<'_, PyAny>) -> PyResult<Vec<AxisSize>> {
    let Ok(each) = sizes.try_iter() else {
        return Err(make_type_error(format!(
            "sizes is {}; give a list with one size for each axis after the rows",
            sizes.repr()?
        )));
    };
    each.map(|size| parse_size(&size?)).collect()
}

fn parse_size(size: &Bound<'_, PyAny>) -> PyResult<AxisSize> {
    if size.is_none() {
        return Ok(AxisSize::Longest);
    }
    if let Ok(exactly) = size.extract::<usize>() {
        return Ok(AxisSize::Exactly(exactly));
    }
    match size.extract::<(String, usize)>() {
        Ok((kind, most)) if kind == "at_most" => Ok(AxisSize::AtMost(most)),
        _ => Err(make_type_error(format!(
            "a size is {}; use None for the longest list, a number, or ('at_most', number)",
            size.repr()?
        ))),
    }
}

fn read_one_batch(
    py: Python<'_>,
    schema: serrate::arrow::datatypes::SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<RecordBatch> {
    match batches.as_slice() {
        [one] => Ok(one.clone()),
        [] => Ok(RecordBatch::new_empty(schema)),
        all => run_alone(py, || Ok(concat_batches(&schema, all)?)),
    }
}

fn read_extension(path: &std::path::Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

#[pymethods]
impl RaggedTable {
    /// Creates a table from a dict of nested lists, numpy arrays or Arrow arrays (with types by name in
    /// `schema`), or from an object with `__arrow_c_stream__`.
    #[new]
    #[pyo3(signature = (data, schema=None, axes=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, PyDict>>,
        axes: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let table = match data.cast::<PyDict>() {
            Ok(columns) => build_table_of_dict(columns, schema)?,
            Err(_) => {
                let (schema, batches) = extract_batches(data, "data")?;
                let batch = read_one_batch(data.py(), schema, batches)?;
                run_detached(data.py(), move || Table::try_from_batch(&batch))?
            }
        };
        match axes {
            Some(names) => Ok(run_here(|| table.with_axis_names(names))?.into()),
            None => Ok(table.into()),
        }
    }

    /// Reads a table from a file: `.nrt`, `.parquet`, `.arrow` (`.arrows`, `.feather`), `.json`, `.ndjson`.
    #[staticmethod]
    #[pyo3(signature = (path, columns=None))]
    fn read(py: Python<'_>, path: PathBuf, columns: Option<Vec<String>>) -> PyResult<Self> {
        let table = run_detached(py, move || {
            let select = |t: Table| match &columns {
                Some(c) => t.select(&c.iter().map(String::as_str).collect::<Vec<_>>()),
                None => Ok(t),
            };
            match read_extension(&path).as_str() {
                "parquet" => {
                    let options = parquet::ParquetReadOptions {
                        columns: columns.clone(),
                        ..Default::default()
                    };
                    select(parquet::read(&path, &options)?)
                }
                "arrow" | "arrows" | "feather" | "ipc" => {
                    let options = arrow_ipc::IpcReadOptions {
                        columns: columns.clone(),
                        ..Default::default()
                    };
                    select(arrow_ipc::read(&path, &options)?)
                }
                "json" => select(json::read_json(&path, &Default::default())?),
                "ndjson" | "jsonl" => select(json::read_ndjson(&path, &Default::default())?),
                _ => {
                    let file = nrt::NrtFile::open(&path, &Default::default())?;
                    let names: Option<Vec<&str>> =
                        columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
                    file.read(0..file.num_rows(), names.as_deref())
                }
            }
        })?;
        Ok(table.into())
    }

    /// Writes the table to a file, in the format given by the extension, as in `read`. Raises an error if
    /// the file exists, unless `overwrite` is True.
    #[pyo3(signature = (path, overwrite=false))]
    fn write(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        let table = &self.inner;
        run_detached(py, move || match read_extension(&path).as_str() {
            "nrt" | "safetensors" | "pt" => {
                nrt::write(&path, table, &nrt::WriteOptions { overwrite, plain: false })
            }
            "parquet" => {
                let options = parquet::ParquetWriteOptions { overwrite, ..Default::default() };
                parquet::write(&path, table, &options)
            }
            "arrow" | "feather" | "ipc" => {
                let options = arrow_ipc::IpcWriteOptions { overwrite, ..Default::default() };
                arrow_ipc::write(&path, table, &options)
            }
            "arrows" => {
                let form = arrow_ipc::IpcForm::Stream;
                let options = arrow_ipc::IpcWriteOptions { overwrite, form, ..Default::default() };
                arrow_ipc::write(&path, table, &options)
            }
            "json" => {
                let options = json::JsonWriteOptions { overwrite, ..Default::default() };
                json::write_json(&path, table, &options)
            }
            "ndjson" | "jsonl" => {
                let options = json::JsonWriteOptions { overwrite, ..Default::default() };
                json::write_ndjson(&path, table, &options)
            }
            other => Err(serrate::Error::invalid(format!(
                "no file format has the extension .{other}; use .nrt, .parquet, .arrow, .arrows, .json or .ndjson"
            ))),
        })
    }

    /// Groups the rows of a long table by keys: returns one row per value of the first key, with one level
    /// of lists per further key.
    #[staticmethod]
    #[pyo3(signature = (data, keys, sort=false))]
    fn nest(data: &Bound<'_, PyAny>, keys: Vec<String>, sort: bool) -> PyResult<Self> {
        let (schema, batches) = extract_batches(data, "data")?;
        let batch = read_one_batch(data.py(), schema, batches)?;
        let options = match sort {
            true => NestOptions { unsorted: serrate::table::UnsortedRows::Sort },
            false => NestOptions::default(),
        };
        let table = run_detached(data.py(), move || {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            Table::nest(&batch, &keys, &options)
        })?;
        Ok(table.into())
    }

    /// Returns the rows of all tables, one after the other.
    #[staticmethod]
    fn concat(py: Python<'_>, tables: Vec<PyRef<'_, RaggedTable>>) -> PyResult<Self> {
        let tables: Vec<Table> = tables.iter().map(|t| t.inner.clone()).collect();
        Ok(run_detached(py, move || Table::concat(&tables))?.into())
    }

    /// Returns a table in which every table is one row.
    #[staticmethod]
    fn vstack(py: Python<'_>, tables: Vec<PyRef<'_, RaggedTable>>) -> PyResult<Self> {
        let tables: Vec<Table> = tables.iter().map(|t| t.inner.clone()).collect();
        Ok(run_detached(py, move || Table::vstack(&tables))?.into())
    }

    fn __len__(&self) -> usize {
        self.inner.num_rows()
    }

    /// Number of axes, including the rows.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.ndim()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.names().map(str::to_owned).collect()
    }

    /// Returns the names of the columns.
    fn keys(&self) -> Vec<String> {
        self.columns()
    }

    /// A dict of the axis of each column.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for column in self.inner.columns() {
            out.set_item(column.name(), column.axis())?;
        }
        Ok(out)
    }

    /// Names of the axes, the rows first; None for an axis without a name.
    #[getter]
    fn axis_names(&self) -> Vec<Option<String>> {
        (0..self.inner.ndim()).map(|a| self.inner.axis_name(a).map(str::to_owned)).collect()
    }

    /// Values of the columns whose last axis was removed by an index.
    #[getter]
    fn scalars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for scalar in self.inner.scalars() {
            out.set_item(scalar.name(), python_lists::to_list(py, scalar.value())?.get_item(0)?)?;
        }
        Ok(out)
    }

    /// Size of all values and offsets in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.nbytes()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.inner.column(name).is_ok()
    }

    /// Returns a column by its name, columns by a list of names, or rows and elements by an index.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = index.cast::<PyString>() {
            let name: String = name.extract()?;
            if let Ok(scalar) = self.inner.scalar(&name) {
                return python_lists::to_list(py, scalar.value())?.get_item(0);
            }
            return RaggedArray::from(run_here(|| self.inner.array(&name))?).into_bound_py_any(py);
        }
        if let Ok(names) = index.cast::<PyList>()
            && !names.is_empty()
            && let Ok(names) = names.extract::<Vec<String>>()
        {
            return self.select(names)?.into_bound_py_any(py);
        }
        let index = extract_index(index)?;
        Self::from(run_alone(py, || self.inner.index(&index))?).into_bound_py_any(py)
    }

    /// Returns only these columns, in this order.
    fn select(&self, names: Vec<String>) -> PyResult<Self> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(run_here(|| self.inner.select(&names))?.into())
    }

    /// Sorts the rows by columns of axis 0; the sort is stable. `"-name"` sorts in descending order.
    fn sort(&self, py: Python<'_>, by: Vec<String>) -> PyResult<Self> {
        let keys: Vec<SortKey> = by
            .iter()
            .map(|name| match name.strip_prefix('-') {
                Some(name) => SortKey { descending: true, ..name.into() },
                None => name.as_str().into(),
            })
            .collect();
        Ok(run_detached(py, || self.inner.sort(&keys))?.into())
    }

    /// Merges an axis into the axis above it. A column of the axis above keeps its value at the first of
    /// the merged elements; the others get zero, None (`fill="null"`) or the same value (`fill="repeat"`).
    #[pyo3(signature = (axis=-1, fill="zero"))]
    fn flatten(&self, py: Python<'_>, axis: i64, fill: &str) -> PyResult<Self> {
        let fill = match fill {
            "zero" => FlattenFill::Zero,
            "null" => FlattenFill::Null,
            "repeat" => FlattenFill::Repeat,
            _ => {
                return Err(make_invalid_error(format!(
                    "fill is {fill:?}; use 'zero', 'null' or 'repeat'"
                )));
            }
        };
        Ok(run_detached(py, || self.inner.flatten_with(axis, fill))?.into())
    }

    /// Removes an axis that has one element in every list.
    #[pyo3(signature = (axis=0))]
    fn squeeze(&self, axis: i64) -> PyResult<Self> {
        Ok(run_here(|| self.inner.squeeze(axis))?.into())
    }

    /// Inserts an axis with one element in every list.
    #[pyo3(signature = (axis=0))]
    fn unsqueeze(&self, axis: i64) -> PyResult<Self> {
        Ok(run_here(|| self.inner.unsqueeze(axis))?.into())
    }

    /// Returns whether the other table has the same columns (by name), lists and values. If `equal_nan` is
    /// True, NaN equals NaN.
    #[pyo3(signature = (other, equal_nan=false))]
    fn equals(&self, py: Python<'_>, other: &Self, equal_nan: bool) -> PyResult<bool> {
        run_alone(py, || self.inner.equals(&other.inner, to_nan_comparison(equal_nan)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(ours) = other.cast::<Self>() else { return Ok(false) };
        let ours = ours.get();
        run_alone(other.py(), || Ok(self.inner == ours.inner))
    }

    /// Returns a dict of padded, writable numpy arrays: every column by name, a mask `dim{d}/mask` for each
    /// axis `d`, and a mask `{column}/valid` for each column with missing values.
    #[pyo3(signature = (padding_side="right", fill=None, sizes=None, columns=None, tokens_as_i64=false, masks=true, limit=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn to_dense<'py>(
        &self,
        py: Python<'py>,
        padding_side: &str,
        fill: Option<&Bound<'py, PyAny>>,
        sizes: Option<&Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        tokens_as_i64: bool,
        masks: bool,
        limit: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sizes = sizes.map(parse_sizes).transpose()?.unwrap_or_default();
        let options = TableDenseOptions {
            dense: parse_dense_options(py, padding_side, fill, None, limit)?,
            rows: None,
            columns,
            sizes,
            tokens_as_i64,
            masks,
        };
        build_dense_dict(py, &self.inner, &options)
    }

    /// Returns a dict of nested Python lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for column in self.inner.columns() {
            let array = run_alone(py, || self.inner.column_array(column)?.to_arrow())?;
            out.set_item(column.name(), python_lists::to_list(py, &array)?)?;
        }
        Ok(out)
    }

    /// Exports the rows as an Arrow stream of one batch, in which every column has its own lists.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batch = run_alone(py, || self.inner.to_batch())?;
        let schema = batch.schema();
        let reader = RecordBatchIterator::new(std::iter::once(Ok(batch)), schema);
        export_stream(py, Box::new(reader), requested_schema)
    }

    /// Returns the tensors of the table as `.nrt` files store them, with `dim{d}/bounds` before the first
    /// column of an axis.
    fn _stored<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::nrt::copy_tensors(py, &self.inner)
    }

    /// Returns the result of `JointNestedRaggedTensorDict.to_dense`.
    fn _to_dense_joint<'py>(&self, py: Python<'py>, side: &str) -> PyResult<Bound<'py, PyDict>> {
        let names: Vec<String> = self.inner.names().map(str::to_owned).collect();
        let dense = DenseOptions {
            side: side.parse().or_raise()?,
            limit: None,
            parallel: may_share_work(py)?,
            pool: Some(dense_pool(py)),
            ..Default::default()
        };
        let options = TableDenseOptions { dense, columns: Some(names), ..Default::default() };
        let all = build_dense_dict(py, &self.inner, &options)?;
        let out = PyDict::new(py);
        let deepest = self.inner.max_ndim().unwrap_or(0);
        for axis in 0..deepest {
            let mask = format!("dim{axis}/mask");
            if let Some(mask_values) = all.get_item(&mask)? {
                out.set_item(mask, mask_values)?;
            }
            for column in self.inner.columns_at(axis) {
                // nested_ragged_tensors has no tensor for a column without values.
                if axis == 0 || !column.values().is_empty() {
                    out.set_item(column.name(), all.get_item(column.name())?)?;
                }
            }
        }
        Ok(out)
    }

    /// Returns name, axis and type of every column and scalar (axis -1), for schemas.
    fn _kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let numpy = py.import("numpy")?;
        let kind = |t: &serrate::arrow::datatypes::DataType| -> PyResult<Bound<'py, PyAny>> {
            let dtype = serrate::dense::DType::of_leaves(t, "a column").or_raise()?;
            numpy.call_method1("dtype", (crate::numpy_memory::name_type(dtype),))
        };
        let out = PyList::empty(py);
        for scalar in self.inner.scalars() {
            out.append((scalar.name(), -1, kind(scalar.data_type())?))?;
        }
        for column in self.inner.columns() {
            out.append((column.name(), column.axis(), kind(column.data_type())?))?;
        }
        Ok(out)
    }

    /// Returns the number of elements of an axis.
    fn _axis_len(&self, axis: usize) -> PyResult<usize> {
        run_here(|| self.inner.axis_len(axis))
    }

    /// Returns the table without scalars.
    fn _without_scalars(&self) -> PyResult<Self> {
        Ok(remove_scalars(self.inner.clone())?.into())
    }

    fn __reduce__<'py>(
        slf: Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let table = &slf.get().inner;
        let bytes = run_detached(py, move || {
            let batch = table.to_batch()?;
            let mut writer =
                serrate::arrow::ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(&batch)?;
            Ok(writer.into_inner()?)
        })?;
        let args = PyTuple::new(py, [pyo3::types::PyBytes::new(py, &bytes)])?;
        Ok((slf.get_type().getattr("_from_ipc")?, args))
    }

    #[staticmethod]
    fn _from_ipc(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let table = run_alone(py, || {
            let mut reader = serrate::arrow::ipc::reader::StreamReader::try_new(bytes, None)?;
            let schema = reader.schema();
            let batch = match reader.next() {
                Some(batch) => batch?,
                None => RecordBatch::new_empty(schema),
            };
            Table::try_from_batch(&batch)
        })?;
        Ok(table.into())
    }

    fn __repr__(&self) -> String {
        self.inner.to_string()
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let plain = remove_scalars(self.inner.clone())?;
        let batch = run_here(|| plain.slice(0, plain.num_rows().min(20))?.to_batch())?;
        let more = plain.num_rows() > 20;
        crate::display::format_html(&batch.schema(), &[batch], 20, more).or_raise()
    }
}

/// Returns the table without scalars.
pub(crate) fn remove_scalars(table: Table) -> PyResult<Table> {
    if table.scalars().is_empty() {
        return Ok(table);
    }
    let names: Vec<&str> = table.names().collect();
    run_here(|| table.select(&names))
}

/// Copies a flat array to a numpy array.
pub(crate) fn copy_values<'py>(
    py: Python<'py>,
    values: &serrate::arrow::array::ArrayRef,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = DenseTensor::from_flat(values.as_ref(), "a column").or_raise()?;
    crate::numpy_memory::to_numpy(py, &tensor)?.call_method0("copy")
}

pub(crate) fn copy_integers<'py>(py: Python<'py>, values: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
    let array = serrate::arrow::array::Int64Array::from(values);
    copy_values(py, &(Arc::new(array) as serrate::arrow::array::ArrayRef))
}
