//! SQL sessions and results.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_stream_pycapsule};
use pyo3_arrow::input::AnyRecordBatch;
use serrate::array::{Offsets, RaggedArray as Ragged};
use serrate::arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    StructArray,
};
use serrate::arrow::compute::concat_batches;
use serrate::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serrate::arrow::error::ArrowError;
use serrate::datafusion::catalog::TableProvider;
use serrate::datafusion::common::{ParamValues, ScalarValue, TableReference};
use serrate::datafusion::datasource::MemTable;
use serrate::datafusion::error::DataFusionError;
use serrate::datafusion::execution::SendableRecordBatchStream;
use serrate::datafusion::execution::object_store::ObjectStoreUrl;
use serrate::datafusion::logical_expr::LogicalPlan;
use serrate::datafusion::object_store::local::LocalFileSystem;
use serrate::datafusion::physical_plan::execute_stream;
use serrate::datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use serrate::dense::DenseTensor;
use serrate::sql::{RaggedTableProvider, decode_runs, prefer_source_order};
use tokio::sync::{RwLock, mpsc};

use crate::array::RaggedArray;
use crate::display;
use crate::errors::{
    OrRaise, make_invalid_error, make_stream_error, make_type_error, to_stream_error,
};
use crate::numpy_memory::{as_numpy, column_to_numpy, flat_from_numpy, to_numpy, view_parts};
use crate::progress::{RunningPlan, StatementProgress};
use crate::run::{ThreadPools, format_panic, run_alone, run_here, start_threads};
use crate::table::RaggedTable;

/// Maximum number of batches of a stream that are computed before their reader requests them.
const WAITING: usize = 2;

/// A session: settings, registered tables, views.
#[pyclass(frozen, name = "Session", module = "serrate._serrate")]
pub(crate) struct SqlSession {
    context: SessionContext,
    /// Locked for writing while the tables that a statement passes as arguments are registered
    /// under their names, and for reading while any other statement is planned: it must not see
    /// these tables.
    names: Arc<RwLock<()>>,
    /// The tables that `register` has also registered in lower case, by their names with capitals.
    aliases: std::sync::Mutex<HashMap<String, Arc<dyn TableProvider>>>,
    /// A Python function that creates a display of the progress of a statement.
    progress: Option<Py<PyAny>>,
}

type TableProviders = Vec<(String, Arc<dyn TableProvider>)>;
/// Names of tables, each with the table that has it, if any.
type KnownTables = Vec<(String, Option<Arc<dyn TableProvider>>)>;

#[pymethods]
impl SqlSession {
    #[new]
    #[pyo3(signature = (settings=None, threads=None, progress=None))]
    fn new(
        settings: Option<HashMap<String, String>>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let mut config = SessionConfig::new();
        if let Some(threads) = threads {
            if threads == 0 {
                return Err(make_invalid_error("the number of threads is 0; use at least 1"));
            }
            config = config.with_target_partitions(threads);
        }
        let context = serrate::sql::session_with(config);
        let aliases = std::sync::Mutex::default();
        let session = Self { context, names: Arc::default(), aliases, progress };
        let mut settings: Vec<_> = settings.unwrap_or_default().into_iter().collect();
        settings.sort();
        for (name, value) in settings {
            let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(safe) {
                return Err(make_invalid_error(format!(
                    "the name of a setting is {name:?}, but names consist of letters, digits, '_' and '.'"
                )));
            }
            let text = format!("SET {name} = '{}'", value.replace('\'', "''"));
            let context = session.context.clone();
            let threads = crate::run::start_threads()?;
            threads
                .finish(async move { serrate::sql::sql(&context, &text).await?.collect().await })?
                .or_raise()?;
        }
        Ok(session)
    }

    /// Plans a statement. A statement that writes or defines something runs immediately.
    #[pyo3(signature = (query, params=None, tables=None))]
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        params: Option<&Bound<'_, PyAny>>,
        tables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SqlResult> {
        let params = params.map(|p| extract_param_values(p, &query)).transpose()?.flatten();
        let mut providers: TableProviders = Vec::new();
        for (name, table) in tables.iter().flat_map(|t| t.iter()) {
            let name: String = name.extract()?;
            let provider = extract_provider(&table, &name)?;
            // SQL reads names without quotes in lower case.
            let lower = name.to_lowercase();
            if lower != name && !providers.iter().any(|(n, _)| *n == lower) {
                providers.push((lower, Arc::clone(&provider)));
            }
            providers.push((name, provider));
        }
        let (context, names) = (self.context.clone(), Arc::clone(&self.names));
        let threads = start_threads()?;
        let running = RunningPlan::default();
        let start = || self.progress.as_ref().map(|p| p.clone_ref(py));
        let mut shown = StatementProgress::new(start(), running.clone());
        let progress = start();
        py.detach(move || {
            let planned = async move {
                let mut frame = plan_statement(&context, &names, &query, providers).await?;
                if let Some(params) = params {
                    frame = frame.with_param_values(params)?;
                }
                let now = matches!(
                    frame.logical_plan(),
                    LogicalPlan::Dml(_)
                        | LogicalPlan::Copy(_)
                        | LogicalPlan::Ddl(_)
                        | LogicalPlan::Statement(_)
                );
                let done = OnceLock::new();
                let mut schema: SchemaRef = Arc::new(frame.schema().as_arrow().clone());
                if now {
                    let (real, batches) = collect_batches(frame.clone(), running).await?;
                    schema = real;
                    let _ = done.set(batches);
                }
                Ok::<_, DataFusionError>((frame, schema, done))
            };
            let watch = |py: Python<'_>, since| shown.show_progress(py, since);
            let (frame, schema, done) = threads.finish_watched(planned, watch)?.or_raise()?;
            Ok(SqlResult { frame, schema, done, progress })
        })
    }

    /// Registers a table under a name, replacing any table of this name.
    fn register(&self, name: &str, table: &Bound<'_, PyAny>) -> PyResult<()> {
        let provider = extract_provider(table, name)?;
        self.deregister(name)?;
        // SQL reads names without quotes in lower case.
        let lower = name.to_lowercase();
        if lower != name && !self.has_table(&lower)? {
            let alias = TableReference::bare(lower);
            self.context.register_table(alias, Arc::clone(&provider)).or_raise()?;
            let mut aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
            aliases.insert(name.to_owned(), Arc::clone(&provider));
        }
        self.context.register_table(TableReference::bare(name), provider).or_raise()?;
        Ok(())
    }

    /// Removes a table. Returns whether there was a table of this name.
    fn deregister(&self, name: &str) -> PyResult<bool> {
        let removed = self.context.deregister_table(TableReference::bare(name)).or_raise()?;
        self.remove_alias(name)?;
        Ok(removed.is_some())
    }

    /// Makes the files of a folder available under URLs that begin with `url`.
    fn register_store(&self, url: &str, folder: std::path::PathBuf) -> PyResult<()> {
        let parsed = ObjectStoreUrl::parse(url).map_err(|e| {
            make_invalid_error(format!(
                "{url:?} cannot be the beginning of URLs; use a scheme and a host, such as \"lake://cohort/\": {}",
                e.strip_backtrace()
            ))
        })?;
        if parsed.as_str().starts_with("file://") {
            return Err(make_invalid_error(
                "file:// URLs already refer to the file system; choose another scheme, such as \"lake://\"",
            ));
        }
        let store = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|e| serrate::Error::Store { path: folder, source: e })
            .or_raise()?;
        self.context.register_object_store(parsed.as_ref(), Arc::new(store));
        Ok(())
    }

    /// Returns the sorted names of the tables and views.
    fn tables(&self) -> Vec<String> {
        let schema = self.context.catalog("datafusion").and_then(|c| c.schema("public"));
        let mut names = schema.map(|s| s.table_names()).unwrap_or_default();
        names.sort();
        names
    }
}

impl SqlSession {
    /// Removes the table that `register` has also registered in lower case, even if a statement has
    /// dropped the table with capitals.
    fn remove_alias(&self, name: &str) -> PyResult<()> {
        let mut aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(alias) = aliases.remove(name) else { return Ok(()) };
        let lower = name.to_lowercase();
        let found =
            self.context.deregister_table(TableReference::bare(lower.as_str())).or_raise()?;
        if let Some(found) = found
            && !Arc::ptr_eq(&found, &alias)
        {
            // Another table has the name in lower case.
            self.context.register_table(TableReference::bare(lower), found).or_raise()?;
        }
        Ok(())
    }

    fn has_table(&self, name: &str) -> PyResult<bool> {
        self.context.table_exist(TableReference::bare(name)).or_raise()
    }
}

/// Registers `tables` under their names, plans a statement, and restores the tables that had these
/// names before.
async fn plan_statement(
    context: &SessionContext,
    names: &RwLock<()>,
    query: &str,
    tables: TableProviders,
) -> Result<DataFrame, DataFusionError> {
    if tables.is_empty() {
        let _shared = names.read().await;
        return plan_text(context, query).await;
    }
    // The lock is released last, after the names have their tables again.
    let _held = names.write().await;
    let mut given = GivenTables { context, replaced: Vec::with_capacity(tables.len()) };
    for (name, provider) in tables {
        let reference = TableReference::bare(name.as_str());
        let known = context.deregister_table(reference.clone())?;
        given.replaced.push((name, known));
        context.register_table(reference, provider)?;
    }
    plan_text(context, query).await
}

/// The tables that a statement passes as arguments. Dropping this value restores the tables that
/// had their names before, also if Ctrl-C aborts the statement.
struct GivenTables<'a> {
    context: &'a SessionContext,
    /// Names of the tables, each with the table that had the name before.
    replaced: KnownTables,
}

impl Drop for GivenTables<'_> {
    fn drop(&mut self) {
        for (name, known) in self.replaced.drain(..).rev() {
            // Ignores errors: a table in memory can always be registered after it is removed.
            let _ = self.context.deregister_table(TableReference::bare(name.as_str()));
            if let Some(known) = known {
                let _ = self.context.register_table(TableReference::bare(name), known);
            }
        }
    }
}

/// Plans a text that has one statement.
async fn plan_text(context: &SessionContext, query: &str) -> Result<DataFrame, DataFusionError> {
    let mut statements = serrate::sql::parse(context, query)?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) => serrate::sql::execute(context, statement).await,
        (None, _) => Err(DataFusionError::Plan("the SQL text has no statement; write one".into())),
        (Some(_), others) => Err(DataFusionError::Plan(format!(
            "the SQL text has {} statements, but a call runs one; call `sql` for each of them",
            others.saturating_add(1)
        ))),
    }
}

/// Runs a query. Rows have the order of their source if the plan preserves it.
async fn execute_in_order(
    frame: DataFrame,
    running: &RunningPlan,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let task = Arc::new(frame.task_ctx());
    let plan = prefer_source_order(frame.create_physical_plan().await?)?;
    running.begin_plan(&plan);
    execute_stream(plan, task)
}

async fn collect_batches(
    frame: DataFrame,
    running: RunningPlan,
) -> Result<(SchemaRef, Vec<RecordBatch>), DataFusionError> {
    use futures::TryStreamExt;
    let stream = execute_in_order(frame, &running).await?;
    let schema = stream.schema();
    Ok((schema, stream.try_collect().await?))
}

/// Converts a table from Python: a `RaggedTable`, a dict of columns, or an object with an Arrow interface.
fn extract_provider(table: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<dyn TableProvider>> {
    if let Ok(ours) = table.cast::<RaggedTable>() {
        let inner = ours.get().as_table().clone();
        return Ok(Arc::new(run_here(|| RaggedTableProvider::try_new(inner))?));
    }
    let (schema, batches) = extract_batches(table, name)?;
    let (schema, batches) = run_alone(table.py(), move || Ok(decode_runs(schema, batches)?))?;
    Ok(Arc::new(MemTable::try_new(schema, vec![batches]).or_raise()?))
}

fn open_stream(table: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let read: AnyRecordBatch = table.extract()?;
    read.into_reader()
}

pub(crate) fn extract_batches(
    table: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let py = table.py();
    if let Ok(ours) = table.cast::<RaggedTable>() {
        let inner = ours.get().as_table();
        let batch = run_alone(py, || inner.to_batch())?;
        return Ok((batch.schema(), vec![batch]));
    }
    if let Ok(dict) = table.cast::<PyDict>() {
        let batch = build_batch_of_dict(dict)?;
        return Ok((batch.schema(), vec![batch]));
    }
    let speaks = |what| table.hasattr(what).unwrap_or(false);
    if speaks(intern!(py, "__arrow_c_stream__")) || speaks(intern!(py, "__arrow_c_array__")) {
        let class = table.get_type().name()?;
        let reader = open_stream(table).map_err(|e| match e.is_instance_of::<PyValueError>(py) {
            true => make_type_error(format!(
                "table {name:?} has the type {class}, which is not a table ({}); give a table, or a dict with a name for each column",
                e.value(py)
            )),
            false => e,
        })?;
        // Reads without holding the interpreter, because the stream may run a query of another library.
        return run_alone(py, move || {
            let schema = reader.schema();
            // The schema of a batch may differ in metadata from the schema of the stream.
            let batches = reader.map(|b| b?.with_schema(Arc::clone(&schema)));
            let batches = batches.collect::<Result<Vec<_>, ArrowError>>()?;
            Ok((schema, batches))
        });
    }
    Err(make_type_error(format!(
        "table {name:?} has the type {}; it must be a RaggedTable, a dict of lists or arrays, or an object with __arrow_c_stream__ (pyarrow, polars, pandas, DuckDB)",
        table.get_type().name()?
    )))
}

/// Converts a column from Python to an Arrow array.
pub(crate) fn extract_column(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let py = value.py();
    if let Ok(ours) = value.cast::<RaggedArray>() {
        let inner = ours.get().as_ragged();
        return run_alone(py, || inner.to_arrow());
    }
    if value.hasattr(intern!(py, "__arrow_c_array__"))? {
        return Ok(value.extract::<pyo3_arrow::PyArray>()?.into_inner().0);
    }
    if value.hasattr(intern!(py, "__arrow_c_stream__"))? {
        let reader = value.extract::<pyo3_arrow::PyArrayReader>()?.into_reader()?;
        return run_alone(py, move || {
            let field = reader.field();
            let chunks = reader.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
            let refs: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
            match refs.is_empty() {
                true => Ok(serrate::arrow::array::new_empty_array(field.data_type())),
                false => Ok(serrate::arrow::compute::concat(&refs)?),
            }
        });
    }
    let is_flat = value.hasattr(intern!(py, "dtype"))?
        && value
            .getattr(intern!(py, "ndim"))
            .and_then(|n| n.extract::<usize>())
            .is_ok_and(|n| n == 1);
    if is_flat {
        return flat_from_numpy(&as_numpy(value)?);
    }
    let array = extract_ragged(value, name)?;
    run_alone(py, || array.to_arrow())
}

/// Converts a column from Python to a ragged array.
pub(crate) fn extract_ragged(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Ragged> {
    let py = value.py();
    if let Ok(ours) = value.cast::<RaggedArray>() {
        return Ok(ours.get().as_ragged().clone());
    }
    if value.hasattr(intern!(py, "__arrow_c_array__"))?
        || value.hasattr(intern!(py, "__arrow_c_stream__"))?
    {
        let array = extract_column(value, name)?;
        return run_alone(py, || Ragged::try_from_arrow(&array));
    }
    if value.getattr(intern!(py, "is_nested")).and_then(|v| v.is_truthy()).unwrap_or(false) {
        return extract_nested_tensor(value, name);
    }
    if value.hasattr(intern!(py, "dtype"))? && value.hasattr(intern!(py, "shape"))? {
        let array = as_numpy(value)?;
        let shape: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
        let Some(rows) = shape.first().copied() else {
            return Err(make_type_error(format!(
                "{name}: expected a list or an array with axes, found a scalar"
            )));
        };
        let flat = flat_from_numpy(&array.call_method1("reshape", (-1,))?)?;
        let mut axes = Vec::new();
        let mut lists = rows;
        for size in shape.iter().skip(1).copied() {
            axes.push(serrate::array::Layout::Uniform { size, lists }.into());
            lists = lists.checked_mul(size).ok_or_else(|| {
                make_invalid_error(
                    "the array has more elements than 64 bits can count; give a smaller array",
                )
            })?;
        }
        return run_alone(py, move || Ragged::try_new(rows, axes, flat));
    }
    Ok(crate::python_lists::parse_lists(value, name, None)?.into_ragged())
}

/// Converts a nested tensor of torch, whose rows are tensors.
fn extract_nested_tensor(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Ragged> {
    let py = value.py();
    let rows = value.call_method0(intern!(py, "unbind"))?;
    let mut lengths: Vec<usize> = Vec::new();
    for row in rows.try_iter()? {
        lengths.push(row?.len()?);
    }
    let count = lengths.len();
    let joined = py.import(intern!(py, "torch"))?.call_method1(intern!(py, "cat"), (rows,))?;
    let elements = extract_ragged(&joined, name)?;
    run_alone(py, move || {
        let mut axes = vec![Offsets::from_lengths(lengths)?.into()];
        axes.extend_from_slice(elements.axes());
        Ragged::try_new(count, axes, elements.leaves().clone())
    })
}

fn build_batch_of_dict(dict: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
    let mut fields = Vec::with_capacity(dict.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(dict.len());
    for (name, value) in dict.iter() {
        let name: String = name.extract()?;
        let array = extract_column(&value, &name)?;
        if let Some(first) = arrays.first()
            && first.len() != array.len()
        {
            return Err(make_invalid_error(format!(
                "column {name:?} has {} rows, but the columns before it have {}; all columns must have the same number of rows",
                array.len(),
                first.len()
            )));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let rows = arrays.first().map_or(0, |a| a.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).or_raise()
}

/// Converts the parameters of a statement: a list for `$1`, `$2`, .., or a dict for `$name`.
fn extract_param_values(params: &Bound<'_, PyAny>, query: &str) -> PyResult<Option<ParamValues>> {
    if let Ok(dict) = params.cast::<PyDict>() {
        let mut named = Vec::with_capacity(dict.len());
        for (name, value) in dict.iter() {
            let name: String = name.extract()?;
            let value = convert_parameter(&value, &name)?;
            named.push((name, value));
        }
        return Ok((!named.is_empty()).then(|| ParamValues::from(named)));
    }
    if params.cast::<PyList>().is_err() && params.cast::<PyTuple>().is_err() {
        return Err(make_type_error(
            "the parameters of a statement must be a list for $1, $2, .. or a dict for names such as $since",
        ));
    }
    let mut all = Vec::new();
    for (number, value) in (1usize..).zip(params.try_iter()?) {
        let name = number.to_string();
        if !query.contains(&format!("${name}")) {
            return Err(make_invalid_error(format!(
                "{} parameter(s) are given, but the statement has no ${name}; use it in the statement, or omit its value",
                params.len()?
            )));
        }
        all.push(convert_parameter(&value?, &name)?);
    }
    Ok((!all.is_empty()).then(|| ParamValues::from(all)))
}

fn convert_parameter(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    let what = format!("the parameter ${name}");
    let array = crate::python_lists::parse_value(value, &what)?.into_ragged();
    let array = run_here(|| array.to_arrow())?;
    ScalarValue::try_from_array(&array, 0).or_raise()
}

/// The result of a statement. A statement that only reads runs when its result is used.
#[pyclass(frozen, name = "Result", module = "serrate._serrate")]
pub(crate) struct SqlResult {
    frame: DataFrame,
    schema: SchemaRef,
    /// All batches, after they have been collected.
    done: OnceLock<Vec<RecordBatch>>,
    /// A Python function that creates a display of the progress of the statement.
    progress: Option<Py<PyAny>>,
}

impl SqlResult {
    /// Returns an error if two columns have the same name, because a dict holds only one of them.
    fn check_names(&self) -> PyResult<()> {
        let mut seen = HashSet::new();
        for field in self.schema.fields() {
            if !seen.insert(field.name()) {
                return Err(make_invalid_error(format!(
                    "two columns of the result have the name {:?}; give one of them another name with AS",
                    field.name()
                )));
            }
        }
        Ok(())
    }

    fn run(&self, py: Python<'_>, frame: DataFrame) -> PyResult<Vec<RecordBatch>> {
        let threads = start_threads()?;
        let running = RunningPlan::default();
        let start = self.progress.as_ref().map(|p| p.clone_ref(py));
        let mut shown = StatementProgress::new(start, running.clone());
        py.detach(move || {
            let watch = |py: Python<'_>, since| shown.show_progress(py, since);
            let (_, batches) =
                threads.finish_watched(collect_batches(frame, running), watch)?.or_raise()?;
            Ok(batches)
        })
    }

    fn read_batches(&self, py: Python<'_>) -> PyResult<&[RecordBatch]> {
        if let Some(done) = self.done.get() {
            return Ok(done);
        }
        let batches = self.run(py, self.frame.clone())?;
        Ok(self.done.get_or_init(|| batches))
    }

    /// Returns the first rows, and whether there are more.
    fn read_head(&self, py: Python<'_>, rows: usize) -> PyResult<(Vec<RecordBatch>, bool)> {
        let batches = match self.done.get() {
            Some(done) => done.clone(),
            None => {
                let explains = matches!(
                    self.frame.logical_plan(),
                    LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)
                );
                let frame = match explains {
                    true => self.frame.clone(),
                    false => {
                        self.frame.clone().limit(0, Some(rows.saturating_add(1))).or_raise()?
                    }
                };
                self.run(py, frame)?
            }
        };
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        Ok((batches, count > rows))
    }

    fn read_all(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        let batches = self.read_batches(py)?;
        match batches {
            [one] => Ok(one.clone()),
            [] => Ok(RecordBatch::new_empty(Arc::clone(&self.schema))),
            [first, ..] => {
                let schema = first.schema();
                run_alone(py, || Ok(concat_batches(&schema, batches)?))
            }
        }
    }
}

#[pymethods]
impl SqlResult {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    /// Types of the columns, such as `int64[]` for lists of integers.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|f| display::type_name(f.data_type())).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.read_batches(py)?.iter().map(RecordBatch::num_rows).sum())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reader: Box<dyn RecordBatchReader + Send> = match self.done.get() {
            Some(done) => {
                let schema = done.first().map_or_else(|| Arc::clone(&self.schema), |b| b.schema());
                Box::new(RecordBatchIterator::new(done.clone().into_iter().map(Ok), schema))
            }
            None => {
                let threads = start_threads()?;
                let frame = self.frame.clone();
                let starting = threads.clone();
                let started = async move { execute_in_order(frame, &RunningPlan::default()).await };
                let stream = py.detach(|| starting.finish(started)?.or_raise())?;
                Box::new(ResultReader::new(threads, stream))
            }
        };
        export_stream(py, reader, requested_schema)
    }

    /// Runs the statement and keeps its whole result.
    fn collect(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().read_batches(slf.py())?;
        Ok(slf)
    }

    /// Returns a dict of numpy arrays. Flat columns become arrays (masked if they have NULLs, objects for
    /// strings), FixedSizeList columns of numbers arrays with more axes, and other lists `RaggedArray`s.
    /// Numbers and times without NULLs are not copied if the batches of the result are parts of one table;
    /// other columns are copied if there are several batches.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_names()?;
        let batches = self.read_batches(py)?;
        let schema = batches.first().map_or_else(|| Arc::clone(&self.schema), |b| b.schema());
        let out = PyDict::new(py);
        for (index, field) in schema.fields().iter().enumerate() {
            let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
            if let Some(view) = view_parts(py, &parts)? {
                out.set_item(field.name(), view)?;
                continue;
            }
            let column = match batches {
                [] => serrate::arrow::array::new_empty_array(field.data_type()),
                [one] => Arc::clone(one.column(index)),
                several => {
                    let parts: Vec<&dyn Array> =
                        several.iter().map(|batch| batch.column(index).as_ref()).collect();
                    run_alone(py, || Ok(serrate::arrow::compute::concat(&parts)?))?
                }
            };
            let value = match column.data_type() {
                DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                    match py.detach(|| DenseTensor::try_from_arrow(&column)) {
                        Ok(tensor) => to_numpy(py, &tensor)?,
                        Err(_) => {
                            let array = run_alone(py, || Ragged::try_from_arrow(&column))?;
                            Bound::new(py, RaggedArray::from(array))?.into_any()
                        }
                    }
                }
                _ => column_to_numpy(py, &column)?,
            };
            out.set_item(field.name(), value)?;
        }
        Ok(out)
    }

    /// Returns a `RaggedTable`, in which columns share their lists.
    fn table(&self, py: Python<'_>) -> PyResult<RaggedTable> {
        let batch = self.read_all(py)?;
        Ok(crate::run::run_detached(py, move || {
            serrate::table::RaggedTable::try_from_batch(&batch)
        })?
        .into())
    }

    /// Returns a dict of Python lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_names()?;
        let batch = self.read_all(py)?;
        let out = PyDict::new(py);
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            out.set_item(field.name(), crate::python_lists::to_list(py, column)?)?;
        }
        Ok(out)
    }

    /// Returns the first rows as text.
    #[pyo3(signature = (rows=20))]
    fn to_text(&self, py: Python<'_>, rows: usize) -> PyResult<String> {
        let (batches, more) = self.read_head(py, rows)?;
        display::format_text(&self.schema, &batches, rows, more).or_raise()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.to_text(py, 10)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let (batches, more) = self.read_head(py, 20)?;
        display::format_html(&self.schema, &batches, 20, more).or_raise()
    }
}

/// Reads the batches of a running query as they arrive.
struct ResultReader {
    schema: SchemaRef,
    threads: ThreadPools,
    batches: mpsc::Receiver<Result<RecordBatch, ArrowError>>,
    task: tokio::task::AbortHandle,
}

impl ResultReader {
    fn new(threads: ThreadPools, stream: SendableRecordBatchStream) -> Self {
        let schema = stream.schema();
        let (send, batches) = mpsc::channel(WAITING);
        let task = threads.spawn_task(send_batches(stream, send));
        Self { schema, threads, batches, task }
    }
}

/// Sends the batches of a query. Also sends a panic of the query as an error, because the receiver
/// takes the end of the channel for the end of the result.
async fn send_batches(
    mut stream: SendableRecordBatchStream,
    send: mpsc::Sender<Result<RecordBatch, ArrowError>>,
) {
    use futures::{FutureExt, StreamExt};
    let sent = async {
        while let Some(batch) = stream.next().await {
            // The reader was dropped, so it needs no more batches.
            if send.send(batch.map_err(to_stream_error)).await.is_err() {
                break;
            }
        }
    };
    let ended = AssertUnwindSafe(sent).catch_unwind().await;
    let ended = ended.map_err(|panic| make_stream_error(&format_panic(panic.as_ref())));
    if let Err(e) = ended {
        let _ = send.send(Err(e)).await;
    }
}

impl Iterator for ResultReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.threads.next(self.batches.recv()) {
            Ok(batch) => batch,
            Err(interrupt) => {
                self.task.abort();
                Some(Err(ArrowError::ExternalError(Box::new(interrupt))))
            }
        }
    }
}

impl Drop for ResultReader {
    fn drop(&mut self) {
        // Without this call, the query would run until its next batch is computed.
        self.task.abort();
    }
}

impl RecordBatchReader for ResultReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Exports a reader as a capsule of the Arrow C stream interface.
pub(crate) fn export_stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = reader.schema();
    let field = Field::new_struct("", schema.fields().clone(), false)
        .with_metadata(schema.metadata().clone());
    let arrays = reader.map(|batch| batch.map(|b| Arc::new(StructArray::from(b)) as ArrayRef));
    let arrays = ArrayIterator::new(arrays, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(arrays), requested_schema)?)
}
