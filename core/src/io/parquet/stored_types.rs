//! Converts columns to types for which Parquet has a logical type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, make_array, new_null_array};
use arrow::compute::cast;
use arrow::compute::kernels::cmp::not_distinct;
use arrow::datatypes::{
    DataType, Date64Type, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, Time32SecondType,
    TimeUnit, TimestampSecondType,
};

use crate::array::record_batch::build_record_batch;
use crate::error::{Error, Result};

/// Returns the schema in which a Parquet file stores rows of the schema `schema`. Parquet has no
/// unit of seconds, and its dates are whole days. The Parquet writer of Arrow therefore writes
/// timestamps and times in seconds, and `Date64`, as plain integers, which other programs do not
/// read as times. To avoid this, seconds become milliseconds, and `Date64` becomes `Date32`, also
/// in lists, structs, maps and dictionaries.
///
/// # Errors
/// If Parquet has no type for a column.
pub fn to_stored_schema(schema: &SchemaRef) -> Result<SchemaRef> {
    for field in schema.fields() {
        if let Some(missing) = find_missing_type(field.data_type()) {
            return Err(Error::invalid(format!(
                "column {:?} contains values of the type {missing}, which Parquet does not have; convert them to strings",
                field.name()
            )));
        }
    }
    let fields = to_stored_fields(schema.fields());
    Ok(match fields == *schema.fields() {
        true => Arc::clone(schema),
        false => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
    })
}

/// Converts a batch to the schema that [`to_stored_schema`] returns for it.
///
/// # Errors
/// If a value is out of range for its type in this schema, or a `Date64` has a time of day.
pub fn to_stored(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let stored = to_stored_schema(&schema)?;
    if stored == schema {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(stored.fields());
    let columns = columns.map(|(column, field)| {
        let converted = convert_values(column, field.data_type());
        converted.map_err(|e| Error::invalid(format!("column {:?}: {e}", field.name())))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(build_record_batch(stored, columns, batch.num_rows())?)
}

/// Returns the first type in `t` that Parquet or Arrow's writer lacks; `None` if there is none.
fn find_missing_type(t: &DataType) -> Option<&DataType> {
    match t {
        DataType::Interval(IntervalUnit::MonthDayNano) | DataType::Union(..) => Some(t),
        DataType::Dictionary(_, values) => find_missing_type(values),
        t => {
            list_inner_fields(t).into_iter().find_map(|field| find_missing_type(field.data_type()))
        }
    }
}

fn list_inner_fields(t: &DataType) -> Vec<&FieldRef> {
    match t {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    }
}

fn to_stored_fields(fields: &Fields) -> Fields {
    fields.iter().map(to_stored_field).collect()
}

fn to_stored_field(field: &FieldRef) -> FieldRef {
    let stored = to_stored_type(field.data_type());
    match stored == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(stored)),
    }
}

fn to_stored_type(t: &DataType) -> DataType {
    match t {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::List(field) => DataType::List(to_stored_field(field)),
        DataType::LargeList(field) => DataType::LargeList(to_stored_field(field)),
        DataType::ListView(field) => DataType::ListView(to_stored_field(field)),
        DataType::LargeListView(field) => DataType::LargeListView(to_stored_field(field)),
        DataType::FixedSizeList(field, size) => {
            DataType::FixedSizeList(to_stored_field(field), *size)
        }
        DataType::Map(entries, sorted) => DataType::Map(to_stored_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(to_stored_fields(fields)),
        DataType::Dictionary(_, values) if to_stored_type(values) != **values => {
            to_stored_type(values)
        }
        other => other.clone(),
    }
}

fn convert_values(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(Arc::clone(values));
    }
    if values.is_empty() {
        return Ok(new_null_array(to, 0));
    }
    if let DataType::Dictionary(_, plain) = values.data_type() {
        return convert_values(&cast(values, plain)?, to);
    }
    let fields = list_inner_fields(to);
    if fields.is_empty() {
        return convert_leaves(values, to);
    }
    let data = values.to_data();
    let children = data.child_data().iter().zip(fields).map(|(child, field)| {
        Ok(convert_values(&make_array(child.clone()), field.data_type())?.to_data())
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let data = data.into_builder().data_type(to.clone()).child_data(children).build()?;
    Ok(make_array(data))
}

fn convert_leaves(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let converted = cast(values, to)?;
    // The cast makes values out of range NULL and drops times of day, so the cast back differs.
    let same = not_distinct(values, &cast(&converted, values.data_type())?)?;
    match (0..values.len()).find(|row| !same.value(*row)) {
        None => Ok(converted),
        Some(row) => Err(Error::invalid(describe_unstored(values, row))),
    }
}

fn describe_unstored(values: &ArrayRef, row: usize) -> String {
    match values.data_type() {
        DataType::Date64 => format!(
            "a date is {} ms from 1970-01-01, which is not a whole day that Parquet can store; cast the dates to timestamps",
            values.as_primitive::<Date64Type>().value(row)
        ),
        DataType::Time32(_) => format!(
            "a time is {} s from midnight, but Parquet stores only times within one day; correct the time",
            values.as_primitive::<Time32SecondType>().value(row)
        ),
        _ => format!(
            "a timestamp is {} s from 1970-01-01, but Parquet stores milliseconds, whose number exceeds 64 bits; correct the timestamp or make it NULL",
            values.as_primitive::<TimestampSecondType>().value(row)
        ),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Date64Array, DictionaryArray, FixedSizeListArray, Int8Array, Int32Array,
        IntervalMonthDayNanoArray, ListArray, StructArray, Time32MillisecondArray,
        Time32SecondArray, TimestampMillisecondArray, TimestampSecondArray,
    };
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{Field, IntervalMonthDayNano};

    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn seconds_and_dates_are_converted_at_any_depth() {
        let seconds: ArrayRef = Arc::new(
            TimestampSecondArray::from(vec![Some(-1), None, Some(2)]).with_timezone("UTC"),
        );
        let dates: ArrayRef = Arc::new(Date64Array::from(vec![Some(-DAY), None, Some(DAY)]));
        let times: ArrayRef = Arc::new(Time32SecondArray::from(vec![Some(86_399), None, Some(0)]));
        let item = Arc::new(Field::new_list_field(seconds.data_type().clone(), true));
        let lists: ArrayRef = Arc::new(ListArray::new(
            item,
            OffsetBuffer::from_lengths([2, 0, 1]),
            Arc::clone(&seconds),
            Some(NullBuffer::from(vec![true, false, true])),
        ));
        let item = Arc::new(Field::new_list_field(DataType::Date64, true));
        let pairs: ArrayRef = Arc::new(FixedSizeListArray::new(item, 1, Arc::clone(&dates), None));
        let keys = Int8Array::from(vec![Some(2), None, Some(0)]);
        let coded: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::clone(&dates)));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![
            (Arc::new(Field::new("l", lists.data_type().clone(), true)), Arc::clone(&lists)),
            (Arc::new(Field::new("p", pairs.data_type().clone(), true)), pairs),
        ]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([
            ("s", seconds),
            ("d", dates),
            ("t", times),
            ("c", coded),
            ("n", numbers),
            ("x", structs),
        ])
        .unwrap();
        for batch in [batch.clone(), batch.slice(0, 0)] {
            let stored = to_stored(&batch).unwrap();
            assert_eq!(stored.schema(), to_stored_schema(&batch.schema()).unwrap());
        }
        let stored = to_stored(&batch).unwrap();
        let seconds = TimestampMillisecondArray::from(vec![Some(-1000), None, Some(2000)]);
        let seconds: ArrayRef = Arc::new(seconds.with_timezone("UTC"));
        assert_eq!(stored.column(0), &seconds);
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), None, Some(1)]));
        assert_eq!(stored.column(1), &dates);
        let times: ArrayRef =
            Arc::new(Time32MillisecondArray::from(vec![Some(86_399_000), None, Some(0)]));
        assert_eq!(stored.column(2), &times);
        let coded: ArrayRef = Arc::new(Date32Array::from(vec![Some(1), None, Some(-1)]));
        assert_eq!(stored.column(3), &coded);
        assert_eq!(stored.column(4), batch.column(4));
        let structs = to_stored(&batch.slice(1, 2)).unwrap();
        let structs = structs.column(5).as_struct();
        let lists = structs.column(0).as_list::<i32>();
        assert!(lists.is_null(0));
        assert_eq!(&lists.value(1), &seconds.slice(2, 1));
        assert_eq!(&structs.column(1).as_fixed_size_list().value(1), &dates.slice(2, 1));
    }

    #[test]
    fn values_that_parquet_cannot_store_are_errors() {
        let check = |values: ArrayRef, expected: &str| {
            let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
            let error = to_stored(&batch).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("\"v\""), "{error}");
        };
        check(Arc::new(TimestampSecondArray::from(vec![0, i64::MAX])), "a timestamp is 92233720");
        check(Arc::new(Date64Array::from(vec![0, 1])), "a date is 1 ms");
        check(Arc::new(Date64Array::from(vec![i64::MIN / DAY * DAY])), "a date is -92233720");
        check(Arc::new(Time32SecondArray::from(vec![i32::MAX])), "a time is 2147483647 s");
        let interval = IntervalMonthDayNano::new(1, 2, 3);
        check(Arc::new(IntervalMonthDayNanoArray::from(vec![interval])), "which Parquet does not");
    }

    #[test]
    fn other_batches_stay_unchanged() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        assert!(Arc::ptr_eq(&to_stored_schema(&batch.schema()).unwrap(), batch.schema_ref()));
        assert_eq!(to_stored(&batch).unwrap(), batch);
    }
}
