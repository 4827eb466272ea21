//! Merges the schemas of several files to the schema of one table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::plan_err;
use datafusion::error::Result;
use object_store::ObjectMeta;

use crate::functions::merge_tags;
use crate::sql::sources::exact_casts::{IntegerRange, find_integer_range};
use crate::sql::sources::urls::format_location;

/// A column of the merged schema, the position of the first file that has it, and the number of
/// such files.
struct MergedColumn {
    field: FieldRef,
    file: usize,
    files: usize,
}

/// Merges the schemas of files. `merge` returns one field for two columns of the same name, or
/// `None` if no type holds the values of both. Tensors of several shapes become lists, and tokens
/// of several vocabularies are marked as such.
///
/// # Errors
/// If `merge` returns `None` for a column of two files.
pub(in crate::sql) fn merge_schemas(
    objects: &[ObjectMeta],
    schemas: &[SchemaRef],
    merge: impl Fn(&FieldRef, &FieldRef) -> Option<FieldRef>,
) -> Result<SchemaRef> {
    let Some(first) = schemas.first() else { return Ok(Arc::new(Schema::empty())) };
    let mut metadata = first.metadata().clone();
    let mut columns: Vec<MergedColumn> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (file, schema) in schemas.iter().enumerate() {
        for (name, value) in schema.metadata() {
            metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for field in schema.fields() {
            let known = places.get(field.name().as_str());
            match known.and_then(|at| columns.get_mut(*at)) {
                Some(known) => match merge(&known.field, field) {
                    Some(merged) => known.field = merge_tags(merged, &known.field, field),
                    None => {
                        return plan_err!(
                            "column '{}' has the type {} in {} and {} in {}; write it with one type, or read the files one by one and cast it",
                            field.name(),
                            known.field.data_type(),
                            format_location(&objects[known.file].location),
                            field.data_type(),
                            format_location(&objects[file].location)
                        );
                    }
                },
                None => {
                    places.insert(field.name(), columns.len());
                    columns.push(MergedColumn { field: Arc::clone(field), file, files: 0 });
                }
            }
            if let Some(column) =
                places.get(field.name().as_str()).and_then(|at| columns.get_mut(*at))
            {
                column.files = column.files.saturating_add(1);
            }
        }
    }
    let fields: Vec<FieldRef> = columns
        .into_iter()
        .map(|MergedColumn { field, files, .. }| {
            match files >= schemas.len() || field.is_nullable() {
                true => field,
                false => Arc::new(field.as_ref().clone().with_nullable(true)),
            }
        })
        .collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Returns a field that holds the values of both fields exactly, or `None` if no type can hold
/// them. Fields of structs are merged as columns are.
pub(in crate::sql) fn merge_fields(a: &FieldRef, b: &FieldRef) -> Option<FieldRef> {
    if a == b {
        return Some(Arc::clone(a));
    }
    // For structs, this merge is used only if nothing else is possible: it declares a field of the
    // merged struct non-nullable even if the struct in the other file lacks the field.
    let merge_flat = || {
        let mut merged = Field::clone(a);
        merged.try_merge(b).is_ok().then(|| Arc::new(merged))
    };
    if !a.data_type().is_nested()
        && let Some(merged) = merge_flat()
    {
        return Some(merged);
    }
    // Fields of the same type differ only in metadata; the result has the metadata of `a`, the
    // field of the earlier file.
    let data_type = match a.data_type() == b.data_type() {
        true => a.data_type().clone(),
        false => match widen_types(a.data_type(), b.data_type()) {
            Some(widened) => widened,
            None => return merge_flat(),
        },
    };
    let is_nullable = a.is_nullable() || b.is_nullable();
    Some(Arc::new(Field::clone(a).with_data_type(data_type).with_nullable(is_nullable)))
}

fn merge_structs(a: &Fields, b: &Fields) -> Option<Fields> {
    let as_nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let named = |fields: &Fields, name: &str| fields.find(name).map(|(_, field)| Arc::clone(field));
    let mut merged: Vec<FieldRef> = Vec::with_capacity(a.len().max(b.len()));
    for field in a {
        merged.push(match named(b, field.name()) {
            Some(other) => merge_fields(field, &other)?,
            None => as_nullable(field),
        });
    }
    merged.extend(b.iter().filter(|field| named(a, field.name()).is_none()).map(as_nullable));
    Some(merged.into())
}

/// Returns the type that holds the numbers, times or lists of two types exactly, or `None` if there
/// is no such type.
fn widen_types(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Date32, Float16, Float32, Float64, LargeList, List, Struct, Timestamp};
    if let (Some(a), Some(b)) = (find_integer_range(a), find_integer_range(b)) {
        return widen_integers(a, b);
    }
    // Float32 represents all integers of 16 bits, and Float64 all of 32 bits.
    let fits = |integer: &DataType, most: u32| {
        find_integer_range(integer).is_some_and(|range| range.bits <= most)
    };
    Some(match (a, b) {
        (Float64, Float16 | Float32) | (Float16 | Float32, Float64) => Float64,
        (Float32, Float16) | (Float16, Float32) => Float32,
        (Float32, t) | (t, Float32) if fits(t, 16) => Float32,
        (Float64 | Float32, t) | (t, Float64 | Float32) if fits(t, 32) => Float64,
        (Timestamp(from, zone), Timestamp(to, other))
            if zone == other && *from.max(to) != TimeUnit::Nanosecond =>
        {
            Timestamp(*from.max(to), zone.clone())
        }
        (Date32, Timestamp(unit, None)) | (Timestamp(unit, None), Date32)
            if *unit != TimeUnit::Nanosecond =>
        {
            Timestamp(*unit, None)
        }
        (List(a), List(b)) => List(merge_fields(a, b)?),
        (LargeList(a), LargeList(b)) => LargeList(merge_fields(a, b)?),
        (Struct(a), Struct(b)) => Struct(merge_structs(a, b)?),
        _ => return None,
    })
}

fn widen_integers(a: IntegerRange, b: IntegerRange) -> Option<DataType> {
    let is_signed = a.is_signed || b.is_signed;
    // A signed type holds unsigned values of half its width.
    let needed = |of: IntegerRange| {
        if is_signed && !of.is_signed { of.bits.saturating_mul(2) } else { of.bits }
    };
    Some(match (is_signed, needed(a).max(needed(b))) {
        (true, 8) => DataType::Int8,
        (true, 16) => DataType::Int16,
        (true, 32) => DataType::Int32,
        (true, 64) => DataType::Int64,
        (false, 8) => DataType::UInt8,
        (false, 16) => DataType::UInt16,
        (false, 32) => DataType::UInt32,
        (false, 64) => DataType::UInt64,
        _ => return None,
    })
}
