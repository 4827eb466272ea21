//! Run-end encoded columns, which a session reads as plain columns.
//!
//! DataFusion's `min`, `max` and windows fail for such columns.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::error::Result;
use serrate_core::internal::arrow_ipc::as_schema;

/// Decodes run-end encoded columns, also in lists and structs, of a table in memory.
///
/// # Errors
/// If a column cannot be decoded, or does not fit its field.
pub fn decode_runs(
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let plain = plain_schema(&schema);
    if plain == schema {
        return Ok((schema, batches));
    }
    let batches = batches.iter().map(|batch| Ok(as_schema(batch, &plain)?));
    let batches = batches.collect::<Result<Vec<_>>>()?;
    Ok((plain, batches))
}

/// Replaces run-end encoded types, also in lists and structs, with the types of their values.
pub(in crate::sql) fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = plain_fields(schema.fields());
    match fields == *schema.fields() {
        true => Arc::clone(schema),
        false => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
    }
}

fn plain_fields(fields: &Fields) -> Fields {
    fields.iter().map(plain_field).collect()
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let with_type = |plain: DataType| field.as_ref().clone().with_data_type(plain);
    Arc::new(match field.data_type() {
        DataType::RunEndEncoded(_, values) => {
            let values = plain_field(values);
            // The values of runs, not the column itself, are NULL.
            let nullable = field.is_nullable() || values.is_nullable();
            with_type(values.data_type().clone()).with_nullable(nullable)
        }
        DataType::List(item) => with_type(DataType::List(plain_field(item))),
        DataType::LargeList(item) => with_type(DataType::LargeList(plain_field(item))),
        DataType::FixedSizeList(item, size) => {
            with_type(DataType::FixedSizeList(plain_field(item), *size))
        }
        DataType::Map(entries, sorted) => with_type(DataType::Map(plain_field(entries), *sorted)),
        DataType::Struct(fields) => with_type(DataType::Struct(plain_fields(fields))),
        _ => return Arc::clone(field),
    })
}
