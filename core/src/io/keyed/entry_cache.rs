//! Caches the entries of sparse tensor and dictionary files, so that each version of a file is read
//! only once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use super::contents::KeyedContents;
use crate::access;
use crate::error::{Error, Result};
use crate::io::lease::FileLock;
use crate::io::stamp::FileStamp;
use crate::locks::lock_mutex;
use crate::memory::MemoryCharge;

/// Maximum number, and maximum size in bytes, of the recently opened files that stay in memory
/// although nothing uses them.
const MAX_KEPT: usize = 4;
const MAX_KEPT_BYTES: usize = 256 << 20;

const MAX_READ_TRIES: usize = 100;

/// The entries of one version of a file.
#[derive(Debug)]
pub struct KeyedVersion {
    /// Path of the file.
    pub path: PathBuf,
    /// Identifies the version; see [`FileStamp`].
    pub stamp: String,
    /// Entries of the file.
    pub contents: KeyedContents,
    _charge: MemoryCharge,
}

impl KeyedVersion {
    /// Returns an error if the entries would exceed the memory limit of the process.
    fn from_file(path: PathBuf, stamp: String, contents: KeyedContents) -> Result<Arc<Self>> {
        let what = format!("the sparse tensor or dictionary {}", path.display());
        let bytes = contents.nbytes();
        let charge = MemoryCharge::take(&what, bytes).or_else(|_| {
            // Memory does not suffice: release the cached files that nothing uses, then try again.
            lock_mutex(&RECENT).clear();
            MemoryCharge::take(&what, bytes)
        })?;
        Ok(Arc::new(Self { path, stamp, contents, _charge: charge }))
    }

    /// Charges memory even beyond the limit of the process, because the file has already changed.
    fn from_change(path: PathBuf, stamp: String, contents: KeyedContents) -> Arc<Self> {
        let charge = MemoryCharge::hold_bytes(contents.nbytes());
        Arc::new(Self { path, stamp, contents, _charge: charge })
    }
}

/// The current [`KeyedVersion`] of a table's file, kept in memory as long as the table exists.
#[derive(Clone, Debug, Default)]
pub struct LatestVersion(Arc<Mutex<Option<Arc<KeyedVersion>>>>);

impl LatestVersion {
    /// Replaces the current version with `version`.
    pub fn set(&self, version: Arc<KeyedVersion>) {
        *lock_mutex(&self.0) = Some(version);
    }
}

#[derive(Debug, Default)]
struct FileSlot {
    versions: Mutex<Vec<Weak<KeyedVersion>>>,
    /// A statement locks this mutex while it changes the file.
    writing: Mutex<()>,
}

impl FileSlot {
    fn has_versions(&self) -> bool {
        lock_mutex(&self.versions).iter().any(|v| v.strong_count() > 0)
    }
}

#[derive(Debug, Default)]
struct FileSlots {
    slots: HashMap<PathBuf, Arc<FileSlot>>,
    /// Length of the field `slots` at which unused slots are removed; at least
    /// [`FULL`](Self::FULL).
    full: usize,
}

impl FileSlots {
    const FULL: usize = 64;

    fn find_or_add_slot(&mut self, path: &Path) -> Arc<FileSlot> {
        if self.slots.len() >= self.full.max(Self::FULL) && !self.slots.contains_key(path) {
            // `&mut self` excludes other calls, so no thread obtains a `FileSlot` while it is
            // removed here.
            self.slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.has_versions());
            self.full = self.slots.len().saturating_mul(2);
        }
        Arc::clone(self.slots.entry(path.to_path_buf()).or_default())
    }
}

static SLOTS: LazyLock<Mutex<FileSlots>> = LazyLock::new(Mutex::default);
static RECENT: Mutex<Vec<Arc<KeyedVersion>>> = Mutex::new(Vec::new());

fn find_or_add_slot(path: &Path) -> Arc<FileSlot> {
    lock_mutex(&SLOTS).find_or_add_slot(path)
}

fn keep_recent(version: &Arc<KeyedVersion>) {
    let mut recent = lock_mutex(&RECENT);
    recent.retain(|v| v.path != version.path);
    recent.push(Arc::clone(version));
    trim_recent(&mut recent, |v| v.contents.nbytes());
}

fn trim_recent<T>(recent: &mut Vec<T>, bytes: impl Fn(&T) -> usize) {
    let total = |recent: &[T]| recent.iter().map(&bytes).fold(0, usize::saturating_add);
    while recent.len() > MAX_KEPT || total(recent) > MAX_KEPT_BYTES && !recent.is_empty() {
        recent.remove(0);
    }
}

fn find_canonical_path(path: &Path) -> Result<PathBuf> {
    access::canonicalize_path(path).map_err(|e| Error::io(path, e))
}

fn read_stamp(path: &Path) -> Result<String> {
    Ok(FileStamp::of(path).map_err(|e| Error::io(path, e))?.to_string())
}

/// Returns the stamp of a file, after a wait until any later change of the file would give another
/// [`FileStamp`].
fn find_settled_stamp(path: &Path) -> Result<String> {
    Ok(FileStamp::read_settled(path).map_err(|e| Error::io(path, e))?.to_string())
}

/// Returns the current version of a file.
pub fn open(path: &Path) -> Result<Arc<KeyedVersion>> {
    open_version(path, None)
}

/// Returns the version of a file that `stamp` identifies. Returns an error if this version is not
/// in memory and the file has changed since.
pub(crate) fn open_pinned(path: &Path, stamp: &str) -> Result<Arc<KeyedVersion>> {
    open_version(path, Some(stamp))
}

fn open_version(path: &Path, wanted: Option<&str>) -> Result<Arc<KeyedVersion>> {
    let known = if wanted.is_some() {
        find_canonical_path(path).unwrap_or(path.to_path_buf())
    } else {
        find_canonical_path(path)?
    };
    let slot = find_or_add_slot(&known);
    // The lock is held while the file is read, so that concurrent callers do not read it again.
    let mut versions = lock_mutex(&slot.versions);
    versions.retain(|v| v.strong_count() > 0);
    let find = |versions: &[Weak<KeyedVersion>], stamp: &str| {
        versions.iter().filter_map(Weak::upgrade).find(|v| v.stamp == stamp)
    };
    if let Some(version) = wanted.and_then(|stamp| find(&versions, stamp)) {
        return Ok(version);
    }
    let mut tries = 0;
    let (now, contents) = loop {
        let now = read_stamp(&known)?;
        if wanted.is_some_and(|wanted| wanted != now) {
            return Err(Error::file(
                path,
                "the file changed after the query was planned; run the query again",
            ));
        }
        if let Some(version) = find(&versions, &now) {
            keep_recent(&version);
            return Ok(version);
        }
        let now = find_settled_stamp(&known)?;
        if wanted.is_some_and(|wanted| wanted != now) {
            continue;
        }
        // Errors name the path as given by the caller instead of the canonical path.
        let contents = KeyedContents::read(path);
        if read_stamp(&known)? == now {
            break (now, contents?);
        }
        tries += 1;
        if tries == MAX_READ_TRIES {
            return Err(Error::file(
                path,
                "the file changed while it was being read; run the query again",
            ));
        }
    };
    let version = KeyedVersion::from_file(known, now, contents)?;
    versions.push(Arc::downgrade(&version));
    keep_recent(&version);
    Ok(version)
}

/// Changes a file: the closure `change` receives the current entries and returns the new ones, or
/// `None` to leave the file unchanged. Statements that change the same file wait for each other,
/// even in other processes. Returns the resulting version, and the `T` that the closure returned.
///
/// # Errors
/// If `is_given_up` returns true before the file is replaced, or a writer that ignores the lock
/// changed the file. This call then leaves the file as it is.
pub fn change_file<T>(
    path: &Path,
    is_given_up: &dyn Fn() -> bool,
    change: impl FnOnce(&KeyedContents) -> Result<(Option<KeyedContents>, T)>,
) -> Result<(Arc<KeyedVersion>, T)> {
    let known = find_canonical_path(path)?;
    let slot = find_or_add_slot(&known);
    let _alone = lock_mutex(&slot.writing);
    let _lock = lock_file(&known, is_given_up)?;
    // Read the newest version: another process may have changed the file while this process waited.
    let before = open(path)?;
    let (contents, out) = change(&before.contents)?;
    let Some(contents) = contents else { return Ok((before, out)) };
    if read_stamp(&known)? != before.stamp {
        return Err(Error::file(
            path,
            "another program wrote the file while the statement ran, so the statement has changed nothing; run the statement again",
        ));
    }
    if is_given_up() {
        return Err(make_cancelled_error(path));
    }
    contents.write(&known, true)?;
    Ok((publish_version(known, contents)?, out))
}

fn lock_file(path: &Path, is_given_up: &dyn Fn() -> bool) -> Result<FileLock> {
    match FileLock::wait_for(path, is_given_up) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(make_cancelled_error(path)),
        Err(e) => Err(Error::file(
            path,
            format!(
                "the file cannot be locked against other processes ({e}), so it is not changed; put DOK files into a writable folder on a file system with locks"
            ),
        )),
    }
}

fn make_cancelled_error(path: &Path) -> Error {
    Error::file(
        path,
        "the statement was cancelled and has changed nothing; run it again to change the file",
    )
}

/// Writes a file and returns its version.
///
/// If the file exists, replaces it if `overwrite` is true, otherwise returns an error.
pub fn create(path: &Path, contents: KeyedContents, overwrite: bool) -> Result<Arc<KeyedVersion>> {
    let known = match (access::exists(path), path.file_name()) {
        (false, Some(name)) => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            find_canonical_path(folder.unwrap_or(Path::new(".")))?.join(name)
        }
        _ => find_canonical_path(path)?,
    };
    let slot = find_or_add_slot(&known);
    let _alone = lock_mutex(&slot.writing);
    let _lock = lock_file(&known, &|| false)?;
    contents.write(&known, overwrite)?;
    publish_version(known, contents)
}

/// Makes `contents` the current version of a file in the cache, without reading the file: the
/// caller has just written them and still holds the write lock.
fn publish_version(path: PathBuf, contents: KeyedContents) -> Result<Arc<KeyedVersion>> {
    let stamp = find_settled_stamp(&path)?;
    let version = KeyedVersion::from_change(path, stamp, contents);
    lock_mutex(&find_or_add_slot(&version.path).versions).push(Arc::downgrade(&version));
    keep_recent(&version);
    Ok(version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn few_versions_of_few_bytes_stay() {
        let trimmed = |bytes: &[usize]| {
            let mut recent: Vec<usize> = bytes.to_vec();
            trim_recent(&mut recent, |b| *b);
            recent
        };
        assert_eq!(trimmed(&[1, 2, 3, 4, 5, 6]), [3, 4, 5, 6]);
        assert_eq!(trimmed(&[MAX_KEPT_BYTES, 1]), [1]);
        assert_eq!(trimmed(&[1, MAX_KEPT_BYTES]), [MAX_KEPT_BYTES]);
        assert_eq!(trimmed(&[1, MAX_KEPT_BYTES - 1]), [1, MAX_KEPT_BYTES - 1]);
        // A version above `MAX_KEPT_BYTES` stays in memory only as long as something uses it.
        assert!(trimmed(&[1, MAX_KEPT_BYTES + 1]).is_empty());
        assert_eq!(trimmed(&[usize::MAX, usize::MAX, 7]), [7]);
    }

    #[test]
    fn slots_of_unused_files_are_dropped() {
        let mut slots = FileSlots::default();
        let held = slots.find_or_add_slot(Path::new("held"));
        let version = KeyedVersion::from_change("kept".into(), String::new(), empty_contents());
        lock_mutex(&slots.find_or_add_slot(Path::new("kept")).versions)
            .push(Arc::downgrade(&version));
        for i in 0..10_000 {
            slots.find_or_add_slot(Path::new(&i.to_string()));
        }
        assert!(slots.slots.len() <= FileSlots::FULL, "{}", slots.slots.len());
        assert!(Arc::ptr_eq(&held, &slots.find_or_add_slot(Path::new("held"))));
        let kept = slots.find_or_add_slot(Path::new("kept"));
        assert!(kept.has_versions());
        // Slots of files in use are kept, even if there are more of them than `FULL`.
        let used: Vec<_> =
            (0..200).map(|i| slots.find_or_add_slot(Path::new(&format!("u{i}")))).collect();
        let last = slots.find_or_add_slot(Path::new("u0"));
        assert!(Arc::ptr_eq(&used[0], &last) && slots.slots.len() >= 202);
    }

    fn empty_contents() -> KeyedContents {
        let given =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-dok/m.safetensors");
        KeyedContents::read(&given).unwrap()
    }

    #[test]
    fn versions_go_with_those_who_have_them() {
        let dir = tempfile::tempdir().unwrap();
        let given =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-dok/m.safetensors");
        let opened = |name: &str| {
            let path = dir.path().join(name);
            fs::copy(&given, &path).unwrap();
            open(&path).unwrap()
        };
        let first = opened("first");
        let mut gone = Vec::new();
        for i in 0..=MAX_KEPT {
            gone.push(Arc::downgrade(&opened(&format!("{i}"))));
        }
        assert!(gone[0].upgrade().is_none());
        assert!(Arc::ptr_eq(&first, &open(&first.path).unwrap()));
        // The new version of file `0` replaces the old one among the recently opened files.
        let old = Arc::downgrade(&opened("0"));
        let new = opened("0");
        assert!(old.upgrade().is_none_or(|old| Arc::ptr_eq(&old, &new)));
    }
}
