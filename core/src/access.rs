//! Opens, reads, writes and lists files within the limits that [`confine`] sets for the process.
//!
//! The crate opens every file with the functions of this module, so one policy holds for every path
//! in an argument, a statement, a URL or a file. `tests/layers.rs` finds calls that bypass these
//! functions.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, ReadDir};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use same_file::Handle;
use walkdir::{DirEntry, WalkDir};

use crate::error::{Error, Result, add_copy};

/// The policy of the process. It is set at most once, so that no later call can relax it.
static POLICY: OnceLock<AccessPolicy> = OnceLock::new();

/// Maximum number of attempts to open a file that another process may replace during an attempt.
const MAX_REOPENS: usize = 16;

/// Restrictions that [`confine`] sets on the file access of the process.
///
/// ```
/// use serrate_core as serrate;
/// use serrate::access::Confinement;
/// let rules = Confinement::default().with_root("data").with_read_only(true);
/// assert_ne!(rules, Confinement::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    root: Option<PathBuf>,
    read_only: bool,
}

impl Confinement {
    /// Restricts all paths to a folder, after symbolic links and `..` are resolved.
    ///
    /// Relative paths remain relative to the current folder. Object stores and URLs other than
    /// `file://` are refused.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::access::Confinement;
    /// let rules = Confinement::default().with_root("data");
    /// assert_ne!(rules, Confinement::default());
    /// ```
    #[must_use]
    pub fn with_root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.root = Some(folder.into());
        self
    }

    /// Sets whether all writes of files and folders are refused.
    ///
    /// Tables in memory can still change, and a query may spill to temporary files without a name,
    /// which the operating system removes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::access::Confinement;
    /// let rules = Confinement::default().with_read_only(true);
    /// assert_ne!(rules, Confinement::default());
    /// assert_eq!(rules.with_read_only(false), Confinement::default());
    /// ```
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
}

#[derive(Debug)]
struct AccessPolicy {
    /// The folder as the caller named it, and its path without symbolic links.
    root: Option<(PathBuf, PathBuf)>,
    read_only: bool,
}

/// Restricts which files this process reads and writes, in all sessions and threads, until the
/// process ends.
///
/// The policy applies to the whole process, not to a session, because some of the code that opens
/// files (readers, functions, writers, caches shared by sessions) has no access to the session. To
/// give tenants different policies, run one process per tenant.
///
/// Files that are already open stay open. Files that code outside this crate opens are not
/// restricted; nor are DataFusion sessions that [`configure`](https://docs.rs/serrate) did not set
/// up, because they use their own object stores. A hard link inside the root folder counts as a
/// file of this folder.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::access::{Confinement, confine};
/// use serrate::io::json::read_json;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.json");
/// std::fs::write(&path, r#"{"x": [1, 2]}"#)?;
/// confine(&Confinement::default().with_root(dir.path()))?;
/// assert_eq!(read_json(&path, &Default::default())?.num_rows(), 2);
/// let outside = read_json("Cargo.toml", &Default::default()).unwrap_err();
/// assert!(outside.to_string().contains("outside the folder"));
/// // Nothing can change the rules of this process any more.
/// assert!(confine(&Confinement::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the root folder does not exist, or if `confine` was called before.
pub fn confine(rules: &Confinement) -> Result<()> {
    let resolve = |root: &PathBuf| {
        let real = fs::canonicalize(root).map_err(|e| Error::io(root, e))?;
        match real.is_dir() {
            true => Ok((root.clone(), real)),
            false => Err(Error::file(
                root,
                "the path is not a folder; give the folder that contains the files",
            )),
        }
    };
    let root = rules.root.as_ref().map(resolve).transpose()?;
    POLICY.set(AccessPolicy { root, read_only: rules.read_only }).map_err(|_| {
        Error::invalid("the file access of this process is already restricted, and restrictions cannot change; call `confine` only once")
    })
}

fn to_refusal(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

impl AccessPolicy {
    fn check_path(&self, path: &Path, writes: bool) -> io::Result<()> {
        if writes && self.read_only {
            return Err(refuse_write());
        }
        let Some((given, real)) = &self.root else { return Ok(()) };
        match resolve_path(path) {
            Ok(full) if full.starts_with(real) => Ok(()),
            _ => Err(refuse_outside(given)),
        }
    }

    /// Returns an error if `path` leads outside the root folder now, after `file` was opened at
    /// `path`. Otherwise, returns whether `path` still names the open file.
    fn check_opened(&self, file: &File, path: &Path) -> io::Result<PathCheck> {
        let Some((given, real)) = &self.root else { return Ok(PathCheck::Inside) };
        let Ok(full) = fs::canonicalize(path) else { return Ok(PathCheck::Replaced) };
        if !full.starts_with(real) {
            return Err(refuse_outside(given));
        }
        let (Ok(now), Ok(own)) =
            (Handle::from_path(&full), file.try_clone().and_then(Handle::from_file))
        else {
            return Ok(PathCheck::Replaced);
        };
        Ok(if now == own { PathCheck::Inside } else { PathCheck::Replaced })
    }
}

enum PathCheck {
    Inside,
    /// The path does not name the open file any more.
    Replaced,
}

fn refuse_outside(root: &Path) -> io::Error {
    to_refusal(format!(
        "the path is outside the folder {}, to which --root restricts the process; name a path in this folder (a relative path starts at the current folder)",
        root.display()
    ))
}

fn refuse_write() -> io::Error {
    to_refusal(
        "--read-only refuses to write files; write to standard output, or run without --read-only"
            .into(),
    )
}

/// Returns the path without symbolic links and `..`. The last components of `path` need not exist.
fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let mut existing = std::path::absolute(path)?;
    let mut missing: Vec<OsString> = Vec::new();
    loop {
        match fs::canonicalize(&existing) {
            Ok(mut full) => {
                full.extend(missing.iter().rev());
                return Ok(full);
            }
            // Refuse a symbolic link to a missing file, because writing to the link would create
            // this file.
            Err(e) if fs::symlink_metadata(&existing).is_ok() => return Err(e),
            Err(e) => match existing.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name.to_owned()),
                _ => return Err(e),
            },
        }
        existing.pop();
    }
}

/// Returns an error if the process must not read the file or folder at `path`.
#[doc(hidden)]
pub fn check_read(path: impl AsRef<Path>) -> io::Result<()> {
    POLICY.get().map_or(Ok(()), |policy| policy.check_path(path.as_ref(), false))
}

/// Returns an error if the process must not write the file or folder at `path`.
#[doc(hidden)]
pub fn check_write(path: impl AsRef<Path>) -> io::Result<()> {
    POLICY.get().map_or(Ok(()), |policy| policy.check_path(path.as_ref(), true))
}

/// Returns an error if the process must not write `path`, or if `path` exists and `overwrite` is
/// false.
#[doc(hidden)]
pub fn check_new(path: impl AsRef<Path>, overwrite: bool) -> Result<()> {
    let path = path.as_ref();
    check_write(path).map_err(|e| Error::io(path, e))?;
    match !overwrite && path.exists() {
        true => Err(Error::Exists(path.to_path_buf())),
        false => Ok(()),
    }
}

/// Returns an error if the process must not write any file.
#[doc(hidden)]
pub fn check_writes() -> io::Result<()> {
    if is_read_only() { Err(refuse_write()) } else { Ok(()) }
}

/// Returns an error if the process must not use an object store.
#[doc(hidden)]
pub fn check_store() -> io::Result<()> {
    match POLICY.get().and_then(|policy| policy.root.as_ref()) {
        Some((given, _)) => Err(to_refusal(format!(
            "--root restricts the process to the folder {}, so object stores cannot be read; copy the file to this folder",
            given.display()
        ))),
        None => Ok(()),
    }
}

/// Copies the object or folder at a URL to a local path and returns that path. The second argument
/// has the names of the files to copy from a folder; if it is empty, all files are copied.
type FetchObject = fn(&str, &[&str]) -> io::Result<PathBuf>;

/// Copies objects to local files. Without it, [`localize_path`] refuses the URLs of object stores.
static FETCH: OnceLock<FetchObject> = OnceLock::new();

const STORES: [&str; 5] = ["s3", "gs", "az", "http", "https"];

/// Sets the function that [`localize_path`] calls for URLs of object stores, if none is set yet.
#[doc(hidden)]
pub fn set_fetch(fetch: FetchObject) {
    let _ = FETCH.set(fetch);
}

/// Returns whether `path` is the URL of an object store.
#[doc(hidden)]
pub fn is_store_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| STORES.contains(&scheme))
}

/// Returns `path` itself or, for the URL of an object store, the path of a local copy. `only` has
/// the names of the files to copy from a folder; if it is empty, all files are copied.
#[doc(hidden)]
pub fn localize_path<'a>(path: &'a str, only: &[&str]) -> io::Result<Cow<'a, Path>> {
    if !is_store_url(path) {
        return Ok(Cow::Borrowed(Path::new(path)));
    }
    check_store()?;
    match FETCH.get() {
        Some(fetch) => {
            let copy = fetch(path, only)?;
            add_copy(&copy, &hide_secrets(path));
            Ok(Cow::Owned(copy))
        }
        None => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this program cannot read or write object stores; build Serrate with the feature `cloud`, or use a local path",
        )),
    }
}

/// Returns the URL of an object store without user, password and query, which errors must not show.
/// Returns any other path unchanged.
#[doc(hidden)]
pub fn hide_secrets(path: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = path.split_once("://").filter(|_| is_store_url(path)) else {
        return Cow::Borrowed(path);
    };
    let (rest, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (host, object) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let user = host.rsplit_once('@');
    if user.is_none() && query.is_empty() {
        return Cow::Borrowed(path);
    }
    let host = user.map_or_else(|| host.to_owned(), |(_, host)| format!("..@{host}"));
    let query = if query.is_empty() { "" } else { "?.." };
    Cow::Owned(format!("{scheme}://{host}{object}{query}"))
}

/// Returns whether `path` is, or is inside, a temporary file or folder of this crate, such as the
/// folder of a copied object: whether a name in `path` begins with `.serrate-`.
#[doc(hidden)]
pub fn is_copy(path: impl AsRef<Path>) -> bool {
    let mut parts = path.as_ref().components();
    parts.any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".serrate-"))
}

/// Returns whether the process is restricted to a folder.
#[doc(hidden)]
pub fn has_root() -> bool {
    POLICY.get().is_some_and(|policy| policy.root.is_some())
}

/// Returns whether the process must not write files.
#[doc(hidden)]
pub fn is_read_only() -> bool {
    POLICY.get().is_some_and(|policy| policy.read_only)
}

/// Returns an error unless a file that was opened at `path` is inside the root folder of `confine`.
#[doc(hidden)]
pub fn check_opened(file: &File, path: impl AsRef<Path>) -> io::Result<()> {
    let Some(policy) = POLICY.get() else { return Ok(()) };
    match policy.check_opened(file, path.as_ref())? {
        PathCheck::Inside => Ok(()),
        PathCheck::Replaced => Err(refuse_replaced()),
    }
}

fn refuse_replaced() -> io::Error {
    to_refusal("the file was replaced while it was opened; try again".into())
}

/// Opens a file for reading.
#[doc(hidden)]
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let Some(policy) = POLICY.get() else { return File::open(path) };
    // Check the path first, because merely opening a device or pipe outside the folder can have
    // effects. Check the open file, too, because a symbolic link in the path may have changed in
    // the meantime.
    for _ in 0..MAX_REOPENS {
        policy.check_path(path, false)?;
        let file = File::open(path)?;
        if matches!(policy.check_opened(&file, path)?, PathCheck::Inside) {
            return Ok(file);
        }
    }
    Err(refuse_replaced())
}

/// Reads a whole file.
#[doc(hidden)]
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file of UTF-8 text.
#[doc(hidden)]
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut file = open(path)?;
    let mut text = String::new();
    io::Read::read_to_string(&mut file, &mut text)?;
    Ok(text)
}

/// Reads a file of the operating system, such as `/proc/self/cgroup`. Does not check the path,
/// because no user chooses it.
#[doc(hidden)]
pub fn read_system_file(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Creates a file that must not exist yet, for writing and reading.
#[doc(hidden)]
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    check_write(path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    check_opened(&file, path).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?;
    Ok(file)
}

/// Creates a temporary file in `folder`. The file has no name, and the operating system removes the
/// file when it is closed.
#[doc(hidden)]
pub fn create_temporary_file(folder: impl AsRef<Path>) -> io::Result<File> {
    check_write(&folder)?;
    tempfile::tempfile_in(folder)
}

/// Removes a temporary folder of spilled rows. Does not check the path, because no user chooses it.
#[doc(hidden)]
pub fn remove_spilled(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)
}

/// Writes a whole new file.
#[doc(hidden)]
pub fn write_new(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    io::Write::write_all(&mut create_new(path)?, contents.as_ref())
}

/// Creates a folder and its missing parents.
#[doc(hidden)]
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    // If the folder exists, nothing is written, so check only the permission to read it.
    if path.as_ref().is_dir() {
        return check_read(path);
    }
    check_write(&path)?;
    fs::create_dir_all(path)
}

/// Removes an empty folder. A folder with entries stays, and is an error.
#[doc(hidden)]
pub fn remove_empty_folder(path: impl AsRef<Path>) -> io::Result<()> {
    check_write(&path)?;
    fs::remove_dir(path)
}

/// Returns the metadata of a file or folder.
#[doc(hidden)]
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    check_read(&path)?;
    fs::metadata(path)
}

/// Returns the absolute path without symbolic links.
#[doc(hidden)]
pub fn canonicalize_path(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    check_read(&path)?;
    fs::canonicalize(path)
}

/// Returns whether a file or folder exists at `path`. A path outside the root folder of `confine`
/// counts as existing, so that the caller tries to open it and gets the error of the restriction.
#[doc(hidden)]
pub fn exists(path: impl AsRef<Path>) -> bool {
    check_read(&path).is_err() || path.as_ref().exists()
}

/// Returns whether `path` is a folder; false if `path` is outside the root folder of `confine`.
#[doc(hidden)]
pub fn is_dir(path: impl AsRef<Path>) -> bool {
    check_read(&path).is_ok() && path.as_ref().is_dir()
}

/// Returns whether `path` is a file; false if `path` is outside the root folder of `confine`.
#[doc(hidden)]
pub fn is_file(path: impl AsRef<Path>) -> bool {
    check_read(&path).is_ok() && path.as_ref().is_file()
}

/// Lists the entries of a folder.
#[doc(hidden)]
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    check_read(&path)?;
    fs::read_dir(path)
}

/// Lists the entries of a folder and its sub-folders in the order of their names. Follows symbolic
/// links.
#[doc(hidden)]
pub fn walk_folder(path: &Path) -> impl Iterator<Item = Result<DirEntry>> + use<> {
    let top = path.to_path_buf();
    let mut refused = check_read(&top).err();
    let mut entries = refused
        .is_none()
        .then(|| WalkDir::new(&top).follow_links(true).sort_by_file_name().into_iter());
    std::iter::from_fn(move || {
        if let Some(e) = refused.take() {
            return Some(Err(Error::io(&top, e)));
        }
        let entries = entries.as_mut()?;
        let entry = match entries.next()? {
            Ok(entry) => entry,
            Err(e) => {
                let path = e.path().unwrap_or(&top).to_path_buf();
                let why = "the symbolic links in this folder form a loop; remove one of them";
                let cause = e.into_io_error().unwrap_or_else(|| io::Error::other(why));
                return Some(Err(Error::io(path, cause)));
            }
        };
        // A symbolic link may lead out of the root folder, so check the link before listing it.
        if entry.path_is_symlink()
            && let Err(e) = check_read(entry.path())
        {
            if entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
            return Some(Err(Error::io(entry.path(), e)));
        }
        Some(Ok(entry))
    })
}

/// Returns the entries of a folder and its sub-folders that cannot be read as files: symbolic links
/// whose target does not exist, pipes and devices.
#[doc(hidden)]
pub fn list_unreadable(folder: &Path) -> Vec<PathBuf> {
    let unreadable = walk_folder(folder).filter_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() || entry.file_type().is_dir() => None,
        Ok(entry) => Some(entry.into_path()),
        Err(Error::Io { path, source }) if source.kind() == io::ErrorKind::NotFound => Some(path),
        Err(_) => None,
    });
    // Other entries may have been removed since their folder was listed.
    unreadable.filter(|path| fs::symlink_metadata(path).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_urls_are_hidden() {
        for (url, shown) in [
            ("s3://user:pw@bucket/a/b@c", "s3://..@bucket/a/b@c"),
            ("https://host/a?sig=1", "https://host/a?.."),
            ("s3://bucket/a@b", "s3://bucket/a@b"),
            ("a?b@c", "a?b@c"),
        ] {
            assert_eq!(hide_secrets(url), shown);
        }
    }

    #[test]
    fn paths_are_resolved_before_they_are_compared() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("in/sub")).unwrap();
        fs::write(base.join("secret"), "s").unwrap();
        let policy =
            AccessPolicy { root: Some((base.join("in"), base.join("in"))), read_only: false };
        let allowed = |path: &str| policy.check_path(&base.join(path), true).is_ok();
        assert!(
            allowed("in") && allowed("in/new") && allowed("in/a/b/c") && allowed("in/sub/../x")
        );
        for path in [
            "secret",
            "in/../secret",
            "in/sub/../../secret",
            "inner",
            "in/none/../../secret",
            "in/none/../..",
        ] {
            assert!(!allowed(path), "{path}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(base.join("secret"), base.join("in/link")).unwrap();
            symlink(base.join("none"), base.join("in/dangling")).unwrap();
            symlink(&base, base.join("in/up")).unwrap();
            symlink(base.join("in/sub"), base.join("in/within")).unwrap();
            assert!(allowed("in/within/x"));
            for path in ["in/link", "in/dangling", "in/up/secret", "in/up/new"] {
                assert!(!allowed(path), "{path}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_checked_after_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("in")).unwrap();
        fs::write(base.join("secret"), "s").unwrap();
        fs::write(base.join("in/x"), "x").unwrap();
        let policy =
            AccessPolicy { root: Some((base.join("in"), base.join("in"))), read_only: false };
        let path = base.join("in/x");
        let file = File::open(&path).unwrap();
        assert!(matches!(policy.check_opened(&file, &path).unwrap(), PathCheck::Inside));
        // Simulate that `path` linked to `secret` when the file was opened, and was replaced since.
        let secret = File::open(base.join("secret")).unwrap();
        assert!(matches!(policy.check_opened(&secret, &path).unwrap(), PathCheck::Replaced));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(base.join("secret"), &path).unwrap();
        let refused = policy.check_opened(&secret, &path).err().unwrap();
        assert!(refused.to_string().contains("outside the folder"), "{refused}");
    }

    #[test]
    fn a_policy_of_reading_refuses_writes_only() {
        let policy = AccessPolicy { root: None, read_only: true };
        assert!(policy.check_path(Path::new("x"), false).is_ok());
        let refused = policy.check_path(Path::new("x"), true).unwrap_err();
        assert!(refused.to_string().contains("--read-only"), "{refused}");
    }
}
