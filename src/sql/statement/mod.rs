//! Parses SQL text and applies rewrites that no hook of DataFusion's planner supports.
//!
//! ```text
//! SQL text
//!  | `parse`              edits of the text: options of COPY and BATCHES, SUMMARIZE, other forms
//!  |                      checks: depth of nesting, numbers joined to names
//!  v                      DataFusion's parser
//! syntax tree
//!  | `prepare_statement`  formats, EXPLAIN; `SyntaxRewriter`: one walk over all expressions and queries
//!  | `plan_with_views`    1 replanned    arguments of EXECUTE; plans views again
//!  |                        listed_tables   SHOW TABLES
//!  |                      2 by_name      INSERT .. BY NAME and DEFAULT VALUES
//!  |                        clauses, update_targets   reject what the planner would ignore
//!  |                        plain_queries   whether the query skips the steps from 3 to 7
//!  |                        syntax_facts    which of these steps another statement skips
//!  |                      3 outer_fields   `t.s.a` that could be a column of a table `s`
//!  |                        shadowed     names of WITH queries that hide others
//!  |                        unnamed_queries   subqueries in FROM with tables of repeated names
//!  |                      4 star_replaces   checks the names in `* REPLACE`: plans parts
//!  |                        merged       USING, NATURAL: plans parts to learn their columns
//!  |                      5 star_excludes  `* EXCLUDE`: plans parts, too
//!  |                        column_sets  `COLUMNS(*)`, `s.*` of structs: plans parts, too
//!  |                        star_names   `*` with repeated names: plans parts, too
//!  |                      6 position_columns  `_file`, `_row`: looks up tables in the catalog
//!  |                      7 lambda_bodies, times, predicates
//!  |                        recursion_types   types of recursive queries: plans their parts
//!  v                      DataFusion's planner, again with aliases if names clash (clashing_names,
//!                         alias_twins), and without them in HAVING (select_aliases);
//!                         again from 3 if a column is unknown (select_aliases), or if a name
//!                         may be a column of an outer table (outer_tables);
//!                         its errors get suggestions (hints, calls)
//! logical plan
//!  | `share_ctes`, `check_lists`, `set_headings`, `reset_to_default`, `add_table_rows`
//!  | analyzer and optimizer rules, DataFusion's and those of `sql::rules`
//!  v
//! physical plan           the nodes of `sql::sources` and `sql::exec`
//! ```
//!
//! The diagram names files without their folders. A folder is named after the part of a statement
//! that its files are for. The files of this folder plan whole statements, or are used by several
//! folders.

mod alias_rounds;
mod by_name;
pub(in crate::sql) mod columns;
pub(in crate::sql) mod commands;
pub(in crate::sql) mod errors;
pub(in crate::sql) mod expressions;
mod folding;
pub(in crate::sql) mod functions;
pub(in crate::sql) mod keys;
pub(in crate::sql) mod names;
pub(in crate::sql) mod parsing;
mod plain_queries;
mod plan_once;
mod planned_parts;
pub(in crate::sql) mod planner;
mod recursive_unions;
pub(in crate::sql) mod replanned;
pub(in crate::sql) mod scopes;
mod sql_parts;
mod syntax_facts;
pub(in crate::sql) mod syntax_rewriter;
pub(in crate::sql) mod unnest_planner;
