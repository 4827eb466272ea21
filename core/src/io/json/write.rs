//! Writes tables as JSON records.

use std::io::{self, Write};
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Number, Value};

use super::JsonForm;
use super::column_sink::{find_special_name, reinterpret_as};
use crate::array::Layout;
use crate::array::nulls::find_validity;
use crate::error::{Error, Result};
use crate::kernels::span_texts::write_spans;
use crate::table::{Column, RaggedTable};

enum JsonLeaf {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Single(f32),
    Double(f64),
    Text(String),
}

impl JsonLeaf {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let special = match self {
            Self::Single(x) => find_special_name((*x).into()),
            Self::Double(x) => find_special_name(*x),
            _ => None,
        };
        if let Some(name) = special {
            return write!(out, "\"{name}\"");
        }
        match self {
            Self::Null => write!(out, "null"),
            Self::Bool(b) => write!(out, "{b}"),
            Self::Int(i) => write!(out, "{i}"),
            Self::UInt(i) => write!(out, "{i}"),
            Self::Single(x) => serde_json::to_writer(out, x).map_err(Into::into),
            Self::Double(x) => serde_json::to_writer(out, x).map_err(Into::into),
            Self::Text(s) => serde_json::to_writer(out, s).map_err(Into::into),
        }
    }

    fn into_value(self) -> Value {
        let float = |x: f64| match Number::from_f64(x) {
            Some(n) => Value::Number(n),
            None => find_special_name(x).into(),
        };
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => b.into(),
            Self::Int(i) => i.into(),
            Self::UInt(i) => i.into(),
            // Convert float32 through its shortest decimal text, to write 0.1 instead of
            // 0.10000000149011612.
            Self::Single(x) => float(x.to_string().parse().unwrap_or_else(|_| x.into())),
            Self::Double(x) => float(x),
            Self::Text(s) => s.into(),
        }
    }
}

type LeafGetter<'a> = Box<dyn Fn(usize) -> JsonLeaf + 'a>;

struct JsonColumn<'a> {
    name: &'a str,
    layouts: Vec<(&'a Layout, Option<&'a NullBuffer>)>,
    nulls: Option<NullBuffer>,
    get: LeafGetter<'a>,
}

impl<'a> JsonColumn<'a> {
    fn new(table: &'a RaggedTable, column: &'a Column, values: &'a ArrayRef) -> Result<Self> {
        let layouts = table.axes()[..column.axis()]
            .iter()
            .zip(column.list_nulls())
            .map(|(a, n)| (a.layout(), n.as_ref()))
            .collect();
        let nulls = find_validity(values);
        Ok(Self { name: column.name(), layouts, nulls, get: make_getter(column.name(), values)? })
    }

    fn read_leaf(&self, i: usize) -> JsonLeaf {
        match &self.nulls {
            Some(n) if n.is_null(i) => JsonLeaf::Null,
            _ => (self.get)(i),
        }
    }

    /// Returns the range of the children of element `i` of axis `axis`; `None` if the element is a
    /// null list.
    fn find_children(&self, axis: usize, i: usize) -> Option<Range<usize>> {
        let (layout, nulls) = self.layouts[axis];
        nulls.is_none_or(|n| n.is_valid(i)).then(|| layout.range(i))
    }

    fn write(&self, axis: usize, i: usize, out: &mut Vec<u8>) -> io::Result<()> {
        if axis == self.layouts.len() {
            return self.read_leaf(i).write(out);
        }
        let Some(children) = self.find_children(axis, i) else { return JsonLeaf::Null.write(out) };
        out.push(b'[');
        for (k, child) in children.enumerate() {
            if k > 0 {
                out.push(b',');
            }
            self.write(axis + 1, child, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn to_value(&self, axis: usize, i: usize) -> Value {
        if axis == self.layouts.len() {
            return self.read_leaf(i).into_value();
        }
        match self.find_children(axis, i) {
            None => Value::Null,
            Some(children) => children.map(|c| self.to_value(axis + 1, c)).collect(),
        }
    }
}

fn to_writable(column: &Column) -> Result<ArrayRef> {
    let values = column.values();
    Ok(match values.data_type() {
        DataType::Dictionary(_, inner) => cast(values, inner)?,
        DataType::Duration(_) | DataType::Interval(_) => write_spans(values)?,
        DataType::Timestamp(unit, Some(_)) => {
            reinterpret_as(values, DataType::Timestamp(*unit, Some("+00:00".into())))?
        }
        DataType::LargeUtf8 | DataType::Utf8View => cast(values, &DataType::Utf8)?,
        t if t.is_nested() || matches!(t, DataType::RunEndEncoded(..)) => {
            let what = format!("column {:?}", column.name());
            return Err(Error::type_of(
                what,
                "a type that JSON output supports (no structs, maps, unions or run-end encoding; cast the column first)",
                t,
            ));
        }
        _ => values.clone(),
    })
}

fn make_getter<'a>(name: &str, values: &'a ArrayRef) -> Result<LeafGetter<'a>> {
    macro_rules! primitive {
        ($t:ty, $leaf:expr) => {{
            let values = &values.as_primitive::<$t>().values()[..];
            Box::new(move |i| $leaf(values[i].into()))
        }};
    }
    Ok(match values.data_type() {
        DataType::Null => Box::new(|_| JsonLeaf::Null),
        DataType::Boolean => {
            let values = values.as_boolean();
            Box::new(|i| JsonLeaf::Bool(values.value(i)))
        }
        DataType::Int8 => primitive!(Int8Type, JsonLeaf::Int),
        DataType::Int16 => primitive!(Int16Type, JsonLeaf::Int),
        DataType::Int32 => primitive!(Int32Type, JsonLeaf::Int),
        DataType::Int64 => primitive!(Int64Type, JsonLeaf::Int),
        DataType::UInt8 => primitive!(UInt8Type, JsonLeaf::UInt),
        DataType::UInt16 => primitive!(UInt16Type, JsonLeaf::UInt),
        DataType::UInt32 => primitive!(UInt32Type, JsonLeaf::UInt),
        DataType::UInt64 => primitive!(UInt64Type, JsonLeaf::UInt),
        DataType::Float16 => primitive!(Float16Type, JsonLeaf::Single),
        DataType::Float32 => primitive!(Float32Type, JsonLeaf::Single),
        DataType::Float64 => primitive!(Float64Type, JsonLeaf::Double),
        DataType::Utf8 => {
            let values = values.as_string::<i32>();
            Box::new(|i| JsonLeaf::Text(values.value(i).to_owned()))
        }
        _ => {
            static OPTIONS: FormatOptions<'static> = FormatOptions::new();
            let formatter = ArrayFormatter::try_new(values.as_ref(), &OPTIONS)?;
            // Check first that all values can be formatted: the closure below cannot report errors.
            for i in (0..values.len()).filter(|i| values.is_valid(*i)) {
                formatter.value(i).try_to_string().map_err(|e| {
                    Error::invalid(format!("value {i} of column {name:?} cannot be written as text; cast the column first: {e}"))
                })?;
            }
            Box::new(move |i| {
                formatter.value(i).try_to_string().map_or(JsonLeaf::Null, JsonLeaf::Text)
            })
        }
    })
}

fn run_with_sources<T>(
    table: &RaggedTable,
    run: impl FnOnce(&[JsonColumn<'_>]) -> Result<T>,
) -> Result<T> {
    table.check_no_scalars("the JSON form of a table")?;
    let values: Vec<ArrayRef> = table.columns().iter().map(to_writable).collect::<Result<_>>()?;
    let sources: Vec<JsonColumn<'_>> = table
        .columns()
        .iter()
        .zip(&values)
        .map(|(c, v)| JsonColumn::new(table, c, v))
        .collect::<Result<_>>()?;
    run(&sources)
}

impl RaggedTable {
    /// Converts the table to JSON values: an object of columns or a list of records.
    ///
    /// [`crate::io::json`] describes the form of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::json::{JsonForm, JsonOptions};
    /// use serrate::table::RaggedTable;
    /// let value = serde_json::json!({"id": [1, 2], "code": [[5, 6], []]});
    /// let table = RaggedTable::from_json(&value, &JsonOptions::default())?;
    /// assert_eq!(table.to_json(JsonForm::Columns)?, value);
    /// assert_eq!(
    ///     table.to_json(JsonForm::Records)?,
    ///     serde_json::json!([{"id": 1, "code": [5, 6]}, {"id": 2, "code": []}])
    /// );
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column is a struct, map, union or run-end encoding, or the table has
    /// [`scalars`](Self::scalars).
    pub fn to_json(&self, form: JsonForm) -> Result<Value> {
        run_with_sources(self, |sources| {
            Ok(match form {
                JsonForm::Columns => {
                    let column = |s: &JsonColumn<'_>| {
                        (0..self.num_rows()).map(|r| s.to_value(0, r)).collect::<Value>()
                    };
                    let columns = sources.iter().map(|s| (s.name.to_owned(), column(s)));
                    Value::Object(columns.collect())
                }
                JsonForm::Records => (0..self.num_rows())
                    .map(|r| {
                        let members = sources.iter().map(|s| (s.name.to_owned(), s.to_value(0, r)));
                        Value::Object(members.collect::<Map<_, _>>())
                    })
                    .collect(),
            })
        })
    }
}

const BUFFER_BYTES: usize = 1 << 16;

fn write_error(e: io::Error) -> Error {
    Error::invalid(format!("the JSON output cannot be written; check the target: {e}"))
}

pub(super) fn write_text(table: &RaggedTable, form: JsonForm, out: &mut impl Write) -> Result<()> {
    run_with_sources(table, |sources| {
        write_value(table.num_rows(), sources, form, out).map_err(write_error)
    })
}

fn write_value(
    rows: usize,
    sources: &[JsonColumn<'_>],
    form: JsonForm,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::with_capacity(BUFFER_BYTES);
    match form {
        JsonForm::Columns => {
            text.push(b'{');
            for (k, source) in sources.iter().enumerate() {
                if k > 0 {
                    text.extend_from_slice(b",\n ");
                }
                serde_json::to_writer(&mut text, source.name)?;
                text.extend_from_slice(b": [");
                for row in 0..rows {
                    if row > 0 {
                        text.push(b',');
                    }
                    source.write(0, row, &mut text)?;
                    drain_text(&mut text, BUFFER_BYTES, out)?;
                }
                text.push(b']');
            }
            text.extend_from_slice(b"}\n");
        }
        JsonForm::Records => {
            text.push(b'[');
            for row in 0..rows {
                text.extend_from_slice(if row > 0 { b",\n " } else { b"" });
                write_record(sources, row, &mut text)?;
                drain_text(&mut text, BUFFER_BYTES, out)?;
            }
            text.extend_from_slice(b"]\n");
        }
    }
    drain_text(&mut text, 0, out)
}

fn write_record(sources: &[JsonColumn<'_>], row: usize, text: &mut Vec<u8>) -> io::Result<()> {
    text.push(b'{');
    for (k, source) in sources.iter().enumerate() {
        if k > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, source.name)?;
        text.push(b':');
        source.write(0, row, text)?;
    }
    text.push(b'}');
    Ok(())
}

fn drain_text(text: &mut Vec<u8>, at_least: usize, out: &mut impl Write) -> io::Result<()> {
    if text.len() >= at_least {
        out.write_all(text)?;
        text.clear();
    }
    Ok(())
}

/// Writes rows as one JSON object per line, for any number of tables.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::json::{JsonOptions, NdjsonWriter};
/// use serrate::table::RaggedTable;
/// let value = serde_json::json!({"id": [1, 2], "code": [[5, 6], []]});
/// let table = RaggedTable::from_json(&value, &JsonOptions::default())?;
/// let mut writer = NdjsonWriter::new(Vec::new());
/// writer.write(&table)?;
/// assert_eq!(writer.finish()?, b"{\"id\":1,\"code\":[5,6]}\n{\"id\":2,\"code\":[]}\n");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct NdjsonWriter<W> {
    out: W,
}

impl<W: Write> NdjsonWriter<W> {
    /// Creates a writer of records to `out`; writes nothing yet.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::RaggedTable;
    /// use serrate::io::json::{JsonOptions, NdjsonWriter};
    /// let table = RaggedTable::from_json_text(br#"{"x": [7, 8]}"#, &JsonOptions::default())?;
    /// let mut out = Vec::new();
    /// NdjsonWriter::new(&mut out).write(&table)?;
    /// assert_eq!(out, b"{\"x\":7}\n{\"x\":8}\n");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Appends all rows of a table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::json::NdjsonWriter;
    /// let mut writer = NdjsonWriter::new(Vec::new());
    /// writer.write(&table)?;
    /// assert_eq!(writer.finish()?, b"{\"age\":71}\n{\"age\":38}\n");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If JSON output does not support the type of a column, or the output cannot be written.
    pub fn write(&mut self, table: &RaggedTable) -> Result<()> {
        let out = &mut self.out;
        run_with_sources(table, |sources| {
            let mut text = Vec::with_capacity(BUFFER_BYTES);
            for row in 0..table.num_rows() {
                write_record(sources, row, &mut text).map_err(write_error)?;
                text.push(b'\n');
                drain_text(&mut text, BUFFER_BYTES, out).map_err(write_error)?;
            }
            drain_text(&mut text, 0, out).map_err(write_error)
        })
    }

    /// Flushes and returns the output.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::json::NdjsonWriter;
    /// let writer = NdjsonWriter::new(Vec::<u8>::new());
    /// assert!(writer.finish()?.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the output cannot be flushed.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush().map_err(write_error)?;
        Ok(self.out)
    }
}
