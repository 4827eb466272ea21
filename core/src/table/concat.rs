//! Concatenation of tables, whose columns are cast to common types.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder, OffsetSizeTrait, RecordBatch};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::concat;
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};

use super::{Column, RaggedTable};
use crate::array::exact_casts::cast_strictly;
use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

impl RaggedTable {
    /// Concatenates the parts of a table. Without parts, returns the columns of `schema` without
    /// rows.
    pub(crate) fn concat_parts(
        schema: SchemaRef,
        parts: impl IntoIterator<Item = Result<Self>>,
    ) -> Result<Self> {
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        match parts.is_empty() {
            true => Self::try_from_batch(&RecordBatch::new_empty(schema)),
            false => Self::concat(&parts),
        }
    }

    /// Concatenates the rows of all tables.
    ///
    /// Columns are matched by name and keep the order and metadata of the first table; differing
    /// types are promoted ([`promote_types`]). An axis stays uniform if it has the same size in all
    /// tables. [`Scalars`](Self::scalars) are kept if they are equal. A single table is returned
    /// unchanged.
    ///
    /// # Errors
    /// If there are no tables, they differ in their number of axes or have none, a column is
    /// missing from a table or on another axis, its types have no common type, or a scalar differs
    /// ([`vstack`](Self::vstack) makes it a column).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{Int8Array, UInt8Array};
    /// use arrow::datatypes::DataType;
    /// use serrate::table::RaggedTable;
    /// let part = |values| RaggedTable::builder().lengths([2])?.column("code", 1, values).build();
    /// let a = part(Arc::new(UInt8Array::from(vec![1, 2])))?;
    /// let b = part(Arc::new(Int8Array::from(vec![3, -4])))?;
    /// let both = RaggedTable::concat(&[a, b])?;
    /// assert_eq!(both.column("code")?.data_type(), &DataType::Int16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn concat(tables: &[Self]) -> Result<Self> {
        let [first, rest @ ..] = tables else {
            return Err(Error::invalid("there are no tables to concatenate; give at least one"));
        };
        if rest.is_empty() {
            return Ok(first.clone());
        }
        for (i, table) in rest.iter().enumerate() {
            check_compatible(first, table, i + 1)?;
        }
        let rows =
            tables.iter().try_fold(0usize, |sum, t| sum.checked_add(t.num_rows())).ok_or_else(
                || Error::invalid("the total number of rows of the tables exceeds 64 bits; concatenate fewer tables"),
            )?;
        let name =
            |axis: usize| tables.iter().find_map(|t| t.axis_name(axis)).map(Arc::<str>::from);
        let axes = (1..first.ndim())
            .map(|axis| {
                let layouts = tables.iter().map(|t| t.layout(axis)).collect::<Result<Vec<_>>>()?;
                Ok((name(axis), join_layouts(&layouts)?))
            })
            .collect::<Result<_>>()?;
        let columns = first
            .columns()
            .iter()
            .map(|c| join_columns(tables, c.name()))
            .collect::<Result<_>>()?;
        let mut out = Self::try_new(rows, name(0), axes, columns)?;
        out.scalars.clone_from(&first.scalars);
        Ok(out)
    }
}

fn check_compatible(first: &RaggedTable, table: &RaggedTable, number: usize) -> Result<()> {
    if first.ndim() != table.ndim() {
        return Err(Error::invalid(format!(
            "the number of axes, rows included, is {} for table {number}, but {} for table 0; give tables with the same number of axes",
            table.ndim(),
            first.ndim()
        )));
    }
    if first.ndim() == 0 {
        return Err(Error::invalid(
            "tables without axes have no rows to concatenate; use vstack, which makes each table a row",
        ));
    }
    let missing = |from: &RaggedTable, of: &RaggedTable| -> Vec<String> {
        let names = of.columns().iter().map(Column::name);
        names.filter(|n| from.column(n).is_err()).map(|n| format!("{n:?}")).collect()
    };
    for (lacks, number, has, other) in [(table, number, first, 0), (first, 0, table, number)] {
        let names = missing(lacks, has);
        if !names.is_empty() {
            return Err(Error::invalid(format!(
                "table {number} lacks the column(s) {} that table {other} has; select the common columns first",
                names.join(", ")
            )));
        }
    }
    for scalar in first.scalars().iter().chain(table.scalars()) {
        let name = scalar.name();
        if first.scalar(name).ok() != table.scalar(name).ok() {
            return Err(Error::invalid(format!(
                "the scalar {name:?} differs between table 0 and table {number}; use vstack, which makes the scalar a column, or select the columns without it"
            )));
        }
    }
    for column in first.columns() {
        let theirs = table.column(column.name())?.axis();
        if theirs != column.axis() {
            return Err(Error::invalid(format!(
                "column {:?} has {} level(s) of lists in table 0, but {theirs} in table {number}; give the column the same number of levels in all tables, or select only the other columns",
                column.name(),
                column.axis()
            )));
        }
    }
    Ok(())
}

pub(crate) fn join_layouts(layouts: &[&Layout]) -> Result<Layout> {
    let lists: usize = layouts.iter().map(|l| l.lists()).sum();
    let sizes = || {
        layouts.iter().filter(|l| l.lists() > 0).map(|l| match l {
            Layout::Uniform { size, .. } => Some(*size),
            Layout::Ragged(_) => None,
        })
    };
    if let Some(Some(size)) = sizes().next()
        && sizes().all(|s| s == Some(size))
    {
        return Ok(Layout::Uniform { size, lists });
    }
    let total = layouts
        .iter()
        .try_fold(0usize, |sum, l| sum.checked_add(l.children()))
        .filter(|t| i64::try_from(*t).is_ok())
        .ok_or_else(|| Error::invalid("the tables have more than 2^63 - 1 elements on one axis in total; concatenate fewer tables"))?;
    let large = layouts.iter().any(|l| matches!(l, Layout::Ragged(Offsets::I64(_))));
    Ok(if large || i32::try_from(total).is_err() {
        Offsets::I64(chain_offsets(layouts, lists)?).into()
    } else {
        Offsets::I32(chain_offsets(layouts, lists)?).into()
    })
}

/// Returns the offsets of the lists of all `layouts`, one layout after the other. `lists` is the
/// number of these lists. The caller ensures that the last offset fits `B`.
fn chain_offsets<B: OffsetSizeTrait>(layouts: &[&Layout], lists: usize) -> Result<OffsetBuffer<B>> {
    fn append_ends<A: OffsetSizeTrait, B: OffsetSizeTrait>(out: &mut Vec<B>, end: usize, o: &[A]) {
        let base = o[0].as_usize();
        out.extend(o[1..].iter().map(|x| B::usize_as(end + x.as_usize() - base)));
    }
    let mut out: Vec<B> = Vec::with_capacity(lists + 1);
    let mut end = 0;
    out.push(B::usize_as(0));
    for layout in layouts {
        with_offsets!(&layout.to_offsets()?, o => append_ends(&mut out, end, o));
        end += layout.children();
    }
    Ok(OffsetBuffer::new(out.into()))
}

fn join_columns(tables: &[RaggedTable], name: &str) -> Result<Column> {
    let parts = tables.iter().map(|t| t.column(name)).collect::<Result<Vec<_>>>()?;
    let first = parts[0];
    let mut target = first.data_type().clone();
    for (i, part) in parts.iter().enumerate() {
        let place = || format!("column {name:?} of table {i}");
        target = promote_column_type(&target, part.data_type(), place)?;
    }
    let values = parts
        .iter()
        .map(|c| cast_exactly(c.values(), &target))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let values = concat(&values.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?;
    let nulls = (0..first.axis())
        .map(|level| {
            parts.iter().any(|c| c.list_nulls()[level].is_some()).then(|| {
                let mut bits = BooleanBufferBuilder::new(0);
                for (part, table) in parts.iter().zip(tables) {
                    match &part.list_nulls()[level] {
                        Some(n) => bits.append_buffer(n.inner()),
                        None => bits.append_n(table.axes()[level].layout().lists(), true),
                    }
                }
                NullBuffer::new(bits.finish())
            })
        })
        .collect();
    let nullable = parts.iter().any(|c| c.field().is_nullable());
    let field = first.field().as_ref().clone().with_nullable(nullable);
    Ok(Column::with_field(Arc::new(field), first.axis(), values).with_list_nulls(nulls))
}

fn cast_exactly(values: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    if values.data_type() == target {
        return Ok(values.clone());
    }
    Ok(cast_strictly(values, target)?)
}

/// Returns the common type of a column in the earlier tables and in the next one. Returns an error
/// if there is none; `describe_place` names the column in its message.
pub(super) fn promote_column_type(
    earlier: &DataType,
    next: &DataType,
    describe_place: impl FnOnce() -> String,
) -> Result<DataType> {
    promote_types(earlier, next).ok_or_else(|| {
        Error::type_of(
            describe_place(),
            format!("{earlier}, as in the earlier tables, or a type that has a common type with {earlier} (cast the column first)"),
            next,
        )
    })
}

/// Returns the promoted type of two types by NumPy's rules for arrays; `None` if there is none.
///
/// Integers are promoted to the narrowest type that holds both (`uint8` and `int8` to `int16`),
/// `uint64` with a signed integer to `float64`. `float32` with integers of at most 16 bits stays
/// `float32`; with wider integers it becomes `float64`. Booleans are promoted to numbers, nulls to
/// any type, times to the finer unit (within one time zone), strings and binary values to the view
/// type or, without a view, to the large type, and dictionaries of different types to their value
/// type.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType::*;
/// use serrate::table::promote_types;
/// assert_eq!(promote_types(&UInt32, &Int8), Some(Int64));
/// assert_eq!(promote_types(&Float32, &UInt32), Some(Float64));
/// assert_eq!(promote_types(&Utf8, &Int8), None);
/// ```
pub fn promote_types(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType as T;
    if a == b {
        return Some(a.clone());
    }
    if let (Some(x), Some(y)) = (to_number(a), to_number(b)) {
        return Some(promote_numbers(x, y));
    }
    Some(match (a, b) {
        (T::Null, t) | (t, T::Null) => t.clone(),
        (T::Boolean, t) | (t, T::Boolean) if to_number(t).is_some() => t.clone(),
        (T::Dictionary(_, v), T::Dictionary(_, w)) => promote_types(v, w)?,
        (T::Dictionary(_, v), t) | (t, T::Dictionary(_, v)) => promote_types(v, t)?,
        (T::Utf8View, T::Utf8 | T::LargeUtf8) | (T::Utf8 | T::LargeUtf8, T::Utf8View) => {
            T::Utf8View
        }
        (T::Utf8, T::LargeUtf8) | (T::LargeUtf8, T::Utf8) => T::LargeUtf8,
        (T::BinaryView, T::Binary | T::LargeBinary)
        | (T::Binary | T::LargeBinary, T::BinaryView) => T::BinaryView,
        (T::Binary, T::LargeBinary) | (T::LargeBinary, T::Binary) => T::LargeBinary,
        (T::Timestamp(u, z), T::Timestamp(v, y)) if z == y => {
            T::Timestamp(choose_finer_unit(u, v), z.clone())
        }
        (T::Duration(u), T::Duration(v)) => T::Duration(choose_finer_unit(u, v)),
        (T::Date32, T::Date64) | (T::Date64, T::Date32) => T::Date64,
        (T::Time32(_), T::Time32(_)) => T::Time32(TimeUnit::Millisecond),
        (T::Time32(_), T::Time64(u)) | (T::Time64(u), T::Time32(_)) => T::Time64(*u),
        (T::Time64(_), T::Time64(_)) => T::Time64(TimeUnit::Nanosecond),
        _ => return None,
    })
}

fn choose_finer_unit(a: &TimeUnit, b: &TimeUnit) -> TimeUnit {
    (*a).max(*b)
}

#[derive(Clone, Copy, PartialEq)]
enum NumberKind {
    Unsigned(u8),
    Signed(u8),
    Float(u8),
}

fn to_number(t: &DataType) -> Option<NumberKind> {
    Some(match t {
        DataType::UInt8 => NumberKind::Unsigned(8),
        DataType::UInt16 => NumberKind::Unsigned(16),
        DataType::UInt32 => NumberKind::Unsigned(32),
        DataType::UInt64 => NumberKind::Unsigned(64),
        DataType::Int8 => NumberKind::Signed(8),
        DataType::Int16 => NumberKind::Signed(16),
        DataType::Int32 => NumberKind::Signed(32),
        DataType::Int64 => NumberKind::Signed(64),
        DataType::Float16 => NumberKind::Float(16),
        DataType::Float32 => NumberKind::Float(32),
        DataType::Float64 => NumberKind::Float(64),
        _ => return None,
    })
}

fn promote_numbers(a: NumberKind, b: NumberKind) -> DataType {
    use NumberKind::{Float, Signed, Unsigned};
    match (a, b) {
        (Unsigned(x), Unsigned(y)) => match x.max(y) {
            8 => DataType::UInt8,
            16 => DataType::UInt16,
            32 => DataType::UInt32,
            _ => DataType::UInt64,
        },
        (Signed(x), Signed(y)) => find_signed_type(x.max(y)),
        (Unsigned(64), Signed(_)) | (Signed(_), Unsigned(64)) => DataType::Float64,
        (Unsigned(u), Signed(s)) | (Signed(s), Unsigned(u)) => find_signed_type(s.max(u * 2)),
        (Float(x), Float(y)) => find_float_type(x.max(y)),
        // NumPy's rule: integers need a float type of at least twice their width, or float64.
        (Float(f), Unsigned(i) | Signed(i)) | (Unsigned(i) | Signed(i), Float(f)) => {
            find_float_type(f.max(if i >= 32 { 64 } else { i * 2 }))
        }
    }
}

fn find_signed_type(bits: u8) -> DataType {
    match bits {
        8 => DataType::Int8,
        16 => DataType::Int16,
        32 => DataType::Int32,
        _ => DataType::Int64,
    }
}

fn find_float_type(bits: u8) -> DataType {
    match bits {
        16 => DataType::Float16,
        32 => DataType::Float32,
        _ => DataType::Float64,
    }
}
