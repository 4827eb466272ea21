//! Types of Parquet that Arrow's reader does not return: UUIDs and enumerations, which it returns
//! as bytes, and intervals, whose months it drops.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, IntervalUnit, Schema, SchemaRef};
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use datafusion::parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use datafusion::parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use datafusion::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

/// The types of leaves (values that are neither lists nor structs) in tables, by the path to the
/// leaf: the names of the column, fields and list elements.
pub(super) type LeafTypes = HashMap<Vec<String>, DataType>;

/// Finds the leaves of a file whose type in a table is not that of Arrow's reader. UUIDs and
/// enumerations are strings, as in DuckDB. Intervals have months, days and nanoseconds, unless the
/// file has an Arrow schema with their unit.
pub(super) fn find_leaf_types(footer: &ParquetMetaData) -> LeafTypes {
    let file = footer.file_metadata();
    let has_units = has_arrow_schema(file);
    let columns = file.schema_descr().columns();
    let types: Vec<Option<DataType>> = columns.iter().map(|c| choose_type(c, has_units)).collect();
    let mut found = LeafTypes::new();
    if types.iter().all(Option::is_none) {
        return found;
    }
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata());
    let Ok(schema) = schema else { return found };
    let mut types = types.into_iter();
    for field in schema.fields() {
        add_leaves(field, &mut Vec::new(), &mut types, &mut found);
    }
    found
}

fn choose_type(column: &ColumnDescriptor, has_units: bool) -> Option<DataType> {
    let is_fixed = column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY;
    let length = if is_fixed { column.type_length() } else { 0 };
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Uuid), _) if length == UUID_LENGTH => Some(DataType::Utf8),
        (Some(LogicalType::Enum), _) | (None, ConvertedType::ENUM) => Some(DataType::Utf8),
        (None, ConvertedType::INTERVAL) if length == INTERVAL_LENGTH && !has_units => {
            Some(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        _ => None,
    }
}

const UUID_LENGTH: i32 = 16;
const INTERVAL_LENGTH: i32 = 12;

fn has_arrow_schema(file: &FileMetaData) -> bool {
    let entries = file.key_value_metadata();
    entries.is_some_and(|entries| entries.iter().any(|entry| entry.key == ARROW_SCHEMA_META_KEY))
}

/// Adds the leaves of a field to `found`. `types` yields the type of each leaf of the file, or
/// `None`, in the order of the leaves.
fn add_leaves(
    field: &FieldRef,
    path: &mut Vec<String>,
    types: &mut impl Iterator<Item = Option<DataType>>,
    found: &mut LeafTypes,
) {
    path.push(field.name().clone());
    match field.data_type() {
        DataType::Struct(fields) => {
            fields.iter().for_each(|field| add_leaves(field, path, types, found));
        }
        DataType::List(inner)
        | DataType::LargeList(inner)
        | DataType::FixedSizeList(inner, _)
        | DataType::Map(inner, _) => add_leaves(inner, path, types, found),
        _ => {
            if let Some(Some(data_type)) = types.next() {
                found.insert(path.clone(), data_type);
            }
        }
    }
    path.pop();
}

/// Gives leaves of the columns of a table the types of [`find_leaf_types`]. `has_views` is whether
/// columns of strings are string views.
pub(super) fn set_leaf_types(schema: &SchemaRef, types: &LeafTypes, has_views: bool) -> SchemaRef {
    if types.is_empty() {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().map(|field| {
        let set = set_leaf_type(field, &mut Vec::new(), types);
        match set.data_type() {
            DataType::Utf8 if has_views && set.data_type() != field.data_type() => {
                Arc::new(set.as_ref().clone().with_data_type(DataType::Utf8View))
            }
            _ => set,
        }
    });
    let fields: Vec<FieldRef> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn set_leaf_type(field: &FieldRef, path: &mut Vec<String>, types: &LeafTypes) -> FieldRef {
    path.push(field.name().clone());
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|f| set_leaf_type(f, path, types)).collect())
        }
        DataType::List(inner) => DataType::List(set_leaf_type(inner, path, types)),
        DataType::LargeList(inner) => DataType::LargeList(set_leaf_type(inner, path, types)),
        DataType::FixedSizeList(inner, size) => {
            DataType::FixedSizeList(set_leaf_type(inner, path, types), *size)
        }
        DataType::Map(entries, sorted) => {
            DataType::Map(set_leaf_type(entries, path, types), *sorted)
        }
        leaf => match (leaf, types.get(&*path)) {
            (
                DataType::FixedSizeBinary(_)
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::Interval(_),
                Some(chosen),
            ) => chosen.clone(),
            _ => leaf.clone(),
        },
    };
    path.pop();
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    let mut metadata = field.metadata().clone();
    if data_type.is_string() {
        // An Arrow extension type such as `arrow.uuid` is a type of bytes.
        metadata.retain(|key, _| !key.starts_with("ARROW:extension:"));
    }
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// Makes Arrow's reader return the intervals of [`find_leaf_types`] as their 12 bytes, because it
/// would drop the months (test `stock_months_of_intervals_in_files_are_still_dropped`).
pub(super) fn read_intervals_as_bytes(footer: &Arc<ParquetMetaData>) -> Arc<ParquetMetaData> {
    let file = footer.file_metadata();
    let columns = file.schema_descr().columns();
    let is_interval =
        |column: &ColumnDescriptor| column.converted_type() == ConvertedType::INTERVAL;
    if has_arrow_schema(file) || !columns.iter().any(|column| is_interval(column)) {
        return Arc::clone(footer);
    }
    let root = remove_intervals(&file.schema_descr().root_schema_ptr());
    let changed = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    );
    let mut parts = footer.as_ref().clone().into_builder();
    let builder = ParquetMetaDataBuilder::new(changed)
        .set_row_groups(parts.take_row_groups())
        .set_column_index(parts.take_column_index())
        .set_offset_index(parts.take_offset_index());
    Arc::new(builder.build())
}

fn remove_intervals(t: &TypePtr) -> TypePtr {
    match t.as_ref() {
        Type::GroupType { basic_info, fields } => Arc::new(Type::GroupType {
            basic_info: basic_info.clone(),
            fields: fields.iter().map(remove_intervals).collect(),
        }),
        Type::PrimitiveType {
            basic_info,
            physical_type: PhysicalType::FIXED_LEN_BYTE_ARRAY,
            type_length: INTERVAL_LENGTH,
            ..
        } if basic_info.converted_type() == ConvertedType::INTERVAL => {
            let bytes =
                Type::primitive_type_builder(basic_info.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
                    .with_repetition(basic_info.repetition())
                    .with_length(INTERVAL_LENGTH)
                    .with_id(basic_info.has_id().then(|| basic_info.id()))
                    .build();
            bytes.map_or_else(|_| Arc::clone(t), Arc::new)
        }
        Type::PrimitiveType { .. } => Arc::clone(t),
    }
}
