//! Tracks the folders that are created to write local files, so that a failed write leaves no empty
//! folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::{FutureExt, ready};
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};
use serrate_core::internal::lock_mutex;

use crate::access;
use crate::sql::sources::temporary_target::TemporaryTarget;

/// Folders that did not exist before the running writes, each with the number of running writes
/// into it. If two writes into a folder fail, the last of them removes it.
#[derive(Debug, Default)]
pub(super) struct CreatedFolders {
    writes: Mutex<HashMap<PathBuf, usize>>,
}

impl CreatedFolders {
    /// Starts a write of `file`. The write ends when the result is dropped, which removes those
    /// created folders above the file that are empty.
    pub(super) fn start_write(self: &Arc<Self>, file: &Path) -> FolderWrite {
        let mut writes = lock_mutex(&self.writes);
        let above = file.ancestors().skip(1);
        let created = above.take_while(|f| writes.contains_key(*f) || !access::exists(f));
        let folders: Vec<PathBuf> = created.map(Path::to_path_buf).collect();
        for folder in &folders {
            let count = writes.entry(folder.clone()).or_default();
            *count = count.saturating_add(1);
        }
        FolderWrite { created: Arc::clone(self), folders }
    }
}

/// A write of a file, with the folders above it that did not exist, the innermost first.
#[derive(Debug)]
pub(super) struct FolderWrite {
    created: Arc<CreatedFolders>,
    folders: Vec<PathBuf>,
}

impl Drop for FolderWrite {
    fn drop(&mut self) {
        let mut writes = lock_mutex(&self.created.writes);
        for folder in &self.folders {
            // Removal fails for a folder that contains files, so such a folder stays.
            let _ = access::remove_empty_folder(folder);
            if let Some(count) = writes.get_mut(folder) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    writes.remove(folder);
                }
            }
        }
    }
}

/// An upload to the local file system. If it is dropped before it is complete, it removes its
/// temporary file and the folders that it created.
#[derive(Debug)]
pub(super) struct LocalUpload {
    /// `None` once the file is complete.
    inner: Option<Box<dyn MultipartUpload>>,
    /// The folder of the temporary file. Declared before `_write`, which removes the folders above
    /// it if they are empty.
    temporary: Option<TemporaryTarget>,
    _write: FolderWrite,
}

impl LocalUpload {
    pub(super) fn new(
        inner: Box<dyn MultipartUpload>,
        temporary: Option<TemporaryTarget>,
        write: FolderWrite,
    ) -> Self {
        Self { inner: Some(inner), temporary, _write: write }
    }
}

fn make_ended_error() -> object_store::Error {
    object_store::Error::Generic {
        store: "LocalFileSystem",
        source: "internal error: the upload has ended; please report it".into(),
    }
}

#[async_trait]
impl MultipartUpload for LocalUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut self.inner {
            Some(inner) => inner.put_part(data),
            None => ready(Err(make_ended_error())).boxed(),
        }
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let Some(inner) = &mut self.inner else { return Err(make_ended_error()) };
        let completed = inner.complete().await?;
        self.inner = None;
        if let Some(temporary) = self.temporary.take() {
            temporary.publish_file()?;
        }
        Ok(completed)
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        match &mut self.inner {
            Some(inner) => inner.abort().await,
            None => Err(make_ended_error()),
        }
    }
}

impl Drop for LocalUpload {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        // On drop, `inner` removes its temporary file. In a Tokio runtime, it would do so in a
        // later task, and the folder of the file would not be empty yet when it is to be removed.
        // On a thread without a runtime, it removes the file at once.
        if let Ok(thread) = std::thread::Builder::new().spawn(move || drop(inner)) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_failed_writes_are_removed_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Arc::new(CreatedFolders::default());
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("old")).unwrap();
        let old = folders.start_write(&path("old/a.csv"));
        let (one, two) = (path("new/k=1/a.csv"), path("new/k=1/b.csv"));
        let (first, second) = (folders.start_write(&one), folders.start_write(&two));
        std::fs::create_dir_all(path("new/k=1")).unwrap();
        std::fs::write(&two, "").unwrap();
        drop((old, first));
        assert!(path("old").exists() && two.exists());
        std::fs::remove_file(&two).unwrap();
        drop(second);
        assert!(path("old").exists() && !path("new").exists());

        let whole = folders.start_write(&one);
        std::fs::create_dir_all(path("new/k=1")).unwrap();
        std::fs::write(&one, "").unwrap();
        drop(whole);
        assert!(one.exists());
        assert!(folders.writes.lock().unwrap().is_empty());
    }
}
