use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;

/// Name of the column with the file of a row: its path, or its URL if it is not local.
pub(in crate::sql) const FILE: &str = "_file";

/// Name of the column with the index of a row in its file.
pub(in crate::sql) const ROW: &str = "_row";

fn make_position_fields() -> [Field; 2] {
    [Field::new(FILE, DataType::Utf8, false), Field::new(ROW, DataType::Int64, false)]
}

/// Adds the position columns `names` to a schema, except those whose name is already taken.
pub(in crate::sql) fn add_positions(schema: &SchemaRef, names: &[&str]) -> SchemaRef {
    let new = make_position_fields()
        .into_iter()
        .filter(|f| names.contains(&f.name().as_str()) && schema.index_of(f.name()).is_err());
    let fields = schema.fields().iter().cloned().chain(new.map(Arc::new));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

pub(super) fn file_name(url: &ObjectStoreUrl, location: &Location) -> String {
    let url = url.as_str();
    if url.starts_with("file:")
        && let Ok(path) = LocalFileSystem::new().path_to_filesystem(location)
    {
        return path.display().to_string();
    }
    format!("{}/{location}", url.trim_end_matches('/'))
}
