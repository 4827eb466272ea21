//! Tests of SQL: statements that `serrate::sql::sql` plans, over tables in memory and files of
//! every format. Tests named `stock_..` run DataFusion without the rules and the parser of this
//! crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[path = "sql/arrow_files.rs"]
mod arrow_files;
#[path = "sql/asof.rs"]
mod asof;
#[path = "sql/casts_of_columns.rs"]
mod casts_of_columns;
#[path = "sql/changes.rs"]
mod changes;
#[path = "sql/claimed_orders.rs"]
mod claimed_orders;
#[path = "sql/clauses.rs"]
mod clauses;
#[path = "sql/codes.rs"]
mod codes;
#[path = "sql/computed_sort_keys.rs"]
mod computed_sort_keys;
#[path = "sql/conditions.rs"]
mod conditions;
#[path = "sql/copy_options.rs"]
mod copy_options;
#[path = "sql/csv_files.rs"]
mod csv_files;
#[path = "sql/daily_names.rs"]
mod daily_names;
#[path = "sql/damaged.rs"]
mod damaged;
#[path = "sql/decimals.rs"]
mod decimals;
#[path = "sql/depth.rs"]
mod depth;
#[path = "common/dictionary_counts.rs"]
mod dictionary_counts;
#[path = "sql/disabled_rules.rs"]
mod disabled_rules;
#[path = "sql/dok.rs"]
mod dok;
#[path = "sql/dynamic_filters.rs"]
mod dynamic_filters;
#[path = "sql/exact.rs"]
mod exact;
#[path = "sql/file_order.rs"]
mod file_order;
#[path = "sql/files.rs"]
mod files;
#[path = "sql/filtered_aggregates.rs"]
mod filtered_aggregates;
#[path = "sql/float_aggregates.rs"]
mod float_aggregates;
#[path = "sql/float_keys.rs"]
mod float_keys;
#[path = "sql/folders.rs"]
mod folders;
#[path = "sql/formats.rs"]
mod formats;
#[path = "sql/forms.rs"]
mod forms;
#[path = "sql/from.rs"]
mod from;
#[path = "sql/grouping.rs"]
mod grouping;
#[path = "sql/headings.rs"]
mod headings;
#[path = "sql/hidden_values.rs"]
mod hidden_values;
#[path = "sql/in_lists.rs"]
mod in_lists;
#[path = "sql/integers.rs"]
mod integers;
#[path = "sql/joins.rs"]
mod joins;
#[path = "sql/json_files.rs"]
mod json_files;
#[path = "sql/lateral_queries.rs"]
mod lateral_queries;
#[path = "sql/limits.rs"]
mod limits;
#[path = "sql/listing.rs"]
mod listing;
#[path = "sql/local_times.rs"]
mod local_times;
#[path = "sql/long_constants.rs"]
mod long_constants;
#[path = "sql/merged.rs"]
mod merged;
#[path = "sql/merged_orders.rs"]
mod merged_orders;
#[path = "sql/merged_subqueries.rs"]
mod merged_subqueries;
#[path = "sql/nested_order.rs"]
mod nested_order;
#[path = "sql/nested_subqueries.rs"]
mod nested_subqueries;
#[path = "common/null_counts.rs"]
mod null_counts;
#[path = "sql/numbers.rs"]
mod numbers;
#[path = "sql/order.rs"]
mod order;
#[path = "sql/order_aliases.rs"]
mod order_aliases;
#[path = "sql/outer_columns.rs"]
mod outer_columns;
#[path = "sql/outputs.rs"]
mod outputs;
#[path = "sql/over_lists.rs"]
mod over_lists;
#[path = "sql/parquet.rs"]
mod parquet_files;
#[path = "sql/parquet_lists.rs"]
mod parquet_lists;
#[path = "sql/parquet_types.rs"]
mod parquet_types;
#[path = "sql/planning.rs"]
mod planning;
#[path = "sql/pushdown.rs"]
mod pushdown;
#[path = "sql/quantified.rs"]
mod quantified;
#[path = "sql/quantiles.rs"]
mod quantiles;
#[path = "sql/query_values.rs"]
mod query_values;
#[path = "sql/repeated_names.rs"]
mod repeated_names;
#[path = "sql/replanned.rs"]
mod replanned;
#[path = "sql/safety.rs"]
mod safety;
#[path = "sql/select_aliases.rs"]
mod select_aliases;
#[path = "sql/session.rs"]
mod session;
#[path = "sql/set_operations.rs"]
mod set_operations;
#[path = "sql/several_subqueries.rs"]
mod several_subqueries;
#[path = "sql/shared_rows.rs"]
mod shared_rows;
#[path = "sql/statistics.rs"]
mod statistics;
#[path = "common/store.rs"]
mod store;
#[path = "sql/subqueries.rs"]
mod subqueries;
#[path = "sql/tables.rs"]
mod tables;
#[path = "sql/texts.rs"]
mod texts;
#[path = "sql/time_aggregates.rs"]
mod time_aggregates;
#[path = "sql/time_casts.rs"]
mod time_casts;
#[path = "sql/time_texts.rs"]
mod time_texts;
#[path = "sql/times/mod.rs"]
mod times;
#[allow(unreachable_pub)]
#[path = "common/torture.rs"]
mod torture;
#[path = "sql/training.rs"]
mod training;
#[path = "sql/unnamed_queries.rs"]
mod unnamed_queries;
#[path = "sql/unnest.rs"]
mod unnest;
#[path = "sql/uploads.rs"]
mod uploads;
#[path = "sql/widened_files.rs"]
mod widened_files;
#[path = "sql/windows.rs"]
mod windows;
#[path = "sql/with_queries.rs"]
mod with_queries;
#[path = "sql/within.rs"]
mod within;

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use serrate::datafusion;
use serrate::io::nrt::{self, WriteOptions};
use serrate::table::RaggedTable;

/// Creates a session with four partitions.
fn create_parallel_session() -> SessionContext {
    serrate::sql::session_with(SessionConfig::new().with_target_partitions(4))
}

/// Runs a statement as `serrate::sql::sql` plans it.
async fn query_batches(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    serrate::sql::sql(ctx, sql).await?.collect().await
}

/// Runs a statement that must succeed.
async fn run_query(ctx: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    query_batches(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"))
}

/// Runs a statement that DataFusion plans, without the rewrites of `serrate::sql::sql`.
async fn stock_batches(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    ctx.sql(sql).await?.collect().await
}

/// Returns the rows of a statement as the table that `pretty_format_batches` prints.
async fn query_text(ctx: &SessionContext, sql: &str) -> String {
    to_text(sql, query_batches(ctx, sql).await)
}

async fn stock_text(ctx: &SessionContext, sql: &str) -> String {
    to_text(sql, stock_batches(ctx, sql).await)
}

fn to_text(sql: &str, found: Result<Vec<RecordBatch>>) -> String {
    match found {
        Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
        Err(e) => panic!("{sql}\n{e}"),
    }
}

/// Returns the error of a statement that `serrate::sql::sql` plans.
async fn error(ctx: &SessionContext, sql: &str) -> String {
    to_error(sql, query_batches(ctx, sql).await)
}

async fn stock_error(ctx: &SessionContext, sql: &str) -> String {
    to_error(sql, stock_batches(ctx, sql).await)
}

fn to_error(sql: &str, found: Result<Vec<RecordBatch>>) -> String {
    match found {
        Ok(batches) => panic!("{sql} worked:\n{}", pretty_format_batches(&batches).unwrap()),
        Err(e) => e.strip_backtrace(),
    }
}

/// Returns the rows of a statement as one string: cells separated by blanks, rows by semicolons.
async fn query_rows(ctx: &SessionContext, sql: &str) -> String {
    to_rows(&run_query(ctx, sql).await)
}

/// Returns the rows of a statement as [`query_rows`] does, or its error.
async fn rows_or_error(ctx: &SessionContext, sql: &str) -> String {
    match query_batches(ctx, sql).await {
        Ok(batches) => to_rows(&batches),
        Err(e) => e.strip_backtrace(),
    }
}

fn to_rows(batches: &[RecordBatch]) -> String {
    to_lines(batches, "NULL", " ").join("; ")
}

/// Returns each row as a string of its cells, separated by blanks; NULL is an empty string.
async fn query_texts(ctx: &SessionContext, sql: &str) -> Vec<String> {
    to_lines(&run_query(ctx, sql).await, "", " ")
}

/// Returns each row as a string of its cells, separated by commas; NULL is an empty string.
async fn query_lines(ctx: &SessionContext, sql: &str) -> Vec<String> {
    to_lines(&run_query(ctx, sql).await, "", ",")
}

/// Returns each row as a string of its cells, separated by `between`; the string `null` is NULL.
fn to_lines(batches: &[RecordBatch], null: &str, between: &str) -> Vec<String> {
    use datafusion::arrow::util::display::array_value_to_string;
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|c| match c.is_null(row) {
                true => null.to_owned(),
                false => array_value_to_string(c, row).unwrap(),
            });
            lines.push(cells.collect::<Vec<_>>().join(between));
        }
    }
    lines
}

/// Runs statements that must succeed, and ignores their rows.
async fn run_all(ctx: &SessionContext, statements: &[impl AsRef<str>]) {
    for sql in statements {
        run_query(ctx, sql.as_ref()).await;
    }
}

/// Runs `setup` and the statements of `cases` in sessions with one and with four partitions. Panics
/// with all statements whose rows, or whose error, differ from the expected string.
async fn expect_rows(setup: &[&str], cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for partitions in [1, 4] {
        let ctx =
            serrate::sql::session_with(SessionConfig::new().with_target_partitions(partitions));
        run_all(&ctx, setup).await;
        for (sql, expected) in cases {
            let found = rows_or_error(&ctx, sql).await;
            if found != *expected {
                wrong.push_str(&format!("{sql}\n  has   {found}\n  not   {expected}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Returns the value of the first column in the first row of a statement.
async fn query_int(ctx: &SessionContext, sql: &str) -> i64 {
    query_ints(ctx, sql).await[0]
}

/// Returns the values of the first column of a statement.
async fn query_ints(ctx: &SessionContext, sql: &str) -> Vec<i64> {
    to_ints(sql, query_batches(ctx, sql).await)
}

async fn stock_one(ctx: &SessionContext, sql: &str) -> i64 {
    stock_ints(ctx, sql).await[0]
}

async fn stock_ints(ctx: &SessionContext, sql: &str) -> Vec<i64> {
    to_ints(sql, stock_batches(ctx, sql).await)
}

fn to_ints(sql: &str, found: Result<Vec<RecordBatch>>) -> Vec<i64> {
    let batches = found.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    batches
        .iter()
        .flat_map(|b| {
            let column = datafusion::arrow::compute::cast(
                b.column(0),
                &datafusion::arrow::datatypes::DataType::Int64,
            )
            .unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        })
        .collect()
}

fn make_ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// Builds a batch of nullable columns.
fn make_batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let columns = columns.iter().map(|(name, values)| (*name, Arc::clone(values), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Writes a table to a `.nrt` file, and creates the folder of the file.
fn write_table(path: &Path, table: &RaggedTable) {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).unwrap();
    }
    nrt::write(path, table, &WriteOptions::default()).unwrap();
}

/// Returns a table of `n` rows with consecutive values of `id` from `first` on. Each row has one
/// event, which has as many codes as the last digit of the id.
fn make_numbered_table(first: i64, n: usize) -> RaggedTable {
    let ids = first..first + n as i64;
    let lengths: Vec<usize> = ids.clone().map(|i| (i % 10) as usize).collect();
    let codes: Vec<i64> = ids.clone().flat_map(|i| (0..i % 10).map(move |k| i * 10 + k)).collect();
    RaggedTable::builder()
        .lengths(vec![1; n])
        .unwrap()
        .lengths(lengths)
        .unwrap()
        .column("id", 0, make_ints(ids))
        .column("code", 2, make_ints(codes))
        .build()
        .unwrap()
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}
