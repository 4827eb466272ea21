//! Tensorized cohorts: folders for meds-torch-data's `MEDSPytorchDataset`.
//!
//! [`tensorize`] writes one from a MEDS data set; [`TensorizedCohort`] reads one, whichever tool
//! wrote it, as the tables of a MEDS data set.
//!
//! ```text
//! data/train/0.nrt                              code, numeric_value per measurement; time_delta_days per event
//! tokenization/schemas/train/0.parquet          one row per row of the tensors: subject_id, static_code,
//!                                               static_numeric_value, start_time, time, measurements_per_event
//! metadata/codes.parquet                        code, code/vocab_index, what is known of the code
//! ```
//!
//! Row `i` of a schema file describes row `i` of the tensors. Subjects with only static facts are
//! rows without events here; meds-torch-data 0.9 omits them from its tensors but not from its
//! schema files, so every later row there describes another subject. Such folders are recognized
//! and corrected when they are read.

mod build;
mod codes;
mod encode;
mod fit;
mod folder;
mod parallel;
mod read;
mod schemas;
mod tables;
mod tensorize;

pub use folder::MedsFolder;
pub(crate) use read::Mismatch;
pub use read::{CohortShard, CohortTables, TensorizedCohort};
pub(crate) use tables::tables;
pub use tensorize::{ShardReport, TensorizeReport, tensorize};

/// Folder of the tensors.
pub(crate) const TENSORS: &str = "data";
/// Folder of the schema files.
pub(crate) const SCHEMAS: &str = "tokenization/schemas";

/// Returns the split of a shard, the first part of its name.
fn split_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Source of the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VocabularyFrom {
    /// `code/vocab_index` of `metadata/codes.parquet` if it exists, otherwise the train split.
    #[default]
    FileOrTrain,
    /// `metadata/codes.parquet`, with its codes in order if it has no `code/vocab_index`.
    File,
    /// The codes of the train split in byte order, from 1 on.
    Train,
}

/// Handling of measurements whose code is not in the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// Drops them, and events or subjects that have nothing else.
    #[default]
    Drop,
    /// Gives them the token 0, which is also padding; their values are NaN if values are
    /// normalized.
    Zero,
    /// Reports the first one as an error.
    Refuse,
}

/// Normalization of values: `(value - mean) / std` of their code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// No normalization.
    #[default]
    No,
    /// By `values/mean` and `values/std` of `metadata/codes.parquet`; missing ones are computed
    /// from the train split with the arithmetic of meds-torch-data: 32-bit sums unless some code
    /// has more than 65,535 values. Codes with a large mean relative to their deviation lose some
    /// or all digits in that arithmetic.
    ///
    /// Values of the sample data set in `tests/data` are bit-identical. On large data, 32-bit sums,
    /// and with them scaled values, differ by one or two units in the last place: the sums of
    /// meds-torch-data depend on its number of threads, these do not.
    Compatible,
    /// Like `Compatible`, in 64 bits.
    Exact,
    /// By `metadata/codes.parquet` alone, in 64 bits: `values/mean` and `values/std`, otherwise
    /// `values/n_occurrences`, `values/sum` and `values/sum_sqd`.
    ByFile,
}

/// Options of [`tensorize`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorizeOptions {
    /// Source of the vocabulary.
    pub vocabulary: VocabularyFrom,
    /// Handling of codes that are not in the vocabulary.
    pub unknown: Unknown,
    /// Normalization of values.
    pub normalize: Normalize,
    /// Replaces an existing tensorized cohort; otherwise it is an error.
    pub overwrite: bool,
    /// Number of shards processed concurrently, each in memory; 0 means the number of cores, at
    /// most 8.
    pub jobs: usize,
    /// Whether a subject may have measurements in several shards, each of which then has a row for
    /// it. By default this is an error that names both, as in [reading](crate::io::meds).
    pub shared_subjects: bool,
}

impl TensorizeOptions {
    /// Returns the number of shards processed concurrently.
    fn jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
            jobs => jobs,
        }
    }
}
