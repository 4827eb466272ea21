//! Files and folders that appear under their final names only when they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use walkdir::WalkDir;

use super::lease::{CommitRecord, NameLease, is_temporary, move_files};
use crate::access;
use crate::error::{Error, Result, add_copy, remove_copy};

/// How a writer treats a target that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingTarget {
    /// The writer returns [`Error::Exists`].
    Refuse,
    /// The writer replaces the target once the new one is complete.
    Replace,
}

impl ExistingTarget {
    /// Returns [`Replace`](Self::Replace) if `overwrite` is true, else [`Refuse`](Self::Refuse).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::ExistingTarget;
    /// assert_eq!(ExistingTarget::from_overwrite(false), ExistingTarget::Refuse);
    /// ```
    pub fn from_overwrite(overwrite: bool) -> Self {
        if overwrite { Self::Replace } else { Self::Refuse }
    }
}

/// Returns the names in a folder that a writer would replace; none if the folder does not exist.
/// Temporary files of killed writers do not count, because the next writer removes them. Returns an
/// error if there are such names and `overwrite` is false.
pub(crate) fn list_replaced(folder: &Path, overwrite: bool) -> Result<Vec<OsString>> {
    if !access::exists(folder) {
        return Ok(Vec::new());
    }
    let entries = access::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let names = entries
        .map(|entry| Ok(entry.map_err(|e| Error::io(folder, e))?.file_name()))
        .collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = names.into_iter().filter(|name| !is_temporary(name)).collect();
    match names.is_empty() || overwrite {
        true => Ok(names),
        false => Err(Error::Exists(folder.to_path_buf())),
    }
}

/// A file that is written under a temporary name in its final folder; [`commit`](Self::commit)
/// syncs the file to disk and gives it its final name. A drop without a commit removes the file;
/// the next writer into the same folder removes the leftovers of a killed process.
///
/// ```
/// # use serrate_core as serrate;
/// use std::io::Write;
/// use serrate::internal::AtomicFile;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("a.txt");
/// let mut file = AtomicFile::create(&path, false)?;
/// file.write_all(b"whole")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    overwrite: bool,
    writer: BufWriter<File>,
    lease: NameLease,
}

impl AtomicFile {
    /// Starts a file that will be named `target`.
    ///
    /// # Errors
    /// If `target` exists and `overwrite` is false, or its folder cannot be written to.
    pub fn create(target: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        access::check_new(&target, overwrite)?;
        let lease = NameLease::acquire_new(find_parent_folder(&target))
            .map_err(|e| Error::io(&target, e))?;
        let file = access::create_new(lease.data_path());
        let file = file.map_err(|e| Error::io(&target, e))?;
        Ok(Self { target, overwrite, writer: BufWriter::with_capacity(1 << 20, file), lease })
    }

    /// Returns the final path of the file.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Syncs the file to disk and renames it from its temporary to its final name.
    ///
    /// # Errors
    /// If the disk is full, or a file with the final name has appeared since
    /// [`create`](Self::create) was called with `overwrite` false.
    pub fn commit(self) -> Result<()> {
        let Self { target, overwrite, writer, lease } = self;
        let file = writer.into_inner().map_err(|e| Error::io(&target, e.into_error()))?;
        sync_and_rename(&file, &lease.data_path(), &target, overwrite)
    }
}

#[cfg(feature = "sql")]
/// Syncs the complete file `temporary` to disk and renames it to `target`, like
/// [`AtomicFile::commit`]. If `target` exists and `overwrite` is false, returns an error.
pub fn move_into_place(temporary: &Path, target: &Path, overwrite: bool) -> Result<()> {
    let file = access::open(temporary).map_err(|e| Error::io(temporary, e))?;
    sync_and_rename(&file, temporary, target, overwrite)
}

fn sync_and_rename(file: &File, temporary: &Path, target: &Path, overwrite: bool) -> Result<()> {
    let io = |e| Error::io(target, e);
    file.sync_all().map_err(io)?;
    let path = TempPath::try_from_path(temporary).map_err(io)?;
    if overwrite {
        path.persist(target).map_err(|e| io(e.error))?;
    } else {
        path.persist_noclobber(target).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(target.to_path_buf()),
            _ => io(e.error),
        })?;
    }
    sync_folder(find_parent_folder(target))
}

/// Syncs a folder to disk, which makes a rename in it durable.
fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        access::open(folder).and_then(|d| d.sync_all()).map_err(|e| Error::io(folder, e))?;
    }
    Ok(())
}

fn find_parent_folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for AtomicFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.writer.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Makes errors about a file in the temporary folder `staging` give the path that the file will
/// have in the target folder, until this value is dropped.
#[derive(Debug)]
struct TargetNames {
    staging: PathBuf,
}

impl TargetNames {
    fn new(staging: &Path, target: &Path) -> Self {
        add_copy(staging, &target.display().to_string());
        Self { staging: staging.to_path_buf() }
    }
}

impl Drop for TargetNames {
    fn drop(&mut self) {
        remove_copy(&self.staging);
    }
}

/// A folder that is filled under a temporary name next to its final path; [`commit`](Self::commit)
/// renames it. A drop without a commit removes the folder. If the process is killed, the next
/// writer into the parent folder removes the temporary folder.
///
/// A commit does not sync the files in the folder to disk.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::AtomicFolder;
/// let dir = tempfile::tempdir()?;
/// let target = dir.path().join("out");
/// let folder = AtomicFolder::create(&target)?;
/// std::fs::write(folder.path().join("a.txt"), b"whole")?;
/// assert!(!target.exists());
/// folder.commit()?;
/// assert_eq!(std::fs::read(target.join("a.txt"))?, b"whole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFolder {
    target: PathBuf,
    staging: PathBuf,
    lease: NameLease,
    names: TargetNames,
}

impl AtomicFolder {
    /// Starts a folder that will be named `target`; creates missing parent folders.
    ///
    /// # Errors
    /// If the parent folder cannot be created or written to.
    pub fn create(target: impl AsRef<Path>) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        access::check_write(&target).map_err(|e| Error::io(&target, e))?;
        let folder = find_parent_folder(&target);
        access::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let (lease, staging) = create_staging(folder)?;
        let names = TargetNames::new(&staging, &target);
        Ok(Self { target, staging, lease, names })
    }

    /// Returns the temporary folder to write into.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Renames the folder from its temporary to its final name. An existing folder with the final
    /// name is replaced with all its contents; a caller that must not overwrite it checks first
    /// whether it exists.
    ///
    /// Linux and macOS exchange the two folders in one step. Elsewhere the old folder is moved
    /// aside first; if the process ends between the two renames, the next writer into the parent
    /// moves it back.
    ///
    /// # Errors
    /// If a rename fails. The old folder then still has the final name, or the message names the
    /// path to which it was moved.
    pub fn commit(self) -> Result<()> {
        let Self { target, staging, lease, names: _names } = self;
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(|e| Error::io(to, e));
        if !access::exists(&target) {
            rename(&staging, &target)?;
        } else if !exchange_folders(&staging, &target)? {
            replace_folder(lease, &staging, &target, &rename)?;
        }
        sync_folder(find_parent_folder(&target))
    }
}

fn create_staging(folder: &Path) -> Result<(NameLease, PathBuf)> {
    let io = |e| Error::io(folder, e);
    let lease = NameLease::acquire_new(folder).map_err(io)?;
    let staging = lease.data_path();
    fs::create_dir(&staging).map_err(io)?;
    Ok((lease, staging))
}

/// Exchanges two folders in one step; returns false if the system does not support it.
fn exchange_folders(staging: &Path, target: &Path) -> Result<bool> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, staging, CWD, target, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(e) => Err(Error::io(target, e.into())),
        }
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = (staging, target);
        Ok(false)
    }
}

fn replace_folder(
    mut lease: NameLease,
    staging: &Path,
    target: &Path,
    rename: &dyn Fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    // A rename cannot replace a folder that has entries, so the old folder is moved aside first.
    let aside = lease.aside_path();
    lease.record_commit(&CommitRecord::from_target(target)).map_err(|e| Error::io(target, e))?;
    rename(target, &aside)?;
    if let Err(e) = rename(staging, target) {
        if rename(&aside, target).is_err() {
            lease.leave_to_next_writer();
            let message =
                format!("{e}; the old folder is now at {}, so rename it back", aside.display());
            return Err(Error::file(target, message));
        }
        return Err(e);
    }
    fs::remove_dir_all(&aside).map_err(|e| Error::io(&aside, e))
}

/// Several files that are written to a temporary folder. [`commit`](Self::commit) moves all of them
/// to the target folder, or renames the temporary folder if there is no target folder yet.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::AtomicFiles;
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("kept.txt"), b"kept")?;
/// let files = AtomicFiles::create(dir.path(), false)?;
/// std::fs::write(files.path().join("a.txt"), b"whole")?;
/// assert!(!dir.path().join("a.txt").exists());
/// files.commit()?;
/// assert!(dir.path().join("a.txt").exists() && dir.path().join("kept.txt").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFiles {
    target: PathBuf,
    staging: PathBuf,
    overwrite: bool,
    /// Whether the target folder existed at the start. If so, the temporary folder is in the target
    /// folder, because the parent of the target folder may be read-only or on another disk.
    within: bool,
    lease: NameLease,
    names: TargetNames,
}

impl AtomicFiles {
    /// Creates a temporary folder for files of the folder `target`; creates missing parent folders.
    ///
    /// # Errors
    /// If the temporary folder or a missing parent folder cannot be created.
    pub fn create(target: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        access::check_write(&target).map_err(|e| Error::io(&target, e))?;
        let within = access::is_dir(&target);
        let folder = if within { &target } else { find_parent_folder(&target) };
        access::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let (lease, staging) = create_staging(folder)?;
        let names = TargetNames::new(&staging, &target);
        Ok(Self { target, staging, overwrite, within, lease, names })
    }

    /// Returns the temporary folder.
    ///
    /// Sub-folders of this folder become sub-folders of the target folder.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Moves all files to the target folder. If the process ends before all files are moved, the
    /// next writer into the target folder moves the rest.
    ///
    /// # Errors
    /// If the target folder has one of the files and [`create`](Self::create) was called with
    /// `overwrite` false, or if the target folder did not exist when `create` was called and
    /// another process has created it since.
    pub fn commit(self) -> Result<()> {
        let Self { target, staging, overwrite, within, mut lease, names: _names } = self;
        let io = |e| Error::io(&target, e);
        if !within {
            if access::exists(&target) {
                return Err(Error::Exists(target));
            }
            fs::rename(&staging, &target).map_err(io)?;
            return sync_folder(find_parent_folder(&target));
        }
        for entry in WalkDir::new(&staging) {
            let entry = entry.map_err(|e| io(e.into()))?;
            let place = target.join(entry.path().strip_prefix(&staging).unwrap_or(entry.path()));
            if !entry.file_type().is_dir() && (place.is_dir() || !overwrite && place.exists()) {
                return Err(Error::Exists(place));
            }
        }
        lease.record_commit(&CommitRecord::Spread).map_err(io)?;
        move_files(&staging, &target).map_err(io)?;
        sync_folder(&target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_file_that_was_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut file = AtomicFile::create(&path, false).unwrap();
        file.write_all(&[1; 100]).unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn errors_in_temporary_folders_name_the_target() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let folder = AtomicFolder::create(&target).unwrap();
        let file = folder.path().join("a/b.txt");
        let message = || Error::io(&file, io::ErrorKind::StorageFull.into()).to_string();
        assert!(message().starts_with(&target.join("a/b.txt").display().to_string()));
        drop(folder);
        assert!(message().starts_with(&file.display().to_string()));
    }

    #[test]
    fn what_exists_is_kept_unless_told_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"old").unwrap();
        assert!(matches!(AtomicFile::create(&path, false), Err(Error::Exists(_))));
        let mut file = AtomicFile::create(&path, true).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_target_that_appears_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let file = AtomicFile::create(&path, false).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        assert!(matches!(file.commit(), Err(Error::Exists(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn folders_appear_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a").join("b");
        let folder = AtomicFolder::create(&target).unwrap();
        fs::write(folder.path().join("x"), b"1").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 0);
        for text in ["first", "second"] {
            let folder = AtomicFolder::create(&target).unwrap();
            fs::write(folder.path().join(text), text).unwrap();
            folder.commit().unwrap();
            let names: Vec<_> =
                fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(names, [text]);
        }
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_put_back_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("x"), "old").unwrap();
        let (lease, staging) = create_staging(dir.path()).unwrap();
        // Fail every rename after the first one, so the old folder cannot be moved back.
        let done = std::cell::Cell::new(false);
        let error =
            replace_folder(lease, &staging, &target, &|from, to| match done.replace(true) {
                false => fs::rename(from, to).map_err(|e| Error::io(to, e)),
                true => Err(Error::io(to, io::ErrorKind::PermissionDenied.into())),
            })
            .unwrap_err()
            .to_string();
        let mut names = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
        let aside = names.find(|p| p.extension().is_some_and(|e| e == "old")).unwrap();
        assert!(error.contains(&*aside.to_string_lossy()), "{error}");
        assert_eq!(fs::read(aside.join("x")).unwrap(), b"old");
    }

    #[test]
    fn without_an_exchange_a_folder_is_replaced_by_two_renames() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("x"), "old").unwrap();
        let (lease, staging) = create_staging(dir.path()).unwrap();
        fs::write(staging.join("y"), "new").unwrap();
        replace_folder(lease, &staging, &target, &|from, to| {
            fs::rename(from, to).map_err(|e| Error::io(to, e))
        })
        .unwrap();
        assert!(target.join("y").exists() && !target.join("x").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_of_a_folder_appear_together_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        for (target, others) in [(dir.path().join("new"), 0), (dir.path().to_path_buf(), 1)] {
            let write = |overwrite| {
                let files = AtomicFiles::create(&target, overwrite).unwrap();
                fs::create_dir(files.path().join("sub")).unwrap();
                fs::write(files.path().join("a"), "1").unwrap();
                fs::write(files.path().join("sub/b"), "2").unwrap();
                files
            };
            drop(write(false));
            assert!(!target.join("a").exists());
            write(false).commit().unwrap();
            assert!(target.join("a").exists() && target.join("sub/b").exists());
            fs::remove_file(target.join("a")).unwrap();
            assert!(matches!(write(false).commit(), Err(Error::Exists(p)) if p.ends_with("sub/b")));
            assert!(!target.join("a").exists());
            write(true).commit().unwrap();
            assert_eq!(fs::read_dir(&target).unwrap().count(), 2 + others);
        }
    }
}
