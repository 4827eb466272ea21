//! Measures the conversion of all columns of the first rows of a file to padded tensors with masks.

use std::time::Instant;

use serde_json::{Value, json};
use serrate::Result;
use serrate::dense::{BufferPool, DenseOptions, TableDenseOptions};
use serrate::io::nrt::{NrtFile, ReadOptions};

use super::{Arguments, bits};

pub(super) fn run(arguments: &Arguments) -> Result<Value> {
    let file = NrtFile::open(&arguments.file, &ReadOptions::default())?;
    let table = file.read(0..arguments.get("rows", 64).min(file.num_rows()), None)?;
    let fresh = DenseOptions { parallel: true, ..Default::default() };
    let serial = DenseOptions { parallel: false, ..Default::default() };
    let pooled = DenseOptions { pool: Some(BufferPool::default()), ..Default::default() };
    let mut results = Vec::new();
    for (name, dense) in [
        ("**Serrate**, fresh memory", fresh),
        ("Serrate, fresh memory, 1 thread", serial),
        ("**Serrate**, reused buffers", pooled),
    ] {
        let options = TableDenseOptions { dense, ..Default::default() };
        // The first run loads the pages of the mapped file and fills the pool.
        drop(table.to_dense_with(&options)?);
        let start = Instant::now();
        let tensors = table.to_dense_with(&options)?;
        let seconds = start.elapsed().as_secs_f64();
        let checksum = format!("{:x}", bits(tensors.iter().map(|(_, t)| t)));
        results.push(json!({"name": name, "seconds": seconds, "checksum": checksum}));
    }
    Ok(results.into())
}
