//! Functions of single values that DuckDB has and DataFusion lacks.
//!
//! What is a combination of functions that exist is a shorthand of statements instead
//! (`sql/statement/shorthands.rs`).

mod date_diff;
mod regexp_extract;
mod string_split;

use datafusion::logical_expr::ScalarUDF;

/// The functions, to be registered in a session.
pub(crate) fn scalar_functions() -> [ScalarUDF; 3] {
    [date_diff::date_diff(), regexp_extract::regexp_extract(), string_split::string_split()]
}
