//! Scalar functions that DuckDB has and DataFusion lacks, or computes differently. DuckDB's functions that
//! can be expressed by existing functions are not here, but rewritten in statements
//! (`sql/statement/shorthands.rs`).

mod date_diff;
mod log;
mod regexp_extract;
mod regexp_replace;
mod rounding;
mod string_split;

use datafusion::logical_expr::ScalarUDF;

pub(crate) fn scalar_functions() -> [ScalarUDF; 8] {
    let [ceil, floor] = rounding::wide_ceilings();
    [
        ceil,
        floor,
        rounding::finite_round(),
        date_diff::date_diff(),
        log::exact_log(),
        regexp_extract::regexp_extract(),
        regexp_replace::regexp_replace(),
        string_split::string_split(),
    ]
}
