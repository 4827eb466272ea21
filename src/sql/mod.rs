//! SQL over ragged tables and files: the session, its settings, table providers and file formats.
//!
//! [`session()`] creates a DataFusion session with everything registered. To extend another
//! session, build it through [`configure`], or call [`register_formats`], [`register_functions`]
//! and, for operators on lists, [`register_operators`].
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

mod base;
mod checks;
mod exec;
mod from;
mod order;
#[cfg(feature = "cluster")]
pub(crate) mod portable;
mod pushdown;
mod rules;
mod session;
pub(crate) mod sources;
mod statement;
mod workarounds;

#[cfg(feature = "cli")]
pub(crate) use base::tokens::{quote_name, quote_text};
#[cfg(feature = "cluster")]
pub(crate) use exec::copied::remove_memory_nodes;
#[cfg(feature = "cluster")]
pub(crate) use exec::given_values::{insert_values, list_scalar_subqueries, remove_nullable_mark};
pub(crate) use exec::one_input;
#[cfg(feature = "cluster")]
pub(crate) use exec::{display_name, pass_through, replace_config};

pub use crate::config::{DisabledRules, NrtNan, SerrateOptions};
pub use crate::functions::{register_functions, register_operators};
#[cfg(feature = "cluster")]
pub(crate) use order::SourceOrderExec;
#[cfg(feature = "cli")]
pub(crate) use order::sum_counts;
pub use order::{in_source_order, prefer_source_order};
#[cfg(any(feature = "cluster", feature = "serve"))]
pub(crate) use session::find_process_runtime;
pub use session::{configure, register_formats, session, session_with};
#[cfg(feature = "serve")]
pub(crate) use session::{new_session_in, new_session_like};
pub use sources::asof::{label_tasks, unknown_labels};
#[cfg(feature = "cluster")]
pub(crate) use sources::hidden_files::skip_hidden_files;
#[doc(hidden)]
pub use sources::run_ends::decode_runs;
#[cfg(all(feature = "cli", feature = "cloud"))]
pub(crate) use sources::stores::hide_credentials;
pub use sources::table_provider::{RaggedTableProvider, register_table};
#[cfg(feature = "cli")]
pub(crate) use sources::upload::has_aborts;
#[cfg(feature = "cli")]
pub(crate) use sources::urls::to_local_path;
#[cfg(any(feature = "cluster", feature = "serve"))]
pub(crate) use statement::errors::wording::LOST_WORKER;
#[cfg(feature = "cli")]
pub(crate) use statement::errors::wording::{
    convert_internal_error, describe_error, remove_store_words,
};
#[cfg(feature = "cli")]
pub(crate) use statement::functions::calls::find_similar_names;
#[cfg(feature = "cli")]
pub(crate) use statement::functions::counterparts::find_counterpart;
#[cfg(feature = "cli")]
pub(crate) use statement::functions::shorthand_docs::find_shorthand_documentation;
#[cfg(feature = "cli")]
pub(crate) use statement::functions::shorthands::{list_shorthand_forms, list_shorthand_names};
#[cfg(feature = "cli")]
pub(crate) use statement::parsing::dialect::find_parser_dialect;
#[cfg(feature = "cli")]
pub(crate) use statement::planner::execute_plan;
pub use statement::planner::{execute, parse, plan, sql};
#[cfg(feature = "serve")]
pub(crate) use statement::replanned::{
    bind_parameters, count_parameters_of, is_prepare, number_parameters,
};
