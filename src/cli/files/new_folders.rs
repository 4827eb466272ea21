//! [`NewFolders`]: removes folders that a failed command created and left empty.

use crate::access;
use std::path::{Path, PathBuf};

pub(in crate::cli) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    pub(in crate::cli) fn from_targets<P: AsRef<Path>>(
        targets: impl IntoIterator<Item = P>,
    ) -> Self {
        let mut missing: Vec<PathBuf> = Vec::new();
        for target in targets {
            let folders = target.as_ref().ancestors().skip(1);
            let new = folders.take_while(|f| !f.as_os_str().is_empty() && !access::exists(f));
            for folder in new {
                if !missing.iter().any(|m| m == folder) {
                    missing.push(folder.to_path_buf());
                }
            }
        }
        // Sorts inner folders first, so that an outer folder is empty when it is removed.
        missing.sort_by_key(|f| std::cmp::Reverse(f.components().count()));
        Self(missing)
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Removal fails for a folder that contains files, so such a folder stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("x/a/1"), dir.path().join("x/b/c/2"));
        let folders = NewFolders::from_targets([&a, &b]);
        for file in [&a, &b] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        std::fs::write(&a, "").unwrap();
        drop(folders);
        assert!(a.exists() && !dir.path().join("x/b").exists());
        drop(NewFolders::from_targets([&b]));
        drop(NewFolders::from_targets([dir.path().join("new")]));
        assert!(dir.path().exists());
    }
}
