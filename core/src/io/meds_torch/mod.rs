//! Tensorized cohorts: folders for meds-torch-data's `MEDSPytorchDataset`.
//!
//! [`tensorize`] writes a cohort from MEDS data; [`TensorizedCohort`] reads cohorts as MEDS tables.
//!
//! ```text
//! data/train/0.nrt                              code, numeric_value per measurement; time_delta_days per event
//! tokenization/schemas/train/0.parquet          one row per row of the tensors: subject_id, static_code,
//!                                               static_numeric_value, start_time, time, measurements_per_event
//! metadata/codes.parquet                        code, code/vocab_index, and further columns about the code
//! ```
//!
//! Row `i` of a schema file describes row `i` of the tensors. A subject with only static facts is a
//! row without events in both files. meds-torch-data 0.9 omits such a subject only from the
//! tensors, so that later rows of the two files do not correspond. Reading recognizes and corrects
//! this mistake.

mod chunk_encoder;
mod code_statistics;
mod cohort_codes;
mod meds_folder;
mod parallel;
mod schemas;
mod shard_builder;
mod tensorize;
mod tensorized_cohort;
mod tensorized_tables;

pub use meds_folder::MedsFolder;
pub use tensorize::{ShardReport, TensorizeReport, tensorize};
#[cfg(feature = "audit")]
pub(crate) use tensorized_cohort::CountMismatch;
pub use tensorized_cohort::{CohortShard, CohortTables, TensorizedCohort};
pub(crate) use tensorized_tables::tensorize_in_memory;

pub(crate) const TENSORS: &str = "data";
pub(crate) const SCHEMAS: &str = "tokenization/schemas";

fn read_split_name(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Source of the codes of the vocabulary and of their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VocabularyFrom {
    /// Takes codes and tokens from `metadata/codes.parquet` if this file has the column
    /// `code/vocab_index`, otherwise from the train split.
    #[default]
    FileOrTrain,
    /// Takes codes and tokens from `metadata/codes.parquet`. Without the column `code/vocab_index`,
    /// the tokens follow the byte order of the codes.
    File,
    /// Takes the codes of the split `train`, and numbers them from 1 in byte order.
    Train,
}

/// Handling of measurements whose code is not in the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownCodes {
    /// Drops measurements with an unknown code, and events or subjects that have no other
    /// measurements.
    #[default]
    Drop,
    /// Gives unknown codes the token 0, which padding also has; their normalized values are NaN.
    Zero,
    /// Returns an error for the first measurement with an unknown code.
    Refuse,
}

/// Source of the mean and std of each code; values are normalized as `(value - mean) / std`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// No normalization.
    #[default]
    No,
    /// Uses `values/mean` and `values/std` of `metadata/codes.parquet`. A missing column is
    /// computed from the train split with the arithmetic of meds-torch-data: sums are stored in 32
    /// bits, and also divided in 32 bits unless some code has more than 65,535 values. If the mean
    /// of a code far exceeds its standard deviation, its normalized values lose some or all digits.
    ///
    /// For the data set in `tests/data`, values are bit-identical to meds-torch-data's. For large
    /// data sets, they differ by one or two units in the last place, because the sums of
    /// meds-torch-data depend on how it divides the rows among threads.
    Compatible,
    /// Like [`Compatible`](Self::Compatible), with 64-bit arithmetic.
    Exact,
    /// Uses only `metadata/codes.parquet`, with 64-bit arithmetic: the columns `values/mean` and
    /// `values/std` or, if one of these two is missing, `values/n_occurrences`, `values/sum` and
    /// `values/sum_sqd`.
    ByFile,
}

/// Options of [`tensorize`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorizeOptions {
    /// Source of the vocabulary.
    pub vocabulary: VocabularyFrom,
    /// Handling of codes that are not in the vocabulary.
    pub unknown: UnknownCodes,
    /// Normalization of values.
    pub normalize: Normalize,
    /// Whether to replace an existing tensorized cohort, which is otherwise an error.
    pub overwrite: bool,
    /// Number of shards to process concurrently, each in memory; 0 means the number of cores, at
    /// most 8.
    pub jobs: usize,
    /// Whether a subject may have measurements in several shards; each of these shards then has a
    /// row for the subject. By default this is an error that names both shards, as in
    /// [reading](crate::io::meds).
    pub shared_subjects: bool,
}

impl TensorizeOptions {
    fn jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
            jobs => jobs,
        }
    }
}
