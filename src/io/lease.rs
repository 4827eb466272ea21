//! [`Lease`]: temporary names in a folder, held by a lock for as long as their writer lives.
//!
//! A writer holds the lock file `.serrate-XXXXXXXX.lock` and writes to `.serrate-XXXXXXXX.tmp`, a file
//! or a folder. The system frees the lock when the process ends, however it ends, so the next writer
//! into the same folder can tell what a dead one left behind, also from another container or machine
//! that shares the volume, and removes it. Before a commit of several renames, the lock file records
//! what they are: whoever finds it with its lock free completes or undoes them.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
#[cfg(feature = "sql")]
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;
use walkdir::WalkDir;

/// All temporary names begin with this.
const PREFIX: &str = ".serrate-";
const LOCK: &str = ".lock";
/// What is being written.
const DATA: &str = ".tmp";
/// A folder that is being replaced, moved aside.
const ASIDE: &str = ".old";

/// How long a folder that was looked through is not looked through again by this process.
const PAUSE: Duration = Duration::from_secs(10);

/// Names held by this process, for file systems whose locks do not exclude the process that has them.
static HELD: Mutex<Option<HashSet<OsString>>> = Mutex::new(None);
static SWEPT: LazyLock<Mutex<HashMap<PathBuf, Instant>>> = LazyLock::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a name is one that a writer holds, or left behind.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// What a commit of several renames does, for whoever finds it unfinished.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Commit {
    /// The folder of this name is moved aside, and ours takes its place. Undone.
    Replace(Vec<u8>),
    /// The files of our folder move into the folder that it is in. Completed.
    Spread,
}

impl Commit {
    pub(super) fn replace(target: &Path) -> Self {
        Self::Replace(encode_name(target.file_name().unwrap_or_default()))
    }
}

#[cfg(unix)]
fn encode_name(name: &OsStr) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(name).to_vec()
}

#[cfg(unix)]
fn decode_name(name: &[u8]) -> OsString {
    <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name).to_owned()
}

#[cfg(not(unix))]
fn encode_name(name: &OsStr) -> Vec<u8> {
    name.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
fn decode_name(name: &[u8]) -> OsString {
    String::from_utf8_lossy(name).into_owned().into()
}

/// Temporary names in a folder. Dropped, it removes what was written under them.
#[derive(Debug)]
pub(crate) struct Lease {
    folder: PathBuf,
    stem: OsString,
    /// Removed before the lock in it is freed.
    path: TempPath,
    lock: File,
    /// Whether what stands under the names is left to the next writer.
    left: bool,
}

impl Lease {
    /// Names that nobody else has, in a folder that is there.
    pub(crate) fn acquire(folder: &Path) -> io::Result<Self> {
        sweep(folder);
        loop {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).suffix(LOCK).rand_bytes(8);
            let made = builder.make_in(folder, create_lock)?;
            match Self::hold(folder, made.into_parts()) {
                Ok(None) => {}
                Ok(Some(lease)) => return Ok(lease),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// A stem for [`acquire_named`](Self::acquire_named), where nothing is made yet.
    #[cfg(feature = "sql")]
    pub(crate) fn draw_stem() -> String {
        // Keys of the system's randomness, of which each state has others.
        format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id()))
    }

    /// The name of what is written under a stem.
    #[cfg(feature = "sql")]
    pub(crate) fn data_name(stem: &str) -> String {
        format!("{stem}{DATA}")
    }

    /// The names of a stem that was drawn before.
    ///
    /// # Errors
    /// When somebody has them.
    #[cfg(feature = "sql")]
    pub(crate) fn acquire_named(folder: &Path, stem: &str) -> io::Result<Self> {
        sweep(folder);
        let path = folder.join(format!("{stem}{LOCK}"));
        loop {
            let lock = create_lock(&path)?;
            let held = Self::hold(folder, (lock, TempPath::try_from_path(&path)?))?;
            if let Some(lease) = held {
                return Ok(lease);
            }
        }
    }

    /// `None` when another writer took the file for one left behind: before it was locked, it looked so.
    fn hold(folder: &Path, (lock, path): (File, TempPath)) -> io::Result<Option<Self>> {
        let stem = path.file_stem().unwrap_or_default().to_owned();
        locked(&HELD).get_or_insert_default().insert(stem.clone());
        let mut lease = Self { folder: folder.to_path_buf(), stem, path, lock, left: false };
        match lease.lock.lock() {
            Ok(()) if !names(&lease.path, &lease.lock) => {
                lease.path.disable_cleanup(true);
                return Ok(None);
            }
            // A file system without locks: what is left there stays, as nobody can tell whose it is.
            Ok(()) | Err(_) => {}
        }
        // A stray of that name is not ours to overwrite.
        match fs::symlink_metadata(lease.data()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(lease)),
            _ => {
                lease.left = true;
                let _ = fs::remove_file(&lease.path);
                Err(io::ErrorKind::AlreadyExists.into())
            }
        }
    }

    fn name(&self, ending: &str) -> PathBuf {
        name_in(&self.folder, &self.stem, ending)
    }

    /// Where to write; nothing is there yet.
    pub(crate) fn data(&self) -> PathBuf {
        self.name(DATA)
    }

    /// Where a folder that is being replaced goes.
    pub(super) fn aside(&self) -> PathBuf {
        self.name(ASIDE)
    }

    /// Records what renames are about to be made.
    pub(super) fn record(&mut self, commit: &Commit) -> io::Result<()> {
        let text = serde_json::to_vec(commit)?;
        self.lock.rewind()?;
        self.lock.set_len(0)?;
        self.lock.write_all(&text)?;
        self.lock.sync_all()
    }

    /// Leaves what stands under the names to the next writer, which finds the record.
    pub(super) fn leave(mut self) {
        self.left = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.left {
            true => self.path.disable_cleanup(true),
            false => {
                let _ = remove(&self.data());
            }
        }
        if let Some(held) = locked(&HELD).as_mut() {
            held.remove(&self.stem);
        }
    }
}

/// Excludes other writers of one file, those of other processes too, for as long as it lives.
///
/// The lock is that of a file beside it, which is gone in the end: the file itself is replaced by
/// whoever changes it.
#[cfg(feature = "sql")]
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    _lock: File,
}

#[cfg(feature = "sql")]
impl FileLock {
    /// Waits until nobody else has the lock of `target`, a path without links; `None` once `is_given_up`.
    ///
    /// # Errors
    /// When the folder cannot be written to, or its file system has no locks.
    pub(crate) fn wait(target: &Path, is_given_up: &dyn Fn() -> bool) -> io::Result<Option<Self>> {
        // What a killed process leaves is removed like other leftovers. No name is longer than 255 bytes.
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(48).collect();
        let path = target.with_file_name(format!("{PREFIX}{name}{LOCK}"));
        let mut pause = Duration::from_micros(200);
        while !is_given_up() {
            let lock = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            match lock.try_lock() {
                // Else whoever had it has removed it.
                Ok(()) if names(&path, &lock) => return Ok(Some(Self { path, _lock: lock })),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        Ok(None)
    }
}

#[cfg(feature = "sql")]
impl Drop for FileLock {
    fn drop(&mut self) {
        // Before the lock is freed.
        let _ = fs::remove_file(&self.path);
    }
}

fn create_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

fn name_in(folder: &Path, stem: &OsStr, ending: &str) -> PathBuf {
    let mut name = stem.to_owned();
    name.push(ending);
    folder.join(name)
}

/// Whether a path still leads to an open file.
fn names(path: &Path, file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (fs::symlink_metadata(path), file.metadata()) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        // What is open there cannot be replaced by another file.
        let _ = file;
        path.exists()
    }
}

/// A file, or a folder with all that is in it; none is fine.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Moves all files of a folder to the same places below another one.
pub(super) fn spread(from: &Path, to: &Path) -> io::Result<()> {
    for entry in WalkDir::new(from).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(io::Error::from)?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(&target)?,
            false => fs::rename(entry.path(), &target)?,
        }
    }
    Ok(())
}

/// Removes what writers that are gone left in a folder. That it cannot is no fault of the next writer.
fn sweep(folder: &Path) {
    if !is_due(folder) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if is_temporary(&name) && Path::new(&name).extension() == Some(OsStr::new(&LOCK[1..])) {
            let _ = clear(folder, &entry.path());
        }
    }
}

fn is_due(folder: &Path) -> bool {
    let now = Instant::now();
    let mut swept = locked(&SWEPT);
    swept.retain(|_, at| now.duration_since(*at) < PAUSE);
    swept.insert(folder.to_path_buf(), now).is_none()
}

/// Removes the names of a lock file whose lock is free, after its commit is completed or undone.
fn clear(folder: &Path, path: &Path) -> io::Result<()> {
    let stem = path.file_stem().unwrap_or_default();
    let held = || locked(&HELD).as_ref().is_some_and(|held| held.contains(stem));
    if held() {
        return Ok(());
    }
    let mut lock = OpenOptions::new().read(true).write(true).open(path)?;
    match lock.try_lock() {
        Ok(()) if names(path, &lock) && !held() => {}
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    let mut record = Vec::new();
    lock.read_to_end(&mut record)?;
    let (data, aside) = (name_in(folder, stem, DATA), name_in(folder, stem, ASIDE));
    match serde_json::from_slice(&record) {
        Ok(Commit::Replace(target)) if aside.exists() => {
            let target = folder.join(decode_name(&target));
            match target.exists() {
                true => remove(&aside)?,
                false => fs::rename(&aside, &target)?,
            }
        }
        Ok(Commit::Spread) if data.exists() => spread(&data, folder)?,
        Ok(_) => {}
        // A record that was not written to its end stands before all renames.
        Err(_) if aside.exists() => return Ok(()),
        Err(_) => {}
    }
    remove(&data)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What a process that was killed leaves: files, and a lock that nobody has.
    fn abandon(folder: &Path, stem: &str, commit: Option<&Commit>) -> PathBuf {
        let record = commit.map(|c| serde_json::to_vec(c).unwrap()).unwrap_or_default();
        fs::write(folder.join(format!("{stem}.lock")), record).unwrap();
        let data = folder.join(format!("{stem}.tmp"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("x"), "new").unwrap();
        data
    }

    #[test]
    fn names_are_removed_with_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (Lease::acquire(dir.path()).unwrap(), Lease::acquire(dir.path()).unwrap());
        fs::write(a.data(), "1").unwrap();
        fs::create_dir(b.data()).unwrap();
        fs::write(b.data().join("x"), "1").unwrap();
        assert_eq!(entries(dir.path()).len(), 4);
        drop((a, b));
        assert!(entries(dir.path()).is_empty());
    }

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_have_stays() {
        let dir = tempfile::tempdir().unwrap();
        let alive = Lease::acquire(dir.path()).unwrap();
        fs::write(alive.data(), "1").unwrap();
        // As another process has it: nothing in this one knows the name.
        locked(&HELD).as_mut().unwrap().remove(&alive.stem);
        abandon(dir.path(), ".serrate-dead", None);
        fs::write(dir.path().join(".serrate-mine.tmp"), "no lock: not ours").unwrap();
        locked(&SWEPT).remove(dir.path());
        let next = Lease::acquire(dir.path()).unwrap();
        assert!(alive.data().exists());
        drop((alive, next));
        assert_eq!(entries(dir.path()), [".serrate-mine.tmp"]);
    }

    #[test]
    fn commits_that_were_cut_off_are_completed_or_undone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        // Between the two renames of a folder that is replaced.
        abandon(dir.path(), ".serrate-a", Some(&Commit::replace(&target)));
        fs::create_dir(dir.path().join(".serrate-a.old")).unwrap();
        fs::write(dir.path().join(".serrate-a.old/x"), "old").unwrap();
        drop(Lease::acquire(dir.path()).unwrap());
        assert_eq!(entries(dir.path()), ["out"]);
        assert_eq!(fs::read(target.join("x")).unwrap(), b"old");

        // After the second one, before the old folder was removed.
        fs::write(
            dir.path().join(".serrate-b.lock"),
            serde_json::to_vec(&Commit::replace(&target)).unwrap(),
        )
        .unwrap();
        fs::create_dir(dir.path().join(".serrate-b.old")).unwrap();
        locked(&SWEPT).remove(dir.path());
        drop(Lease::acquire(dir.path()).unwrap());
        assert_eq!(entries(dir.path()), ["out"]);

        // Between the renames of files that appear together.
        let data = abandon(&target, ".serrate-c", Some(&Commit::Spread));
        fs::create_dir(data.join("sub")).unwrap();
        fs::write(data.join("sub/y"), "new").unwrap();
        drop(Lease::acquire(&target).unwrap());
        assert_eq!(entries(&target), ["sub", "x"]);
        assert_eq!(fs::read(target.join("x")).unwrap(), b"new");

        // A record that was not written to its end: no rename was made.
        abandon(&target, ".serrate-d", None);
        fs::write(target.join(".serrate-d.lock"), "{\"Repl").unwrap();
        fs::write(target.join(".serrate-d.tmp/x"), "not whole").unwrap();
        locked(&SWEPT).remove(&target);
        drop(Lease::acquire(&target).unwrap());
        assert_eq!(fs::read(target.join("x")).unwrap(), b"new");
        assert_eq!(entries(&target), ["sub", "x"]);
    }

    #[cfg(feature = "sql")]
    #[test]
    fn one_at_a_time_has_the_lock_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x");
        fs::write(&target, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = FileLock::wait(&target, &|| false).unwrap().unwrap();
                        let n: u32 = fs::read_to_string(&target).unwrap().parse().unwrap();
                        std::thread::yield_now();
                        fs::write(&target, (n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&target).unwrap(), "200");
        assert_eq!(entries(dir.path()), ["x"]);
        let _lock = FileLock::wait(&target, &|| false).unwrap().unwrap();
        assert!(FileLock::wait(&target, &|| true).unwrap().is_none());
    }

    #[test]
    fn writers_that_start_together_get_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let folder = dir.path();
                scope.spawn(move || {
                    for _ in 0..50 {
                        locked(&SWEPT).clear();
                        let lease = Lease::acquire(folder).unwrap();
                        fs::write(lease.data(), format!("{i}")).unwrap();
                        std::thread::yield_now();
                        assert_eq!(fs::read_to_string(lease.data()).unwrap(), format!("{i}"));
                    }
                });
            }
        });
        assert!(entries(dir.path()).is_empty());
    }
}
