use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use crate::access;
use crate::error::Error;
use crate::io::arrow_ipc::{IpcReadOptions, IpcTableReader, IpcTableWriter, IpcWriteOptions};
use crate::memory::MemoryCharge;
use arrow::array::{Array, RecordBatch};
use datafusion::error::Result;
use serrate_core::internal::NameLease;

/// Buffers record batches in memory. Above a limit in bytes, it moves all of them to a temporary
/// file. `finish` memory-maps this file, so that the operating system decides which pages stay in
/// memory.
pub(in crate::sql) struct Spool {
    folder: PathBuf,
    limit: usize,
    held: Vec<RecordBatch>,
    bytes: usize,
    charge: MemoryCharge,
    file: Option<SpillFile>,
}

struct SpillFile {
    writer: IpcTableWriter<BufWriter<File>>,
    lease: NameLease,
}

/// The batches that a [`Spool`] has buffered, in order of arrival.
pub(in crate::sql) struct SpooledBatches {
    pub(in crate::sql) batches: Vec<RecordBatch>,
    /// Deletes the temporary file on drop. `None` if the batches are in memory.
    _file: Option<NameLease>,
    _charge: MemoryCharge,
}

impl Spool {
    /// Creates a spool that holds at most `limit` bytes in memory and spills to a file in `folder`.
    pub(in crate::sql) fn new(folder: impl Into<PathBuf>, limit: usize) -> Self {
        Self {
            folder: folder.into(),
            limit,
            held: Vec::new(),
            bytes: 0,
            charge: MemoryCharge::default(),
            file: None,
        }
    }

    pub(in crate::sql) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.writer.write_batch(&batch)?;
            return Ok(());
        }
        let bytes = count_own_bytes(&batch)?;
        self.bytes = self.bytes.saturating_add(bytes);
        self.held.push(batch);
        let full = self.bytes > self.limit || self.charge.grow("rows to write", bytes).is_err();
        if full { self.spill_batches() } else { Ok(()) }
    }

    fn spill_batches(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let Some(first) = held.first() else { return Ok(()) };
        let folder = &self.folder;
        access::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let lease = NameLease::acquire_new(folder).map_err(|e| Error::io(folder, e))?;
        let file = access::create_new(lease.data_path()).map_err(|e| Error::io(folder, e))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let mut writer = IpcTableWriter::new(out, &first.schema(), &IpcWriteOptions::default())?;
        for batch in &held {
            writer.write_batch(batch)?;
        }
        self.file = Some(SpillFile { writer, lease });
        self.charge = MemoryCharge::default();
        Ok(())
    }

    pub(in crate::sql) fn finish(self) -> Result<SpooledBatches> {
        let Some(SpillFile { writer, lease }) = self.file else {
            return Ok(SpooledBatches { batches: self.held, _file: None, _charge: self.charge });
        };
        let path = lease.data_path();
        writer.into_inner()?.into_inner().map_err(|e| Error::io(&path, e.into_error()))?;
        let mut reader =
            IpcTableReader::open(&path, &IpcReadOptions { columns: None, mmap: true })?;
        let mut batches = Vec::with_capacity(reader.num_batches().unwrap_or_default());
        while let Some(batch) = reader.next_batch() {
            batches.push(batch?);
        }
        Ok(SpooledBatches { batches, _file: Some(lease), _charge: MemoryCharge::default() })
    }
}

/// Counts the bytes of a batch's rows. For a slice, the rest of the buffers does not count.
pub(in crate::sql) fn count_own_bytes(batch: &RecordBatch) -> Result<usize> {
    batch.columns().iter().try_fold(0usize, |sum, column| {
        Ok(sum.saturating_add(column.to_data().get_slice_memory_size()?))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(from: i64) -> RecordBatch {
        let lists = (from..from + 3).map(|n| Some((0..n % 4).map(Some)));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 3));
        RecordBatch::try_from_iter([("id", ids), ("x", lists)]).unwrap()
    }

    #[test]
    fn what_does_not_fit_in_memory_is_in_a_file_for_as_long_as_it_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        let all: Vec<RecordBatch> = (0..5).map(|i| batch(3 * i)).collect();
        for (limit, expected) in
            [(usize::MAX, 0), (count_own_bytes(&all[0]).unwrap() + 1, 2), (0, 2)]
        {
            let mut spool = Spool::new(dir.path(), limit);
            for batch in &all {
                spool.push(batch.clone()).unwrap();
                spool.push(batch.slice(1, 0)).unwrap();
            }
            let kept = spool.finish().unwrap();
            assert_eq!((files(), &kept.batches), (expected, &all), "{limit}");
            drop(kept);
            assert_eq!(files(), 0);
        }
        assert!(Spool::new(dir.path(), 0).finish().unwrap().batches.is_empty());
    }
}
