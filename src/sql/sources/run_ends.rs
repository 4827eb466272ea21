//! Converts run-end encoded columns to plain columns, decimals of a negative scale to decimals of
//! scale 0, and keys of dictionaries to 32 bits, before a session reads them.
//!
//! DataFusion's `min`, `max` and windows fail for run-end encoded columns. Its comparisons of
//! decimals of a negative scale panic, Arrow writes their zero as `000`, and Parquet cannot store
//! them. A sort or GROUP BY combines the dictionaries of its batches, for example of several files,
//! and keys of 8 bits may be too few for all their values.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields, Schema,
    SchemaRef,
};
use datafusion::error::Result;
use serrate_core::internal::arrow_ipc::as_schema;

/// Decodes run-end encoded columns, also in lists and structs, of a table in memory, and gives
/// decimals of a negative scale the scale 0, and dictionaries keys of at least 32 bits.
///
/// # Errors
/// If a column cannot be decoded, or does not have the type of its field in `schema`.
pub fn decode_runs(
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let plain = to_plain_schema(&schema);
    if plain == schema {
        return Ok((schema, batches));
    }
    let batches = batches.iter().map(|batch| Ok(as_schema(batch, &plain)?));
    let batches = batches.collect::<Result<Vec<_>>>()?;
    Ok((plain, batches))
}

/// Replaces run-end encoded types, also in lists and structs, with the types of their values,
/// decimal types of a negative scale with those of scale 0, and keys of dictionaries of fewer than
/// 32 bits with Int32.
pub(in crate::sql) fn to_plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = to_plain_fields(schema.fields());
    match fields == *schema.fields() {
        true => Arc::clone(schema),
        false => Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
    }
}

/// Replaces in a type what [`to_plain_schema`] replaces in a schema.
pub(in crate::sql) fn to_plain_type(data_type: &DataType) -> DataType {
    let field = Arc::new(Field::new("", data_type.clone(), true));
    to_plain_field(&field).data_type().clone()
}

fn to_plain_fields(fields: &Fields) -> Fields {
    fields.iter().map(to_plain_field).collect()
}

fn to_plain_field(field: &FieldRef) -> FieldRef {
    let with_type = |plain: DataType| field.as_ref().clone().with_data_type(plain);
    Arc::new(match field.data_type() {
        DataType::RunEndEncoded(_, values) => {
            let values = to_plain_field(values);
            // Only the array of values of a run-end encoded column records NULL, so its nullability
            // counts, too.
            let nullable = field.is_nullable() || values.is_nullable();
            with_type(values.data_type().clone()).with_nullable(nullable)
        }
        DataType::List(item) => with_type(DataType::List(to_plain_field(item))),
        DataType::LargeList(item) => with_type(DataType::LargeList(to_plain_field(item))),
        DataType::FixedSizeList(item, size) => {
            with_type(DataType::FixedSizeList(to_plain_field(item), *size))
        }
        DataType::Map(entries, sorted) => {
            with_type(DataType::Map(to_plain_field(entries), *sorted))
        }
        DataType::Struct(fields) => with_type(DataType::Struct(to_plain_fields(fields))),
        DataType::Dictionary(keys, values) if keys.primitive_width().is_some_and(|w| w < 4) => {
            with_type(DataType::Dictionary(Box::new(DataType::Int32), values.clone()))
        }
        other => match to_whole_decimal(other) {
            Some(whole) => with_type(whole),
            None => return Arc::clone(field),
        },
    })
}

/// Returns the type of scale 0 that holds all values of a decimal type with a negative scale.
/// Returns `None` for other types, and if no decimal type has enough digits.
fn to_whole_decimal(data_type: &DataType) -> Option<DataType> {
    let (DataType::Decimal32(precision, scale)
    | DataType::Decimal64(precision, scale)
    | DataType::Decimal128(precision, scale)
    | DataType::Decimal256(precision, scale)) = data_type
    else {
        return None;
    };
    if *scale >= 0 {
        return None;
    }
    match precision.saturating_add(scale.unsigned_abs()) {
        digits @ ..=DECIMAL128_MAX_PRECISION => Some(DataType::Decimal128(digits, 0)),
        digits @ ..=DECIMAL256_MAX_PRECISION => Some(DataType::Decimal256(digits, 0)),
        _ => None,
    }
}
