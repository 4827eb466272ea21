//! Opens a table over the files of a path.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;

use crate::sql::sources::listing::empty::refuse_empty;
use crate::sql::sources::listing::{
    FileSet, FilesSchema, FilesTable, ListedFile, infer_names, infer_schema, split_folders,
};

/// Returns a table over `files`, with columns and partition columns inferred from `listed`.
pub(in crate::sql) async fn list_table(
    state: &SessionState,
    paths: Vec<ListingTableUrl>,
    files: FileSet,
    listed: &[ListedFile],
    format: Arc<dyn FileFormat>,
    extension: &str,
) -> Result<FilesTable> {
    refuse_empty(listed, extension)?;
    let Some(path) = paths.first() else {
        return plan_err!("the table has no path; give the path of a file or folder");
    };
    let store = state.runtime_env().object_store(path)?;
    let FilesSchema { schema, has_required_fields } =
        infer_schema(state, &store, &format, listed).await?;
    let (schema, folders) = split_folders(&schema, infer_names(listed)?);
    let options =
        ListingOptions::new(format).with_file_extension("").with_table_partition_cols(folders);
    let config = ListingTableConfig::new_with_multi_paths(paths)
        .with_listing_options(options)
        .with_schema(schema);
    Ok(FilesTable::new(ListingTable::try_new(config)?, files, has_required_fields))
}
