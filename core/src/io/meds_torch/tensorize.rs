//! Converts a MEDS data set to a tensorized cohort.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use safetensors::Dtype;

use super::chunk_encoder::{ChunkEncoder, list_part_names};
use super::cohort_codes::CohortCodes;
use super::parallel::run_in_order;
use super::shard_builder::CohortShardBuilder;
use super::{SCHEMAS, TENSORS, TensorizeOptions, TensorizedCohort, schemas};
use crate::access;
use crate::error::{Error, Result};
use crate::io::atomic::{AtomicFolder, list_replaced};
use crate::io::meds::{MedsDataset, SplitSource, SubjectSplits};
use crate::io::safetensors::{SaveOptions, write_tensors};

/// Report of [`tensorize()`] about the written cohort.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds_torch::{ShardReport, TensorizeReport};
/// let shard = ShardReport { events: 2, measurements: 5, statics: 1, ..Default::default() };
/// let report = TensorizeReport { shards: vec![shard.clone(), shard], ..Default::default() };
/// assert_eq!((report.events(), report.measurements(), report.statics()), (4, 10, 2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TensorizeReport {
    /// The written shards, in the order of the shards read.
    pub shards: Vec<ShardReport>,
    /// Number of codes in the vocabulary.
    pub codes: usize,
    /// For each code that is not in the vocabulary: its number of measurements.
    pub unknown: BTreeMap<String, u64>,
    /// Names of the shards whose rows were not ordered by subject and time and have been sorted.
    pub unsorted: Vec<String>,
    /// Whether the data set has no splits; all of it is then in the train split.
    pub no_splits: bool,
}

/// Name of one written shard and its numbers of subjects, events and measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardReport {
    /// Name of the shard with its split in front: `train/0`.
    pub name: String,
    /// Number of rows, one per subject.
    pub subjects: usize,
    /// Number of rows without events.
    pub without_events: usize,
    /// Number of events.
    pub events: usize,
    /// Number of measurements with a time.
    pub measurements: usize,
    /// Number of measurements without a time.
    pub statics: usize,
}

impl TensorizeReport {
    /// Returns the number of measurements whose code is not in the vocabulary.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::{ShardReport, TensorizeReport};
    /// let shard = ShardReport { events: 2, measurements: 5, statics: 1, ..Default::default() };
    /// let report = TensorizeReport { shards: vec![shard], ..Default::default() };
    /// assert_eq!((report.events(), report.measurements(), report.statics()), (2, 5, 1));
    /// assert_eq!(report.unknown_measurements(), 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn unknown_measurements(&self) -> u64 {
        self.unknown.values().sum()
    }

    fn sum_over(&self, part: impl Fn(&ShardReport) -> usize) -> usize {
        self.shards.iter().map(part).sum()
    }

    /// Returns the number of subjects in all shards; each subject is one row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::{ShardReport, TensorizeReport};
    /// let shard = |subjects| ShardReport { subjects, ..Default::default() };
    /// let report = TensorizeReport { shards: vec![shard(2), shard(3)], ..Default::default() };
    /// assert_eq!(report.subjects(), 5);
    /// ```
    pub fn subjects(&self) -> usize {
        self.sum_over(|s| s.subjects)
    }

    /// Returns the number of events in all shards.
    pub fn events(&self) -> usize {
        self.sum_over(|s| s.events)
    }

    /// Returns the number of measurements with a time in all shards.
    pub fn measurements(&self) -> usize {
        self.sum_over(|s| s.measurements)
    }

    /// Returns the number of measurements without a time in all shards.
    pub fn statics(&self) -> usize {
        self.sum_over(|s| s.statics)
    }
}

/// Converts a MEDS data set to a folder for meds-torch-data's `MEDSPytorchDataset`.
///
/// * One `data/<shard>.nrt` per shard, with `code` (Int64) and `numeric_value` (Float32) per
///   measurement and `time_delta_days` (Float32) per event: whole seconds since the previous event
///   / 86,400, NaN for the first event of a subject. Missing and infinite values are NaN; if the
///   data set has no `numeric_value`, all values are NaN.
/// * One `tokenization/schemas/<shard>.parquet` with the same rows. It has the exact times of the
///   events, which cannot be computed from `time_delta_days`.
/// * `metadata/codes.parquet`: the vocabulary, the columns of the data set's own file, and the
///   statistics of the train split if it was read for the vocabulary or for normalization.
///
/// Subjects are in order of first appearance, measurements of an event in file order. Rows that are
/// not contiguous by subject or not in order of time are sorted by both with a stable sort. A shard
/// belongs to the split that its folder names; if the folder names none, the shard is divided by
/// `metadata/subject_splits.parquet`. The name of each written shard begins with its split. A
/// subject whose measurements are all dropped (see [`UnknownCodes`](super::UnknownCodes)) has no
/// row.
///
/// Each shard is read once, or twice if it must be sorted. The train split is read once more if it
/// provides the vocabulary or statistics. Memory holds only the shards that are being processed.
/// The folder appears only when it is complete.
///
/// `progress` is called after each shard, from any thread; [`ControlFlow::Break`] stops the
/// conversion.
///
/// # Errors
/// If the folder is not empty (with `overwrite`: has anything but a tensorized cohort), the data
/// cannot be read, a subject has no split or is in two shards, a code is unknown under
/// [`UnknownCodes::Refuse`](super::UnknownCodes::Refuse), two shards get the same name, or
/// `progress` stops.
///
/// ```
/// # use serrate_core as serrate;
/// use std::ops::ControlFlow;
/// use serrate::io::meds::MedsDataset;
/// use serrate::io::meds_torch::{Normalize, TensorizeOptions, TensorizedCohort, tensorize};
/// let data = MedsDataset::open("../tests/data/synthea-meds")?;
/// let dir = tempfile::tempdir()?;
/// let out = dir.path().join("cohort");
/// let options = TensorizeOptions { normalize: Normalize::Compatible, ..Default::default() };
/// let report = tensorize(&data, &out, &options, |_| ControlFlow::Continue(()))?;
/// assert_eq!((report.subjects(), report.codes, report.unknown.len()), (28, 400, 27));
/// assert_eq!(TensorizedCohort::open(&out)?.shards().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tensorize(
    dataset: &MedsDataset,
    out: impl AsRef<Path>,
    options: &TensorizeOptions,
    progress: impl Fn(&[ShardReport]) -> ControlFlow<()> + Sync,
) -> Result<TensorizeReport> {
    let out = out.as_ref();
    check_output(dataset.root(), out, options.overwrite)?;
    let jobs = options.jobs();
    let splits = SubjectSplits::read_splits(dataset.root())?;
    let sources = dataset.sources();
    let names = list_part_names(dataset, &splits)?;
    let codes = CohortCodes::build_codes(dataset, &splits, options, jobs)?;

    let staging = AtomicFolder::create(out)?;
    let root = staging.path();
    let metadata = root.join("metadata");
    access::create_dir_all(&metadata).map_err(|e| Error::io(&metadata, e))?;
    codes.write(&metadata.join("codes.parquet"))?;

    let mut report = TensorizeReport {
        codes: codes.len(),
        no_splits: sources
            .iter()
            .all(|(name, _)| splits.find_shard_split(name) == SplitSource::Unknown),
        ..TensorizeReport::default()
    };
    let work = |i: usize| {
        let (name, source) = &sources[i];
        let encoder = ChunkEncoder { codes: &codes, splits: &splits, unknown: options.unknown };
        let shard = encoder.encode_shard(source, &names[i])?;
        shard.check_subjects(dataset, i, options)?;
        let written = shard
            .parts
            .iter()
            .map(|(n, p)| write_shard(root, n, p, &codes))
            .collect::<Result<Vec<_>>>()?;
        if progress(&written).is_break() {
            return Err(Error::invalid(
                "the conversion was stopped before all shards were written; run it again",
            ));
        }
        Ok((written, shard.unknown, shard.sorted.then(|| name.clone())))
    };
    run_in_order(sources.len(), jobs, work, |(written, unknown, sorted)| {
        report.shards.extend(written);
        for (code, count) in unknown {
            *report.unknown.entry(code).or_default() += count;
        }
        report.unsorted.extend(sorted);
        Ok(())
    })?;
    staging.commit()?;
    Ok(report)
}

fn write_shard(
    root: &Path,
    name: &str,
    shard: &CohortShardBuilder,
    codes: &CohortCodes,
) -> Result<ShardReport> {
    let path = |folder: &str, ending: &str| -> Result<PathBuf> {
        let path = root.join(folder).join(format!("{name}.{ending}"));
        let parent = path.parent().unwrap_or(root);
        access::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
        Ok(path)
    };
    fn as_bytes<T: arrow::datatypes::ArrowNativeType>(values: &[T]) -> &[u8] {
        arrow::datatypes::ToByteSlice::to_byte_slice(values)
    }
    let (rows, events, measurements) =
        ([shard.subjects.len()], [shard.times.len()], [shard.codes.len()]);
    write_tensors(
        path(TENSORS, "nrt")?,
        [
            ("dim1/bounds", Dtype::I64, &rows[..], as_bytes(&shard.event_ends)),
            ("dim1/time_delta_days", Dtype::F32, &events[..], as_bytes(&shard.deltas)),
            ("dim2/bounds", Dtype::I64, &events[..], as_bytes(&shard.measurement_ends)),
            ("dim2/code", Dtype::I64, &measurements[..], as_bytes(&shard.codes)),
            ("dim2/numeric_value", Dtype::F32, &measurements[..], as_bytes(&shard.values)),
        ],
        &SaveOptions::default(),
    )?;
    schemas::write_schema_file(&path(SCHEMAS, "parquet")?, shard, &codes.token_type)?;
    let ends = std::iter::once(&0).chain(&shard.event_ends);
    Ok(ShardReport {
        name: name.to_string(),
        subjects: shard.subjects.len(),
        without_events: ends.zip(&shard.event_ends).filter(|(start, end)| start == end).count(),
        events: shard.times.len(),
        measurements: shard.codes.len(),
        statics: shard.static_codes.len(),
    })
}

/// Names of entries in the folder of a cohort; a folder with other entries is not replaced.
const COHORT: [&str; 4] = ["data", "metadata", "tokenization", ".logs"];

fn check_output(root: &Path, out: &Path, overwrite: bool) -> Result<()> {
    let names = list_replaced(out, overwrite)?;
    if names.is_empty() {
        return Ok(());
    }
    let canonical = |p: &Path| access::canonicalize_path(p).map_err(|e| Error::io(p, e));
    if canonical(root)?.starts_with(canonical(out)?) {
        return Err(Error::file(
            out,
            "the data set is read from this folder; write to another folder",
        ));
    }
    match names.iter().find(|n| !COHORT.iter().any(|c| *n == c)) {
        Some(other) => Err(Error::file(
            out,
            format!(
                "the folder has the entry {:?}, which is not part of a tensorized cohort, so the folder is not replaced; remove this entry, or write to another folder",
                other.to_string_lossy()
            ),
        )),
        // A MEDS data set has `data` and `metadata`, too, but no `tokenization/schemas`.
        None if !TensorizedCohort::is_at(out) => Err(Error::file(
            out,
            "the folder is not a tensorized cohort (it has no tokenization/schemas), so it is not replaced; remove it, or write to another folder",
        )),
        None => Ok(()),
    }
}
