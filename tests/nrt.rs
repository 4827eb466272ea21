//! `.nrt` and safetensors files: against files of the Python library, each other, and damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

#[test]
fn files_of_the_python_library_round_trip_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(vectors().join("nrt-files")).unwrap() {
        let path = entry.unwrap().path();
        let table = NrtFile::open(&path, &ReadOptions::default()).unwrap().table().unwrap();
        let copy = dir.path().join(path.file_name().unwrap());
        nrt::write(&copy, &table, &WriteOptions::default()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copy).unwrap(), "{path:?}");
        files += 1;
    }
    assert_eq!(files, 6);
}
