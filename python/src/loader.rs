//! Loaders, which iterate over epochs of batches of numpy arrays.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use serrate::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use serrate::arrow::compute::{CastOptions, cast, cast_with_options, concat_batches, nullif};
use serrate::arrow::datatypes::{
    DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use serrate::dense::{DType, Fill};
use serrate::io::meds::{LabelKind, Labels};
use serrate::loader::meds::{MedsLoader, MedsOptions, SequenceWindow};
use serrate::loader::{Batch, BatchForm, Epoch, Loader, LoaderOptions, WindowSampling};
use serrate::table::RaggedTable as Table;

use crate::errors::{OrRaise, make_invalid_error, make_type_error};
use crate::numpy_memory::into_numpy;
use crate::run::{run_alone, run_detached};
use crate::sql::extract_batches;
use crate::table::{RaggedTable, parse_sizes};

#[derive(Clone)]
enum LoaderKind {
    Meds(Box<MedsLoader>),
    Plain(Loader),
}

/// Builds the batches of the Python classes `MedsLoader` and `Loader`.
#[pyclass(frozen, module = "serrate._serrate")]
pub(crate) struct BatchLoader {
    kind: LoaderKind,
}

/// Keyword arguments. Reading an argument removes it, so that only unknown names remain at the end.
struct KeywordOptions<'py>(Bound<'py, PyDict>);

impl<'py> KeywordOptions<'py> {
    /// Takes an option; `None` if it is absent or None.
    fn take_any(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.0.get_item(name)?;
        if value.is_some() {
            self.0.del_item(name)?;
        }
        Ok(value.filter(|v| !v.is_none()))
    }

    fn get<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(value) = self.take_any(name)? else { return Ok(None) };
        match value.extract::<T>() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(make_type_error(format!(
                "the option {name} has the value {}, which is not of the expected type; see help(MedsLoader) or help(Loader)",
                value.repr()?
            ))),
        }
    }

    fn check_rest(self) -> PyResult<()> {
        match self.0.keys().iter().next() {
            None => Ok(()),
            Some(name) => Err(make_type_error(format!(
                "the loader has no option {name}; remove it, or correct its name"
            ))),
        }
    }

    fn parse_form(&self) -> PyResult<BatchForm> {
        match self.get::<String>("form")?.as_deref() {
            None | Some("padded") => Ok(BatchForm::Padded),
            Some("packed") => Ok(BatchForm::Packed),
            Some(other) => {
                Err(make_invalid_error(format!("form is {other:?}; use 'padded' or 'packed'")))
            }
        }
    }

    fn position_ids(&self) -> PyResult<Option<DType>> {
        self.get::<String>("position_ids")?.map(|d| d.parse().or_raise()).transpose()
    }

    /// Adds the windows that `window`, `sampling` and `stride` describe.
    fn add_window(&self, loader: LoaderOptions) -> PyResult<LoaderOptions> {
        let stride: Option<usize> = self.get("stride")?;
        let sampling: Option<String> = self.get("sampling")?;
        let len: Option<usize> = self.get("window")?;
        let (len, how) = match (len, sampling.as_deref().unwrap_or("start"), stride) {
            (Some(len), "start", None) => (len, WindowSampling::FromStart),
            (Some(len), "end", None) => (len, WindowSampling::ToEnd),
            (Some(len), "random", None) => (len, WindowSampling::Random),
            (Some(len), "balanced", None) => (len, WindowSampling::BalancedRandom),
            (Some(len), "step", stride) => {
                (len, WindowSampling::Step { stride: stride.unwrap_or(len) })
            }
            (None, _, None) if sampling.is_none() => return Ok(loader),
            (None, ..) => {
                return Err(make_invalid_error(
                    "sampling and stride require the option window, the length of the windows; set it",
                ));
            }
            (_, _, Some(_)) => return Err(make_invalid_error("stride requires sampling='step'")),
            (_, other, _) => {
                return Err(make_invalid_error(format!(
                    "sampling must be 'start', 'end', 'random', 'balanced' or 'step', not {other:?}"
                )));
            }
        };
        Ok(loader.window(len, how))
    }

    /// Adds the fill values in `fill`: one value for all columns, or a dict with the values of
    /// columns.
    fn add_fill(&self, mut loader: LoaderOptions) -> PyResult<LoaderOptions> {
        let Some(fill) = self.take_any("fill")? else { return Ok(loader) };
        let Ok(each) = fill.cast::<PyDict>() else {
            return Ok(loader.fill(extract_option_fill(&fill)?));
        };
        for (name, value) in each.iter() {
            loader = loader.fill_column(name.extract::<String>()?, extract_option_fill(&value)?);
        }
        Ok(loader)
    }
}

enum LoaderShards {
    Files(Vec<PathBuf>),
    Tables(Vec<Table>),
}

/// Reads the shards of a loader: a path, a table, or an iterable of only paths or only tables.
fn extract_shards(source: &Bound<'_, PyAny>) -> PyResult<LoaderShards> {
    let is_one = source.cast::<RaggedTable>().is_ok()
        || source.is_instance_of::<PyString>()
        || source.hasattr("__fspath__")?;
    let each = match is_one {
        true => vec![source.clone()],
        false => source.try_iter()?.collect::<PyResult<Vec<_>>>()?,
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    for shard in each {
        match shard.cast::<RaggedTable>() {
            Ok(table) => tables.push(table.get().as_table().clone()),
            Err(_) => paths.push(shard.extract()?),
        }
    }
    match (paths.is_empty(), tables.is_empty()) {
        (true, _) => Ok(LoaderShards::Tables(tables)),
        (false, true) => Ok(LoaderShards::Files(paths)),
        (false, false) => Err(make_invalid_error(
            "the shards are a mixture of files and tables; give only files, or only tables",
        )),
    }
}

fn extract_option_fill(value: &Bound<'_, PyAny>) -> PyResult<Fill> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Fill::Bool(value.extract()?));
    }
    if let Ok(v) = value.extract::<i64>() {
        return Ok(Fill::Int(v));
    }
    Ok(Fill::Float(value.extract()?))
}

/// Returns floats with NULL instead of NaN, which is the missing value of numpy.
fn clear_nan(floats: &ArrayRef) -> PyResult<ArrayRef> {
    let wide = cast(floats, &DataType::Float64).or_raise()?;
    let values = wide.as_primitive::<Float64Type>().iter();
    let is_nan: BooleanArray = values.map(|value| value.map(f64::is_nan)).collect();
    nullif(floats, &is_nan).or_raise()
}

/// Converts a column of labels. Returns an error if a value would change.
fn cast_labels(found: &ArrayRef, name: &str, to: &DataType) -> PyResult<ArrayRef> {
    let from = found.data_type();
    let found = &match from.is_floating() && !to.is_floating() {
        true => clear_nan(found)?,
        false => ArrayRef::clone(found),
    };
    let refuse = |why: &str| {
        make_invalid_error(format!(
            "the column {name:?} of the labels has the type {from}, and its values cannot be converted to {to} ({why})"
        ))
    };
    let strict = CastOptions { safe: false, ..Default::default() };
    let made = cast_with_options(found, to, &strict).map_err(|e| refuse(&e.to_string()))?;
    let is_rounded = match from {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let counts = cast(found, &DataType::Int64).or_raise()?;
            counts.as_primitive::<Int64Type>().iter().flatten().any(|ns| ns % 1000 != 0)
        }
        _ if from.is_floating() && to.is_integer() => &cast(&made, from).or_raise()? != found,
        _ => false,
    };
    if is_rounded { Err(refuse("a value would be rounded")) } else { Ok(made) }
}

/// Reads labels from a folder or file, or converts them from a table.
fn read_labels(value: &Bound<'_, PyAny>, compat: bool) -> PyResult<Labels> {
    let is_path = value.is_instance_of::<PyString>() || value.hasattr("__fspath__")?;
    if is_path {
        let path: PathBuf = value.extract()?;
        return run_detached(value.py(), move || match compat {
            true => Labels::read_in_text_order(path),
            false => Labels::read(path),
        });
    }
    let (schema, batches) = extract_batches(value, "labels")?;
    let batch = run_alone(value.py(), || Ok(concat_batches(&schema, &batches)?))?;
    let column = |name: &str, to: &DataType| -> PyResult<_> {
        let found = batch.column_by_name(name).ok_or_else(|| {
            make_invalid_error(format!(
                "the labels have no column {name:?}; give a table with subject_id and prediction_time"
            ))
        })?;
        cast_labels(found, name, to)
    };
    let subjects = column("subject_id", &DataType::Int64)?;
    let times = column("prediction_time", &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let mut values = Vec::new();
    for kind in LabelKind::ALL {
        if batch.column_by_name(kind.column()).is_some() {
            values.push((kind, column(kind.column(), &kind.data_type())?));
        }
    }
    Labels::try_new(
        subjects.as_primitive::<Int64Type>().clone(),
        times.as_primitive::<TimestampMicrosecondType>().clone(),
        values,
    )
    .or_raise()
}

#[pymethods]
impl BatchLoader {
    /// Creates a loader over a tensorized cohort or a MEDS data set.
    #[staticmethod]
    fn meds(root: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = options.py();
        let o = KeywordOptions(options.copy()?);
        let batch_size = o.get("batch_size")?.unwrap_or(1);
        let len: usize = o.get("max_seq_len")?.unwrap_or(256);
        let compat = o.get("compat")?.unwrap_or(false);
        let window: String = o.get("window")?.unwrap_or_else(|| "random".into());
        let (stride, overlap) = (o.get("stride")?, o.get("overlap")?);
        let mut m = MedsOptions::new(batch_size, len)
            .window(SequenceWindow::named(&window, len, stride, overlap).or_raise()?)
            .compat(compat)
            .form(o.parse_form()?)
            .position_ids(o.position_ids()?);
        if let Some(unit) = o.get::<String>("unit")? {
            m = m.unit(unit.parse().or_raise()?);
        }
        if let Some(statics) = o.get::<String>("statics")? {
            m = m.statics(statics.parse().or_raise()?);
        }
        if let Some(most) = o.get("measurements_per_event")? {
            m = m.measurements_per_event(most);
        }
        if let Some(v) = o.get("fixed_shape")? {
            m = m.fixed_shape(v);
        }
        if let Some(v) = o.get("numeric_value")? {
            m = m.numeric_value(v);
        }
        if let Some(v) = o.get("time_delta")? {
            m = m.time_delta(v);
        }
        if let Some(v) = o.get("window_counts")? {
            m = m.window_counts(v);
        }
        let seed = o.get::<u64>("seed")?.unwrap_or(0);
        m = if o.get("shuffle")?.unwrap_or(false) { m.shuffle(seed) } else { m.seed(seed) };
        if let Some(pool) = o.get("bucket")? {
            m = m.bucket(pool);
        }
        if let Some(v) = o.get("drop_last")? {
            m = m.drop_last(v);
        }
        m = m.part(o.get("rank")?.unwrap_or(0), o.get("world")?.unwrap_or(1));
        if let Some(side) = o.get::<String>("padding_side")? {
            m = m.side(side.parse().or_raise()?);
        }
        m = m.threads(o.get("threads")?.unwrap_or(1)).prefetch(o.get("prefetch")?.unwrap_or(0));
        if let Some(limit) = o.get::<u64>("limit")? {
            m = m.limit(limit);
        }
        m = m.trust_padding(o.get("trust_padding")?.unwrap_or(false));
        let labels = o.take_any("labels")?.map(|l| read_labels(&l, compat)).transpose()?;
        let split: Option<String> = o.get("split")?;
        o.check_rest()?;
        let loader =
            run_detached(py, move || MedsLoader::open(root, split.as_deref(), labels.as_ref(), m))?;
        Ok(Self { kind: LoaderKind::Meds(Box::new(loader)) })
    }

    /// Creates a loader over tables or `.nrt` files.
    #[staticmethod]
    fn plain(source: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = options.py();
        let o = KeywordOptions(options.copy()?);
        let mut l = LoaderOptions::new(o.get("batch_size")?.unwrap_or(1))
            .form(o.parse_form()?)
            .threads(o.get("threads")?.unwrap_or(1))
            .prefetch(o.get("prefetch")?.unwrap_or(0))
            .part(o.get("rank")?.unwrap_or(0), o.get("world")?.unwrap_or(1));
        l = o.add_window(l)?;
        let seed = o.get::<u64>("seed")?.unwrap_or(0);
        l = if o.get("shuffle")?.unwrap_or(false) { l.shuffle(seed) } else { l.seed(seed) };
        if let Some(pool) = o.get("bucket")? {
            l = l.bucket(pool);
        }
        if let Some(v) = o.get("drop_last")? {
            l = l.drop_last(v);
        }
        if let Some(columns) = o.get::<Vec<String>>("columns")? {
            l = l.columns(columns);
        }
        if let Some(axes) = o.get::<Vec<usize>>("masks")? {
            l = l.masks(axes);
        }
        if let Some(v) = o.get("validity")? {
            l = l.validity(v);
        }
        if let Some(sizes) = o.take_any("sizes")? {
            l = l.sizes(parse_sizes(&sizes)?);
        }
        if let Some(side) = o.get::<String>("padding_side")? {
            l = l.side(side.parse().or_raise()?);
        }
        l = o.add_fill(l)?;
        if let Some(v) = o.get("tokens_as_i64")? {
            l = l.tokens_as_i64(v);
        }
        if o.0.contains("position_ids")? {
            l = l.position_ids(o.position_ids()?);
        }
        if let Some(limit) = o.get::<u64>("limit")? {
            l = l.limit(limit);
        }
        l = l.trust_padding(o.get("trust_padding")?.unwrap_or(false));
        o.check_rest()?;
        let shards = extract_shards(source)?;
        let loader = run_detached(py, move || match shards {
            LoaderShards::Files(paths) => Loader::open(paths, l),
            LoaderShards::Tables(tables) => Loader::try_new(tables, l),
        })?;
        Ok(Self { kind: LoaderKind::Plain(loader) })
    }

    /// Number of items of an epoch.
    #[getter]
    fn num_items(&self) -> usize {
        self.as_loader().num_items()
    }

    /// Number of rows of all shards.
    #[getter]
    fn num_rows(&self) -> usize {
        self.as_loader().num_rows()
    }

    /// Number of labels that were omitted because their subjects are unknown.
    #[getter]
    fn unknown_labels(&self) -> usize {
        match &self.kind {
            LoaderKind::Meds(m) => m.unknown_labels(),
            LoaderKind::Plain(_) => 0,
        }
    }

    /// The categories that `categorical_value` refers to by index.
    #[getter]
    fn categories(&self) -> Vec<String> {
        match &self.kind {
            LoaderKind::Meds(m) => m.categories().to_vec(),
            LoaderKind::Plain(_) => Vec::new(),
        }
    }

    /// For each tensor of a packed batch with values in lists, the name of the tensor with the
    /// cumulative lengths of its lists.
    #[getter]
    fn packed_lengths(&self) -> HashMap<String, String> {
        self.as_loader().packed_lengths().into_iter().collect()
    }

    /// Returns the number of batches of an epoch.
    fn num_batches(&self, epoch: u64) -> usize {
        self.as_loader().plan(epoch).num_batches()
    }

    /// Returns a hash of the epoch, of the options that affect batches, and of the lengths of the data.
    fn fingerprint(&self, py: Python<'_>, epoch: u64) -> PyResult<u64> {
        let loader = self.as_loader();
        run_detached(py, || Ok(loader.plan(epoch).fingerprint()))
    }

    /// Iterates over the batches `start`, `start + step`, .. of an epoch.
    fn epoch(
        &self,
        py: Python<'_>,
        epoch: u64,
        start: usize,
        step: usize,
    ) -> PyResult<EpochBatches> {
        let loader = self.as_loader().clone();
        let epoch = run_detached(py, move || loader.epoch_from(epoch, start))?;
        Ok(EpochBatches { state: Mutex::new((epoch, false)), step: step.max(1) })
    }

    /// Builds one batch from the given items.
    fn batch_of<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        items: Vec<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let loader = self.as_loader();
        let batch = run_detached(py, || loader.batch_of(epoch, &items))?;
        into_arrays(py, batch)
    }
}

impl BatchLoader {
    fn as_loader(&self) -> &Loader {
        match &self.kind {
            LoaderKind::Meds(m) => m.loader(),
            LoaderKind::Plain(l) => l,
        }
    }
}

/// Returns the tensors of a batch as numpy arrays over the same memory, which returns to the loader when
/// the last array is dropped.
fn into_arrays<'py>(py: Python<'py>, batch: Batch) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, tensor) in batch.into_tensors() {
        out.set_item(&*name, into_numpy(py, tensor)?)?;
    }
    Ok(out)
}

/// An iterator over batches of one epoch.
#[pyclass(frozen, name = "Batches", module = "serrate._serrate")]
pub(crate) struct EpochBatches {
    /// The epoch, and whether a batch has already been requested.
    state: Mutex<(Epoch, bool)>,
    step: usize,
}

#[pymethods]
impl EpochBatches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let step = self.step;
        let next = run_alone(py, || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let (epoch, begun) = &mut *state;
            let skip = if *begun { step - 1 } else { 0 };
            *begun = true;
            epoch.nth(skip).transpose()
        });
        py.check_signals()?;
        next?.map(|batch| into_arrays(py, batch)).transpose()
    }

    /// Index of the next batch.
    #[getter]
    fn position(&self, py: Python<'_>) -> usize {
        // Another thread holds the lock while it builds a batch.
        py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).0.position())
    }
}
