//! Lossless conversion of file values to a table's types: a value that does not fit is an error.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanBufferBuilder, FixedSizeListArray,
    Float16Array, Float32Array, Float64Array, GenericListArray, MapArray, OffsetSizeTrait,
    PrimitiveArray, Scalar, StringArray, StructArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::Parser;
use arrow::compute::kernels::cmp::neq;
use arrow::compute::kernels::numeric::add;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, FieldRef, Fields, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;
use serrate_core::internal::cast_strictly;
use serrate_core::internal::zones::local_to_instants;

use crate::functions::find_element_field;
use crate::sql::sources::exact_texts::{
    TextRules, is_exact_float, names_zone, parse_clock, parse_date, parse_exact_decimal,
    parse_integer, parse_interval, parse_time,
};

#[derive(Debug)]
pub(in crate::sql) enum InexactConversion {
    /// The first value that the type cannot hold, as text, and its row.
    Value { row: usize, text: String },
    /// The error of Arrow, for example that there is no conversion between the types.
    Failed(ArrowError),
}

impl From<ArrowError> for InexactConversion {
    fn from(error: ArrowError) -> Self {
        Self::Failed(error)
    }
}

/// Converts an array to the type `to`. Parses text, matches struct fields by name, and ignores the
/// contents of a NULL list or struct. Returns an error for the first value that `to` cannot hold.
pub(in crate::sql) fn convert_exact(
    array: &ArrayRef,
    to: &DataType,
    rules: TextRules,
) -> Result<ArrayRef, InexactConversion> {
    let (converted, unheld) = convert_marked(array, to, rules)?;
    match unheld.and_then(|rows| rows.set_indices().next()) {
        None => Ok(converted),
        Some(row) => {
            Err(InexactConversion::Value { row, text: array_value_to_string(array, row)? })
        }
    }
}

/// Returns the message for a value that the type of a column cannot hold. `place` is the text that
/// follows the value in the message, such as the number of the row.
pub(in crate::sql) fn format_unheld_message(
    column: &str,
    data_type: &DataType,
    value: &str,
    place: &str,
) -> String {
    const MOST: usize = 200;
    let end = value.char_indices().nth(MOST).map_or(value.len(), |(at, _)| at);
    let cut = if end < value.len() { ".." } else { "" };
    let value = value.get(..end).unwrap_or_default();
    let mut leaf = data_type;
    while let Some(element) = find_element_field(leaf) {
        leaf = element.data_type();
    }
    let remedy = match leaf {
        DataType::Interval(_) => "VARCHAR",
        DataType::Timestamp(_, None) if names_zone(value) => "TIMESTAMPTZ or VARCHAR",
        t if t.is_temporal() => "TIMESTAMP or VARCHAR",
        t if t.is_integer() => "DOUBLE",
        DataType::Struct(_) => "VARCHAR, or its fields as DOUBLE",
        _ => "VARCHAR",
    };
    format!(
        "{UNHELD}{column}' has the type {data_type}, which cannot hold '{value}{cut}'{place}; declare the column as {remedy}{UNHELD_END}"
    )
}

const UNHELD: &str = "the column '";
const UNHELD_END: &str = " in CREATE EXTERNAL TABLE";

/// Finds, in the text of an error, the message of [`format_unheld_message`]: that the type of a
/// column cannot hold a value. Returns `None` if the text does not contain such a message. The
/// error has no type of its own, because Parquet's readers convert errors of pushed-down conditions
/// to text.
pub(in crate::sql) fn find_unheld(error: &str) -> Option<&str> {
    let start = error.find(UNHELD)?;
    let text = error.get(start..)?;
    let end = text.find(UNHELD_END)?;
    let message = text.get(..end.saturating_add(UNHELD_END.len()))?;
    message.contains("which cannot hold").then_some(message)
}

/// Whether the type `to` holds every value of the type `from`, and DataFusion's conversion
/// preserves the value. False for times of different units: in a comparison of a converted column
/// with a literal, DataFusion converts the literal instead, and truncates it.
pub(in crate::sql) fn holds_all(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (from, to) if from == to => true,
        (Null, _) => true,
        (Dictionary(_, from), to) => holds_all(from, to),
        (from, Dictionary(_, to)) => holds_all(from, to),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => true,
        (List(from), List(to)) | (LargeList(from), LargeList(to)) => {
            holds_all(from.data_type(), to.data_type())
        }
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Decimal128(p, s) | Decimal256(p, s), Decimal128(q, t) | Decimal256(q, t)) => {
            let digits = |p: u8, s: i8| i16::from(p) - i16::from(s);
            t >= s && digits(*q, *t) >= digits(*p, *s)
        }
        // In another zone than UTC, a local time and its instant are different integers, but
        // DataFusion compares the integer of the local time with that of the literal.
        (Timestamp(a, None), Timestamp(b, Some(zone))) => {
            a == b && matches!(zone.as_ref(), "UTC" | "+00:00")
        }
        (Timestamp(a, _), Timestamp(b, _)) => a == b,
        (from, to) => match (find_integer_range(from), find_integer_range(to)) {
            (Some(a), Some(b)) if a.is_signed == b.is_signed => a.bits <= b.bits,
            (Some(a), Some(b)) => b.is_signed && a.bits < b.bits,
            (Some(a), None) => match to {
                Float64 => a.bits <= 32,
                Float32 => a.bits <= 16,
                Utf8 | LargeUtf8 | Utf8View => true,
                _ => false,
            },
            _ => false,
        },
    }
}

/// The range of values of an integer type.
#[derive(Clone, Copy)]
pub(in crate::sql) struct IntegerRange {
    pub is_signed: bool,
    pub bits: u32,
}

/// Returns the range of an integer type; `None` for any other type.
pub(in crate::sql) fn find_integer_range(t: &DataType) -> Option<IntegerRange> {
    let (is_signed, bits) = match t {
        DataType::Int8 => (true, 8),
        DataType::Int16 => (true, 16),
        DataType::Int32 => (true, 32),
        DataType::Int64 => (true, 64),
        DataType::UInt8 => (false, 8),
        DataType::UInt16 => (false, 16),
        DataType::UInt32 => (false, 32),
        DataType::UInt64 => (false, 64),
        _ => return None,
    };
    Some(IntegerRange { is_signed, bits })
}

/// A converted array, and a mask of rows whose value the type cannot hold (`None` if it holds all).
type MarkedArray = Result<(ArrayRef, Option<BooleanBuffer>), ArrowError>;

fn convert_marked(array: &ArrayRef, to: &DataType, rules: TextRules) -> MarkedArray {
    use DataType::*;
    let from = array.data_type();
    if from == to {
        return Ok((Arc::clone(array), None));
    }
    match (from, to) {
        (Dictionary(_, of), Dictionary(_, values)) if of == values => {
            Ok((cast_strictly(array, to)?, None))
        }
        (Dictionary(_, values), _) => convert_marked(&cast(array, values)?, to, rules),
        (RunEndEncoded(_, values), _) => {
            convert_marked(&cast(array, values.data_type())?, to, rules)
        }
        (_, Dictionary(_, values)) => {
            let (converted, unheld) = convert_marked(array, values, rules)?;
            Ok((cast_strictly(&converted, to)?, unheld))
        }
        (List(_), List(field)) => convert_list::<i32>(array, field, rules),
        (LargeList(_), LargeList(field)) => convert_list::<i64>(array, field, rules),
        (LargeList(from) | FixedSizeList(from, _), List(_)) => {
            convert_marked(&cast_strictly(array, &List(Arc::clone(from)))?, to, rules)
        }
        (List(from) | FixedSizeList(from, _), LargeList(_)) => {
            let large = LargeList(Arc::clone(from));
            convert_marked(&cast_strictly(array, &large)?, to, rules)
        }
        (FixedSizeList(from, n), FixedSizeList(field, m))
            if n == m && from.data_type() == field.data_type() && field.is_nullable() =>
        {
            let list = array.as_fixed_size_list();
            let (values, nulls) = (Arc::clone(list.values()), list.nulls().cloned());
            let field = Arc::clone(field);
            let list =
                FixedSizeListArray::try_new_with_length(field, *m, values, nulls, list.len())?;
            Ok((Arc::new(list), None))
        }
        (FixedSizeList(from, _), FixedSizeList(field, _)) => {
            let lists = cast_strictly(array, &List(Arc::clone(from)))?;
            let (lists, unheld) = convert_marked(&lists, &List(Arc::clone(field)), rules)?;
            Ok((cast_strictly(&lists, to)?, unheld))
        }
        (Struct(_), Struct(fields)) => {
            let (converted, unheld) = convert_struct(array.as_struct(), fields, rules)?;
            Ok((Arc::new(converted), unheld))
        }
        (Map(_, _), Map(field, sorted)) => convert_map(array.as_map(), field, *sorted, rules),
        (Utf8 | LargeUtf8 | Utf8View, _) => parse_marked(array, to, rules),
        (FixedSizeBinary(16), Utf8 | LargeUtf8 | Utf8View) => {
            Ok((cast(&format_uuids(array), to)?, None))
        }
        (FixedSizeBinary(12), Interval(IntervalUnit::MonthDayNano)) => {
            Ok((read_intervals(array), None))
        }
        (Timestamp(_, None) | Date32 | Date64, Timestamp(unit, Some(_))) => {
            let (local, unheld) = convert_marked(array, &Timestamp(*unit, None), rules)?;
            let instants = local_to_instants(&local, to, false)
                .map_err(|e| ArrowError::CastError(e.to_string()))?;
            Ok((instants, unheld))
        }
        _ => convert_leaf(array, to),
    }
}

fn drop_unset(bits: BooleanBuffer) -> Option<BooleanBuffer> {
    (bits.count_set_bits() > 0).then_some(bits)
}

fn convert_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    field: &FieldRef,
    rules: TextRules,
) -> MarkedArray {
    let (_, offsets, values, nulls) = array.as_list::<O>().clone().into_parts();
    let range = offsets.iter().copied().map(O::as_usize);
    let (first, last) = (range.clone().next().unwrap_or(0), range.last().unwrap_or(0));
    let base = O::usize_as(first);
    let offsets: Vec<O> = offsets.iter().map(|offset| *offset - base).collect();
    let offsets = OffsetBuffer::new(offsets.into());
    let values = values.slice(first, last.saturating_sub(first));
    let (values, unheld) = convert_marked(&values, field.data_type(), rules)?;
    let list = GenericListArray::try_new(Arc::clone(field), offsets, values, nulls)?;
    let unheld = unheld.and_then(|unheld| build_lists_with(&unheld, list.offsets(), &list));
    Ok((Arc::new(list), unheld))
}

/// Returns a mask of the lists that are not NULL and contain an element marked in `elements`;
/// `None` if no list does.
fn build_lists_with<O: OffsetSizeTrait>(
    elements: &BooleanBuffer,
    offsets: &OffsetBuffer<O>,
    lists: &dyn Array,
) -> Option<BooleanBuffer> {
    let mut rows = BooleanBufferBuilder::new(lists.len());
    for (row, bounds) in offsets.windows(2).enumerate() {
        let (start, end) = (bounds[0].as_usize(), bounds[1].as_usize());
        let has = lists.is_valid(row)
            && start < end
            && elements.slice(start, end - start).count_set_bits() > 0;
        rows.append(has);
    }
    drop_unset(rows.finish())
}

fn convert_struct(
    array: &StructArray,
    fields: &Fields,
    rules: TextRules,
) -> Result<(StructArray, Option<BooleanBuffer>), ArrowError> {
    let mut columns = Vec::with_capacity(fields.len());
    let mut unheld: Option<BooleanBuffer> = None;
    let has_common = fields.iter().any(|field| array.column_by_name(field.name()).is_some());
    if !has_common && !fields.is_empty() && array.num_columns() > 0 {
        let list = |fields: &Fields| {
            fields.iter().map(|f| format!("'{}'", f.name())).collect::<Vec<_>>().join(", ")
        };
        return Err(ArrowError::CastError(format!(
            "a struct in the file has the fields {}, but the type that the table declares for it has none of them, only {}; declare at least one of the fields of the file",
            list(array.fields()),
            list(fields)
        )));
    }
    for field in fields {
        let Some(column) = array.column_by_name(field.name()) else {
            columns.push(new_null_array(field.data_type(), array.len()));
            continue;
        };
        let (column, marks) = convert_marked(column, field.data_type(), rules)?;
        columns.push(column);
        unheld = match (unheld, marks) {
            (Some(a), Some(b)) => Some(&a | &b),
            (a, b) => a.or(b),
        };
    }
    let nulls = array.nulls().cloned();
    let visible = match (unheld, &nulls) {
        (Some(marks), Some(nulls)) => drop_unset(&marks & nulls.inner()),
        (marks, _) => marks,
    };
    let made = StructArray::try_new_with_length(fields.clone(), columns, nulls, array.len())?;
    Ok((made, visible))
}

fn convert_map(array: &MapArray, field: &FieldRef, sorted: bool, rules: TextRules) -> MarkedArray {
    let DataType::Struct(fields) = field.data_type() else {
        return Err(ArrowError::CastError(format!(
            "the entries of a map are structs of a key and a value, but its type in the table has entries of the type {}; declare another type",
            field.data_type()
        )));
    };
    // The names of the two fields of an entry differ between writers, so they are matched by
    // position.
    let entries = array.entries();
    let renamed = StructArray::try_new_with_length(
        entries
            .fields()
            .iter()
            .zip(fields)
            .map(|(a, b)| a.as_ref().clone().with_name(b.name()))
            .collect(),
        entries.columns().to_vec(),
        entries.nulls().cloned(),
        entries.len(),
    )?;
    let (entries, unheld) = convert_struct(&renamed, fields, rules)?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let map = MapArray::try_new(Arc::clone(field), offsets, entries, nulls, sorted)?;
    let unheld = unheld.and_then(|unheld| build_lists_with(&unheld, map.offsets(), &map));
    Ok((Arc::new(map), unheld))
}

/// Writes the 16 bytes of UUIDs of a Parquet file as strings such as
/// `550e8400-e29b-41d4-a716-446655440000`.
fn format_uuids(array: &ArrayRef) -> ArrayRef {
    let format = |bytes: &[u8]| {
        let mut text = String::with_capacity(36);
        for (at, byte) in bytes.iter().enumerate() {
            if [4, 6, 8, 10].contains(&at) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        text
    };
    let uuids = array.as_fixed_size_binary().iter();
    Arc::new(uuids.map(|bytes| bytes.map(format)).collect::<StringArray>())
}

/// Reads the 12 bytes of intervals of a Parquet file: the months, the days and the milliseconds.
fn read_intervals(array: &ArrayRef) -> ArrayRef {
    let read = |bytes: &[u8]| {
        let (months, rest) = bytes.split_first_chunk()?;
        let (days, rest) = rest.split_first_chunk()?;
        let (months, days) = (i32::from_le_bytes(*months), i32::from_le_bytes(*days));
        let milliseconds = i64::from(u32::from_le_bytes(*rest.first_chunk()?));
        Some(IntervalMonthDayNano::new(months, days, milliseconds.saturating_mul(1_000_000)))
    };
    let intervals = array.as_fixed_size_binary().iter().map(|bytes| read(bytes?));
    Arc::new(intervals.collect::<PrimitiveArray<IntervalMonthDayNanoType>>())
}

/// Casts values to the type `to`. Marks the rows whose value does not fit `to` and, unless
/// [`is_rounding`] is true, the rows whose value the cast changes.
fn convert_leaf(array: &ArrayRef, to: &DataType) -> MarkedArray {
    let from = array.data_type();
    let converted = cast(array, to)?;
    let mut unheld = BooleanBufferBuilder::new(array.len());
    if is_rounding(from, to) {
        // A number that becomes infinite is marked, too, such as 1e300 in Float32.
        let became_infinite =
            |row: usize| match (read_finite_at(array, row), read_finite_at(&converted, row)) {
                (Some(before), Some(after)) => before && !after,
                (_, after) => after == Some(false) && !from.is_floating(),
            };
        for row in 0..array.len() {
            unheld.append(array.is_valid(row) && (converted.is_null(row) || became_infinite(row)));
        }
        return Ok((converted, drop_unset(unheld.finish())));
    }
    if !is_reversible(from, to) {
        for row in 0..array.len() {
            unheld.append(array.is_valid(row) && converted.is_null(row));
        }
        return Ok((converted, drop_unset(unheld.finish())));
    }
    let back = cast(&converted, from)?;
    let changed = neq(&remove_negative_zeros(array)?, &back)?;
    for row in 0..array.len() {
        unheld.append(array.is_valid(row) && (changed.is_null(row) || changed.value(row)));
    }
    Ok((converted, drop_unset(unheld.finish())))
}

/// Whether a conversion may round values without an error: between floats, and from decimals to
/// floats.
fn is_rounding(from: &DataType, to: &DataType) -> bool {
    to.is_floating() && (from.is_floating() || from.is_decimal())
}

/// Whether a cast can be checked by a second cast back to the old type: the result of the second
/// cast differs from the old value only if the first cast has changed the value.
fn is_reversible(from: &DataType, to: &DataType) -> bool {
    let plain = |t: &DataType| {
        matches!(t, DataType::Boolean)
            || t.is_numeric()
            || matches!(t, DataType::Duration(_))
            || matches!(
                t,
                DataType::Date32
                    | DataType::Date64
                    | DataType::Time32(_)
                    | DataType::Time64(_)
                    | DataType::Timestamp(_, _)
            )
    };
    plain(from) && plain(to)
}

/// Returns whether a float is finite; `None` for other types and for NULL.
fn read_finite_at(array: &ArrayRef, row: usize) -> Option<bool> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Float16 => Some(array.as_primitive::<Float16Type>().value(row).is_finite()),
        DataType::Float32 => Some(array.as_primitive::<Float32Type>().value(row).is_finite()),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().value(row).is_finite()),
        _ => None,
    }
}

/// Replaces -0.0 with 0.0. A cast to an integer and back loses the sign, so -0.0 would count as
/// changed.
fn remove_negative_zeros(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Float16 => {
            add(array, &Scalar::new(Float16Array::from(vec![half::f16::from_f32(0.0)])))
        }
        DataType::Float32 => add(array, &Scalar::new(Float32Array::from(vec![0.0]))),
        DataType::Float64 => add(array, &Scalar::new(Float64Array::from(vec![0.0]))),
        _ => Ok(Arc::clone(array)),
    }
}

/// Parses strings. Marks each string that is not a value of the type.
fn parse_marked(array: &ArrayRef, to: &DataType, rules: TextRules) -> MarkedArray {
    use DataType::*;
    let texts = cast(array, &Utf8)?;
    let texts = texts.as_string::<i32>();
    match to {
        Int8 => parse_with::<Int8Type>(texts, to, parse_integer),
        Int16 => parse_with::<Int16Type>(texts, to, parse_integer),
        Int32 => parse_with::<Int32Type>(texts, to, parse_integer),
        Int64 => parse_with::<Int64Type>(texts, to, parse_integer),
        UInt8 => parse_with::<UInt8Type>(texts, to, parse_integer),
        UInt16 => parse_with::<UInt16Type>(texts, to, parse_integer),
        UInt32 => parse_with::<UInt32Type>(texts, to, parse_integer),
        UInt64 => parse_with::<UInt64Type>(texts, to, parse_integer),
        Float32 => parse_with::<Float32Type>(texts, to, Float32Type::parse),
        Float64 => parse_with::<Float64Type>(texts, to, |text| {
            let number = Float64Type::parse(text)?;
            (!rules.exact_floats || is_exact_float(text, number)).then_some(number)
        }),
        Date32 => parse_with::<Date32Type>(texts, to, |text| parse_date(text, rules)),
        Timestamp(unit, zone) => {
            let is_local = rules.local_times && zone.is_none();
            let zone = Tz::from_str(zone.as_deref().unwrap_or("+00:00"))?;
            let parse = |text: &str| {
                parse_time(text, *unit, zone, rules).filter(|_| !is_local || !names_zone(text))
            };
            match unit {
                TimeUnit::Second => parse_with::<TimestampSecondType>(texts, to, parse),
                TimeUnit::Millisecond => parse_with::<TimestampMillisecondType>(texts, to, parse),
                TimeUnit::Microsecond => parse_with::<TimestampMicrosecondType>(texts, to, parse),
                TimeUnit::Nanosecond => parse_with::<TimestampNanosecondType>(texts, to, parse),
            }
        }
        Time32(TimeUnit::Second) => parse_with::<Time32SecondType>(texts, to, |text| {
            parse_clock::<Time32SecondType>(text, 0, rules)
        }),
        Time32(_) => parse_with::<Time32MillisecondType>(texts, to, |text| {
            parse_clock::<Time32MillisecondType>(text, 3, rules)
        }),
        Time64(TimeUnit::Microsecond) => parse_with::<Time64MicrosecondType>(texts, to, |text| {
            parse_clock::<Time64MicrosecondType>(text, 6, rules)
        }),
        Time64(_) => parse_with::<Time64NanosecondType>(texts, to, |text| {
            parse_clock::<Time64NanosecondType>(text, 9, rules)
        }),
        Interval(IntervalUnit::MonthDayNano) => {
            parse_with::<IntervalMonthDayNanoType>(texts, to, parse_interval)
        }
        Decimal128(p, s) => parse_with::<Decimal128Type>(texts, to, |text| {
            parse_exact_decimal::<Decimal128Type>(text, *p, *s)
        }),
        Decimal256(p, s) => parse_with::<Decimal256Type>(texts, to, |text| {
            parse_exact_decimal::<Decimal256Type>(text, *p, *s)
        }),
        _ => convert_leaf(array, to),
    }
}

fn parse_with<T: ArrowPrimitiveType>(
    texts: &StringArray,
    to: &DataType,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> MarkedArray {
    let mut unheld: Vec<usize> = Vec::new();
    let values: PrimitiveArray<T> = texts
        .iter()
        .enumerate()
        .map(|(row, text)| {
            let value = parse(text?);
            if value.is_none() {
                unheld.push(row);
            }
            value
        })
        .collect();
    let values: ArrayRef = Arc::new(values.with_data_type(to.clone()));
    if unheld.is_empty() {
        return Ok((values, None));
    }
    let mut marks = BooleanBufferBuilder::new(texts.len());
    marks.append_n(texts.len(), false);
    for row in unheld {
        marks.set_bit(row, true);
    }
    Ok((values, Some(marks.finish())))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, TimestampMillisecondArray};

    use super::*;

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn unheld_row(array: &ArrayRef, to: &DataType, rules: TextRules) -> Option<usize> {
        match convert_exact(array, to, rules) {
            Ok(_) => None,
            Err(InexactConversion::Value { row, .. }) => Some(row),
            Err(InexactConversion::Failed(e)) => panic!("{e}"),
        }
    }

    #[test]
    fn texts_are_parsed_exactly_or_refused() {
        use DataType::{Date32, Decimal128, Float64, Int8, Int64, Time32, Timestamp, UInt64};
        let json = TextRules { exact_floats: true, numeric_times: true, local_times: true };
        let seconds = Timestamp(TimeUnit::Second, None);
        let micros = Timestamp(TimeUnit::Microsecond, None);
        for (to, good, bad) in [
            (Int8, vec!["1", "-128", "1e2", "1.0", "0.0e-9"], vec!["128", "0.5", "1e-19", "x"]),
            (
                UInt64,
                vec!["18446744073709551615", "+7"],
                vec!["-1", "18446744073709551616", "1.0000000000000000001", ""],
            ),
            (Int64, vec!["100e-2"], vec!["1e400", "-"]),
            (
                Float64,
                vec!["9007199254740992", "9007199254740994", "0.1", "1e300", "NaN"],
                vec!["9007199254740993", "9223372036854775809"],
            ),
            (
                Date32,
                vec!["2020-01-01", "2020-01-01T00:00:00.000", "18262"],
                vec!["2020-01-01T00:00:00.0005", "2020-01-01 00:00:01"],
            ),
            (seconds, vec!["2020-01-01T00:00:00.000", "2020-01-01"], vec!["2020-01-01T00:00:00.9"]),
            (
                micros,
                vec!["2020-01-01T00:00:00.1234560000"],
                vec![
                    "2020-01-01T00:00:00.1234567",
                    "2020-01-01T00:00:00Z",
                    "2020-01-01 00:00:00.5 +02:00",
                    "2020-1-1 0:00-03",
                ],
            ),
            (
                Timestamp(TimeUnit::Second, Some("UTC".into())),
                vec!["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+02:00", "2020-01-01 00:00:00"],
                vec!["2020-01-01T00:00:00.5Z"],
            ),
            (Time32(TimeUnit::Second), vec!["10:00:00"], vec!["10:00:00.5"]),
            (
                Decimal128(5, 2),
                vec!["1.230", "123.45", "12e1", "-.5"],
                vec!["1.239", "1234", "1e-3"],
            ),
        ] {
            for text in good {
                assert_eq!(unheld_row(&texts(&[text]), &to, json), None, "{text} {to}");
            }
            for text in bad {
                assert!(unheld_row(&texts(&["1", text]), &to, json).is_some(), "{text} {to}");
            }
        }
        let csv = TextRules { numeric_times: false, ..json };
        for unit in [TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            let clock = DataType::Time64(unit);
            assert_eq!(unheld_row(&texts(&["10:00", "10:00:00.5 PM"]), &clock, csv), None);
            assert_eq!(unheld_row(&texts(&["10:00", "10"]), &clock, csv), Some(1));
            assert_eq!(unheld_row(&texts(&["10"]), &clock, json), None);
        }
        let rounded = convert_exact(&texts(&["9007199254740993"]), &Float64, TextRules::default());
        assert!(rounded.is_ok());
        let decimals = convert_exact(&texts(&["-.5", "12e1"]), &Decimal128(5, 2), json).unwrap();
        assert_eq!(decimals.as_primitive::<Decimal128Type>().values(), &[-50, 12000]);
    }

    #[test]
    fn casts_are_exact_or_refused() {
        use DataType::{Date32, Float32, Float64, Int32, Timestamp};
        let rules = TextRules::default();
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 2.0, 2.9]));
        assert_eq!(unheld_row(&floats, &Int32, rules), Some(2));
        assert_eq!(unheld_row(&floats.slice(0, 2), &Int32, rules), None);
        assert_eq!(unheld_row(&floats, &Float32, rules), None);
        let large: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY, f64::NAN, 1e300]));
        assert_eq!(unheld_row(&large, &Float32, rules), Some(2));
        assert_eq!(unheld_row(&large, &Int32, rules), Some(0));
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1 << 53, (1 << 53) + 1]));
        assert_eq!(unheld_row(&ints, &Float64, rules), Some(1));
        assert_eq!(unheld_row(&ints, &Int32, rules), Some(0));
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, 86_400_000, 1]));
        assert_eq!(unheld_row(&times, &Timestamp(TimeUnit::Second, None), rules), Some(2));
        assert_eq!(unheld_row(&times, &Date32, rules), Some(2));
        assert_eq!(unheld_row(&times, &Timestamp(TimeUnit::Microsecond, None), rules), None);
    }

    #[test]
    fn values_below_null_are_ignored() {
        let values = Arc::new(Float64Array::from(vec![1.5, 2.0, 3.5]));
        let field = Arc::new(arrow::datatypes::Field::new_list_field(DataType::Float64, true));
        let offsets = OffsetBuffer::new(vec![0, 1, 2, 3].into());
        let nulls = Some(vec![false, true, true].into());
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, values, nulls));
        let to = DataType::new_list(DataType::Int32, true);
        let rules = TextRules::default();
        assert_eq!(unheld_row(&lists, &to, rules), Some(2));
        assert_eq!(unheld_row(&lists.slice(0, 2), &to, rules), None);
        assert_eq!(unheld_row(&lists.slice(2, 1), &to, rules), Some(0));
    }
}
