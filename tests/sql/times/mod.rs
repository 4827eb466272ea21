//! Durations, intervals and timestamps of all years: comparisons, parts, series and constants.

mod all_years;
mod compared_spans;
mod constants;
mod lists;
mod parts;
mod series;
mod units;

use super::*;

/// Evaluates each expression over `from`. Returns a message for each whose rows differ from the
/// expected string, or an empty string.
async fn list_wrong(ctx: &SessionContext, from: &str, expected: &[(&str, &str)]) -> String {
    let mut wrong = String::new();
    for (what, expected) in expected {
        let sql = format!("SELECT {what} FROM {from}");
        let found = rows_or_error(ctx, &sql).await;
        if found != *expected {
            wrong.push_str(&format!("{what}: {found}, not {expected}\n"));
        }
    }
    wrong
}
