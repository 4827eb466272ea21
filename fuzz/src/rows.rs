//! Generates Parquet files from the bytes of libFuzzer, with given column names and any types. A
//! Parquet file with changed bytes is rarely readable, so only generated files test the code after
//! the decoder.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use libfuzzer_sys::arbitrary::{Error, Result, Unstructured};
use parquet::arrow::ArrowWriter;

/// Returns `data` if it begins like a Parquet file, and otherwise a Parquet file generated from
/// `data`, or `None` if the writer does not support the drawn types.
pub fn as_parquet<'a>(data: &'a [u8], names: &[&str]) -> Option<Cow<'a, [u8]>> {
    if data.starts_with(b"PAR1") {
        return Some(data.into());
    }
    let batch = make_batch(&mut Unstructured::new(data), names).ok()?;
    let mut out = Vec::new();
    // Some drawn types are not supported by the writer.
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).ok()?;
    writer.write(&batch).ok()?;
    writer.close().ok()?;
    Some(out.into())
}

fn make_batch(u: &mut Unstructured<'_>, names: &[&str]) -> Result<RecordBatch> {
    let rows = u.int_in_range(0..=12)?;
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for name in names {
        if u.ratio(1, 10)? {
            continue;
        }
        let values = make_values(u, rows)?;
        fields.push(Field::new(*name, values.data_type().clone(), true));
        columns.push(values);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|_| Error::IncorrectFormat)
}

fn make_values(u: &mut Unstructured<'_>, rows: usize) -> Result<ArrayRef> {
    if u.ratio(3, 10)? {
        let ends: Vec<usize> = (0..rows).map(|_| u.int_in_range(0..=3)).collect::<Result<_>>()?;
        let items = flat_values(u, ends.iter().sum())?;
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        return ListArray::try_new(field, OffsetBuffer::from_lengths(ends), items, None)
            .map(|lists| Arc::new(lists) as ArrayRef)
            .map_err(|_| Error::IncorrectFormat);
    }
    flat_values(u, rows)
}

fn flat_values(u: &mut Unstructured<'_>, rows: usize) -> Result<ArrayRef> {
    use DataType::{
        Boolean, Date32, Float32, Float64, Int32, Int64, LargeUtf8, Null, Timestamp, UInt64, Utf8,
    };
    let words = ["", "A", "A//B", "A//B//C", "B", "MEDS_BIRTH", "TIMESERIES_STOP", "\u{1F600}"];
    let dictionary = |of: DataType| DataType::Dictionary(Box::new(Int32), Box::new(of));
    let types = [
        Int64,
        Int32,
        UInt64,
        Float32,
        Float64,
        Boolean,
        Date32,
        Null,
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Millisecond, None),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Nanosecond, None),
        Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Utf8,
        LargeUtf8,
        dictionary(Utf8),
        dictionary(LargeUtf8),
    ];
    let of = u.choose(&types)?;
    let mut number = || -> Result<Option<i64>> {
        Ok(match u.int_in_range(0..=9)? {
            0 => None,
            1 => Some(u.arbitrary()?),
            _ => Some(u.int_in_range(-1..=6)?),
        })
    };
    let numbers: Vec<Option<i64>> = (0..rows).map(|_| number()).collect::<Result<_>>()?;
    let text = matches!(of, Utf8 | LargeUtf8 | DataType::Dictionary(..));
    let values: ArrayRef = if text {
        let word = |n: i64| words[usize::from(n.to_le_bytes()[0]) % words.len()];
        Arc::new(numbers.into_iter().map(|n| n.map(word)).collect::<StringArray>())
    } else {
        Arc::new(Int64Array::from(numbers))
    };
    if *of == Null {
        return Ok(arrow::array::new_null_array(&Null, rows));
    }
    // Some casts exist only from Int32.
    cast(&values, of)
        .or_else(|_| cast(&cast(&values, &Int32)?, of))
        .map_err(|_| Error::IncorrectFormat)
}
