//! Writes synthetic patients as a MEDS data set.

use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{
    ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use rayon::prelude::*;

use super::SyntheticPatients;
use super::patients::{PatientChunk, PatientSource};
use crate::access;
use crate::error::{Error, Result};
use crate::io::atomic::{AtomicFile, AtomicFiles, ExistingTarget};
use crate::io::lease::is_temporary;
use crate::io::meds::Vocabulary;
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};

/// Options of [`SyntheticPatients::write_meds`].
#[derive(Clone, Debug)]
pub struct MedsWriteOptions {
    /// Maximum number of patients in one Parquet file of the data set.
    pub shard_subjects: u64,
    /// Options of the files. If `overwrite` is set, files with the same names in the folder are
    /// replaced (other files are kept); if not, the folder must be empty or not exist.
    pub files: ParquetWriteOptions,
}

impl Default for MedsWriteOptions {
    fn default() -> Self {
        Self { shard_subjects: 1000, files: ParquetWriteOptions::default() }
    }
}

/// Codes of static facts, which follow the codes of the
/// [`PatientDistributions`](super::PatientDistributions) in the vocabulary.
const STATIC: [&str; 3] = ["BIRTH_YEAR", "SEX//F", "SEX//M"];

impl SyntheticPatients {
    /// Writes the remaining patients as a MEDS data set.
    ///
    /// The files are `data/{train,tuning,held_out}/*.parquet` with 80, 10 and 10 % of the patients,
    /// `metadata/codes.parquet`, `subject_splits.parquet` and `dataset.json`. `progress` is called
    /// from any thread with the number of patients written so far; if it returns an error, the call
    /// stops and returns this error, and the folder stays as it was.
    ///
    /// A code is named like `LAB//17` (with numeric values), `DIAGNOSIS//18`, `MEDICATION//19` or
    /// `PROCEDURE//20`; the number is its `code/vocab_index`, and its token in
    /// [`write_nrt`](Self::write_nrt) and [`write_parquet`](Self::write_parquet). Sex and year of
    /// birth are static facts. The files move into the folder when all of them are complete. Shards
    /// are written in parallel. For each of these shards, memory holds one chunk
    /// ([`with_chunk_rows`](Self::with_chunk_rows)) and one encoded row group.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// let dir = tempfile::tempdir()?;
    /// let root = dir.path().join("meds");
    /// SyntheticPatients::new(42, 10)?.write_meds(&root, &Default::default(), |_| Ok(()))?;
    /// assert!(root.join("metadata/codes.parquet").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If `shard_subjects` is 0, the iterator holds chunks that it has generated but not returned,
    /// the folder has files and `overwrite` is false, the folder cannot be written to, or `progress`
    /// returns an error.
    pub fn write_meds(
        self,
        folder: impl AsRef<Path>,
        options: &MedsWriteOptions,
        progress: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<()> {
        let folder = folder.as_ref();
        if options.shard_subjects == 0 {
            return Err(Error::invalid("the number of subjects per shard is 0; give at least 1"));
        }
        let used = access::read_dir(folder).is_ok_and(|mut entries| {
            entries.any(|e| !e.is_ok_and(|e| is_temporary(&e.file_name())))
        });
        if used && !options.files.overwrite {
            return Err(Error::Exists(folder.to_path_buf()));
        }
        let (source, patients, chunk_rows) = self.into_parts()?;
        let codes = TokenNames::new(&source)?;
        let splits = split_patients(&patients);

        let staged = AtomicFiles::create(folder, options.files.overwrite)?;
        let folder = staged.path();
        let metadata = folder.join("metadata");
        access::create_dir_all(&metadata).map_err(|e| Error::io(&metadata, e))?;
        let mut shards: Vec<(std::path::PathBuf, Range<u64>)> = Vec::new();
        for (split, range) in &splits {
            let data = folder.join("data").join(split);
            access::create_dir_all(&data).map_err(|e| Error::io(&data, e))?;
            let mut start = range.start;
            while start < range.end {
                let end = start.saturating_add(options.shard_subjects).min(range.end);
                let number = (start - range.start) / options.shard_subjects;
                shards.push((data.join(format!("{number}.parquet")), start..end));
                start = end;
            }
        }

        if shards.is_empty() {
            // A data set without patients still gets one file, which has no rows.
            let none = patients.start..patients.start;
            shards.push((folder.join("data").join("train").join("0.parquet"), none));
        }
        let done = AtomicU64::new(0);
        let step = (chunk_rows as u64).max(1);
        shards.into_par_iter().try_for_each(|(path, range)| {
            let mut writer = ParquetTableWriter::create(path, &codes.schema, &options.files)?;
            let mut start = range.start;
            while start < range.end {
                let end = start.saturating_add(step).min(range.end);
                writer.write_batch(&codes.to_long(&source.draw_patients(start..end))?)?;
                progress(done.fetch_add(end - start, Ordering::Relaxed) + end - start)?;
                start = end;
            }
            writer.finish()
        })?;

        let overwrite = options.files.overwrite;
        let existing = ExistingTarget::from_overwrite(overwrite);
        codes.vocabulary.write(metadata.join("codes.parquet"), |_| None, existing)?;
        write_splits(&metadata.join("subject_splits.parquet"), &splits, &options.files)?;
        let mut file = AtomicFile::create(metadata.join("dataset.json"), overwrite)?;
        let text = serde_json::json!({
            "dataset_name": "serrate generate",
            "dataset_version": env!("CARGO_PKG_VERSION"),
            "meds_version": "0.4.1",
        });
        writeln!(file, "{text}").map_err(|e| Error::io(&metadata, e))?;
        file.commit()?;
        staged.commit()
    }
}

fn split_patients(patients: &Range<u64>) -> [(&'static str, Range<u64>); 3] {
    let n = patients.end - patients.start;
    // Both numbers are rounded down, so all patients are in `train` if there are fewer than 10.
    let (tuning, held_out) = (n / 10, n / 10);
    let (a, b) = (patients.end - tuning - held_out, patients.end - held_out);
    [("train", patients.start..a), ("tuning", a..b), ("held_out", b..patients.end)]
}

fn write_splits(
    path: &Path,
    splits: &[(&'static str, Range<u64>)],
    options: &ParquetWriteOptions,
) -> Result<()> {
    const ROWS: usize = 1 << 16;
    let schema = Arc::new(Schema::new(vec![
        Field::new("subject_id", DataType::Int64, false),
        Field::new("split", DataType::Utf8, false),
    ]));
    let mut writer = ParquetTableWriter::create(path, &schema, options)?;
    for (split, range) in splits {
        let mut ids =
            range.clone().map(|p| i64::try_from(p).unwrap_or(i64::MAX - 1) + 1).peekable();
        while ids.peek().is_some() {
            let part: Int64Array = ids.by_ref().take(ROWS).collect();
            let names =
                StringArray::from_iter_values(std::iter::repeat_n(split, part.values().len()));
            let columns: Vec<ArrayRef> = vec![Arc::new(part), Arc::new(names)];
            writer.write_batch(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
        }
    }
    writer.finish()
}

struct TokenNames {
    /// Names of the tokens: the name of token `t` is at index `t - 1`. The names of static facts
    /// come last.
    names: ArrayRef,
    first_static: u32,
    vocabulary: Vocabulary,
    schema: SchemaRef,
}

impl TokenNames {
    fn new(source: &PatientSource) -> Result<Self> {
        let mut names: Vec<String> = source
            .sampler
            .have_values()
            .enumerate()
            .map(|(i, values)| {
                let token = i + 1;
                let kind = match (values, token % 3) {
                    (true, _) => "LAB",
                    (false, 0) => "DIAGNOSIS",
                    (false, 1) => "MEDICATION",
                    (false, _) => "PROCEDURE",
                };
                format!("{kind}//{token}")
            })
            .collect();
        let first_static = u32::try_from(names.len()).map_err(|_| {
            Error::invalid(format!(
                "{} distinct codes are more than the maximum of 2^32 - 1; reduce `vocab_size`",
                names.len()
            ))
        })?;
        names.extend(STATIC.iter().map(|s| (*s).to_string()));
        let vocabulary = Vocabulary::from_tokens(names.iter().zip(1u32..))?;
        let schema = Schema::new(vec![
            Field::new("subject_id", DataType::Int64, false),
            Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("code", DataType::Utf8, false),
            Field::new("numeric_value", DataType::Float32, true),
        ]);
        let names = Arc::new(StringArray::from(names));
        Ok(Self { names, first_static, vocabulary, schema: Arc::new(schema) })
    }

    /// Converts a chunk to one row per measurement. Each patient begins with two static facts: year
    /// of birth and sex.
    #[expect(clippy::cast_precision_loss, reason = "a year")]
    fn to_long(&self, chunk: &PatientChunk) -> Result<RecordBatch> {
        let rows = chunk.code.len() + 2 * chunk.subject_id.len();
        let (mut ids, mut times) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (mut keys, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (mut event, mut leaf) = (0, 0);
        for (patient, id) in chunk.subject_id.iter().enumerate() {
            let (female, born) = chunk.facts[patient];
            times.extend([None, None]);
            keys.extend([self.first_static, self.first_static + if female { 1 } else { 2 }]);
            values.extend([born as f32, f32::NAN]);
            for _ in 0..chunk.events[patient] {
                let n = chunk.measurements[event] as usize;
                times.extend(std::iter::repeat_n(Some(chunk.time[event]), n));
                keys.extend(chunk.code[leaf..leaf + n].iter().map(|c| u32::from(*c) - 1));
                values.extend_from_slice(&chunk.numeric_value[leaf..leaf + n]);
                event += 1;
                leaf += n;
            }
            ids.resize(keys.len(), *id);
        }
        let valid = BooleanBuffer::collect_bool(values.len(), |i| !values[i].is_nan());
        let values = Float32Array::try_new(values.into(), Some(NullBuffer::new(valid)))?;
        // MEDS prescribes plain strings for codes. The file stays small, because the Parquet writer
        // encodes them as a dictionary anyway.
        let code = take(&self.names, &UInt32Array::from(keys), None)?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(ids)),
            Arc::new(TimestampMicrosecondArray::from(times)),
            code,
            Arc::new(values),
        ];
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
