//! Files and folders that the tests of several formats read and write.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;

pub(crate) fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub(crate) fn write_parquet(path: &Path, batch: &RecordBatch) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

pub(crate) fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<_> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

/// Writes Parquet files with the given names to a temporary folder. The first value that is
/// returned deletes the folder when it is dropped; the second is the path of the data set.
pub(crate) fn write_dataset(files: &[(&str, impl Borrow<RecordBatch>)]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    for (name, batch) in files {
        write_parquet(&dir.path().join("in").join(name), batch.borrow());
    }
    let root = dir.path().join("in");
    (dir, root)
}
