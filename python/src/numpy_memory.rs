//! Converts tensors of the crate to numpy arrays and back.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serrate::arrow::array::{Array, ArrayRef, AsArray};
use serrate::arrow::buffer::Buffer;
use serrate::arrow::compute::cast;
use serrate::arrow::datatypes::{DataType, TimeUnit};
use serrate::dense::{BufferPool, DType, DenseOptions, DenseTensor};

use crate::errors::{OrRaise, make_invalid_error, make_type_error};
use crate::run::{run_alone, run_detached};

/// Maximum number of bytes that the pool keeps for later padded results, after Python has deleted the
/// arrays of earlier results.
const KEPT: usize = 2 << 30;

/// The pool for padded results, and the process that it belongs to.
static POOL: Mutex<Option<(u32, BufferPool)>> = Mutex::new(None);

/// Returns the pool of this process for padded results, to which Python may write. The caller holds
/// the interpreter, and so does a thread that forks. Therefore, no fork happens while this function
/// locks [`POOL`].
pub(crate) fn dense_pool(_: Python<'_>) -> BufferPool {
    let process = std::process::id();
    let mut known = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = known.as_ref().filter(|(of, _)| *of == process) {
        return pool.clone();
    }
    let pool = BufferPool::for_writers(KEPT);
    if let Some((_, parents)) = known.replace((process, pool.clone())) {
        parents.clear();
        // Does not drop the pool of the parent: if a thread of the parent changed its list of
        // buffers during the fork, that list may be inconsistent in this process.
        std::mem::forget(parents);
    }
    pool
}

/// Calls `make`, which builds padded results, without holding the interpreter. If
/// `options.parallel` is set, `make` may use several threads.
pub(crate) fn make_dense<T: Send>(
    py: Python<'_>,
    options: &DenseOptions,
    make: impl FnOnce() -> serrate::Result<T> + Send,
) -> PyResult<T> {
    match options.parallel {
        true => run_detached(py, make),
        false => run_alone(py, make),
    }
}

/// Rust memory that numpy reads in place through `__array_interface__`.
#[pyclass(frozen, name = "Memory", module = "serrate._serrate")]
pub(crate) struct NumpyMemory {
    /// At least one buffer. Each buffer begins where the one before it ends.
    buffers: Vec<Buffer>,
    shape: Vec<usize>,
    typestr: String,
    read_only: bool,
}

#[pymethods]
impl NumpyMemory {
    /// numpy's description of the memory, which is read-only if other owners share the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        d.set_item(intern!(py, "version"), 3)?;
        d.set_item(intern!(py, "shape"), PyTuple::new(py, &self.shape)?)?;
        d.set_item(intern!(py, "typestr"), &self.typestr)?;
        let address = self.buffers.first().map_or(0, |first| first.as_ptr() as usize);
        d.set_item(intern!(py, "data"), (address, self.read_only))?;
        Ok(d)
    }
}

/// Returns numpy's name of a type. Callers convert bfloat16, which numpy lacks, to float32.
pub(crate) fn name_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::F16 | DType::BF16 => "<f2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::F32 => "<f4",
        DType::U64 => "<u8",
        DType::I64 => "<i8",
        DType::F64 => "<f8",
    }
}

/// Returns a numpy array over memory that the array keeps alive.
fn view_memory<'py>(
    py: Python<'py>,
    buffers: Vec<Buffer>,
    shape: Vec<usize>,
    typestr: String,
    read_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = Bound::new(py, NumpyMemory { buffers, shape, typestr, read_only })?;
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (memory,))
}

/// Returns a tensor as a read-only numpy array over its memory; bfloat16 is converted to float32.
pub(crate) fn to_numpy<'py>(py: Python<'py>, tensor: &DenseTensor) -> PyResult<Bound<'py, PyAny>> {
    let widened;
    let tensor = match tensor.dtype() {
        DType::BF16 => {
            widened = tensor.cast(DType::F32).or_raise()?;
            &widened
        }
        _ => tensor,
    };
    let text = name_type(tensor.dtype()).to_owned();
    view_memory(py, vec![tensor.buffer().clone()], tensor.shape().to_vec(), text, true)
}

/// Returns a tensor without other owners as a writable numpy array over its memory.
pub(crate) fn into_numpy<'py>(py: Python<'py>, tensor: DenseTensor) -> PyResult<Bound<'py, PyAny>> {
    let text = name_type(tensor.dtype()).to_owned();
    view_memory(py, vec![tensor.buffer().clone()], tensor.shape().to_vec(), text, false)
}

/// Returns numpy's kind and unit of an Arrow date, timestamp or duration type.
fn find_time_unit(data_type: &DataType) -> Option<(char, &'static str)> {
    let unit = |u: &TimeUnit| match u {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    match data_type {
        DataType::Timestamp(u, _) => Some(('M', unit(u))),
        DataType::Duration(u) => Some(('m', unit(u))),
        DataType::Date32 => Some(('M', "D")),
        DataType::Date64 => Some(('M', "ms")),
        _ => None,
    }
}

/// Returns numpy's name of a type of numbers or times that Arrow stores as numpy does.
fn name_in_place(data_type: &DataType) -> Option<String> {
    match (find_time_unit(data_type), DType::from_arrow(data_type)) {
        (Some(_), _) if data_type == &DataType::Date32 => None,
        (Some((kind, unit)), _) => Some(format!("<{kind}8[{unit}]")),
        // Arrow packs booleans into bits, and numpy has no bfloat16.
        (None, Some(DType::Bool | DType::BF16) | None) => None,
        (None, Some(dtype)) => Some(name_type(dtype).to_owned()),
    }
}

/// Returns a read-only numpy array over the parts of a column that are adjacent in memory, such as the
/// batches of a scanned table, and keeps the memory of all of them. Returns `None` for other parts, which
/// must be joined. (The buffers of batches have owners of their own, also if they are cut from one array.)
pub(crate) fn view_parts<'py>(
    py: Python<'py>,
    parts: &[&ArrayRef],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(data_type) = parts.first().map(|first| first.data_type()) else { return Ok(None) };
    let Some((text, width)) = name_in_place(data_type).zip(data_type.primitive_width()) else {
        return Ok(None);
    };
    let mut buffers: Vec<Buffer> = Vec::with_capacity(parts.len());
    let mut rows = 0;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let data = part.to_data();
        let [values] = data.buffers() else { return Ok(None) };
        if data.data_type() != data_type || data.null_count() > 0 {
            return Ok(None);
        }
        let values = values.slice_with_length(data.offset() * width, data.len() * width);
        let is_next = buffers
            .last()
            .is_none_or(|last| last.as_ptr() as usize + last.len() == values.as_ptr() as usize);
        if !is_next {
            return Ok(None);
        }
        rows += data.len();
        buffers.push(values);
    }
    match buffers.is_empty() {
        true => Ok(None),
        false => view_memory(py, buffers, vec![rows], text, true).map(Some),
    }
}

/// Converts a flat Arrow array without nulls to a numpy array: numbers and times in place, strings as
/// objects.
pub(crate) fn flat_to_numpy<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    if let Some((kind, unit)) = find_time_unit(array.data_type()) {
        // A date has 32 bits in Arrow, but 64 in numpy.
        let whole = match array.data_type() {
            DataType::Date32 => {
                let days = cast(array, &DataType::Int32).or_raise()?;
                cast(&days, &DataType::Int64).or_raise()?
            }
            _ => array.clone(),
        };
        let tensor = DenseTensor::from_flat(whole.as_ref(), "a column").or_raise()?;
        let mut text = String::new();
        let _ = write!(text, "<{kind}8[{unit}]");
        return view_memory(py, vec![tensor.buffer().clone()], tensor.shape().to_vec(), text, true);
    }
    if DType::from_arrow(array.data_type()).is_some() {
        let tensor = DenseTensor::from_flat(array.as_ref(), "a column").or_raise()?;
        return to_numpy(py, &tensor);
    }
    to_objects(py, array)
}

/// Converts any flat array to a numpy array of objects.
pub(crate) fn to_objects<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let values = crate::python_lists::to_list(py, array)?;
    let numpy = py.import(intern!(py, "numpy"))?;
    let out = numpy.call_method1(intern!(py, "empty"), (array.len(), intern!(py, "object")))?;
    out.set_item(pyo3::types::PySlice::full(py), values)?;
    Ok(out)
}

/// Converts a flat Arrow array to numpy: nulls are masked (`numpy.ma`), or None in an array of objects.
pub(crate) fn column_to_numpy<'py>(
    py: Python<'py>,
    array: &ArrayRef,
) -> PyResult<Bound<'py, PyAny>> {
    let nulls = array.logical_nulls().filter(|n| n.null_count() > 0);
    let plain = flat_to_numpy(py, array)?;
    let Some(nulls) = nulls else { return Ok(plain) };
    let kind: String = plain.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "O" {
        return Ok(plain);
    }
    let mask = serrate::arrow::array::BooleanArray::new(!nulls.inner(), None);
    let mask = to_numpy(py, &DenseTensor::from_flat(&mask, "nulls").or_raise()?)?;
    let masked = py.import("numpy.ma")?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("mask", mask.call_method0("copy")?)?;
    masked.call_method("MaskedArray", (plain.call_method0("copy")?,), Some(&kwargs))
}

/// Copies a numpy array (or a value that numpy can convert to an array) to a tensor.
pub(crate) fn from_numpy(array: &Bound<'_, PyAny>) -> PyResult<DenseTensor> {
    let py = array.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    if is_masked(array)? && numpy.getattr("ma")?.call_method1("is_masked", (array,))?.is_truthy()? {
        return Err(make_invalid_error(
            "the array has masked values, but a tensor has no missing values; pass array.filled(VALUE)",
        ));
    }
    let array = numpy.call_method1(intern!(py, "asarray"), (array,))?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    let found = match (kind.as_str(), size) {
        ("b", 1) => DType::Bool,
        ("u", 1) => DType::U8,
        ("u", 2) => DType::U16,
        ("u", 4) => DType::U32,
        ("u", 8) => DType::U64,
        ("i", 1) => DType::I8,
        ("i", 2) => DType::I16,
        ("i", 4) => DType::I32,
        ("i" | "M" | "m", 8) => DType::I64,
        ("f", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("f", 8) => DType::F64,
        _ => {
            return Err(make_type_error(format!(
                "an array of type {} is not supported; use booleans, integers of 8 to 64 bits or floats of 16 to 64 bits",
                dtype.str()?
            )));
        }
    };
    let shape: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
    let order = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
    let native = numpy.call_method1(intern!(py, "ascontiguousarray"), (array, order))?;
    let bytes = native
        .call_method1(intern!(py, "reshape"), (-1,))?
        .call_method1(intern!(py, "view"), ("u1",))?;
    let bytes: PyReadonlyArray1<'_, u8> = bytes.extract()?;
    let buffer = match bytes.as_slice() {
        Ok(bytes) => Buffer::from_slice_ref(bytes),
        Err(_) => Buffer::from_vec(bytes.as_array().to_vec()),
    };
    DenseTensor::try_new(found, shape, buffer).or_raise()
}

fn is_masked(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if !value.hasattr(intern!(py, "mask"))? {
        return Ok(false);
    }
    let module = py.import(intern!(py, "numpy.ma"))?;
    value.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)
}

/// Converts a value to a numpy array. A masked array stays one.
pub(crate) fn as_numpy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    match is_masked(value)? {
        true => Ok(value.clone()),
        false => py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,)),
    }
}

/// Converts a one-dimensional numpy array to an Arrow array. Masked values become nulls.
pub(crate) fn flat_from_numpy(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if !is_masked(array)? {
        return values_from_numpy(array);
    }
    let module = array.py().import(intern!(array.py(), "numpy.ma"))?;
    let mask = from_numpy(&module.call_method1("getmaskarray", (array,))?)?;
    let mask = mask.to_flat().or_raise()?;
    let values = values_from_numpy(&array.getattr("data")?)?;
    serrate::arrow::compute::nullif(&values, mask.as_boolean()).or_raise()
}

/// Converts a one-dimensional numpy array to an Arrow array. Times keep their unit; strings and objects are
/// parsed.
fn values_from_numpy(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    if matches!(kind.as_str(), "O" | "U" | "T") {
        let list = array.call_method0(intern!(py, "tolist"))?;
        return crate::python_lists::parse_lists(&list, "the array", None)?.into_flat();
    }
    let flat = from_numpy(array)?.to_flat().or_raise()?;
    if !matches!(kind.as_str(), "M" | "m") {
        return Ok(flat);
    }
    let name = dtype.str()?.to_string();
    let unit = name.rsplit_once('[').map_or("", |(_, unit)| unit.trim_end_matches(']'));
    let (unit, flat) = match unit {
        "s" => (TimeUnit::Second, flat),
        "ms" => (TimeUnit::Millisecond, flat),
        "us" => (TimeUnit::Microsecond, flat),
        "ns" => (TimeUnit::Nanosecond, flat),
        _ => {
            let whole = array.call_method1(
                "astype",
                (format!("{name}[us]").replace(&format!("[{unit}][us]"), "[us]"),),
            )?;
            (TimeUnit::Microsecond, from_numpy(&whole)?.to_flat().or_raise()?)
        }
    };
    let target = match kind.as_str() {
        "M" => DataType::Timestamp(unit, None),
        _ => DataType::Duration(unit),
    };
    let times = cast(&flat, &target).or_raise()?;
    // numpy's NaT is the smallest int64.
    let missing = serrate::arrow::compute::kernels::cmp::eq(
        &flat,
        &serrate::arrow::array::Int64Array::new_scalar(i64::MIN),
    );
    serrate::arrow::compute::nullif(&times, &missing.or_raise()?).or_raise()
}
