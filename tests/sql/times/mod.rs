//! Comparisons of durations, intervals and timestamps of all years.

mod all_years;
mod compared_spans;
mod constants;
mod parts;
mod series;
mod units;

use super::*;

async fn run(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    serrate::sql::sql(ctx, sql).await?.collect().await
}

/// Returns the rows as text, with blanks between values and semicolons between rows.
async fn query_rows(ctx: &SessionContext, sql: &str) -> String {
    use datafusion::arrow::util::display::array_value_to_string;
    let batches = run(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|c| {
                if c.is_null(row) { "NULL".into() } else { array_value_to_string(c, row).unwrap() }
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows.join("; ")
}

/// Returns the differences from the expected values of expressions over the rows of FROM.
async fn list_wrong(ctx: &SessionContext, from: &str, expected: &[(&str, &str)]) -> String {
    let mut wrong = String::new();
    for (what, expected) in expected {
        let sql = format!("SELECT {what} FROM {from}");
        let found = match run(ctx, &sql).await {
            Ok(_) => query_rows(ctx, &sql).await,
            Err(e) => e.strip_backtrace(),
        };
        if found != *expected {
            wrong.push_str(&format!("{what}: {found}, not {expected}\n"));
        }
    }
    wrong
}

async fn query_refusal(ctx: &SessionContext, sql: &str) -> String {
    match run(ctx, sql).await {
        Ok(found) => panic!("{sql} gave\n{}", pretty_format_batches(&found).unwrap()),
        Err(e) => e.strip_backtrace(),
    }
}
