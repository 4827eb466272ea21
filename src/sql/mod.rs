//! SQL over ragged tables and files: the session, its settings, table providers and file formats.
//!
//! [`session()`] is a DataFusion session with everything in place. To bring the same into a session
//! of your own, either build it through [`configure`], or call [`register_formats`],
//! [`register_functions`] and, if operators on lists are wanted, [`register_operators`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ctx = serrate::sql::session();
//! let batches = ctx.sql("SELECT [1, 2, 3] AS codes").await?.collect().await?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```

mod arrow_files;
mod asof;
mod batches;
mod below_joins;
mod changes;
mod clauses;
mod columns;
mod conditions;
mod contains;
mod cuts;
mod decimals;
mod dependencies;
mod depth;
mod dialect;
pub(crate) mod dok;
mod empty;
mod errors;
mod exec;
mod flat_filters;
mod float_keys;
mod from;
mod guard;
mod guarded_rules;
mod headings;
mod hints;
mod json;
mod lambdas;
mod lengths;
mod limits;
mod listing;
mod meds;
mod merge_joins;
mod merged;
mod modifiers;
mod multisets;
mod nrt;
mod order;
mod order_all;
mod output;
mod pacing;
mod parquet;
mod partitions;
mod positions;
mod precedence;
mod predicates;
mod quantified;
mod relation;
mod repeated_keys;
mod rules;
mod safetensors;
mod scan_order;
mod scopes;
mod session;
mod similar;
mod sort_lists;
mod sorts;
mod spool;
mod stack;
mod statement;
mod subqueries;
mod table;
mod texts;
mod times;
mod topk;
mod training;
mod unions;
mod unnest_names;
mod urls;
mod visible;
mod whole;
mod windows;
mod written;
mod yielding;

pub use crate::config::{NrtNan, SerrateOptions};
pub use crate::functions::{register_functions, register_operators};
pub use asof::{
    AsOfOrder, AsOfProjections, MedsAsOfFunction, MedsAsOfTable, label_tasks, unknown_labels,
};
pub use batches::{BatchSizeExec, LeafBatches};
pub use below_joins::BelowJoins;
pub use changes::PlainChanges;
pub use contains::ContainsPushdown;
pub use dok::{DokFormat, DokFormatFactory, DokTable, DokTableFactory, register_dok_names};
pub(crate) use errors::of_statement;
pub use from::{ExplodeExec, ExplodeOptions, NestExec, VocabFunction};
pub use lambdas::LambdaParameters;
pub use lengths::LengthsBelow;
pub use meds::{MedsFunction, MedsTable};
pub use nrt::{NrtFormat, NrtFormatFactory};
pub use order::{MemoryOrder, OrderedSinkExec, SourceOrder, SourceOrderExec, in_source_order};
pub use parquet::{ParquetFileFormat, ParquetFileFormatFactory, ParquetLists};
pub use safetensors::{SafetensorsFormat, SafetensorsFormatFactory};
pub use session::{configure, register_formats, session, session_with};
pub use sort_lists::SortLists;
pub use statement::{execute, parse, plan, sql};
pub use table::{RaggedTableProvider, register_table};
pub use training::{BatchesFormat, BatchesFormatFactory};
pub use whole::{WholeFileFormat, WholeFileFormatFactory};
