//! Writes `.nrt` files, table by table.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type};
use half::f16;
use safetensors::Dtype;

use super::tensor_names::{MAX_AXIS, RESERVED, SUBJECT_ID, find_tensor_dtype, format_tensor_name};
use super::{NrtSchema, WriteOptions};
use crate::array::exact_casts::cast_strictly;
use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsWriter, SaveOptions, TensorId};
use crate::table::{Column, RaggedTable};

/// Appends tables to one `.nrt` file.
///
/// Rows are spooled to temporary files (see [`SafetensorsWriter`]), so tables may exceed memory.
/// [`finish`](Self::finish) makes the file appear, identical to the output of the Python library.
///
/// Values that the format cannot hold:
/// * A null in a float column is written as NaN; in other columns it is an error that names column
///   and row.
/// * A null list is written as an empty list.
/// * Strings, dictionaries, dates, timestamps and decimals are errors that name column and remedy.
/// * Axis names are lost.
///
/// An integer column `subject_id` on axis 0 is written as Int64 regardless of its width.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// use serrate::RaggedTable;
/// use serrate::io::nrt::{self, NrtSchema, NrtWriter};
/// let ages = Arc::new(Int32Array::from(vec![71, 38]));
/// let table = RaggedTable::builder().column("age", 0, ages).build()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.nrt");
/// let mut writer = NrtWriter::create(&path, &NrtSchema::of_table(&table), &Default::default())?;
/// writer.write(&table)?;
/// writer.write(&table)?;
/// assert_eq!(writer.num_rows(), 4);
/// writer.finish()?;
/// assert_eq!(nrt::NrtFile::open(&path, &Default::default())?.num_rows(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NrtWriter {
    out: SafetensorsWriter,
    columns: Vec<TargetColumn>,
    /// For each axis from 1 on, the tensor of its bounds (the ends of its lists), and the last
    /// written bound.
    bounds: Vec<(TensorId, i64)>,
    rows: u64,
    plain: bool,
    /// Whether an error occurred while a table was written, so that the file cannot be finished.
    failed: bool,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct TargetColumn {
    name: String,
    axis: usize,
    given_type: DataType,
    written_type: DataType,
    /// Tensor of the column; `None` if [`WriteOptions::plain`] omits the column.
    tensor: Option<TensorId>,
}

impl NrtWriter {
    /// Starts a file with the columns of `schema`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::nrt::{NrtSchema, NrtWriter};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.nrt");
    /// let ages = NrtSchema::new([("age", 0, DataType::Int32)]);
    /// assert_eq!(NrtWriter::create(&path, &ages, &Default::default())?.num_rows(), 0);
    /// let strings = NrtSchema::new([("site", 0, DataType::Utf8)]);
    /// assert!(NrtWriter::create(&path, &strings, &Default::default()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or a column has a reserved name or an
    /// unsupported type.
    pub fn create(
        path: impl AsRef<Path>,
        schema: &NrtSchema,
        options: &WriteOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        if schema.depth > MAX_AXIS {
            return Err(Error::file(
                path,
                format!(
                    "the table has {} levels of lists, but an .nrt file has at most {MAX_AXIS}; flatten levels first",
                    schema.depth
                ),
            ));
        }
        let save = SaveOptions { overwrite: options.overwrite, ..SaveOptions::default() };
        let mut out = SafetensorsWriter::create(path, &save)?;
        let mut columns = Vec::with_capacity(schema.columns.len());
        for (name, axis, given) in &schema.columns {
            let id = *axis == 0 && name == SUBJECT_ID;
            let target = |written: &DataType, tensor| TargetColumn {
                name: name.clone(),
                axis: *axis,
                given_type: given.clone(),
                written_type: written.clone(),
                tensor,
            };
            if id && options.plain {
                columns.push(target(given, None));
                continue;
            }
            if RESERVED.contains(&name.as_str()) || name.is_empty() {
                return Err(Error::file(
                    path,
                    format!(
                        "the column name {name:?} is reserved in an .nrt file; rename the column"
                    ),
                ));
            }
            let written = if id && given.is_integer() { &DataType::Int64 } else { given };
            let kind = find_tensor_dtype(written)
                .ok_or_else(|| make_unsupported_type_error(name, given))?;
            let tensor = out.add(format_tensor_name(*axis, name), kind, &[])?;
            columns.push(target(written, Some(tensor)));
        }
        let bounds = (1..=schema.depth)
            .map(|axis| Ok((out.add(format!("dim{axis}/bounds"), Dtype::I64, &[])?, 0)))
            .collect::<Result<_>>()?;
        let plain = options.plain;
        Ok(Self { out, columns, bounds, rows: 0, plain, failed: false, scratch: Vec::new() })
    }

    /// Appends the rows of a table; columns are matched by name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::nrt::{NrtSchema, NrtWriter};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// let schema = NrtSchema::of_table(&table);
    /// let mut writer = NrtWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// writer.write(&table.slice(0, 1)?)?;
    /// assert_eq!(writer.num_rows(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If columns, axes or types differ from the file, or a null cannot be written; the table is
    /// then not written. Also if the disk is full or the bounds overflow; the file then cannot be
    /// finished.
    pub fn write(&mut self, table: &RaggedTable) -> Result<()> {
        table.check_no_scalars("an .nrt file")?;
        if table.axes().len() != self.bounds.len() {
            return Err(Error::file(
                self.out.target(),
                format!(
                    "the number of axes is {} in the table, but {} in the file; append only tables with the same number of axes as the file",
                    table.ndim(),
                    self.bounds.len().saturating_add(1)
                ),
            ));
        }
        if let Some(extra) =
            table.columns().iter().find(|c| !self.columns.iter().any(|t| t.name == c.name()))
        {
            let known: Vec<_> = self.columns.iter().map(|t| t.name.as_str()).collect();
            return Err(Error::file(
                self.out.target(),
                format!(
                    "the file has no column {:?}; remove the column from the table, which may have only the columns {}",
                    extra.name(),
                    known.join(", ")
                ),
            ));
        }
        // Check all values first, so that an error leaves no half-written table in the file.
        let mut values = Vec::with_capacity(self.columns.len());
        for target in &self.columns {
            let column = table.column(&target.name)?;
            values.push(target.check_column_values(self.out.target(), column, self.rows, table)?);
        }
        self.failed = true;
        for (axis, (tensor, end)) in table.axes().iter().zip(&mut self.bounds) {
            *end = write_bounds(&mut self.out, *tensor, axis.layout(), *end, &mut self.scratch)?;
        }
        for (target, values) in self.columns.iter().zip(values) {
            if let (Some(tensor), Some(values)) = (target.tensor, values) {
                self.out.write(tensor, &find_value_bytes(&values))?;
            }
        }
        self.failed = false;
        let rows = u64::try_from(table.num_rows()).unwrap_or(u64::MAX);
        self.rows = self.rows.saturating_add(rows);
        Ok(())
    }

    /// Returns the number of rows written so far.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Writes the file, syncs it to disk and renames it to its final path.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use serrate::io::nrt::{NrtSchema, NrtWriter};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("t.nrt");
    /// let schema = NrtSchema::of_table(&table);
    /// let mut writer = NrtWriter::create(&path, &schema, &Default::default())?;
    /// writer.write(&table)?;
    /// assert!(!path.exists());
    /// writer.finish()?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If an earlier write failed halfway, the disk is full, a file with the final path has
    /// appeared since the start and [`WriteOptions::overwrite`] is false, or there are rows but no
    /// tensor that records their number.
    pub fn finish(self) -> Result<()> {
        if self.failed {
            return Err(Error::file(
                self.out.target(),
                "the file is incomplete, because an earlier table was written only in part; create the file again",
            ));
        }
        let counted = !self.bounds.is_empty()
            || self.columns.iter().any(|c| c.axis == 0 && c.tensor.is_some());
        if self.rows > 0 && !counted {
            let hint = if self.plain { ", or write it with its ids" } else { "" };
            return Err(Error::file(
                self.out.target(),
                format!(
                    "the table has {} row(s) but no columns or axes, so the file would not record the number of rows; add a column{hint}",
                    self.rows
                ),
            ));
        }
        self.out.finish()
    }
}

fn make_unsupported_type_error(column: &str, found: &DataType) -> Error {
    let hint = match found {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(_, _) => {
            "encode the column to integers with a vocabulary"
        }
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => {
            "cast the column to Int64, which loses its unit and zone, or to days as Float64, or omit it"
        }
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => {
            "cast the column to Int64, which loses its unit, or omit it"
        }
        DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => "cast the column to Float64",
        DataType::Null => "cast the column to a supported type",
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            "convert the lists of the column to axes of the table"
        }
        _ => "cast the column or omit it",
    };
    Error::type_of(
        format!("column {column:?} cannot be written to an .nrt file"),
        format!("booleans, integers or floats ({hint})"),
        found,
    )
}

impl TargetColumn {
    /// Returns the values to write; `None` if [`WriteOptions::plain`] omits the column. A null in a
    /// float column becomes NaN; a null in any other column is an error.
    fn check_column_values(
        &self,
        path: &Path,
        column: &Column,
        rows: u64,
        table: &RaggedTable,
    ) -> Result<Option<ArrayRef>> {
        if column.axis() != self.axis {
            return Err(Error::file(
                path,
                format!(
                    "column {:?} has {} levels of lists per row, but had {} when the file was started; write the column with the same number of levels in all chunks",
                    self.name,
                    column.axis(),
                    self.axis
                ),
            ));
        }
        if *column.data_type() != self.given_type {
            return Err(Error::file(
                path,
                format!(
                    "column {:?} has type {}, but had type {} when the file was started; cast the chunks to one type",
                    self.name,
                    column.data_type(),
                    self.given_type
                ),
            ));
        }
        if self.tensor.is_none() {
            return Ok(None);
        }
        let mut values = column.values().clone();
        if self.written_type != self.given_type {
            values = cast_strictly(&values, &self.written_type)
                .map_err(|e| Error::file(path, format!("column {:?}: {e}", self.name)))?;
        }
        if values.null_count() == 0 {
            return Ok(Some(values));
        }
        match values.data_type() {
            DataType::Float16 => Ok(Some(fill_nulls::<Float16Type>(&values, f16::NAN))),
            DataType::Float32 => Ok(Some(fill_nulls::<Float32Type>(&values, f32::NAN))),
            DataType::Float64 => Ok(Some(fill_nulls::<Float64Type>(&values, f64::NAN))),
            found => {
                let first = values.nulls().and_then(|n| (0..n.len()).find(|i| n.is_null(*i)));
                let row = find_row(table, self.axis, first.unwrap_or(0))?;
                let row = rows.saturating_add(u64::try_from(row).unwrap_or(0));
                Err(Error::file(
                    path,
                    format!(
                        "column {:?} of type {found} has {} null value(s), the first in row {row}, but an .nrt file has no nulls; fill them, or cast the column to a float type (null becomes NaN)",
                        self.name,
                        values.null_count()
                    ),
                ))
            }
        }
    }
}

fn find_row(table: &RaggedTable, axis: usize, element: usize) -> Result<usize> {
    let (mut low, mut high) = (0, table.num_rows());
    while high.saturating_sub(low) > 1 {
        let middle = low.midpoint(high);
        let start = table.windows(middle..middle)?.get(axis).map_or(0, |w| w.start);
        if start <= element { low = middle } else { high = middle }
    }
    Ok(low)
}

fn fill_nulls<T: ArrowPrimitiveType>(values: &ArrayRef, nan: T::Native) -> ArrayRef {
    let values = values.as_primitive::<T>();
    let filled = values.iter().map(|v| v.unwrap_or(nan));
    Arc::new(PrimitiveArray::<T>::from_iter_values(filled))
}

/// Returns little-endian bytes of values without nulls; copies only booleans, to one byte each.
fn find_value_bytes(values: &ArrayRef) -> Buffer {
    if let Some(bits) = values.as_boolean_opt() {
        return bits.values().iter().map(u8::from).collect::<Vec<u8>>().into();
    }
    let data = values.to_data();
    let size = data.data_type().primitive_width().unwrap_or(0);
    let (start, len) = (data.offset().saturating_mul(size), data.len().saturating_mul(size));
    data.buffers().first().map_or_else(Buffer::default, |b| b.slice_with_length(start, len))
}

/// Appends to the tensor a bound for each list of `layout`: the end of the list plus `base`.
/// Returns the last bound.
fn write_bounds(
    out: &mut SafetensorsWriter,
    tensor: TensorId,
    layout: &Layout,
    base: i64,
    scratch: &mut Vec<u8>,
) -> Result<i64> {
    let too_many = || {
        Error::invalid(
            "an axis of the .nrt file has more than 2^63 - 1 values, the maximum; write fewer rows",
        )
    };
    let children = i64::try_from(layout.children()).map_err(|_| too_many())?;
    let end = base.checked_add(children).ok_or_else(too_many)?;
    let mut ends = |mut ends: &mut dyn Iterator<Item = i64>| -> Result<()> {
        loop {
            scratch.clear();
            // Never saturates, because `base` plus the largest list end did not overflow above.
            let part = (&mut ends).take(1 << 16);
            scratch.extend(part.flat_map(|e| base.saturating_add(e).to_le_bytes()));
            if scratch.is_empty() {
                return Ok(());
            }
            out.write(tensor, scratch)?;
        }
    };
    match layout {
        Layout::Ragged(Offsets::I32(o)) => {
            let first = o.first().map_or(0, |f| i64::from(*f));
            ends(&mut o.iter().skip(1).map(|e| i64::from(*e).saturating_sub(first)))?;
        }
        Layout::Ragged(Offsets::I64(o)) => {
            let first = o.first().copied().unwrap_or(0);
            ends(&mut o.iter().skip(1).map(|e| e.saturating_sub(first)))?;
        }
        Layout::Uniform { size, lists } => {
            let size = i64::try_from(*size).map_err(|_| too_many())?;
            let lists = i64::try_from(*lists).map_err(|_| too_many())?;
            ends(&mut (1..=lists).map(|i| i.saturating_mul(size)))?;
        }
    }
    Ok(end)
}
