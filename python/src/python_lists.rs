//! Converts nested Python lists to ragged arrays and back.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serrate::Error;
use serrate::array::{ListAxis, Offsets, RaggedArray};
use serrate::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DurationMicrosecondArray, Float64Array, Int64Array,
    StringArray, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use serrate::arrow::buffer::NullBuffer;
use serrate::arrow::compute::{CastOptions, cast, cast_with_options};
use serrate::arrow::datatypes::{DataType, Int64Type, TimeUnit};
use serrate::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::errors::{OrRaise, make_invalid_error, to_py_err};

/// A Python value that is not a list.
enum PythonLeaf {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    /// Microseconds since 1970 of a time without a zone.
    Time(i64),
    /// Microseconds since 1970 in UTC, of a time with a zone.
    Instant(i64),
    /// Days since 1970.
    Day(i64),
    /// Microseconds.
    Duration(i64),
    /// An exact decimal number.
    Decimal(String),
}

#[derive(Default)]
struct NestedLevel {
    lengths: Vec<usize>,
    valid: Vec<bool>,
    nulls: bool,
}

impl NestedLevel {
    fn push(&mut self, length: Option<usize>) {
        self.lengths.push(length.unwrap_or(0));
        self.valid.push(length.is_some());
        self.nulls |= length.is_none();
    }
}

pub(crate) struct ParsedLists {
    array: RaggedArray,
}

impl ParsedLists {
    pub(crate) fn into_ragged(self) -> RaggedArray {
        self.array
    }

    /// Returns the array if it is flat, else an error.
    pub(crate) fn into_flat(self) -> PyResult<ArrayRef> {
        match self.array.ndim() {
            1 => Ok(self.array.leaves().clone()),
            _ => Err(make_invalid_error(
                "the elements of the array are lists, but must be scalars; pass a nested list instead",
            )),
        }
    }
}

/// Returns the elements of a list, a tuple or a numpy array of at least one axis; `None` for other values.
fn list_elements<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>() {
        return Ok(Some(value.clone()));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return Ok(Some(value.clone()));
    }
    let py = value.py();
    // A value with an attribute `ndim` above 0 is a numpy array, a torch tensor or similar.
    if let Ok(ndim) = value.getattr(intern!(py, "ndim")).and_then(|n| n.extract::<usize>())
        && ndim > 0
    {
        return Ok(Some(value.call_method0(intern!(py, "tolist"))?));
    }
    Ok(None)
}

/// Returns the number of list levels above the first value that is not None, and true. If there is
/// no such value, returns the number of levels of the deepest list, and false. `above` is the
/// number of list levels above `value`.
fn measure_depth(value: &Bound<'_, PyAny>, above: usize) -> PyResult<(usize, bool)> {
    let Some(list) = list_elements(value)? else { return Ok((above, !value.is_none())) };
    if above > 64 {
        return Err(make_invalid_error(
            "the lists are nested more than 64 levels deep, the maximum; remove levels",
        ));
    }
    let mut deepest = above + 1;
    for element in list.try_iter()? {
        let (found, sure) = measure_depth(&element?, above + 1)?;
        if sure {
            return Ok((found, true));
        }
        deepest = deepest.max(found);
    }
    Ok((deepest, false))
}

struct NestedReader<'a> {
    what: &'a str,
    levels: Vec<NestedLevel>,
    leaves: Vec<PythonLeaf>,
    path: Vec<usize>,
    /// Number of indices at the start of `path` that messages omit.
    hidden: usize,
    depth: usize,
}

impl NestedReader<'_> {
    fn describe_place(&self) -> String {
        let mut text = self.what.to_owned();
        for at in self.path.iter().skip(self.hidden) {
            text.push_str(&format!("[{at}]"));
        }
        text
    }

    fn make_depth_error(&self, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
        let found = found.get_type().name().map_or("?".into(), |n| n.to_string());
        to_py_err(&Error::DepthVaries {
            path: self.describe_place(),
            expected: expected.into(),
            found,
        })
    }

    /// Reads a list whose elements are `left` levels above the leaves, and returns the number of
    /// its elements.
    fn read_list(&mut self, list: &Bound<'_, PyAny>, left: usize) -> PyResult<usize> {
        let mut length = 0;
        for element in list.try_iter()? {
            let element = element?;
            self.path.push(length);
            if left == 0 {
                let leaf = self.read_leaf(&element)?;
                self.leaves.push(leaf);
            } else {
                let level = self.depth - 1 - left;
                match list_elements(&element)? {
                    None if element.is_none() => self.levels[level].push(None),
                    None => return Err(self.make_depth_error("a list", &element)),
                    Some(inner) => {
                        let count = self.read_list(&inner, left - 1)?;
                        self.levels[level].push(Some(count));
                    }
                }
            }
            self.path.pop();
            length += 1;
        }
        Ok(length)
    }

    fn read_leaf(&self, value: &Bound<'_, PyAny>) -> PyResult<PythonLeaf> {
        let py = value.py();
        if let Ok(v) = value.cast_exact::<PyFloat>() {
            return Ok(PythonLeaf::Float(v.value()));
        }
        if let Ok(v) = value.cast::<PyBool>() {
            return Ok(PythonLeaf::Bool(v.is_true()));
        }
        if value.is_instance_of::<PyInt>() {
            if let Ok(v) = value.extract::<i64>() {
                return Ok(PythonLeaf::Int(v));
            }
            return value.extract::<u64>().map(PythonLeaf::UInt).map_err(|_| {
                make_invalid_error(format!(
                    "{}: {value} exceeds 64 bits; give a float",
                    self.describe_place()
                ))
            });
        }
        if value.is_none() {
            return Ok(PythonLeaf::Null);
        }
        if let Ok(v) = value.cast::<PyString>() {
            return Ok(PythonLeaf::Text(v.extract()?));
        }
        if value.is_instance_of::<PyFloat>() {
            return Ok(PythonLeaf::Float(value.extract()?));
        }
        if list_elements(value)?.is_some() {
            return Err(self.make_depth_error("a value", value));
        }
        if let Some(leaf) = read_time(value)? {
            // The missing time of pandas has no nanoseconds.
            let is_missing = matches!(leaf, PythonLeaf::Null);
            return match !is_missing && has_nanos(value)? {
                true => Err(self.make_nanos_error(value)),
                false => Ok(leaf),
            };
        }
        let class = value.get_type().name()?.to_string();
        // The missing values of pandas and of masked arrays.
        if matches!(class.as_str(), "NAType" | "MaskedConstant") {
            return Ok(PythonLeaf::Null);
        }
        // Scalars of numpy and torch have a method `item`, which returns a Python value.
        if let Ok(item) = value.call_method0(intern!(py, "item"))
            && !item.is(value)
            && item.get_type().as_ptr() != value.get_type().as_ptr()
        {
            if !item.is_instance_of::<PyInt>() || !is_numpy_time(value) {
                return self.read_leaf(&item);
            }
            // numpy returns nanoseconds as an integer, because Python's times have microseconds.
            let micros = round_to_micros(value)?;
            return match micros.ne(value)? {
                true => Err(self.make_nanos_error(value)),
                false => self.read_leaf(&micros.call_method0("item")?),
            };
        }
        if let Some(text) = read_decimal(value)? {
            return Ok(PythonLeaf::Decimal(text));
        }
        Err(to_py_err(&Error::ValueType {
            path: self.describe_place(),
            expected: "a number, a boolean, a string, a date, a time or None".into(),
            found: class,
        }))
    }

    fn make_nanos_error(&self, value: &Bound<'_, PyAny>) -> PyErr {
        make_invalid_error(format!(
            "{}: {value} has nanoseconds, but values in lists have microseconds; round it, or give a numpy array of times",
            self.describe_place()
        ))
    }
}

/// Returns whether a time or duration of pandas has digits after those of microseconds.
fn has_nanos(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in ["nanosecond", "nanoseconds"] {
        if value.hasattr(name)? && value.getattr(name)?.is_truthy()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Converts a date, a time or a duration of the module datetime; `None` for other values. Returns a
/// null for the missing time of pandas.
fn read_time(value: &Bound<'_, PyAny>) -> PyResult<Option<PythonLeaf>> {
    let py = value.py();
    let datetime = py.import(intern!(py, "datetime"))?;
    let is_a = |class: &str| value.is_instance(&datetime.getattr(class)?);
    if is_a("datetime")? {
        // Only the missing time of pandas differs from itself.
        if value.ne(value)? {
            return Ok(Some(PythonLeaf::Null));
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let is_plain = value.getattr(intern!(py, "tzinfo"))?.is_none();
        let plain = match is_plain {
            true => value.clone(),
            false => {
                let kwargs = PyDict::new(py);
                kwargs.set_item("tzinfo", py.None())?;
                value.call_method1("astimezone", (utc,))?.call_method(
                    "replace",
                    (),
                    Some(&kwargs),
                )?
            }
        };
        let micros = numpy.call_method1("datetime64", (plain, "us"))?;
        let micros: i64 = micros.call_method1("astype", ("i8",))?.extract()?;
        return Ok(Some(match is_plain {
            true => PythonLeaf::Time(micros),
            false => PythonLeaf::Instant(micros),
        }));
    }
    if is_a("date")? {
        let ordinal: i64 = value.call_method0("toordinal")?.extract()?;
        // 1970-01-01 is day 719163 of Python's ordinals.
        return Ok(Some(PythonLeaf::Day(ordinal - 719_163)));
    }
    if is_a("timedelta")? {
        let micro = datetime.getattr("timedelta")?.call1((0, 0, 1))?;
        let micros: i64 = value.call_method1("__floordiv__", (micro,))?.extract()?;
        return Ok(Some(PythonLeaf::Duration(micros)));
    }
    Ok(None)
}

/// Returns whether a value is a time or duration of numpy.
fn is_numpy_time(value: &Bound<'_, PyAny>) -> bool {
    let kind = value.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.and_then(|kind| kind.extract::<String>()).is_ok_and(|kind| kind == "M" || kind == "m")
}

/// Converts a time or duration of numpy to microseconds.
fn round_to_micros<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
    value.call_method1("astype", (format!("{kind}8[us]"),))
}

/// Returns the digits of a finite `decimal.Decimal`; `None` for other values.
fn read_decimal(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let class = value.py().import("decimal")?.getattr("Decimal")?;
    if !value.is_instance(&class)? || !value.call_method0("is_finite")?.is_truthy()? {
        return Ok(None);
    }
    Ok(Some(value.call_method1("__format__", ("f",))?.extract()?))
}

/// Reads nested lists (also tuples and numpy arrays) into a ragged array. None is a null value or a null
/// list. Integers become int64 and other numbers float64, unless `dtype` is given. `what` names the value
/// in error messages.
pub(crate) fn parse_lists(
    value: &Bound<'_, PyAny>,
    what: &str,
    dtype: Option<&DataType>,
) -> PyResult<ParsedLists> {
    parse_nested(value, what, dtype, 0)
}

/// Reads a value, which may be a nested list, into an array with one row.
pub(crate) fn parse_value(value: &Bound<'_, PyAny>, what: &str) -> PyResult<ParsedLists> {
    let one = PyList::new(value.py(), [value])?;
    parse_nested(one.as_any(), what, None, 1)
}

fn parse_nested(
    value: &Bound<'_, PyAny>,
    what: &str,
    dtype: Option<&DataType>,
    hidden: usize,
) -> PyResult<ParsedLists> {
    let Some(list) = list_elements(value)? else {
        let found = value.get_type().name()?;
        return Err(crate::errors::make_type_error(format!(
            "{what}: expected a list, found {found}"
        )));
    };
    let (depth, _) = measure_depth(&list, 0)?;
    let mut reader = NestedReader {
        what,
        levels: (1..depth).map(|_| NestedLevel::default()).collect(),
        leaves: Vec::new(),
        path: Vec::new(),
        hidden,
        depth,
    };
    let rows = reader.read_list(&list, depth.saturating_sub(1))?;
    let leaves = build_column(what, &reader.leaves, dtype)?;
    let mut axes = Vec::with_capacity(reader.levels.len());
    for level in reader.levels {
        let offsets = Offsets::from_lengths(level.lengths).or_raise()?;
        let nulls = level.nulls.then(|| NullBuffer::from(level.valid));
        axes.push(ListAxis::try_new(offsets, nulls).or_raise()?);
    }
    let array = RaggedArray::try_new(rows, axes, leaves).or_raise()?;
    Ok(ParsedLists { array })
}

fn build_column(what: &str, leaves: &[PythonLeaf], dtype: Option<&DataType>) -> PyResult<ArrayRef> {
    let has = |f: fn(&PythonLeaf) -> bool| leaves.iter().any(f);
    let text = has(|l| matches!(l, PythonLeaf::Text(_)));
    let time = has(|l| matches!(l, PythonLeaf::Time(_) | PythonLeaf::Instant(_)));
    let day = has(|l| matches!(l, PythonLeaf::Day(_)));
    let number =
        has(|l| matches!(l, PythonLeaf::Int(_) | PythonLeaf::UInt(_) | PythonLeaf::Float(_)));
    let bools = has(|l| matches!(l, PythonLeaf::Bool(_)));
    let duration = has(|l| matches!(l, PythonLeaf::Duration(_)));
    let decimal = has(|l| matches!(l, PythonLeaf::Decimal(_)));
    let kinds = [text, time || day, duration, number || bools || decimal];
    if kinds.iter().filter(|k| **k).count() > 1 {
        return Err(make_invalid_error(format!(
            "{what}: the values are a mixture of numbers, strings and times, but one column must have values of one kind"
        )));
    }
    let array: ArrayRef = if text {
        Arc::new(StringArray::from_iter(leaves.iter().map(|l| match l {
            PythonLeaf::Text(t) => Some(t.as_str()),
            _ => None,
        })))
    } else if time {
        build_times(leaves)
    } else if day {
        let days = Int64Array::from_iter(leaves.iter().map(|l| match l {
            PythonLeaf::Day(d) => Some(*d),
            _ => None,
        }));
        let days = cast(&days, &DataType::Int32).or_raise()?;
        cast(&days, &DataType::Date32).or_raise()?
    } else if duration {
        Arc::new(DurationMicrosecondArray::from_iter(leaves.iter().map(|l| match l {
            PythonLeaf::Duration(d) => Some(*d),
            _ => None,
        })))
    } else if decimal {
        build_decimals(what, leaves)?
    } else if has(|l| matches!(l, PythonLeaf::Float(_))) {
        let floats = leaves.iter().map(|l| match l {
            PythonLeaf::Float(v) => Some(*v),
            PythonLeaf::Int(v) => Some(*v as f64),
            PythonLeaf::UInt(v) => Some(*v as f64),
            PythonLeaf::Bool(v) => Some(f64::from(*v)),
            _ => None,
        });
        Arc::new(Float64Array::from_iter(floats))
    } else if has(|l| matches!(l, PythonLeaf::UInt(_))) {
        build_unsigned(what, leaves)?
    } else if number {
        Arc::new(Int64Array::from_iter(leaves.iter().map(|l| match l {
            PythonLeaf::Int(v) => Some(*v),
            PythonLeaf::Bool(v) => Some(i64::from(*v)),
            _ => None,
        })))
    } else if bools {
        Arc::new(BooleanArray::from_iter(leaves.iter().map(|l| match l {
            PythonLeaf::Bool(v) => Some(*v),
            _ => None,
        })))
    } else {
        new_null_array(dtype.unwrap_or(&DataType::Float64), leaves.len())
    };
    match dtype {
        Some(dtype) if array.data_type() != dtype => {
            let strict = CastOptions { safe: false, ..Default::default() };
            cast_with_options(&array, dtype, &strict)
                .map_err(|e| make_invalid_error(format!("{what}: {e}")))
        }
        _ => Ok(array),
    }
}

/// Builds times with the zone UTC or, if some of them have no zone, without a zone.
fn build_times(leaves: &[PythonLeaf]) -> ArrayRef {
    let times = TimestampMicrosecondArray::from_iter(leaves.iter().map(|l| match l {
        PythonLeaf::Time(t) | PythonLeaf::Instant(t) => Some(*t),
        PythonLeaf::Day(d) => Some(*d * 86_400_000_000),
        _ => None,
    }));
    let is_plain = |l: &PythonLeaf| matches!(l, PythonLeaf::Time(_) | PythonLeaf::Day(_));
    match leaves.iter().any(is_plain) {
        true => Arc::new(times),
        false => Arc::new(times.with_timezone("+00:00")),
    }
}

fn build_unsigned(what: &str, leaves: &[PythonLeaf]) -> PyResult<ArrayRef> {
    let mut values = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        values.push(match leaf {
            PythonLeaf::UInt(v) => Some(*v),
            PythonLeaf::Int(v) => Some(u64::try_from(*v).map_err(|_| {
                make_invalid_error(format!("{what}: the values include {v} and an integer of 2^63 or more, which no 64-bit integer type can hold together; set dtype to float64"))
            })?),
            PythonLeaf::Bool(v) => Some(u64::from(*v)),
            _ => None,
        });
    }
    Ok(Arc::new(UInt64Array::from(values)))
}

/// Builds decimals with the digits of all values, before and after the point.
fn build_decimals(what: &str, leaves: &[PythonLeaf]) -> PyResult<ArrayRef> {
    let mut texts = Vec::with_capacity(leaves.len());
    let (mut whole, mut scale) = (0, 0);
    for leaf in leaves {
        let text = match leaf {
            PythonLeaf::Decimal(text) => text.clone(),
            PythonLeaf::Int(v) => v.to_string(),
            PythonLeaf::UInt(v) => v.to_string(),
            PythonLeaf::Null => {
                texts.push(None);
                continue;
            }
            _ => {
                return Err(make_invalid_error(format!(
                    "{what}: the values are a mixture of decimals and other numbers; convert them to one type"
                )));
            }
        };
        let (before, after) = text.split_once('.').unwrap_or((text.as_str(), ""));
        whole = whole.max(before.trim_start_matches(['-', '0']).len());
        scale = scale.max(after.len());
        texts.push(Some(text));
    }
    let precision = u8::try_from((whole + scale).clamp(1, 38)).unwrap_or(38);
    let decimal = DataType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX));
    let texts = StringArray::from_iter(texts);
    let strict = CastOptions { safe: false, ..Default::default() };
    cast_with_options(&texts, &decimal, &strict)
        .map_err(|e| make_invalid_error(format!("{what}: {e}")))
}

/// Converts a numpy dtype, a Python type or the name of either (`"int64"`, `"str"`) to an Arrow type.
pub(crate) fn parse_dtype(value: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let py = value.py();
    let made = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (value,))?;
    let name: String = made.getattr(intern!(py, "name"))?.extract()?;
    let kind: String = made.getattr(intern!(py, "kind"))?.extract()?;
    match kind.as_str() {
        "U" | "O" | "T" => return Ok(DataType::Utf8),
        "M" => {
            let unit = match name.as_str() {
                "datetime64[D]" => return Ok(DataType::Date32),
                "datetime64[s]" => TimeUnit::Second,
                "datetime64[ms]" => TimeUnit::Millisecond,
                "datetime64[ns]" => TimeUnit::Nanosecond,
                _ => TimeUnit::Microsecond,
            };
            return Ok(DataType::Timestamp(unit, None));
        }
        _ => {}
    }
    Ok(name.parse::<serrate::dense::DType>().or_raise()?.to_arrow())
}

/// Converts an Arrow array to a Python list: lists become lists, structs dicts, and nulls None. Values
/// without a class in Python's libraries, such as intervals, become text.
pub(crate) fn to_list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Null => PyList::new(py, (0..array.len()).map(|_| py.None())),
        DataType::Boolean => PyList::new(py, array.as_boolean().iter()),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let wide = cast(array, &DataType::Int64).or_raise()?;
            PyList::new(py, wide.as_primitive::<Int64Type>().iter())
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            let wide = cast(array, &DataType::UInt64).or_raise()?;
            PyList::new(py, wide.as_primitive::<serrate::arrow::datatypes::UInt64Type>().iter())
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let wide = cast(array, &DataType::Float64).or_raise()?;
            PyList::new(py, wide.as_primitive::<serrate::arrow::datatypes::Float64Type>().iter())
        }
        DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => PyList::new(py, array.as_string::<i64>().iter()),
        DataType::Utf8View => PyList::new(py, array.as_string_view().iter()),
        DataType::Dictionary(_, value) => {
            let plain = cast(array, value).or_raise()?;
            to_list(py, &plain)
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => convert_times(py, array),
        DataType::Duration(_) => convert_durations(py, array),
        DataType::Time32(_) | DataType::Time64(_) => convert_clock_times(py, array),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => convert_decimals(py, array),
        DataType::Binary => convert_bytes(py, array.as_binary::<i32>().iter()),
        DataType::LargeBinary => convert_bytes(py, array.as_binary::<i64>().iter()),
        DataType::BinaryView => convert_bytes(py, array.as_binary_view().iter()),
        DataType::FixedSizeBinary(_) => convert_bytes(py, array.as_fixed_size_binary().iter()),
        DataType::List(_) => convert_lists(py, array, |i| array.as_list::<i32>().value(i)),
        DataType::LargeList(_) => convert_lists(py, array, |i| array.as_list::<i64>().value(i)),
        DataType::FixedSizeList(..) => {
            convert_lists(py, array, |i| array.as_fixed_size_list().value(i))
        }
        DataType::Struct(_) => convert_structs(py, array),
        _ => PyList::new(py, format_values(array)?),
    }
}

/// Returns the text of each value; `None` for nulls.
fn format_values(array: &ArrayRef) -> PyResult<Vec<Option<String>>> {
    let options = FormatOptions::default();
    let shown = ArrayFormatter::try_new(array.as_ref(), &options).or_raise()?;
    let text = |i| array.is_valid(i).then(|| shown.value(i).to_string());
    Ok((0..array.len()).map(text).collect())
}

fn convert_lists<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    list: impl Fn(usize) -> ArrayRef,
) -> PyResult<Bound<'py, PyList>> {
    let each = (0..array.len()).map(|i| match array.is_null(i) {
        true => Ok(py.None().into_bound(py)),
        false => Ok(to_list(py, &list(i))?.into_any()),
    });
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

fn convert_structs<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let structs = array.as_struct();
    let columns = structs.columns().iter().map(|c| to_list(py, c)).collect::<PyResult<Vec<_>>>()?;
    let mut rows = Vec::with_capacity(structs.len());
    for i in 0..structs.len() {
        if structs.is_null(i) {
            rows.push(py.None().into_bound(py));
            continue;
        }
        let row = PyDict::new(py);
        for (field, column) in structs.fields().iter().zip(&columns) {
            row.set_item(field.name(), column.get_item(i)?)?;
        }
        rows.push(row.into_any());
    }
    PyList::new(py, rows)
}

fn convert_bytes<'py, 'a>(
    py: Python<'py>,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> PyResult<Bound<'py, PyList>> {
    let each: Vec<_> = values.map(|v| v.map(|bytes| PyBytes::new(py, bytes))).collect();
    PyList::new(py, each)
}

/// Converts decimals to `decimal.Decimal`.
fn convert_decimals<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("decimal")?.getattr("Decimal")?;
    let each = format_values(array)?.into_iter().map(|text| match text {
        None => Ok(py.None().into_bound(py)),
        Some(text) => class.call1((text,)),
    });
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// Converts values to a type that counts microseconds, and then to these counts.
fn count_micros(array: &ArrayRef, target: &DataType) -> PyResult<Int64Array> {
    let strict = CastOptions { safe: false, ..Default::default() };
    let micros = cast_with_options(array, target, &strict).or_raise()?;
    let micros = cast(&micros, &DataType::Int64).or_raise()?;
    Ok(micros.as_primitive::<Int64Type>().clone())
}

/// Converts durations to `datetime.timedelta`.
fn convert_durations<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let micros = count_micros(array, &DataType::Duration(TimeUnit::Microsecond))?;
    let delta = py.import("datetime")?.getattr("timedelta")?;
    let each = micros.iter().map(|v| match v {
        None => Ok(py.None().into_bound(py)),
        Some(v) => delta.call1((0, 0, v)),
    });
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// Converts times of a day to `datetime.time`.
fn convert_clock_times<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let micros = count_micros(array, &DataType::Time64(TimeUnit::Microsecond))?;
    let datetime = py.import("datetime")?;
    let midnight = datetime.getattr("datetime")?.getattr("min")?;
    let delta = datetime.getattr("timedelta")?;
    let each = micros.iter().map(|v| match v {
        None => Ok(py.None().into_bound(py)),
        Some(v) => midnight.add(delta.call1((0, 0, v))?)?.call_method0("time"),
    });
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// Converts dates to `datetime.date` and times to `datetime.datetime` (in UTC if the type has a time zone).
fn convert_times<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let zoned = matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
    let day = matches!(array.data_type(), DataType::Date32 | DataType::Date64);
    let target = DataType::Timestamp(TimeUnit::Microsecond, zoned.then(|| "+00:00".into()));
    let micros = cast(&cast(array, &target).or_raise()?, &DataType::Int64).or_raise()?;
    let datetime = py.import(intern!(py, "datetime"))?;
    let zone = match zoned {
        true => datetime.getattr("timezone")?.getattr("utc")?,
        false => py.None().into_bound(py),
    };
    let kwargs = PyDict::new(py);
    kwargs.set_item("tzinfo", zone)?;
    let epoch = datetime.getattr("datetime")?.call((1970, 1, 1), Some(&kwargs))?;
    let delta = datetime.getattr("timedelta")?;
    let each = micros.as_primitive::<Int64Type>().iter().map(|v| {
        let Some(v) = v else { return Ok(py.None().into_bound(py)) };
        let at = epoch.add(delta.call1((0, 0, v))?)?;
        if day { at.call_method0("date") } else { Ok(at) }
    });
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}
