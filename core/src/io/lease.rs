//! [`NameLease`]: temporary names in a folder, protected by a lock file while the writer runs.
//!
//! A writer holds the lock file `.serrate-XXXXXXXX.lock` and writes to `.serrate-XXXXXXXX.tmp`, a
//! file or folder. The system releases the lock when the process ends. The next writer into the
//! folder thus recognizes and removes leftovers, even from another machine that shares the volume.
//! Before a commit of several renames, the writer records it in the lock file; a later writer that
//! finds the record, and can lock the file, completes or undoes the commit.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
#[cfg(feature = "sql")]
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;
use walkdir::WalkDir;

use crate::access;
#[cfg(any(feature = "parquet", feature = "sql"))]
use crate::error::{Error, Result};
use crate::locks::lock_mutex;

const PREFIX: &str = ".serrate-";
const LOCK: &str = ".lock";
const DATA: &str = ".tmp";
/// Suffix of a folder that was moved aside to be replaced.
const ASIDE: &str = ".old";

/// Maximum number of attempts to remove a folder.
const MOST_REMOVALS: usize = 20;

/// Minimum time between two searches of a folder for leftovers.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Names leased by this process, each with its folder. The lock on a file does not show whether
/// this process leases the name, because on some file systems a process can lock a file again that
/// it has already locked.
static HELD: Mutex<Option<HashMap<OsString, HeldFolder>>> = Mutex::new(None);

/// Folder of a leased name; `None` during a commit of several renames: if this process exits then,
/// only the next writer may remove the files.
type HeldFolder = Option<PathBuf>;

/// The folders that this process has searched for leftovers, each with the time of the last search.
static SWEPT: LazyLock<Mutex<HashMap<PathBuf, Instant>>> = LazyLock::new(Mutex::default);

/// Whether a name is that of a temporary file or folder of a writer, or of its lock file.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Several renames that the next writer completes or undoes if this process ends halfway.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum CommitRecord {
    /// Replaces the folder of this name: moves the old folder aside, then renames the new one. The
    /// next writer moves the old folder back if the new one has not been renamed.
    Replace(Vec<u8>),
    /// Moves the files of the temporary folder to its parent. The next writer moves the remaining
    /// files.
    Spread,
}

impl CommitRecord {
    pub(super) fn from_target(target: &Path) -> Self {
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

/// Exclusive use of temporary names in a folder. Dropping the lease removes the files with these
/// names.
#[derive(Debug)]
pub struct NameLease {
    folder: PathBuf,
    stem: OsString,
    /// Path of the lock file, which is deleted on drop. Fields are dropped in the order of their
    /// declaration, so `path` comes before `lock`: the file is still locked when it is deleted.
    path: TempPath,
    lock: File,
    /// Whether a drop keeps data and lock file, for the next writer to complete or undo the commit.
    left: bool,
}

impl NameLease {
    /// Acquires unused temporary names in an existing folder.
    pub fn acquire_new(folder: &Path) -> io::Result<Self> {
        access::check_write(folder)?;
        sweep_folder(folder);
        loop {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).suffix(LOCK).rand_bytes(8);
            let made = builder.make_in(folder, create_lock)?;
            match Self::lock_file(folder, made.into_parts()) {
                Ok(None) => {}
                Ok(Some(lease)) => return Ok(lease),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns a random name, without suffix, for [`acquire_named`](Self::acquire_named). Creates
    /// no files.
    #[cfg(feature = "sql")]
    pub fn draw_stem() -> String {
        // The system's randomness seeds each `RandomState` differently.
        format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id()))
    }

    /// Returns the name `<stem>.tmp` of the temporary file or folder that a lease with this stem
    /// protects.
    #[cfg(feature = "sql")]
    pub fn format_data_name(stem: &str) -> String {
        format!("{stem}{DATA}")
    }

    /// Acquires the temporary names that begin with `stem`, a result of
    /// [`draw_stem`](Self::draw_stem).
    ///
    /// # Errors
    /// If another writer uses these names.
    #[cfg(feature = "sql")]
    pub fn acquire_named(folder: &Path, stem: &str) -> io::Result<Self> {
        access::check_write(folder)?;
        sweep_folder(folder);
        let path = folder.join(format!("{stem}{LOCK}"));
        loop {
            let lock = create_lock(&path)?;
            let held = Self::lock_file(folder, (lock, TempPath::try_from_path(&path)?))?;
            if let Some(lease) = held {
                return Ok(lease);
            }
        }
    }

    /// Locks a new lock file. Returns `None` if another writer removed the file as a leftover
    /// before it was locked.
    fn lock_file(folder: &Path, (lock, path): (File, TempPath)) -> io::Result<Option<Self>> {
        let stem = path.file_stem().unwrap_or_default().to_owned();
        let held = Some(folder.to_path_buf());
        lock_mutex(&HELD).get_or_insert_default().insert(stem.clone(), held);
        let mut lease = Self { folder: folder.to_path_buf(), stem, path, lock, left: false };
        match lease.lock.lock() {
            Ok(()) if !is_same_file(&lease.path, &lease.lock) => {
                lease.path.disable_cleanup(true);
                return Ok(None);
            }
            // `Err` means that the file system has no locks. The lease works without a lock, and
            // leftovers are never removed, because their writers may still run.
            Ok(()) | Err(_) => {}
        }
        // Data that already has the leased name had no lock file until now, so it belongs to
        // another program: keep it.
        match fs::symlink_metadata(lease.data_path()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(lease)),
            _ => {
                lease.left = true;
                let _ = fs::remove_file(&lease.path);
                Err(io::ErrorKind::AlreadyExists.into())
            }
        }
    }

    fn make_path_with_ending(&self, ending: &str) -> PathBuf {
        make_path_in(&self.folder, &self.stem, ending)
    }

    /// Returns the path to write to; nothing exists there yet.
    pub fn data_path(&self) -> PathBuf {
        self.make_path_with_ending(DATA)
    }

    /// Renames the file `name` in the temporary folder of the lease to `target`, a path in the
    /// folder of the lease.
    #[cfg(feature = "sql")]
    pub fn move_out(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        fs::rename(self.data_path().join(name), target)
    }

    pub(super) fn aside_path(&self) -> PathBuf {
        self.make_path_with_ending(ASIDE)
    }

    pub(super) fn record_commit(&mut self, commit: &CommitRecord) -> io::Result<()> {
        if let Some(place) = lock_mutex(&HELD).as_mut().and_then(|held| held.get_mut(&self.stem)) {
            *place = None;
        }
        let text = serde_json::to_vec(commit)?;
        self.lock.rewind()?;
        self.lock.set_len(0)?;
        self.lock.write_all(&text)?;
        self.lock.sync_all()
    }

    pub(super) fn leave_to_next_writer(mut self) {
        self.left = true;
    }
}

impl Drop for NameLease {
    fn drop(&mut self) {
        // Keep the lock file if data remains: it tells the next writer to remove the data.
        if self.left || remove_all(&self.data_path()).is_err() {
            self.path.disable_cleanup(true);
        }
        if let Some(held) = lock_mutex(&HELD).as_mut() {
            held.remove(&self.stem);
        }
    }
}

/// Removes the temporary files of all writers of this process. A process calls this function if it
/// exits while its writers still run. A commit that is under way is left to the next writer.
pub fn remove_temporaries() {
    // Hold `HELD` to the end of the function, so that no writer begins or commits meanwhile.
    let held = lock_mutex(&HELD);
    for (stem, folder) in held.iter().flatten() {
        if let Some(folder) = folder {
            let _ = remove_all(&make_path_in(folder, stem, DATA));
            let _ = remove_all(&make_path_in(folder, stem, LOCK));
        }
    }
}

/// Excludes other writers of one file, in this and other processes. Writers replace the file, so
/// the lock is on a lock file next to it, which a drop removes.
#[cfg(feature = "sql")]
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    _lock: File,
}

#[cfg(feature = "sql")]
impl FileLock {
    /// Waits for the lock of the file `target`, a path without symbolic links. Returns `None` once
    /// `is_given_up` returns true, and an error if the folder is not writable or its file system
    /// has no locks.
    pub(crate) fn wait_for(
        target: &Path,
        is_given_up: &dyn Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        access::check_write(target)?;
        // `PREFIX` lets `sweep_folder` find the file; 48 characters keep its name below 256 bytes.
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
                // If `path` is another file, the previous holder removed the locked one: retry.
                Ok(()) if is_same_file(&path, &lock) => {
                    return Ok(Some(Self { path, _lock: lock }));
                }
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
        // Remove the file before the lock is released; afterwards another writer may hold the lock.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_lock_name(name: &OsStr) -> bool {
    is_temporary(name) && Path::new(name).extension() == Some(OsStr::new(&LOCK[1..]))
}

fn create_lock(path: &Path) -> io::Result<File> {
    access::create_new(path)
}

fn make_path_in(folder: &Path, stem: &OsStr, ending: &str) -> PathBuf {
    let mut name = stem.to_owned();
    name.push(ending);
    folder.join(name)
}

fn is_same_file(path: &Path, file: &File) -> bool {
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
        // Outside Unix, an open file cannot be replaced, so an existing path still names `file`.
        let _ = file;
        path.exists()
    }
}

/// Removes a file, or a folder with its contents. Succeeds if nothing exists at `path`.
fn remove_all(path: &Path) -> io::Result<()> {
    for _ in 0..MOST_REMOVALS {
        let removed = match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => Err(e),
        };
        match removed {
            // Another thread, which is cancelled at the same time, removes or creates a file in the
            // folder.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

pub(super) fn move_files(from: &Path, to: &Path) -> io::Result<()> {
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

/// Removes leftovers of ended writers. Ignores failures, which do not hinder a new writer.
fn sweep_folder(folder: &Path) {
    if !is_due(folder) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_lock_name(&entry.file_name()) {
            let _ = recover_commit(folder, &entry.path());
        }
    }
}

/// Completes the commits of ended writers, so that a reader finds no mixture of old and new files.
/// Ignores a folder that cannot be listed.
///
/// # Errors
/// If an unfinished commit is in a folder that this process may not write to.
#[cfg(any(feature = "parquet", feature = "sql"))]
pub fn complete_commits(folder: &Path) -> Result<()> {
    recover_commits(folder).map_err(|e| {
        Error::file(
            folder,
            format!("an earlier process was interrupted while it replaced files of this folder, and the replacement cannot be completed; make the folder writable, or create the data set again: {e}"),
        )
    })
}

#[cfg(any(test, feature = "parquet", feature = "sql"))]
fn recover_commits(folder: &Path) -> io::Result<()> {
    if access::check_read(folder).is_err() {
        return Ok(());
    }
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        // A lock file is empty until the writer records a commit in it.
        let has_record = || entry.metadata().is_ok_and(|lock| lock.len() > 0);
        let stem = path.file_stem().unwrap_or_default();
        if is_lock_name(&entry.file_name())
            && has_record()
            && make_path_in(folder, stem, DATA).exists()
        {
            access::check_write(folder)?;
            recover_commit(folder, &path)?;
        }
    }
    Ok(())
}

fn is_due(folder: &Path) -> bool {
    let now = Instant::now();
    let mut swept = lock_mutex(&SWEPT);
    swept.retain(|_, at| now.duration_since(*at) < MIN_SWEEP_INTERVAL);
    swept.insert(folder.to_path_buf(), now).is_none()
}

/// If the lock of a writer is free, completes or undoes its commit and removes its files.
fn recover_commit(folder: &Path, path: &Path) -> io::Result<()> {
    let stem = path.file_stem().unwrap_or_default();
    let held = || lock_mutex(&HELD).as_ref().is_some_and(|held| held.contains_key(stem));
    if held() {
        return Ok(());
    }
    let mut lock = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(lock) => lock,
        // Another process has just completed the commit.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    match lock.try_lock() {
        Ok(()) if is_same_file(path, &lock) && !held() => {}
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    let mut record = Vec::new();
    lock.read_to_end(&mut record)?;
    let (data, aside) = (make_path_in(folder, stem, DATA), make_path_in(folder, stem, ASIDE));
    match serde_json::from_slice(&record) {
        Ok(CommitRecord::Replace(target)) if aside.exists() => {
            let target = folder.join(decode_name(&target));
            match target.exists() {
                true => remove_all(&aside)?,
                false => fs::rename(&aside, &target)?,
            }
        }
        Ok(CommitRecord::Spread) if data.exists() => move_files(&data, folder)?,
        Ok(_) => {}
        // The record was damaged after the old folder was moved aside: keep all files.
        Err(_) if aside.exists() => return Ok(()),
        Err(_) => {}
    }
    remove_all(&data)?;
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

    /// Creates the leftovers of a killed process: data, and an unlocked lock file.
    fn abandon(folder: &Path, stem: &str, commit: Option<&CommitRecord>) -> PathBuf {
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
        let (a, b) = (
            NameLease::acquire_new(dir.path()).unwrap(),
            NameLease::acquire_new(dir.path()).unwrap(),
        );
        fs::write(a.data_path(), "1").unwrap();
        fs::create_dir(b.data_path()).unwrap();
        fs::write(b.data_path().join("x"), "1").unwrap();
        assert_eq!(entries(dir.path()).len(), 4);
        drop((a, b));
        assert!(entries(dir.path()).is_empty());
    }

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_have_stays() {
        let dir = tempfile::tempdir().unwrap();
        let alive = NameLease::acquire_new(dir.path()).unwrap();
        fs::write(alive.data_path(), "1").unwrap();
        // Remove the name from `HELD`, so that the lease seems to be another process's.
        lock_mutex(&HELD).as_mut().unwrap().remove(&alive.stem);
        abandon(dir.path(), ".serrate-dead", None);
        fs::write(dir.path().join(".serrate-mine.tmp"), "no lock: not ours").unwrap();
        lock_mutex(&SWEPT).remove(dir.path());
        let next = NameLease::acquire_new(dir.path()).unwrap();
        assert!(alive.data_path().exists());
        drop((alive, next));
        assert_eq!(entries(dir.path()), [".serrate-mine.tmp"]);
    }

    #[cfg(feature = "sql")]
    #[test]
    fn data_of_another_program_at_the_name_of_a_lease_stays() {
        let dir = tempfile::tempdir().unwrap();
        let stem = NameLease::draw_stem();
        let data = dir.path().join(NameLease::format_data_name(&stem));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("x"), "theirs").unwrap();
        let error = NameLease::acquire_named(dir.path(), &stem).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(entries(dir.path()), [NameLease::format_data_name(&stem)]);
        assert_eq!(fs::read(data.join("x")).unwrap(), b"theirs");
        assert_ne!(NameLease::draw_stem(), stem);
    }

    #[test]
    fn commits_that_were_cut_off_are_completed_or_undone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        // The process ended after it had moved the old folder aside, and before it renamed the new
        // folder.
        abandon(dir.path(), ".serrate-a", Some(&CommitRecord::from_target(&target)));
        fs::create_dir(dir.path().join(".serrate-a.old")).unwrap();
        fs::write(dir.path().join(".serrate-a.old/x"), "old").unwrap();
        drop(NameLease::acquire_new(dir.path()).unwrap());
        assert_eq!(entries(dir.path()), ["out"]);
        assert_eq!(fs::read(target.join("x")).unwrap(), b"old");

        // The process ended after the second rename, before the old folder was removed.
        fs::write(
            dir.path().join(".serrate-b.lock"),
            serde_json::to_vec(&CommitRecord::from_target(&target)).unwrap(),
        )
        .unwrap();
        fs::create_dir(dir.path().join(".serrate-b.old")).unwrap();
        lock_mutex(&SWEPT).remove(dir.path());
        drop(NameLease::acquire_new(dir.path()).unwrap());
        assert_eq!(entries(dir.path()), ["out"]);

        // The process ended when it had moved only some of the files out of the temporary folder.
        let data = abandon(&target, ".serrate-c", Some(&CommitRecord::Spread));
        fs::create_dir(data.join("sub")).unwrap();
        fs::write(data.join("sub/y"), "new").unwrap();
        drop(NameLease::acquire_new(&target).unwrap());
        assert_eq!(entries(&target), ["sub", "x"]);
        assert_eq!(fs::read(target.join("x")).unwrap(), b"new");

        // `recover_commits`, which readers call, also completes a commit that was interrupted.
        let data = abandon(&target, ".serrate-e", Some(&CommitRecord::Spread));
        fs::remove_file(data.join("x")).unwrap();
        fs::create_dir(data.join("sub")).unwrap();
        fs::write(data.join("sub/y"), "newer").unwrap();
        recover_commits(&target).unwrap();
        assert_eq!(entries(&target), ["sub", "x"]);
        assert_eq!(fs::read(target.join("sub/y")).unwrap(), b"newer");
        // Another process may have completed a commit since the folder was listed.
        recover_commit(&target, &target.join(".serrate-e.lock")).unwrap();

        // An incomplete record: the process ended before its first rename, so the old file stays.
        abandon(&target, ".serrate-d", None);
        fs::write(target.join(".serrate-d.lock"), "{\"Repl").unwrap();
        fs::write(target.join(".serrate-d.tmp/x"), "not whole").unwrap();
        lock_mutex(&SWEPT).remove(&target);
        drop(NameLease::acquire_new(&target).unwrap());
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
                        let _lock = FileLock::wait_for(&target, &|| false).unwrap().unwrap();
                        let n: u32 = fs::read_to_string(&target).unwrap().parse().unwrap();
                        std::thread::yield_now();
                        fs::write(&target, (n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&target).unwrap(), "200");
        assert_eq!(entries(dir.path()), ["x"]);
        let _lock = FileLock::wait_for(&target, &|| false).unwrap().unwrap();
        assert!(FileLock::wait_for(&target, &|| true).unwrap().is_none());
    }

    #[test]
    fn writers_that_start_together_get_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let folder = dir.path();
                scope.spawn(move || {
                    for _ in 0..50 {
                        lock_mutex(&SWEPT).clear();
                        let lease = NameLease::acquire_new(folder).unwrap();
                        fs::write(lease.data_path(), format!("{i}")).unwrap();
                        std::thread::yield_now();
                        assert_eq!(fs::read_to_string(lease.data_path()).unwrap(), format!("{i}"));
                    }
                });
            }
        });
        assert!(entries(dir.path()).is_empty());
    }
}
