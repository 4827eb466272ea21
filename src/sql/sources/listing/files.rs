//! Lists the files of a table, from paths, folders and patterns.

use std::collections::HashSet;
use std::future::ready;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, UNIX_EPOCH};

use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::{DataFusionError, Result};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use glob::{MatchOptions, Pattern};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use serrate_core::internal::{FileStamp, complete_commits, is_hidden, make_natural_key};

use crate::access;
use crate::sql::base::blocking::run_blocking;
use crate::sql::sources::listing::file_kind::FileKind;
use crate::sql::sources::urls::{
    check_location, check_target, check_url, format_location, make_missing_file_error,
};

/// In a pattern, `*` and `?` match within one name of a path. `**` matches any number of folders.
const PATTERNS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The paths of a table, each a file, a folder or a pattern.
///
/// DataFusion 55 lists files differently: its patterns ignore folders named `key=value`, `*` also
/// matches `/`, and extensions are case-sensitive. It skips files without an error, so their rows
/// are missing.
#[derive(Clone, Debug)]
pub(in crate::sql) struct FileSet {
    paths: Vec<ListingTableUrl>,
    /// The kind of the files that are read in folders; `None` reads all files.
    kind: Option<FileKind>,
}

#[derive(Clone, Debug)]
pub(in crate::sql) struct ListedFile {
    pub(in crate::sql) meta: ObjectMeta,
    /// Names of the folders between the listed folder and the file.
    pub(super) folders: Vec<String>,
    /// Why the file cannot be read; `None` for a file.
    fault: Option<FileFault>,
}

/// Why an entry of a folder cannot be read as a file. An object store omits such entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFault {
    /// A symbolic link to a missing file or folder.
    BrokenLink,
    /// A pipe or a device: it has no size, so it would be read as an empty file, and it cannot be
    /// read twice.
    Pipe,
}

impl FileSet {
    pub(in crate::sql) fn new(paths: Vec<ListingTableUrl>, kind: Option<FileKind>) -> Self {
        Self { paths, kind }
    }

    /// Returns the files of the first path, then those of the second, and so on. Files of one path
    /// are in the order of their names. Numbers in names are compared by value, so `9.csv` comes
    /// before `10.csv`. A file that two paths name appears once.
    ///
    /// # Errors
    /// If a folder has files of the table's format that the table skips because of their
    /// compression or extension.
    pub(in crate::sql) async fn list_files(&self, state: &dyn Session) -> Result<Vec<ListedFile>> {
        let parallel = state.config_options().execution.meta_fetch_concurrency.get();
        let mut lists = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            lists.push(self.list_path(state, path).boxed());
        }
        let lists: Vec<Vec<ListedFile>> =
            stream::iter(lists).buffered(parallel).try_collect().await?;
        let mut files = lists.concat();
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.meta.location.clone()));
        if self.paths.iter().all(|path| path.scheme() == "file") {
            let local = LocalFileSystem::new();
            files.iter_mut().for_each(|file| distinguish_version(&local, &mut file.meta));
        }
        Ok(files)
    }

    /// Returns an error if the process must not write to a path, or if the table has files without
    /// an extension other than parts such as `part-00000`. An insert adds a file with the extension
    /// of the format. From then on, [`keep_kind`] would omit the files without an extension, and
    /// their rows would be missing.
    pub(super) async fn check_insert(&self, state: &dyn Session) -> Result<()> {
        for path in &self.paths {
            check_target(path)?;
        }
        let Some(kind) = &self.kind else { return Ok(()) };
        let files = self.list_files(state).await?;
        let is_hidden = |file: &&ListedFile| {
            let found = FileKind::from_name(&file.meta.location);
            found.extension.is_empty() && !is_part(&file.meta.location)
        };
        match files.iter().find(is_hidden) {
            None => Ok(()),
            Some(file) => plan_err!(
                "cannot insert into the table, because its file {} has no extension, and queries would not read it next to the new file, whose name ends in .{kind}; rename the files of the table to *.{kind}",
                format_location(&file.meta.location)
            ),
        }
    }

    /// Returns an error for a path without files, unless it is a pattern or a local folder.
    pub(super) fn check_named(&self, listed: &[ListedFile]) -> Result<()> {
        let known: HashSet<&Path> = listed.iter().map(|file| &file.meta.location).collect();
        let missing = self.paths.iter().filter(|path| path.get_glob().is_none()).find(|path| {
            let holds = |file: &ListedFile| path.strip_prefix(&file.meta.location).is_some();
            !known.contains(path.prefix()) && !listed.iter().any(holds) && !is_local_folder(path)
        });
        missing.map_or(Ok(()), |path| Err(make_missing_file_error(&format_named(path))))
    }

    async fn list_path(
        &self,
        state: &dyn Session,
        path: &ListingTableUrl,
    ) -> Result<Vec<ListedFile>> {
        check_url(path)?;
        let store = state.runtime_env().object_store(path)?;
        if !path.is_collection() && path.get_glob().is_none() {
            check_no_pipe(path)?;
            match store.head(path.prefix()).await {
                Ok(meta) => {
                    return Ok(vec![ListedFile { meta, folders: Vec::new(), fault: None }]);
                }
                // In an object store, a path without a trailing slash may be a folder, so a missing
                // object is not an error here.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => return Err(DataFusionError::ObjectStore(Box::new(e))),
            }
        }
        complete_renames(path).await?;
        let without_subfolders = state.config_options().execution.listing_table_ignore_subdirectory;
        let mut files: Vec<ListedFile> = store
            .list(Some(path.prefix()))
            .map_err(|e| DataFusionError::ObjectStore(Box::new(e)))
            .try_filter_map(|meta| ready(Ok(find_below(path, meta, without_subfolders))))
            .and_then(|file| ready(check_location(path, &file.meta.location).map(|()| file)))
            .try_collect()
            .await?;
        for (entry, fault) in list_unreadable(path).await? {
            let is_folder = fault == FileFault::BrokenLink && names_within(path, &entry.location);
            let found = match is_folder {
                true => Some(ListedFile { meta: entry, folders: Vec::new(), fault: None }),
                false => find_below(path, entry, without_subfolders),
            };
            files.extend(found.map(|file| ListedFile { fault: Some(fault), ..file }));
        }
        files.sort_by_cached_key(|file| make_natural_key(file.meta.location.as_ref()));
        self.keep_files(path, files)
    }

    /// Returns those of the files at a path that a set of this kind reads. `files` are all files at
    /// `path`, as a set without a kind lists them.
    ///
    /// # Errors
    /// Same as [`list_files`](Self::list_files).
    pub(in crate::sql) fn keep_files(
        &self,
        path: &ListingTableUrl,
        files: Vec<ListedFile>,
    ) -> Result<Vec<ListedFile>> {
        let is_pattern = path.get_glob().is_some();
        let kept = match &self.kind {
            Some(kind) if !is_pattern => keep_kind(files, kind, path)?,
            _ => files,
        };
        // Without a kind, the files of a folder also have files that no table reads.
        let is_final = is_pattern || self.kind.is_some();
        let fault = |file: &ListedFile| Some((file.meta.location.clone(), file.fault?));
        match kept.iter().find_map(fault).filter(|_| is_final) {
            None => Ok(kept),
            Some((location, fault)) => {
                let file = LocalFileSystem::new().path_to_filesystem(&location)?;
                match fault {
                    FileFault::BrokenLink => plan_err!(
                        "{} is a symbolic link to a missing file, whose rows would be missing; restore the file, or remove the link",
                        file.display()
                    ),
                    FileFault::Pipe => refuse_pipe(&file),
                }
            }
        }
    }
}

/// Renames the remaining files of a writer to a local folder that was killed between its renames.
async fn complete_renames(path: &ListingTableUrl) -> Result<()> {
    if path.scheme() != "file" {
        return Ok(());
    }
    // The object store refuses paths that end in `#` and a number, but lists such folders.
    let Ok(folder) = path.get_url().to_file_path() else { return Ok(()) };
    run_blocking(move || complete_commits(&folder)).await
}

/// Lists the entries below a local path that cannot be read as files and are not hidden.
async fn list_unreadable(path: &ListingTableUrl) -> Result<Vec<(ObjectMeta, FileFault)>> {
    let Ok(folder) = path.get_url().to_file_path() else { return Ok(Vec::new()) };
    if path.scheme() != "file" {
        return Ok(Vec::new());
    }
    run_blocking(move || {
        let mut entries = access::list_unreadable(&folder);
        entries.retain(|entry| entry.strip_prefix(&folder).is_ok_and(|below| !is_hidden(below)));
        let faults = entries.into_iter().filter_map(|entry| {
            let fault = match access::exists(&entry) {
                true => FileFault::Pipe,
                false => FileFault::BrokenLink,
            };
            let meta = ObjectMeta {
                location: Path::from_absolute_path(entry).ok()?,
                last_modified: UNIX_EPOCH.into(),
                size: 0,
                e_tag: None,
                version: None,
            };
            Some((meta, fault))
        });
        Ok::<_, DataFusionError>(faults.collect())
    })
    .await
}

/// Whether the pattern of a path names files within the folder `folder`, as `k=*/a.csv` does for
/// `k=1`. A pattern with `**` names all folders, so only folders of partitions count.
fn names_within(path: &ListingTableUrl, folder: &Path) -> bool {
    let Some(pattern) = path.get_glob() else { return false };
    if pattern.as_str().contains("**") {
        return is_partition(folder);
    }
    let Some(names) = path.strip_prefix(folder) else { return false };
    let names: Vec<&str> = names.collect();
    let parts: Vec<&str> = pattern.as_str().split('/').collect();
    let head = parts.get(..names.len()).filter(|head| head.len() < parts.len());
    let head = head.and_then(|head| Pattern::new(&head.join("/")).ok());
    head.is_some_and(|head| head.matches_with(&names.join("/"), PATTERNS))
}

/// Returns an error for the path of a pipe or a device.
fn check_no_pipe(path: &ListingTableUrl) -> Result<()> {
    let Ok(file) = path.get_url().to_file_path() else { return Ok(()) };
    let is_local = path.scheme() == "file";
    if !is_local || access::is_file(&file) || access::is_dir(&file) || !access::exists(&file) {
        return Ok(());
    }
    refuse_pipe(&file)
}

fn refuse_pipe<T>(file: &std::path::Path) -> Result<T> {
    plan_err!(
        "{0} is a pipe or a device, which cannot be read as a table; write its contents to a file, as in cat {0} > FILE, and read this file",
        file.display()
    )
}

/// Adds to the modification time of a local file a duration that differs between versions of the
/// file.
///
/// DataFusion's caches of footers and statistics identify a version by its size and modification
/// time. Programs such as `cp -p`, `rsync -t` and `tar` set this time, so a replaced file could be
/// read with the footer of the earlier file. The duration also depends on the inode and the time at
/// which the inode changed.
fn distinguish_version(local: &LocalFileSystem, meta: &mut ObjectMeta) {
    let path = local.path_to_filesystem(&meta.location);
    // If the file was removed in the meantime, its reader reports the error.
    let Some(stamp) = path.ok().and_then(|path| FileStamp::of(&path).ok()) else { return };
    let mut hasher = DefaultHasher::new();
    stamp.to_string().hash(&mut hasher);
    // At most 2^48 nanoseconds, some three days.
    meta.last_modified += Duration::from_nanos(hasher.finish() >> 16);
}

/// Returns the object `meta` as a file of the table. Returns `None` if `path` has a pattern that
/// `meta` does not match, or has no pattern and the settings exclude the subfolder of `meta`.
fn find_below(
    path: &ListingTableUrl,
    meta: ObjectMeta,
    without_subfolders: bool,
) -> Option<ListedFile> {
    let mut folders: Vec<String> = path.strip_prefix(&meta.location)?.map(str::to_owned).collect();
    let is_named = match path.get_glob() {
        Some(pattern) => pattern.matches_with(&folders.join("/"), PATTERNS),
        None => {
            let subfolders = folders.iter().rev().skip(1);
            !without_subfolders || subfolders.into_iter().all(|name| name.contains('='))
        }
    };
    folders.pop();
    is_named.then_some(ListedFile { meta, folders, fault: None })
}

/// Keeps the files of a kind, and parts such as part-00000 of Spark and Hive, which have no
/// extension, and links to missing partitions. If there is no such file, keeps all files without an
/// extension, except documents. Returns an error if there are files of the same format with another
/// extension or compression.
fn keep_kind(
    files: Vec<ListedFile>,
    kind: &FileKind,
    path: &ListingTableUrl,
) -> Result<Vec<ListedFile>> {
    let mut kept = Vec::with_capacity(files.len());
    let (mut unnamed, mut other) = (Vec::new(), None);
    for file in files {
        let found = FileKind::from_name(&file.meta.location);
        let may_be_folder = file.fault == Some(FileFault::BrokenLink);
        let is_folder = may_be_folder && is_partition(&file.meta.location);
        if found == *kind || is_part(&file.meta.location) || is_folder {
            kept.push(file);
        } else if found.is_same_format(kind) {
            other.get_or_insert(file);
        } else if found.extension.is_empty() && !is_document(&file.meta.location) {
            unnamed.push(file);
        }
    }
    match other {
        None if kept.is_empty() => Ok(unnamed),
        None => Ok(kept),
        Some(other) => plan_err!(
            "cannot read '{path}' as {kind}, because it also contains {}; all files of a table must have the same extension and compression, so give the path of a file, or a pattern such as '*.{kind}'",
            format_location(&other.meta.location)
        ),
    }
}

/// Whether a location has the name of the folder of a partition, such as `k=1`.
fn is_partition(location: &Path) -> bool {
    location.filename().is_some_and(|name| name.contains('='))
}

/// Whether a file has the name of a part of a table: `part-00000`, `part-0.c000`, `000000_0`.
fn is_part(location: &Path) -> bool {
    let name = location.filename().unwrap_or_default();
    let stem = name.strip_prefix("part").unwrap_or(name);
    let stem = match stem.rsplit_once(".c") {
        Some((stem, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => stem,
    };
    let is_marked = stem.len() < name.len();
    let digits = stem.trim_start_matches(['-', '_', '.']);
    let has_digit = digits.starts_with(|first: char| first.is_ascii_digit());
    has_digit
        && match is_marked {
            // Spark appends the identifier of a job, which has letters: part-00000-1f0c..-c000.
            true => {
                digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            }
            false => digits.bytes().all(|byte| byte.is_ascii_digit() || b"-_".contains(&byte)),
        }
}

/// Whether a file without an extension has the name of a document, such as README or LICENSE.
fn is_document(location: &Path) -> bool {
    const DOCUMENTS: [&str; 10] = [
        "readme",
        "license",
        "licence",
        "copying",
        "notice",
        "authors",
        "changelog",
        "changes",
        "makefile",
        "dockerfile",
    ];
    let name = location.filename().unwrap_or_default().to_ascii_lowercase();
    DOCUMENTS.contains(&name.as_str())
}

/// Returns the path of a file or folder that may not exist, for display.
fn format_named(path: &ListingTableUrl) -> String {
    match path.get_url().to_file_path() {
        Ok(file) if path.scheme() == "file" => file.display().to_string(),
        _ => format_location(path.prefix()),
    }
}

fn is_local_folder(path: &ListingTableUrl) -> bool {
    path.is_folder() && path.get_url().to_file_path().is_ok_and(|folder| access::is_dir(&folder))
}
