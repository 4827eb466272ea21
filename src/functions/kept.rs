//! Files that functions need: read once, and again only when they have changed.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// Files kept at a time.
const KEPT: usize = 4;

/// What was made of the files that were asked for last. Functions have no state of their own, and are
/// called for every batch.
pub(super) struct Kept<T> {
    files: Mutex<Vec<Entry<T>>>,
}

struct Entry<T> {
    path: PathBuf,
    stamp: Stamp,
    value: Arc<T>,
}

/// What differs when a file was written anew.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: metadata.modified().ok(), length: metadata.len(), inode }
    }
}

impl<T> Kept<T> {
    pub(super) const fn new() -> Self {
        Self { files: Mutex::new(Vec::new()) }
    }

    /// What `read` makes of a file, now or when it was asked last.
    pub(super) fn get(&self, path: &Path, read: impl Fn(&Path) -> Result<T>) -> Result<Arc<T>> {
        let full = fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
        let stamp = Stamp::of(&fs::metadata(&full).map_err(|e| Error::io(path, e))?);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = files.iter().position(|f| f.path == full && f.stamp == stamp) {
            let entry = files.remove(at);
            let value = Arc::clone(&entry.value);
            files.push(entry);
            return Ok(value);
        }
        // Under the lock, so that partitions that start together read it once. In the words of the
        // caller, who did not write the canonical path.
        let value = Arc::new(read(path)?);
        files.retain(|f| f.path != full);
        if files.len() >= KEPT {
            files.remove(0);
        }
        files.push(Entry { path: full, stamp, value: Arc::clone(&value) });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_file_is_read_once_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let reads = Cell::new(0);
        let kept = Kept::new();
        let get = |name: &str| {
            kept.get(&dir.path().join(name), |p| {
                reads.set(reads.get() + 1);
                fs::read_to_string(p).map_err(|e| Error::io(p, e))
            })
            .map(|v| v.to_string())
        };
        fs::write(dir.path().join("a"), "1").unwrap();
        assert_eq!(
            (get("a").unwrap(), get("a").unwrap(), reads.get()),
            ("1".into(), "1".into(), 1)
        );
        assert_eq!((get("./a").unwrap().as_str(), reads.get()), ("1", 1));
        fs::write(dir.path().join("a"), "22").unwrap();
        assert_eq!((get("a").unwrap().as_str(), reads.get()), ("22", 2));
        for name in ["b", "c", "d", "e"] {
            fs::write(dir.path().join(name), name).unwrap();
            get(name).unwrap();
        }
        assert_eq!((get("e").unwrap().as_str(), reads.get()), ("e", 6));
        assert_eq!((get("a").unwrap().as_str(), reads.get()), ("22", 7));
        fs::remove_file(dir.path().join("a")).unwrap();
        assert!(get("a").is_err());
        assert_eq!(reads.get(), 7);
    }
}
