//! Medical event data in the MEDS format: folders of Parquet files with one row per measurement.
//!
//! [`MedsDataset::open`] finds the shards; [`Shard::read`] nests a shard by subject and time into
//! the tables described at [`MedsShard`]. [`Labels::read`] reads prediction targets, and [`AsOf`]
//! finds the history known at the time of each label.

mod asof;
#[cfg_attr(not(feature = "audit"), allow(dead_code, reason = "the audit uses the rest"))]
mod chunk;
mod dataset;
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

pub(crate) use chunk::{ChunkValues, MedsChunk};
pub(crate) use shard::{Needed, compute_delta_days, find_time_type};
pub(crate) use splits::{SplitSource, Splits, TRAIN, move_below_split};

pub use asof::AsOf;
pub use dataset::MedsDataset;
pub use hierarchy::{CodeHierarchy, PARENT_CODES};
pub use labels::{LabelKind, Labels};
pub use shard::{MedsShard, Shard};
pub use sources::MedsReadOptions;
pub use summary::{CodeSummary, MedsSummary, Occurrences, PartSummary, descriptions};
pub use vocabulary::{VOCABULARY_METADATA, Vocabulary, VocabularyId};
