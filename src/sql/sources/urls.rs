//! `FROM 'file'`, `FROM 'folder'`, `FROM 'glob*'`.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::plan_err;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::{
    ListingTable, ListingTableConfig, ListingTableConfigExt, ListingTableUrl,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::cache::TableScopedPath;
use datafusion::execution::session_state::SessionState;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;

use crate::sql::sources::empty::refuse_empty;
use crate::sql::sources::from::files;
use crate::sql::sources::listing::FilesTable;

/// Resolves a path to a table. If the path cannot be read, the error gives the reason, which DataFusion's
/// factory omits.
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
        // The path may be a call such as `read_parquet('a')`, written as a name.
        if let Some(table) = files(&state, url).await? {
            return Ok(Some(table));
        }
        if let Some(table) = crate::sql::sources::dok::at_path(url).await? {
            return Ok(Some(table));
        }
        let Ok(path) = ListingTableUrl::parse(url) else {
            return Ok(None);
        };
        // The cached listing of an earlier statement may be out of date, for example after a COPY into the
        // folder, so it is removed.
        if let Some(cache) = state.runtime_env().cache_manager.get_list_files_cache() {
            cache.remove(&TableScopedPath { table: None, path: path.prefix().clone() });
        }
        let config = match ListingTableConfig::new(path).infer_options(&state).await {
            Ok(config) => config,
            Err(e) if looks_like_path => return Err(explain_error(url, e)),
            Err(_) => return Ok(None),
        };
        if let Some(path) = config.table_paths.first() {
            match one_format(&state, url, path).await {
                // The name of a table or function may happen to be the name of a folder.
                Err(_) if !looks_like_path => return Ok(None),
                checked => checked?,
            }
        }
        let config = match infer_listing(&state, config).await {
            Err(_) if !looks_like_path => return Ok(None),
            inferred => inferred?,
        };
        Ok(Some(Arc::new(FilesTable::new(Arc::new(ListingTable::try_new(config)?)))))
    }
}

async fn infer_listing(
    state: &SessionState,
    config: ListingTableConfig,
) -> Result<ListingTableConfig> {
    if let (Some(path), Some(options)) = (config.table_paths.first(), &config.options) {
        refuse_empty(state, path, &options.format.get_ext()).await?;
    }
    config.infer_partitions_from_path(state).await?.infer_schema(state).await
}

/// File name extensions of the data formats. A folder whose files have two of these extensions is an error.
const FORMATS: [&str; 9] =
    ["arrow", "avro", "csv", "json", "jsonl", "ndjson", "nrt", "parquet", "safetensors"];

/// Returns an error for a folder with files of several formats, because a listing reads only one format.
async fn one_format(state: &SessionState, url: &str, path: &ListingTableUrl) -> Result<()> {
    if !path.is_collection() || path.get_glob().is_some() {
        return Ok(());
    }
    let store = state.runtime_env().object_store(path)?;
    let mut files = path.list_all_files(state, store.as_ref(), "").await?;
    let mut first: Option<(String, String)> = None;
    while let Some(file) = files.try_next().await? {
        let Some(extension) = file.location.extension().map(str::to_ascii_lowercase) else {
            continue;
        };
        if !FORMATS.contains(&extension.as_str()) {
            continue;
        }
        match &first {
            None => first = Some((extension, shown_location(&file.location))),
            Some((known, _)) if *known == extension => {}
            Some((_, other)) => {
                return plan_err!(
                    "cannot read '{url}', because it has files of several formats, such as {other} and {}; name a folder or glob of one format, or read a MEDS folder as meds('{url}')",
                    shown_location(&file.location)
                );
            }
        }
    }
    Ok(())
}

/// Returns the path of an object for display. Local files get the leading slash, which locations lack.
pub(in crate::sql) fn shown_location(location: &Location) -> String {
    match LocalFileSystem::new().path_to_filesystem(location) {
        Ok(path) if path.exists() => path.display().to_string(),
        _ => location.to_string(),
    }
}

/// Returns the error for a missing file, for which [`crate::Error::is_not_found`] is true.
pub(in crate::sql) fn missing_file(path: &str) -> DataFusionError {
    let why = "the file does not exist, or no file matches the pattern";
    crate::Error::io(path, io::Error::new(io::ErrorKind::NotFound, why)).into()
}

fn explain_error(url: &str, e: DataFusionError) -> DataFusionError {
    match &e {
        DataFusionError::Internal(m) | DataFusionError::Plan(m) if m.starts_with("No files") => {
            missing_file(url)
        }
        other => DataFusionError::Plan(format!("cannot read '{url}': {}", other.strip_backtrace())),
    }
}
