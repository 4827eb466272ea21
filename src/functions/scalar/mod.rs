//! Scalar functions that DuckDB has and DataFusion lacks or computes differently. A function that
//! can be expressed by others is not here: `sql::statement::functions::shorthands` rewrites
//! its calls.

mod bit_functions;
mod date_diff;
pub(super) mod documents;
mod epochs;
mod last_day;
mod log;
mod mode;
mod regexp_extract;
mod regexp_lists;
mod regexp_replace;
mod rounding;
mod strftime;
mod string_padding;
mod string_split;

use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;

pub(crate) fn scalar_functions() -> Vec<ScalarUDF> {
    let single = [
        date_diff::date_diff(),
        date_diff::date_sub(),
        last_day::build_last_day(),
        log::build_exact_log(),
        mode::build_mode_of_elements(),
        regexp_extract::regexp_extract(),
        regexp_replace::regexp_replace(),
        strftime::build_strftime_function(),
        string_split::string_split(),
    ];
    let mut functions = Vec::from(single);
    functions.extend(string_padding::build_paddings());
    functions.extend(rounding::build_wide_ceilings());
    functions.extend(rounding::build_finite_rounds());
    functions.extend(bit_functions::bit_functions());
    functions.extend(epochs::build_epoch_functions());
    functions.extend(regexp_lists::regexp_lists());
    functions
}

fn list_types(types: &[DataType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
