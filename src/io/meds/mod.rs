//! Medical event data in the MEDS format: folders of Parquet files with one row per measurement.
//!
//! [`MedsDataset::open`] finds the shards; [`Shard::read`] nests one by subject and time. What the
//! tables hold is said at [`MedsShard`].

mod dataset;
mod file;
mod shard;
mod vocabulary;

pub use dataset::{MedsDataset, MedsOptions};
pub use shard::{MedsShard, Shard};
pub use vocabulary::{VOCABULARY_METADATA, Vocabulary, VocabularyId};
