//! Scalar functions that DuckDB has and DataFusion lacks, or computes differently.
//!
//! Functions that can be expressed by other functions are rewritten in statements
//! (`sql/statement/shorthands.rs`).

mod date_diff;
mod log;
mod regexp_extract;
mod string_split;

use datafusion::logical_expr::ScalarUDF;

pub(crate) fn scalar_functions() -> [ScalarUDF; 4] {
    [
        date_diff::date_diff(),
        log::exact_log(),
        regexp_extract::regexp_extract(),
        string_split::string_split(),
    ]
}
