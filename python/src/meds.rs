//! Synthetic MEDS data sets.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use serrate::generate::{MedsWriteOptions, SyntheticPatients};
use serrate::io::parquet::ParquetWriteOptions;

use crate::run::run_stoppable;

/// Writes a MEDS data set of synthetic patients, like `serrate generate --to meds`.
#[pyfunction]
#[pyo3(signature = (path, patients, seed=0, shards=None, overwrite=false))]
pub(crate) fn generate_meds(
    py: Python<'_>,
    path: PathBuf,
    patients: u64,
    seed: u64,
    shards: Option<u64>,
    overwrite: bool,
) -> PyResult<()> {
    let mut options = MedsWriteOptions {
        files: ParquetWriteOptions { overwrite, ..Default::default() },
        ..Default::default()
    };
    if let Some(shards) = shards {
        options.shard_subjects = patients.div_ceil(shards.max(1)).max(1);
    }
    run_stoppable(py, |stopped| {
        let check = |_: u64| match stopped.load(Ordering::Relaxed) {
            true => Err(serrate::Error::invalid("the call was interrupted")),
            false => Ok(()),
        };
        SyntheticPatients::new(seed, patients)?.write_meds(&path, &options, check)
    })
}
