//! Tables by path: `FROM 'file'`, `FROM 'folder'`, `FROM 'glob*'`.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::plan_err;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;

use crate::access;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::from::read_functions::find_read_table;
use crate::sql::sources::listing::list_table::list_table;
use crate::sql::sources::listing::{FileSet, FilesTable, ListedFile, find_kind};
use crate::sql::sources::urls::{describe_cause, make_missing_file_error, parse_path};

/// Resolves a path to a table. The error for an unreadable path gives the reason, unlike
/// DataFusion's.
#[derive(Debug)]
pub(in crate::sql) struct PathTables {
    /// DataFusion's factory, which creates tables for paths and holds a weak reference to the
    /// session.
    pub(in crate::sql) session: DynamicListTableFactory,
}

tokio::task_local! {
    /// The state with which the current statement is planned.
    static STATEMENT_STATE: Arc<SessionState>;
}

/// Runs `work`, which plans a statement with `state`. Paths in FROM are opened with this state,
/// because a copy of the state of a session has a copy of the name of each function.
pub(in crate::sql) async fn open_paths_with<T>(
    state: &Arc<SessionState>,
    work: impl Future<Output = T>,
) -> T {
    STATEMENT_STATE.scope(Arc::clone(state), work).await
}

impl PathTables {
    fn find_state(&self) -> Result<Arc<SessionState>> {
        let session = self.session.session_store().get_session().upgrade().ok_or_else(|| {
            DataFusionError::Internal(
                "internal error: the session no longer exists; please report it".into(),
            )
        })?;
        let session = session.read();
        let planned = STATEMENT_STATE.try_with(Arc::clone).ok();
        if let Some(state) = planned.filter(|state| state.session_id() == session.session_id()) {
            return Ok(state);
        }
        let state = session.as_any().downcast_ref::<SessionState>().cloned().map(Arc::new);
        state.ok_or_else(|| {
            DataFusionError::Internal(
                "internal error: the session has another kind of state; please report it".into(),
            )
        })
    }
}

impl UrlTableFactory for PathTables {
    boxed_method!(PathTables: try_new = open_path);
}

impl PathTables {
    async fn open_path(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let looks_like_path = url.contains(['/', '\\', '*', '?'])
            || url.rsplit_once('.').is_some_and(|(_, e)| !e.is_empty());
        let state = self.find_state()?;
        let state = state.as_ref();
        // `url` may be a call such as `read_parquet('a')`, because a rewrite has replaced the call
        // with a table name of the same text.
        if let Some(table) = find_read_table(state, url).await? {
            return Ok(Some(table));
        }
        if let Some(table) = crate::sql::sources::dok::open_path(url).await? {
            return Ok(Some(table));
        }
        let Ok(path) = parse_path(url) else {
            return Ok(None);
        };
        let files = match FileSet::new(vec![path.clone()], None).list_files(state).await {
            Ok(files) if files.is_empty() && looks_like_path => {
                return Err(make_missing_file_error(url));
            }
            Ok(files) if files.is_empty() => return Ok(None),
            Ok(files) => files,
            Err(e) if looks_like_path => return Err(explain_error(url, &e)),
            Err(_) => return Ok(None),
        };
        match open_files(state, url, path, files).await {
            // Ignores the error about a folder if the name does not look like a path: a table or a
            // function may have the same name as the folder.
            Err(_) if !looks_like_path => Ok(None),
            opened => Ok(Some(Arc::new(opened?))),
        }
    }
}

/// Returns the table of the files at a path, which `listed` are. Their extensions determine the
/// format.
async fn open_files(
    state: &SessionState,
    url: &str,
    path: ListingTableUrl,
    listed: Vec<ListedFile>,
) -> Result<FilesTable> {
    // A folder may also have files other than data, such as a README. These are ignored.
    let is_folder = path.is_collection() && path.get_glob().is_none();
    let Some(kind) = find_kind(url, &listed, is_folder)? else {
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
    let listed = files.keep_files(&path, listed)?;
    list_table(state, vec![path], files, &listed, format, &kind.extension).await
}

fn explain_error(url: &str, e: &DataFusionError) -> DataFusionError {
    let (url, why) = (access::hide_secrets(url), describe_cause(e));
    DataFusionError::Plan(format!("cannot read '{url}': {why}"))
}
