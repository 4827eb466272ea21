//! `FROM 'file'`, `FROM 'folder'`, `FROM 'glob*'`.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use url::Url;

use crate::access;
use crate::sql::sources::empty::refuse_empty;
use crate::sql::sources::from::find_read_table;
use crate::sql::sources::listing::{
    FileSet, FilesSchema, FilesTable, ListedFile, find_kind, infer_names, infer_schema,
    split_folders,
};

/// Resolves a path to a table. The error for an unreadable path gives the reason, unlike DataFusion's.
#[derive(Debug)]
pub(in crate::sql) struct PathTables {
    /// DataFusion's factory, which creates tables for paths and holds a weak reference to the session.
    pub(in crate::sql) session: DynamicListTableFactory,
}

impl PathTables {
    fn state(&self) -> Result<SessionState> {
        self.session
            .session_store()
            .get_session()
            .upgrade()
            .and_then(|s| s.read().as_any().downcast_ref::<SessionState>().cloned())
            .ok_or_else(|| {
                DataFusionError::Internal(
                    "internal error: the session no longer exists; please report it".into(),
                )
            })
    }
}

#[async_trait]
impl UrlTableFactory for PathTables {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let looks_like_path = url.contains(['/', '\\', '*', '?'])
            || url.rsplit_once('.').is_some_and(|(_, e)| !e.is_empty());
        let state = self.state()?;
        // The path may be a call such as `read_parquet('a')`, which is planned as a table name.
        if let Some(table) = find_read_table(&state, url).await? {
            return Ok(Some(table));
        }
        if let Some(table) = crate::sql::sources::dok::open_path(url).await? {
            return Ok(Some(table));
        }
        let Ok(path) = parse_path(url) else {
            return Ok(None);
        };
        let files = match FileSet::new(vec![path.clone()], None).list_files(&state).await {
            Ok(files) if files.is_empty() && looks_like_path => {
                return Err(make_missing_file_error(url));
            }
            Ok(files) if files.is_empty() => return Ok(None),
            Ok(files) => files,
            Err(e) if looks_like_path => return Err(explain_error(url, &e)),
            Err(_) => return Ok(None),
        };
        match open_files(&state, url, path, &files).await {
            // A table or function may have the name of a folder, so an error is ignored here.
            Err(_) if !looks_like_path => Ok(None),
            opened => Ok(Some(Arc::new(opened?))),
        }
    }
}

/// Returns the table of the files at a path. Their extensions determine the format.
async fn open_files(
    state: &SessionState,
    url: &str,
    path: ListingTableUrl,
    files: &[ListedFile],
) -> Result<FilesTable> {
    // A folder may also have files other than data, such as a README. These are ignored.
    let is_folder = path.is_collection() && path.get_glob().is_none();
    let Some(kind) = find_kind(url, files, is_folder)? else {
        return plan_err!(
            "cannot read '{url}': the folder has no file of a known format; name a folder with files such as x.parquet"
        );
    };
    let Some(factory) = state.get_file_format_factory(&kind.extension) else {
        return plan_err!(
            "cannot read '{url}': no format has the file extension '{}'; read the file with a function that names its format, such as read_csv('{url}')",
            kind.extension
        );
    };
    kind.refuse_compressed().map_err(|e| explain_error(url, &e))?;
    let format = factory.create(state, &HashMap::new())?;
    let files = FileSet::new(vec![path.clone()], Some(kind.clone()));
    let listed = files.list_files(state).await?;
    list_table(state, vec![path], files, &listed, format, &kind.extension).await
}

/// Returns a table of `files` and its partition columns. `listed` has the files that exist now.
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

/// Returns an error if the process must not read the files at a path. The stores check each file; this error
/// comes first and names the path as it is written.
pub(in crate::sql) fn check_url(url: &ListingTableUrl) -> Result<()> {
    if url.scheme() != "file" {
        let name = url.as_str();
        return access::check_store().map_err(|e| crate::Error::io(name, e).into());
    }
    check_location(url, url.prefix())
}

/// Returns an error if `url` lists a file that the process must not read, say by a symbolic link.
pub(in crate::sql) fn check_location(url: &ListingTableUrl, location: &Location) -> Result<()> {
    match LocalFileSystem::new().path_to_filesystem(location) {
        Ok(path) if url.scheme() == "file" => {
            access::check_read(&path).map_err(|e| crate::Error::io(path, e).into())
        }
        // For any other location, the object store itself checks the access.
        _ => Ok(()),
    }
}

/// Like [`check_url`], but for writing: returns an error if the process must not write files at the path. The object
/// stores check this too, but some of DataFusion's writers drop their errors.
pub(in crate::sql) fn check_target(url: &ListingTableUrl) -> Result<()> {
    check_url(url)?;
    let path = url.get_url().to_file_path();
    let path = path.unwrap_or_else(|()| url.as_str().into());
    let extension = path.extension().and_then(|extension| extension.to_str());
    if let Some(extension @ ("gz" | "bz2" | "xz" | "zst")) = extension {
        return plan_err!(
            "{} cannot be written, because compressed files (.{extension}) are not supported; write {}, and compress it with a program such as gzip",
            path.display(),
            path.with_extension("").display()
        );
    }
    match url.scheme() {
        "file" => access::check_write(&path),
        _ => access::check_writes(),
    }
    .map_err(|e| crate::Error::io(path, e).into())
}

/// Parses a path. A bracket in the name of an existing local file or folder does not start a pattern. In the URL
/// of an object store, only `*` starts a pattern.
pub(in crate::sql) fn parse_path(text: &str) -> Result<ListingTableUrl> {
    let path = Path::new(text);
    let pattern = text.contains(['*', '?']) || text.contains("://");
    if text.contains('[') && !pattern && (access::is_file(path) || access::is_dir(path)) {
        let full = std::path::absolute(path).map_err(|e| crate::Error::io(path, e))?;
        let url = match access::is_dir(&full) {
            true => Url::from_directory_path(&full),
            false => Url::from_file_path(&full),
        };
        if let Ok(url) = url {
            return ListingTableUrl::try_new(url, None);
        }
    }
    if text.contains("://")
        && !text.starts_with("file://")
        && let Some(star) = text.find('*')
        && let Some(slash) = text.get(..star).and_then(|before| before.rfind('/'))
    {
        let (folder, pattern) = text.split_at(slash.saturating_add(1));
        return ListingTableUrl::parse(folder)?.with_glob(pattern);
    }
    ListingTableUrl::parse(text)
}

/// Lets CREATE TABLE and CREATE VIEW use a name that no table of the catalog has. DataFusion would
/// treat a file or folder of this name as an existing table, because the session resolves paths.
pub(in crate::sql) fn replace_paths(state: &SessionState, mut plan: LogicalPlan) -> LogicalPlan {
    let is_new = |name: &TableReference| {
        state.schema_for_ref(name.clone()).is_ok_and(|schema| !schema.table_exist(name.table()))
    };
    match &mut plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) if is_new(&table.name) => {
            table.if_not_exists = false;
            table.or_replace = true;
        }
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) if is_new(&view.name) => {
            view.or_replace = true;
        }
        _ => {}
    }
    plan
}

/// Returns the path of an object for display. Local files get the leading slash, which locations lack.
pub(in crate::sql) fn format_location(location: &Location) -> String {
    match LocalFileSystem::new().path_to_filesystem(location) {
        Ok(path) if access::exists(&path) => path.display().to_string(),
        _ => location.to_string(),
    }
}

/// Returns the error for a missing file, for which [`crate::Error::is_not_found`] is true.
pub(in crate::sql) fn make_missing_file_error(path: &str) -> DataFusionError {
    let why = "the file does not exist, or no file matches the pattern";
    crate::Error::io(path, io::Error::new(io::ErrorKind::NotFound, why)).into()
}

fn explain_error(url: &str, e: &DataFusionError) -> DataFusionError {
    let (url, why) = (access::hide_secrets(url), describe_cause(e));
    DataFusionError::Plan(format!("cannot read '{url}': {why}"))
}

/// Returns the message of an error without the words that name a step of DataFusion or a client.
pub(in crate::sql) fn describe_cause(e: &DataFusionError) -> String {
    match e {
        DataFusionError::External(e) => e.to_string(),
        DataFusionError::Plan(why) => why.clone(),
        DataFusionError::ObjectStore(e) => match e.as_ref() {
            // This source says which store failed, and why.
            object_store::Error::Generic { source, .. } => source.to_string(),
            e => e.to_string(),
        },
        e => e.strip_backtrace(),
    }
}
