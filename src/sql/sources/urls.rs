//! Paths and URLs of files: parses them, checks the access to them and shows them in messages.

use std::io;
use std::path::{Path, PathBuf};

use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use url::Url;

use crate::access;

/// Returns an error if the process must not read the files at a path. The object stores check each
/// file, too. This check comes earlier, so that its error names the path as the statement does.
pub(in crate::sql) fn check_url(url: &ListingTableUrl) -> Result<()> {
    if url.scheme() != "file" {
        let name = url.as_str();
        return access::check_store().map_err(|e| crate::Error::io(name, e).into());
    }
    check_location(url, url.prefix())
}

/// Returns an error if the process must not read the file at `location`, which is `url` itself or a
/// file in the folder `url`. A symbolic link in this folder may lead to a file that the process
/// must not read.
pub(in crate::sql) fn check_location(url: &ListingTableUrl, location: &Location) -> Result<()> {
    match LocalFileSystem::new().path_to_filesystem(location) {
        Ok(path) if url.scheme() == "file" => {
            access::check_read(&path).map_err(|e| crate::Error::io(path, e).into())
        }
        // The object store itself checks the access to a location that is not a local file, or that
        // has no path in the file system.
        _ => Ok(()),
    }
}

/// Like [`check_url`], for writing: returns an error if the process must not write files at the
/// path. The object stores check this, too, but some of DataFusion's writers drop the error of the
/// store. Also returns an error for the name of a compressed file, such as `x.csv.gz`.
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

/// Parses a path or URL, which may contain a glob pattern. A `[` in the name of an existing local
/// file or folder does not start a pattern. In the URL of an object store, only `*` starts one.
pub(in crate::sql) fn parse_path(text: &str) -> Result<ListingTableUrl> {
    let path = Path::new(text);
    let pattern = text.contains(['*', '?']) || text.contains("://");
    if text.contains('[')
        && !pattern
        && (access::is_file(path) || access::is_dir(path))
        && let Some(url) = make_file_url(text)?
    {
        return ListingTableUrl::try_new(url, None);
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

/// Returns the URL of a local path, in which `*`, `?` and `[` are characters of names. Returns
/// `None` if the path has no URL.
fn make_file_url(path: &str) -> Result<Option<Url>> {
    let full = std::path::absolute(path).map_err(|e| crate::Error::io(path, e))?;
    let url = match path.ends_with('/') || access::is_dir(&full) {
        true => Url::from_directory_path(&full),
        false => Url::from_file_path(&full),
    };
    Ok(url.ok())
}

/// Returns the target of a COPY as a URL if it is a local path that DataFusion would take for a
/// pattern: it would write to the folder above the first name with `*`, `?` or `[`.
pub(in crate::sql) fn make_target_url(target: &str) -> Result<Option<String>> {
    if target.contains("://") || !target.contains(['*', '?', '[']) {
        return Ok(None);
    }
    Ok(make_file_url(target)?.map(String::from))
}

/// Returns the local path that a path or a `file://` URL names, or `None` for another URL.
pub(crate) fn to_local_path(text: &str) -> Option<PathBuf> {
    let Some(after) = text.strip_prefix("file://") else {
        return (!text.contains("://")).then(|| text.into());
    };
    let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
    Some(path.unwrap_or_else(|| after.into()))
}

/// Lets CREATE TABLE and CREATE VIEW use the name of a file or folder if no table of the catalog
/// has this name. A session resolves a name without a table to the file or folder of this name.
/// Without this change, DataFusion would take the file for the table and report that it already
/// exists.
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

/// Returns the path of an object for display. Local files get the leading slash, which locations
/// lack.
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

/// Returns the message of an error without its first words if these name only a step of DataFusion,
/// such as "Error during planning", or the client of an object store.
pub(in crate::sql) fn describe_cause(e: &DataFusionError) -> String {
    match e {
        DataFusionError::External(e) => e.to_string(),
        DataFusionError::Plan(why) => why.clone(),
        DataFusionError::ObjectStore(e) => match e.as_ref() {
            // `source` says which store failed, and why. The words before it name only the client.
            object_store::Error::Generic { source, .. } => source.to_string(),
            e => e.to_string(),
        },
        e => e.strip_backtrace(),
    }
}
