//! Tensorized cohorts: folders as meds-torch-data's `MEDSPytorchDataset` opens them.
//!
//! [`tensorize`] makes one of a MEDS data set; [`TensorizedCohort`] reads one, whoever made it, as the
//! tables that a MEDS data set gives.
//!
//! ```text
//! data/train/0.nrt                              code, numeric_value per measurement; time_delta_days per event
//! tokenization/schemas/train/0.parquet          one row per row of the tensors: subject_id, static_code,
//!                                               static_numeric_value, start_time, time, measurements_per_event
//! metadata/codes.parquet                        code, code/vocab_index, what is known of the code
//! ```
//!
//! Row `i` of a schema file describes row `i` of the tensors. Subjects that have static facts only are
//! rows without events here; meds-torch-data 0.9 leaves them out of its tensors but not out of its
//! schema files, so that every later row there describes another subject. Such folders are
//! recognized and put right when they are read.

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
pub use read::{CohortShard, CohortTables, TensorizedCohort};
pub(crate) use tables::tables;
pub use tensorize::{ShardReport, TensorizeReport, tensorize};

/// Folder of the tensors.
pub(crate) const TENSORS: &str = "data";
/// Folder of the schema files.
pub(crate) const SCHEMAS: &str = "tokenization/schemas";

/// The split that the name of a shard says: its first part.
fn split_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Where the vocabulary comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VocabularyFrom {
    /// `code/vocab_index` of `metadata/codes.parquet` when there is one, else the train split.
    #[default]
    FileOrTrain,
    /// `metadata/codes.parquet`; its codes in order when it has no `code/vocab_index`.
    File,
    /// The codes of the train split in the order of their bytes, from 1 on.
    Train,
}

/// What is done with measurements whose code is not in the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// They are left out, and an event or subject that has nothing else with them.
    #[default]
    Drop,
    /// They get the token 0, which is that of padding as well; a number is NaN when others are
    /// normalized.
    Zero,
    /// The first one is an error.
    Refuse,
}

/// How numbers are normalized: `(value - mean) / std` of their code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// Not at all.
    #[default]
    No,
    /// By `values/mean` and `values/std` of `metadata/codes.parquet`; one that it lacks comes from
    /// the sums of the train split, taken as meds-torch-data takes them: in 32 bits unless some code
    /// has more than 65,535 numbers. Codes whose numbers are large beside their spread lose digits, or
    /// all, in that arithmetic.
    ///
    /// The numbers of the sample data set in `tests/data` are equal to the bit. On large data, sums
    /// of 32 bits differ by one or two units in the last place, and scaled numbers with them: the sums
    /// of meds-torch-data depend on its number of threads, these do not.
    Compatible,
    /// The same in 64 bits.
    Exact,
    /// By `metadata/codes.parquet` alone: `values/mean` and `values/std`, or else
    /// `values/n_occurrences`, `values/sum` and `values/sum_sqd`; in 64 bits.
    ByFile,
}

/// Options of [`tensorize`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorizeOptions {
    /// Where the vocabulary comes from.
    pub vocabulary: VocabularyFrom,
    /// What is done with codes that are not in it.
    pub unknown: Unknown,
    /// How numbers are normalized.
    pub normalize: Normalize,
    /// Replaces a tensorized cohort that is there; else it is an error.
    pub overwrite: bool,
    /// Shards worked on at a time, each in memory of its tensors; 0 is the number of cores, at most
    /// 8.
    pub jobs: usize,
    /// Whether a subject may have measurements in several shards, each of which then has a row for
    /// it; else (the default) it is an error that names both, as when [reading](crate::io::meds).
    pub shared_subjects: bool,
}

impl TensorizeOptions {
    /// How many shards are worked on at a time.
    fn jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
            jobs => jobs,
        }
    }
}
