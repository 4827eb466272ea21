//! Files that are open: read once for all tables and functions, and written one statement at a time.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use super::contents::Contents;
use crate::error::{Error, Result};
use crate::io::lease::FileLock;
use crate::io::stamp::Stamp;

/// Files whose entries stay in memory though no table or query has them.
const KEPT: usize = 4;
/// Bytes of their entries together.
const KEPT_BYTES: usize = 256 << 20;

/// How often a file is read that changes meanwhile.
const TRIES: usize = 100;

/// Entries with the version of the file that they came from.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) path: PathBuf,
    /// What differs when a file was written anew.
    pub(crate) stamp: String,
    pub(crate) contents: Contents,
}

/// The version that a table keeps in memory for as long as it is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest(Arc<Mutex<Option<Arc<Version>>>>);

impl Latest {
    pub(crate) fn set(&self, version: Arc<Version>) {
        *locked(&self.0) = Some(version);
    }
}

/// One file.
#[derive(Debug, Default)]
struct Slot {
    /// Versions that somebody has.
    versions: Mutex<Vec<Weak<Version>>>,
    /// Held while a statement changes the file.
    writing: Mutex<()>,
}

static SLOTS: LazyLock<Mutex<HashMap<PathBuf, Arc<Slot>>>> = LazyLock::new(Mutex::default);
static RECENT: Mutex<Vec<Arc<Version>>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot(path: &Path) -> Arc<Slot> {
    Arc::clone(locked(&SLOTS).entry(path.to_path_buf()).or_default())
}

fn keep(version: &Arc<Version>) {
    let mut recent = locked(&RECENT);
    recent.retain(|v| v.path != version.path);
    recent.push(Arc::clone(version));
    trim(&mut recent, |v| v.contents.num_bytes());
}

/// Lets go of the oldest until there are few, of few bytes.
fn trim<T>(recent: &mut Vec<T>, bytes: impl Fn(&T) -> usize) {
    let total = |recent: &[T]| recent.iter().map(&bytes).fold(0, usize::saturating_add);
    while recent.len() > KEPT || total(recent) > KEPT_BYTES && !recent.is_empty() {
        recent.remove(0);
    }
}

/// The path of a file with all links followed.
fn full(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|e| Error::io(path, e))
}

fn stamp(path: &Path) -> Result<String> {
    Ok(Stamp::of(path).map_err(|e| Error::io(path, e))?.to_string())
}

/// A stamp that no later change has.
fn settled_stamp(path: &Path) -> Result<String> {
    Ok(Stamp::settled(path).map_err(|e| Error::io(path, e))?.to_string())
}

/// What a file holds now.
pub(crate) fn open(path: &Path) -> Result<Arc<Version>> {
    at(path, None)
}

/// What a file held when it had this stamp.
///
/// # Errors
/// When nobody has it any more and the file is another one now.
pub(crate) fn pinned(path: &Path, stamp: &str) -> Result<Arc<Version>> {
    at(path, Some(stamp))
}

fn at(path: &Path, wanted: Option<&str>) -> Result<Arc<Version>> {
    let known =
        if wanted.is_some() { full(path).unwrap_or(path.to_path_buf()) } else { full(path)? };
    let slot = slot(&known);
    // Held while the file is read, so that those who start together read it once.
    let mut versions = locked(&slot.versions);
    versions.retain(|v| v.strong_count() > 0);
    let find = |versions: &[Weak<Version>], stamp: &str| {
        versions.iter().filter_map(Weak::upgrade).find(|v| v.stamp == stamp)
    };
    if let Some(version) = wanted.and_then(|stamp| find(&versions, stamp)) {
        return Ok(version);
    }
    let mut tries = 0;
    let (now, contents) = loop {
        let now = stamp(&known)?;
        if wanted.is_some_and(|wanted| wanted != now) {
            return Err(Error::file(
                path,
                "it changed after the query was planned; run the query again",
            ));
        }
        if let Some(version) = find(&versions, &now) {
            keep(&version);
            return Ok(version);
        }
        let now = settled_stamp(&known)?;
        if wanted.is_some_and(|wanted| wanted != now) {
            continue;
        }
        // In the words of the caller, who did not write the canonical path.
        let contents = Contents::read(path);
        if stamp(&known)? == now {
            break (now, contents?);
        }
        // Other processes replace it: what is wanted is the newest version.
        tries += 1;
        if tries == TRIES {
            return Err(Error::file(path, "it changed while it was read; run the query again"));
        }
    };
    let version = Arc::new(Version { path: known, stamp: now, contents });
    versions.push(Arc::downgrade(&version));
    keep(&version);
    Ok(version)
}

/// Changes a file: `change` makes new entries of those that are there. Statements on one file, by
/// whatever table or process, wait for each other; the file is replaced as a whole, or stays as it is.
///
/// # Errors
/// When `is_given_up` before the file is replaced, or somebody who knows no lock wrote it meanwhile.
pub(crate) fn change<T>(
    path: &Path,
    is_given_up: &dyn Fn() -> bool,
    change: impl FnOnce(&Contents) -> Result<(Option<Contents>, T)>,
) -> Result<(Arc<Version>, T)> {
    let known = full(path)?;
    let slot = slot(&known);
    let _alone = locked(&slot.writing);
    let _lock = lock(&known, is_given_up)?;
    // The newest version: other processes have changed it while this one waited.
    let before = open(path)?;
    let (contents, out) = change(&before.contents)?;
    let Some(contents) = contents else { return Ok((before, out)) };
    if stamp(&known)? != before.stamp {
        return Err(Error::file(
            path,
            "somebody else wrote it during the statement, which has changed nothing; run it again",
        ));
    }
    if is_given_up() {
        return Err(given_up(path));
    }
    contents.write(&known, true)?;
    Ok((publish(known, contents)?, out))
}

/// Excludes other processes from a file.
fn lock(path: &Path, is_given_up: &dyn Fn() -> bool) -> Result<FileLock> {
    match FileLock::wait(path, is_given_up) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(given_up(path)),
        Err(e) => Err(Error::file(
            path,
            format!(
                "it cannot be locked against other processes ({e}), and is not changed; a DOK file needs a folder that can be written to, on a file system with locks"
            ),
        )),
    }
}

fn given_up(path: &Path) -> Error {
    Error::file(path, "the statement was cancelled and has changed nothing")
}

/// Writes a file that may be there already, if it may be replaced.
pub(crate) fn create(path: &Path, contents: Contents, overwrite: bool) -> Result<Arc<Version>> {
    let known = match (path.exists(), path.file_name()) {
        (false, Some(name)) => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            full(folder.unwrap_or(Path::new(".")))?.join(name)
        }
        _ => full(path)?,
    };
    let slot = slot(&known);
    let _alone = locked(&slot.writing);
    let _lock = lock(&known, &|| false)?;
    contents.write(&known, overwrite)?;
    publish(known, contents)
}

/// Entries that were just written need not be read. The lock of the file is held: once its stamp is
/// settled, no change of another process has the same.
fn publish(path: PathBuf, contents: Contents) -> Result<Arc<Version>> {
    let stamp = settled_stamp(&path)?;
    let version = Arc::new(Version { path, stamp, contents });
    locked(&slot(&version.path).versions).push(Arc::downgrade(&version));
    keep(&version);
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_versions_of_few_bytes_stay() {
        let trimmed = |bytes: &[usize]| {
            let mut recent: Vec<usize> = bytes.to_vec();
            trim(&mut recent, |b| *b);
            recent
        };
        assert_eq!(trimmed(&[1, 2, 3, 4, 5, 6]), [3, 4, 5, 6]);
        assert_eq!(trimmed(&[KEPT_BYTES, 1]), [1]);
        assert_eq!(trimmed(&[1, KEPT_BYTES]), [KEPT_BYTES]);
        assert_eq!(trimmed(&[1, KEPT_BYTES - 1]), [1, KEPT_BYTES - 1]);
        // What is too large alone is for those who have it.
        assert!(trimmed(&[1, KEPT_BYTES + 1]).is_empty());
        assert_eq!(trimmed(&[usize::MAX, usize::MAX, 7]), [7]);
    }

    #[test]
    fn versions_go_with_those_who_have_them() {
        let dir = tempfile::tempdir().unwrap();
        let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-dok/m.safetensors");
        let opened = |name: &str| {
            let path = dir.path().join(name);
            fs::copy(&given, &path).unwrap();
            open(&path).unwrap()
        };
        let first = opened("first");
        let mut gone = Vec::new();
        for i in 0..=KEPT {
            gone.push(Arc::downgrade(&opened(&format!("{i}"))));
        }
        assert!(gone[0].upgrade().is_none());
        assert!(Arc::ptr_eq(&first, &open(&first.path).unwrap()));
        // The next version of a file takes the place of the one before.
        let old = Arc::downgrade(&opened("0"));
        let new = opened("0");
        assert!(old.upgrade().is_none_or(|old| Arc::ptr_eq(&old, &new)));
    }
}
