//! Parses SQL text and applies rewrites that no hook of DataFusion's planner supports.
//!
//! ```text
//! SQL text
//!  | `parse`              edits of the text: options of COPY and BATCHES, SUMMARIZE, other forms
//!  |                      checks: depth of nesting, numbers joined to names
//!  v                      DataFusion's parser
//! syntax tree
//!  | `prepare_statement`  formats, EXPLAIN; `SyntaxRewriter`: one walk over all expressions and queries
//!  | `plan_here`          1 anew         arguments of EXECUTE; plans views anew
//!  |                      2 clauses, repeated_targets   reject what the planner would ignore
//!  |                      3 outer_fields   `t.s.a` that could be a column of a table `s`
//!  |                        shadowed     names of WITH queries that hide others
//!  |                        unnamed_queries   subqueries in FROM with tables of repeated names
//!  |                      4 star_replaces   checks the names in `* REPLACE`: plans parts
//!  |                        merged       USING, NATURAL: plans parts to learn their columns
//!  |                      5 star_excludes, star_names   `*` with repeated names: plan parts, too
//!  |                        column_sets  `COLUMNS(*)`, `s.*` of structs: plans parts, too
//!  |                      6 position_columns  `_file`, `_row`: looks up tables in the catalog
//!  |                      7 lambda_bodies, times, predicates
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

mod alias_rounds;
mod alias_twins;
pub(in crate::sql) mod anew;
mod by_name;
pub(in crate::sql) mod calls;
mod cast_arguments;
mod change_forms;
mod clashing_names;
pub(in crate::sql) mod clauses;
pub(in crate::sql) mod column_constraints;
mod column_sets;
mod constants;
mod copy_options;
pub(in crate::sql) mod copy_targets;
pub(in crate::sql) mod counterparts;
mod created_tables;
pub(in crate::sql) mod depth;
pub(in crate::sql) mod dialect;
mod distinct_on;
pub(in crate::sql) mod errors;
mod escapes;
pub(in crate::sql) mod expr_rewrites;
mod folding;
pub(in crate::sql) mod forms;
pub(in crate::sql) mod grouping;
pub(in crate::sql) mod headings;
pub(in crate::sql) mod hints;
pub(in crate::sql) mod intervals;
mod join_constraints;
mod joined_numbers;
pub(in crate::sql) mod lambda_bodies;
pub(in crate::sql) mod lateral_tables;
pub(in crate::sql) mod long_numbers;
pub(in crate::sql) mod merged;
mod misplaced_windows;
mod numbered_lambdas;
mod order_aliases;
pub(in crate::sql) mod order_all;
mod outer_fields;
mod outer_tables;
mod own_settings;
mod plan_once;
mod planned_parts;
pub(in crate::sql) mod planner;
pub(in crate::sql) mod position_columns;
pub(in crate::sql) mod predicates;
pub(in crate::sql) mod quantified;
mod recursion_types;
pub(in crate::sql) mod repeated_keys;
mod repeated_targets;
mod row_values;
pub(in crate::sql) mod scopes;
mod select_aliases;
mod select_names;
pub(in crate::sql) mod set_names;
pub(in crate::sql) mod shadowed;
#[cfg(feature = "cli")]
pub(in crate::sql) mod shorthand_docs;
pub(in crate::sql) mod shorthands;
mod star_excludes;
pub(in crate::sql) mod star_names;
mod star_replaces;
pub(in crate::sql) mod syntax_rewriter;
mod text_orders;
pub(in crate::sql) mod tuples;
mod unnamed_queries;
pub(in crate::sql) mod unnest_calls;
pub(in crate::sql) mod unnest_names;
pub(in crate::sql) mod unnest_planner;
pub(in crate::sql) mod windows;
