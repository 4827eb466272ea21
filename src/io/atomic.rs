//! Output files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir, TempPath};

use crate::error::{Error, Result};

/// A file written under a temporary name beside its target; [`commit`](Self::commit) syncs it to
/// disk and renames it into place. Dropped uncommitted, it leaves nothing behind.
///
/// ```
/// use std::io::Write;
/// use serrate::io::atomic::AtomicFile;
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
    writer: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will be `target`.
    ///
    /// # Errors
    /// When `target` exists and may not be overwritten, or its folder cannot be written to.
    pub fn create(target: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        if !overwrite && target.exists() {
            return Err(Error::Exists(target));
        }
        let folder = parent(&target);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".serrate-").suffix(".tmp");
        #[cfg(unix)]
        {
            // As any other new file, not private as temporary files are.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(|e| Error::io(&target, e))?;
        Ok(Self { target, overwrite, writer: BufWriter::with_capacity(1 << 20, file) })
    }

    /// The path the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Syncs the file to disk and gives it its name.
    ///
    /// # Errors
    /// When the disk is full, or somebody made the target meanwhile and it may not be overwritten.
    pub fn commit(self) -> Result<()> {
        let Self { target, overwrite, writer } = self;
        let file = writer.into_inner().map_err(|e| Error::io(&target, e.into_error()))?;
        settled(file.into_parts(), &target, overwrite)
    }
}

#[cfg(feature = "sql")]
/// Syncs a finished file to disk and gives it its name, as [`AtomicFile::commit`] does.
pub(crate) fn settle(temporary: &Path, target: &Path, overwrite: bool) -> Result<()> {
    let file = File::open(temporary).map_err(|e| Error::io(temporary, e))?;
    let path = TempPath::try_from_path(temporary).map_err(|e| Error::io(temporary, e))?;
    settled((file, path), target, overwrite)
}

fn settled((file, path): (File, TempPath), target: &Path, overwrite: bool) -> Result<()> {
    file.sync_all().map_err(|e| Error::io(target, e))?;
    drop(file);
    if overwrite {
        path.persist(target).map_err(|e| Error::io(target, e.error))?;
    } else {
        path.persist_noclobber(target).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(target.to_path_buf()),
            _ => Error::io(target, e.error),
        })?;
    }
    // The name itself is on disk once the folder is.
    if cfg!(unix) {
        let folder = parent(target);
        File::open(folder).and_then(|d| d.sync_all()).map_err(|e| Error::io(folder, e))?;
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
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

/// A folder filled under a temporary name beside its target; [`commit`](Self::commit) renames it into
/// place. Dropped uncommitted, it leaves nothing behind.
///
/// What is in it is not synced to disk.
///
/// ```
/// use serrate::io::atomic::AtomicFolder;
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
    staging: TempDir,
}

impl AtomicFolder {
    /// Starts a folder that will be `target`; folders above it are made.
    ///
    /// # Errors
    /// When the folder above cannot be made or written to.
    pub fn create(target: impl AsRef<Path>) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        let folder = parent(&target);
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".serrate-");
        #[cfg(unix)]
        {
            // As any other new folder, not private as temporary ones are.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let staging = builder.tempdir_in(folder).map_err(|e| Error::io(folder, e))?;
        Ok(Self { target, staging })
    }

    /// Where to write meanwhile.
    pub fn path(&self) -> &Path {
        self.staging.path()
    }

    /// Gives the folder its name. A folder that is there is replaced with all that is in it: whoever
    /// may not do that has looked before.
    ///
    /// # Errors
    /// When a folder cannot be renamed; then all is as it was.
    pub fn commit(self) -> Result<()> {
        let Self { target, staging } = self;
        let rename =
            |from: &Path, to: &Path| fs::rename(from, to).map_err(|e| Error::io(&target, e));
        if target.exists() {
            // Moved aside first: a folder with entries cannot be renamed over.
            let aside = tempfile::Builder::new()
                .prefix(".serrate-")
                .tempdir_in(parent(&target))
                .map_err(|e| Error::io(&target, e))?;
            let replaced = aside.path().join("replaced");
            rename(&target, &replaced)?;
            if let Err(e) = rename(staging.path(), &target) {
                rename(&replaced, &target)?;
                return Err(e);
            }
        } else {
            rename(staging.path(), &target)?;
        }
        // It has another name now: nothing to remove.
        let _ = staging.keep();
        Ok(())
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
}
