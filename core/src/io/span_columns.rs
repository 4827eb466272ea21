//! Converts durations and intervals to text for CSV and JSON, which have no type for them, and keys
//! of maps for JSON, where they are text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, make_array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::array::record_batch::build_record_batch;
use crate::kernels::span_texts::make_span_formatter;

/// Returns the schema of the result of [`convert_spans_to_texts`] for a batch of schema `schema`.
pub fn make_span_text_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = make_text_fields(schema.fields());
    match fields == *schema.fields() {
        true => Arc::clone(schema),
        false => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
    }
}

/// Converts durations and intervals, including those in lists, structs and maps, to text such as
/// `1d 03:00`, which a cast to INTERVAL reads without loss (see [`make_span_formatter`]). Converts
/// keys of maps to text, too: 1 becomes `1`. Other columns stay unchanged.
pub fn convert_spans_to_texts(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let texts = make_span_text_schema(&schema);
    if texts == schema {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(texts.fields());
    let columns = columns.map(|(column, field)| convert_spans(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    build_record_batch(texts, columns, batch.num_rows())
}

fn make_text_fields(fields: &Fields) -> Fields {
    fields.iter().map(make_text_field).collect()
}

fn make_text_field(field: &FieldRef) -> FieldRef {
    let texts = make_text_type(field.data_type());
    match texts == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(texts)),
    }
}

/// Returns the entries of a map with keys that Arrow's JSON writer accepts.
fn make_text_entries(entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let fields = fields.iter().enumerate().map(|(at, field)| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Arc::clone(field),
        _ if at == 0 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => make_text_field(field),
    });
    let texts = DataType::Struct(fields.collect());
    match texts == *entries.data_type() {
        true => Arc::clone(entries),
        false => Arc::new(entries.as_ref().clone().with_data_type(texts)),
    }
}

fn make_text_type(t: &DataType) -> DataType {
    match t {
        DataType::Duration(_) | DataType::Interval(_) => DataType::Utf8,
        DataType::List(field) => DataType::List(make_text_field(field)),
        DataType::LargeList(field) => DataType::LargeList(make_text_field(field)),
        DataType::FixedSizeList(field, size) => {
            DataType::FixedSizeList(make_text_field(field), *size)
        }
        DataType::Map(entries, sorted) => DataType::Map(make_text_entries(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(make_text_fields(fields)),
        DataType::Dictionary(_, values) if make_text_type(values) != **values => {
            make_text_type(values)
        }
        other => other.clone(),
    }
}

fn convert_spans(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if values.data_type() == to {
        return Ok(Arc::clone(values));
    }
    if values.is_empty() {
        return Ok(new_null_array(to, 0));
    }
    if let DataType::Dictionary(_, plain) = values.data_type() {
        return convert_spans(&cast(values, plain)?, to);
    }
    if let Some(format) = make_span_formatter(values) {
        let texts = (0..values.len()).map(|i| values.is_valid(i).then(|| format(i)));
        return Ok(Arc::new(texts.collect::<StringArray>()));
    }
    // The keys of a map.
    if *to == DataType::Utf8 {
        return cast(values, to);
    }
    let fields: Vec<&FieldRef> = match to {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    };
    let data = values.to_data();
    let children = data.child_data().iter().zip(fields).map(|(child, field)| {
        Ok(convert_spans(&make_array(child.clone()), field.data_type())?.to_data())
    });
    let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
    let data = data.into_builder().data_type(to.clone()).child_data(children).build()?;
    Ok(make_array(data))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        AsArray, DurationMicrosecondArray, Int32Array, Int32Builder, IntervalMonthDayNanoArray,
        ListArray, MapBuilder, StructArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, IntervalMonthDayNano};

    use super::*;

    #[test]
    fn spans_become_texts_at_any_depth() {
        let hours = [Some(27), None, Some(-1)].map(|h| h.map(|h| h * 3_600_000_000));
        let durations: ArrayRef = Arc::new(DurationMicrosecondArray::from(hours.to_vec()));
        let months = IntervalMonthDayNano::new(14, 3, 0);
        let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![months; 3]));
        let item = Arc::new(Field::new_list_field(durations.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([1, 0, 2]);
        let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::clone(&durations), None));
        let field = Arc::new(Field::new("l", lists.data_type().clone(), true));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::clone(&lists))]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([
            ("d", durations),
            ("i", intervals),
            ("s", structs),
            ("n", numbers),
        ])
        .unwrap();
        let texts = convert_spans_to_texts(&batch.slice(1, 2)).unwrap();
        assert_eq!(texts.schema(), make_span_text_schema(&batch.schema()));
        let of = |column: &ArrayRef| -> Vec<Option<String>> {
            column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
        };
        assert_eq!(of(texts.column(0)), [None, Some("-01:00".to_owned())]);
        assert_eq!(of(texts.column(1)), vec![Some("1y 2mo 3d".to_owned()); 2]);
        let lists = texts.column(2).as_struct().column(0).as_list::<i32>();
        assert_eq!(of(&lists.value(0)), Vec::<Option<String>>::new());
        assert_eq!(of(&lists.value(1)), [None, Some("-01:00".to_owned())]);
        assert_eq!(texts.column(3), &batch.slice(1, 2).columns()[3]);
    }

    #[test]
    fn keys_of_maps_become_texts() {
        let mut maps = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
        for rows in [vec![(1, 10)], vec![], vec![(2, 20), (-3, 30)]] {
            for (key, value) in rows {
                maps.keys().append_value(key);
                maps.values().append_value(value);
            }
            maps.append(true).unwrap();
        }
        let maps: ArrayRef = Arc::new(maps.finish());
        let batch = RecordBatch::try_from_iter([("m", maps)]).unwrap();
        let texts = convert_spans_to_texts(&batch.slice(1, 2)).unwrap();
        assert_eq!(texts.schema(), make_span_text_schema(&batch.schema()));
        let maps = texts.column(0).as_map();
        assert_eq!(maps.value(0).len(), 0);
        let entries = maps.value(1);
        let keys: Vec<_> = entries.column(0).as_string::<i32>().iter().collect();
        assert_eq!(keys, [Some("2"), Some("-3")]);
    }

    #[test]
    fn batches_without_spans_stay_unchanged() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        assert_eq!(convert_spans_to_texts(&batch).unwrap(), batch);
    }
}
