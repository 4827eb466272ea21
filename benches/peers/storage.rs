//! Measures a data set in several file formats: size on disk, and the times to open it and to read
//! one item, one batch and one epoch.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use serrate::io::nrt::{NrtFile, ReadOptions};
use serrate::io::parquet::{self, ParquetReadOptions, ParquetWriteOptions};
use serrate::loader::{Loader, LoaderOptions, WindowSampling};
use serrate::table::RaggedTable;
use serrate::{Error, Result};

use super::Arguments;

pub(super) fn run(arguments: &Arguments) -> Result<Value> {
    let folder = tempfile::tempdir().map_err(|e| Error::invalid(e.to_string()))?;
    let packed = folder.path().join("patients.parquet");
    // `serrate convert` writes NaN as NULL in Parquet files, too.
    let table = mapped(&arguments.file)?.nan_to_null()?;
    parquet::write(&packed, &table, &ParquetWriteOptions::default())?;
    let nrt = store("**`.nrt`, mapped (Serrate)**", arguments, &arguments.file, &mapped)?;
    let from_parquet = store("**Parquet, zstd (Serrate)**", arguments, &packed, &|path| {
        parquet::read(path, &ParquetReadOptions::default())
    })?;
    Ok(json!([nrt, from_parquet]))
}

fn mapped(path: &Path) -> Result<RaggedTable> {
    NrtFile::open(path, &ReadOptions::default())?.table()
}

fn store(
    name: &str,
    arguments: &Arguments,
    path: &Path,
    open: &dyn Fn(&Path) -> Result<RaggedTable>,
) -> Result<Value> {
    let (batch, window) = (arguments.get("batch", 64), arguments.get("window", 256));
    let disk = std::fs::metadata(path).map_err(|e| Error::invalid(e.to_string()))?.len();
    let mut best = [f64::INFINITY; 4];
    let mut least = |slot: usize, value: f64| best[slot] = best[slot].min(value);
    for _ in 0..arguments.get("rounds", 5) {
        let start = Instant::now();
        let table = open(path)?;
        least(0, start.elapsed().as_secs_f64());

        // All rows are read, in random order and with all columns, because one access is too short
        // to be timed.
        let rows = table.num_rows();
        let columns: Vec<String> = table.columns().iter().map(|c| c.name().to_owned()).collect();
        let start = Instant::now();
        for i in 0..rows {
            let row = table.row(i.wrapping_mul(7_919) % rows)?;
            let events = 0..row.len().min(window);
            let item = row.events(events)?;
            for column in &columns {
                black_box(item.values(column)?);
            }
        }
        least(1, start.elapsed().as_secs_f64() / rows as f64);

        let options =
            LoaderOptions::new(batch).window(window, WindowSampling::FromStart).shuffle(7);
        let loader = Loader::try_new([table], options)?;
        let start = Instant::now();
        let mut batches = 0usize;
        for batch in loader.epoch(0)? {
            black_box(batch?);
            batches += 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        least(2, seconds / batches as f64);
        least(3, seconds);
    }
    let [open_seconds, item_seconds, collate_seconds, epoch_seconds] = best;
    Ok(json!({
        "name": name,
        "disk_bytes": disk,
        "open_seconds": open_seconds,
        "item_seconds": item_seconds,
        "collate_seconds": collate_seconds,
        "epoch_seconds": epoch_seconds,
    }))
}
