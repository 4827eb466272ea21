use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, make_encoder};

use crate::array::record_batch::build_record_batch;

/// Encodes lists, structs and maps of a batch as JSON (`[[1,2],[],null]`); NaN becomes `null`.
pub fn convert_lists_to_json(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = make_text_schema(batch.schema_ref());
    let each = batch.schema_ref().fields().iter().zip(batch.columns());
    let columns = each.map(|(field, column)| match field.data_type().is_nested() {
        true => encode_json(field, column),
        false => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    build_record_batch(schema, columns, batch.num_rows())
}

/// Returns the schema of the result of [`convert_lists_to_json`] for a batch of schema `schema`.
pub fn make_text_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type().is_nested() {
        true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn encode_json(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, column.as_ref(), &options)?;
    let mut texts = StringBuilder::with_capacity(column.len(), column.len() * 16);
    let mut text = Vec::new();
    for row in 0..column.len() {
        if column.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        let text = std::str::from_utf8(&text)
            .map_err(|e| ArrowError::JsonError(format!("column {:?}: {e}", field.name())))?;
        texts.append_value(text);
    }
    Ok(Arc::new(texts.finish()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Float32Array, Int32Array, ListArray};
    use arrow::datatypes::Float32Type;

    use super::*;

    #[test]
    fn lists_become_text_and_flat_columns_stay() {
        let lists = ListArray::from_iter_primitive::<Float32Type, _, _>([
            Some(vec![Some(1.5), None, Some(f32::NAN)]),
            None,
            Some(vec![]),
        ]);
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(lists) as ArrayRef),
            ("b", Arc::new(Int32Array::from(vec![1, 2, 3]))),
            ("c", Arc::new(Float32Array::from(vec![f32::NAN, 1.0, 2.0]))),
        ])
        .unwrap();
        let out = convert_lists_to_json(&batch).unwrap();
        let texts: Vec<_> = out.column(0).as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("[1.5,null,null]"), None, Some("[]")]);
        assert_eq!(out.column(1), batch.column(1));
    }
}
