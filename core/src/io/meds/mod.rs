//! Medical event data in the MEDS format: folders of Parquet files with one row per measurement.
//!
//! [`MedsDataset::open`] finds the shards; [`MedsShardFile::read`] nests a shard by subject and
//! time into the tables described at [`MedsShard`]. [`Labels::read`] reads prediction targets, and
//! [`AsOf`] finds the history known at the time of each label.

mod asof;
#[cfg_attr(not(feature = "audit"), allow(dead_code, reason = "the audit uses the rest"))]
mod chunk;
mod dataset;
mod distinct_subjects;
pub(crate) mod file;
mod hierarchy;
pub(crate) mod labels;
pub(crate) mod list_view;
pub(crate) mod plain_types;
pub(crate) mod shard;
mod sources;
#[cfg_attr(not(feature = "audit"), allow(dead_code, reason = "the audit uses the rest"))]
mod splits;
mod summary;
mod vocabulary;

#[cfg(feature = "audit")]
pub(crate) use chunk::MissingValue;
pub(crate) use chunk::{ChunkValues, MedsChunk};
pub(crate) use dataset::make_missing_shard_error;
pub(crate) use shard::{NeededColumns, compute_delta_days, find_time_type};
pub(crate) use splits::{SplitSource, SubjectSplits, TRAIN, move_below_split};

pub use asof::AsOf;
pub use dataset::MedsDataset;
pub use hierarchy::{CodeHierarchy, PARENT_CODES};
pub use labels::{LabelKind, Labels};
pub use shard::{MedsShard, MedsShardFile};
pub use sources::MedsReadOptions;
pub use summary::{CodeOccurrences, CodeSummary, MedsSummary, PartSummary, descriptions};
pub use vocabulary::{VOCABULARY_METADATA, Vocabulary, VocabularyId};
