//! Benchmarks the decoder of this crate for columns of lists in Parquet files, compared with the
//! reader of the `parquet` crate, on one thread, from memory.
//!
//! `SERRATE_PARQUET=file` reads the columns of a file instead of the generated one (1,250 patients,
//! eight row groups, zstd, as written by this crate).
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Field;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use serrate::generate;
use serrate::io::parquet::lists::{DecodedParts, ListsFile, is_supported, read_column};
use serrate::io::parquet::{self as io, ParquetWriteOptions};

struct File {
    bytes: Arc<Bytes>,
    metadata: ArrowReaderMetadata,
}

impl File {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::var_os("SERRATE_PARQUET").map(PathBuf::from).unwrap_or_else(|| {
            let path = dir.path().join("generated.parquet");
            let table = generate::mimic_table(1250, 1).unwrap();
            let options = ParquetWriteOptions {
                row_group_leaves: 1_400_000,
                ..ParquetWriteOptions::default()
            };
            io::write(&path, &table, &options).unwrap();
            path
        });
        let bytes = Arc::new(Bytes::from(std::fs::read(path).unwrap()));
        let metadata = ArrowReaderMetadata::load(bytes.as_ref(), Default::default()).unwrap();
        Self { bytes, metadata }
    }

    fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn ours(&self, root: usize, field: &Field, parts: DecodedParts) -> Vec<ArrayRef> {
        let metadata = self.metadata.metadata();
        let source = ListsFile { name: Path::new("bench"), reader: &self.bytes, metadata };
        (0..self.groups())
            .map(|g| {
                let rows = usize::try_from(metadata.row_group(g).num_rows()).unwrap();
                read_column(&source, g, root, field, 0..rows, parts).unwrap()
            })
            .collect()
    }

    fn stock(&self, root: usize) -> Vec<ArrayRef> {
        (0..self.groups())
            .map(|g| {
                let rows = self.metadata.metadata().row_group(g).num_rows();
                let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
                    self.bytes.as_ref().clone(),
                    self.metadata.clone(),
                )
                .with_projection(ProjectionMask::roots(self.metadata.parquet_schema(), [root]))
                .with_row_groups(vec![g])
                .with_batch_size(usize::try_from(rows).unwrap())
                .build()
                .unwrap();
                Arc::clone(reader.next().unwrap().unwrap().column(0))
            })
            .collect()
    }
}

fn columns(c: &mut Criterion) {
    let file = File::open();
    for (root, field) in file.metadata.schema().fields().iter().enumerate() {
        if !is_supported(file.metadata.metadata(), root, field) {
            continue;
        }
        let stock = file.stock(root);
        assert!(file.ours(root, field, DecodedParts::Values) == stock, "{field}");
        // The lower bound (floor) copies the arrays once.
        let bytes: usize = stock.iter().map(|a| a.to_data().get_slice_memory_size().unwrap()).sum();
        let mut group = c.benchmark_group(format!("parquet/{}", field.name()));
        group.sample_size(10).throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("floor: bytes of the arrays", |b| {
            b.iter(|| black_box(vec![1u8; black_box(bytes)]));
        });
        group.bench_function("ours", |b| b.iter(|| file.ours(root, field, DecodedParts::Values)));
        group.bench_function("ours, lists only", |b| {
            b.iter(|| file.ours(root, field, DecodedParts::Lists));
        });
        group.bench_function("the parquet crate", |b| b.iter(|| file.stock(root)));
        group.finish();
    }
}

criterion_group!(benches, columns);
criterion_main!(benches);
