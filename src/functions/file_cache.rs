//! Cache of files that functions read. A file that changes is read again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serrate_core::internal::lock_mutex;

use crate::access;
use crate::error::{Error, Result};
use serrate_core::internal::FileStamp;

const MAX_FILES: usize = 4;

/// Parsed contents of the most recently used files. Each cache is in a static, because functions
/// have no state.
pub(super) struct FileCache<T> {
    files: Mutex<Vec<CacheEntry<T>>>,
}

struct CacheEntry<T> {
    path: PathBuf,
    slot: CacheSlot<T>,
}

/// Parsed contents of one file, or `None` before the first read. The lock is held while the file is
/// read, so that partitions that start together read it only once. Readers of other files do not
/// wait.
type CacheSlot<T> = Arc<Mutex<Option<(FileStamp, Arc<T>)>>>;

impl<T> FileCache<T> {
    pub(super) const fn new() -> Self {
        Self { files: Mutex::new(Vec::new()) }
    }

    /// Returns the result of `read` for a file, from the cache if the file has not changed.
    pub(super) fn get(&self, path: &Path, read: impl Fn(&Path) -> Result<T>) -> Result<Arc<T>> {
        let full = access::canonicalize_path(path).map_err(|e| Error::io(path, e))?;
        let slot = self.touch_slot(&full);
        let mut slot = lock_mutex(&slot);
        let stamp = FileStamp::of(&full).map_err(|e| Error::io(path, e))?;
        if let Some((known, value)) = slot.as_ref()
            && *known == stamp
        {
            return Ok(Arc::clone(value));
        }
        let stamp = FileStamp::read_settled(&full).map_err(|e| Error::io(path, e))?;
        // Errors show the path as the caller wrote it, not the canonical path.
        let value = Arc::new(read(path)?);
        *slot = Some((stamp, Arc::clone(&value)));
        Ok(value)
    }

    /// Marks a file as most recently used. Returns its slot in the cache, which is empty before the
    /// first read.
    fn touch_slot(&self, full: &Path) -> CacheSlot<T> {
        let mut files = lock_mutex(&self.files);
        let entry = match files.iter().position(|f| f.path == full) {
            Some(at) => files.remove(at),
            None => CacheEntry { path: full.to_path_buf(), slot: CacheSlot::default() },
        };
        let slot = Arc::clone(&entry.slot);
        files.push(entry);
        if files.len() > MAX_FILES {
            files.remove(0);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_once_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let reads = Cell::new(0);
        let cache = FileCache::new();
        let get = |name: &str| {
            cache
                .get(&dir.path().join(name), |p| {
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

    #[test]
    fn a_change_within_a_step_of_the_clock_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let cache = FileCache::new();
        for i in 0..20 {
            // The new contents are as long as the old, so the cache must detect the change by the
            // file's time of modification.
            fs::write(&path, format!("{i:02}")).unwrap();
            let text = cache.get(&path, |p| fs::read_to_string(p).map_err(|e| Error::io(p, e)));
            assert_eq!(text.unwrap().as_str(), format!("{i:02}"));
        }
    }

    #[test]
    fn nobody_waits_for_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let (slow, fast) = (dir.path().join("slow"), dir.path().join("fast"));
        fs::write(&slow, "1").unwrap();
        fs::write(&fast, "2").unwrap();
        let cache = FileCache::new();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        std::thread::scope(|scope| {
            let cache = &cache;
            let reader = scope.spawn(move || {
                cache.get(&slow, |p| {
                    lock_mutex(&wait).recv().unwrap();
                    fs::read_to_string(p).map_err(|e| Error::io(p, e))
                })
            });
            let text = cache.get(&fast, |p| fs::read_to_string(p).map_err(|e| Error::io(p, e)));
            assert_eq!(text.unwrap().as_str(), "2");
            go.send(()).unwrap();
            assert_eq!(reader.join().unwrap().unwrap().as_str(), "1");
        });
    }
}
