use std::sync::Arc;

use arrow::datatypes::{DataType, Fields, SchemaRef};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::FileFormat;
use datafusion::error::Result;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use crate::sql::sources::listing::files::ListedFile;
use crate::sql::sources::merged_schemas::{merge_fields, merge_schemas};

/// Formats whose files contain their schema.
const TYPED: [&str; 2] = ["arrow", "parquet"];

#[derive(Clone, Debug)]
pub(in crate::sql) struct FilesSchema {
    pub(in crate::sql) schema: SchemaRef,
    /// Whether a file may have a field that is not nullable in a nullable struct. Readers of
    /// Parquet return arbitrary values for such a field where the struct is NULL.
    pub(in crate::sql) has_required_fields: bool,
}

impl FilesSchema {
    /// Describes files whose columns a statement declares; any of their fields may be required.
    pub(in crate::sql) fn from_declared(schema: SchemaRef) -> Self {
        Self { schema, has_required_fields: true }
    }

    fn from_files(schema: SchemaRef, files: &[SchemaRef]) -> Self {
        let has_required_fields =
            files.iter().any(|schema| has_required_fields(schema.fields(), false));
        Self { schema, has_required_fields }
    }
}

/// Whether a field that is not nullable is within a nullable struct, at any depth.
/// `is_below_nullable` is whether `fields` themselves are within such a struct.
fn has_required_fields(fields: &Fields, is_below_nullable: bool) -> bool {
    fields.iter().any(|field| {
        if is_below_nullable && !field.is_nullable() {
            return true;
        }
        match field.data_type() {
            DataType::Struct(fields) => {
                has_required_fields(fields, is_below_nullable || field.is_nullable())
            }
            _ => false,
        }
    })
}

/// Returns the columns of all files in order of appearance, nullable if some files lack them.
///
/// # Errors
/// If no type holds the values of a column of two files exactly.
pub(in crate::sql) async fn infer_schema(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    format: &Arc<dyn FileFormat>,
    files: &[ListedFile],
) -> Result<FilesSchema> {
    // Skips files of 0 bytes, which have neither rows nor a schema.
    let objects: Vec<ObjectMeta> =
        files.iter().filter(|file| file.meta.size > 0).map(|file| file.meta.clone()).collect();
    // CSV and JSON types follow from the values of all files, so the format infers them together.
    if objects.len() < 2 || !TYPED.contains(&format.get_ext().as_str()) {
        let schema = format.infer_schema(state, store, &objects).await?;
        return Ok(FilesSchema::from_files(Arc::clone(&schema), &[schema]));
    }
    let parallel = state.config_options().execution.meta_fetch_concurrency.get();
    let schemas: Vec<SchemaRef> = stream::iter(objects.clone())
        .map(|object| async move { format.infer_schema(state, store, &[object]).await })
        .buffered(parallel)
        .try_collect()
        .await?;
    let schema = match merge_schemas(&objects, &schemas, merge_fields) {
        Ok(schema) => schema,
        // The format itself may unite types that differ only in their layout, such as Utf8 and
        // LargeUtf8.
        Err(e) => format.infer_schema(state, store, &objects).await.map_err(|_| e)?,
    };
    Ok(FilesSchema::from_files(schema, &schemas))
}
