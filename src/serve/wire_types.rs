//! Wire types: the types in which results are sent to clients.
//!
//! Dictionaries, view arrays and list views become plain arrays and lists, because not every client
//! reads them. Besides, each message with a slice of a view array would contain all buffers of the
//! array.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use serrate_core::internal::build_record_batch;

/// Returns a schema with wire types. Names, nullability and metadata stay unchanged.
pub(super) fn to_wire_schema(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(to_wire_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn to_wire_field(field: &FieldRef) -> FieldRef {
    let data_type = to_wire_type(field.data_type());
    match data_type == *field.data_type() {
        true => Arc::clone(field),
        false => {
            let metadata = field.metadata().clone();
            let field = Field::new(field.name(), data_type, field.is_nullable());
            Arc::new(field.with_metadata(metadata))
        }
    }
}

fn to_wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => to_wire_type(values),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(to_wire_field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(to_wire_field(item))
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(to_wire_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(to_wire_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(to_wire_field(entries), *sorted),
        other => other.clone(),
    }
}

/// Casts the columns of a batch to the types of `wire`. All columns of the result are nullable:
/// operators may return a NULL in a column that the schema of the result declares non-nullable.
pub(super) fn to_wire_batch(
    batch: &RecordBatch,
    wire: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    if batch.num_columns() != wire.fields().len() {
        return Err(ArrowError::SchemaError(format!(
            "internal error: a batch has {} columns, but the schema of the result has {}; please report it",
            batch.num_columns(),
            wire.fields().len()
        )));
    }
    let columns = batch.columns().iter().zip(wire.fields());
    let columns: Vec<ArrayRef> = columns
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        })
        .collect::<Result<_, _>>()?;
    let fields = wire.fields().iter().zip(&columns);
    let fields: Fields = fields
        .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
        .collect();
    build_record_batch(Arc::new(Schema::new(fields)), columns, batch.num_rows())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray, ListViewArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    #[test]
    fn views_and_dictionaries_become_plain() {
        let item = Arc::new(Field::new("item", DataType::Utf8View, true));
        let dictionary =
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8View));
        let schema = Schema::new(vec![
            Field::new("a", DataType::LargeList(item), false)
                .with_metadata([("k".to_owned(), "v".to_owned())].into()),
            Field::new("b", dictionary, true),
        ]);
        let wire = to_wire_schema(&schema);
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        assert_eq!(wire.field(0).data_type(), &DataType::LargeList(item));
        assert!(!wire.field(0).is_nullable());
        assert_eq!(wire.field(0).metadata()["k"], "v");
        assert_eq!(wire.field(1).data_type(), &DataType::Utf8);
    }

    #[test]
    fn list_views_become_lists() {
        let views = ListViewArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let texts = StringViewArray::from_iter_values(["a", "b", "c"]);
        let batch = RecordBatch::try_from_iter([
            ("x", Arc::new(views) as ArrayRef),
            ("t", Arc::new(texts) as ArrayRef),
        ])
        .unwrap();
        let wire = to_wire_schema(&batch.schema());
        let sent = to_wire_batch(&batch, &wire).unwrap();
        let lists = sent.column(0).as_list::<i32>();
        assert_eq!((lists.value_length(0), lists.is_null(1), lists.value_length(2)), (2, true, 0));
        assert_eq!(sent.column(1).as_string::<i32>().value(2), "c");
    }
}
