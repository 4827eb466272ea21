//! Temporary folders in which local files are written before they get their final names.

use std::ffi::OsStr;
use std::io;
use std::path::{Path as FilePath, PathBuf};

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use serrate_core::internal::{NameLease, is_temporary};

use crate::access;

/// Name of the file in the temporary folder.
const FILE: &str = "file";

/// Maximum number of attempts to create the folder of the target. A failed writer to the same folder
/// removes the folder if it is empty, possibly between its creation and its use.
const MAX_ATTEMPTS: usize = 100;

/// A local file that is written in a temporary folder next to its final path. The object store of
/// the file system would write it under its final name with `#` and a number, and nothing would
/// remove this file if the process were killed. A drop removes the temporary folder; so does the
/// next writer to the folder of the target if this process is killed.
#[derive(Debug)]
pub(super) struct TemporaryTarget {
    lease: NameLease,
    target: PathBuf,
    location: Path,
}

impl TemporaryTarget {
    /// Prepares the write of the file `location`. Creates the missing folders above it. Returns
    /// `None` if the file is in a temporary folder already.
    pub(super) fn prepare_write(location: &Path) -> object_store::Result<Option<Self>> {
        if location.parts().any(|part| is_temporary(OsStr::new(part.as_ref()))) {
            return Ok(None);
        }
        let target = LocalFileSystem::new().path_to_filesystem(location)?;
        let folder = target.parent().unwrap_or(&target);
        let lease = acquire_lease(folder).map_err(|e| to_store_error(&target, e))?;
        let data = lease.data_path();
        let name = data.file_name().unwrap_or_default().to_string_lossy();
        let above = location.parent().unwrap_or_default();
        let location = above.join(&*name).join(FILE);
        Ok(Some(Self { lease, target, location }))
    }

    /// Returns the location of the temporary file, which does not exist yet.
    pub(super) fn temporary_path(&self) -> &Path {
        &self.location
    }

    /// Renames the complete file to its final name, and replaces a file that has this name.
    pub(super) fn publish_file(self) -> object_store::Result<()> {
        let moved = self.lease.move_out(OsStr::new(FILE), &self.target);
        moved.map_err(|e| to_store_error(&self.target, e))
    }
}

fn acquire_lease(folder: &FilePath) -> io::Result<NameLease> {
    let mut attempts = 0usize;
    loop {
        access::create_dir_all(folder)?;
        attempts = attempts.saturating_add(1);
        match NameLease::acquire_new(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && attempts < MAX_ATTEMPTS => {}
            acquired => return acquired,
        }
    }
}

pub(super) fn to_store_error(path: impl AsRef<FilePath>, e: io::Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "LocalFileSystem",
        source: Box::new(crate::Error::io(path, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("new/a #1.csv");
        let location = Path::from_absolute_path(&target).unwrap();
        let store = LocalFileSystem::new();
        for complete in [false, true] {
            let temporary = TemporaryTarget::prepare_write(&location).unwrap().unwrap();
            let file = store.path_to_filesystem(temporary.temporary_path()).unwrap();
            assert!(TemporaryTarget::prepare_write(temporary.temporary_path()).unwrap().is_none());
            std::fs::create_dir(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "whole").unwrap();
            assert!(!target.exists());
            if complete {
                temporary.publish_file().unwrap();
                assert_eq!(std::fs::read(&target).unwrap(), b"whole");
            } else {
                drop(temporary);
            }
            let names = std::fs::read_dir(dir.path().join("new")).unwrap();
            assert_eq!(names.count(), usize::from(complete));
        }
    }
}
