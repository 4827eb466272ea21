//! Analyzes health records with the DataFrame API of DataFusion, without SQL text. The functions over
//! lists are from `serrate::expr_fn`.
//!
//! ```text
//! cargo run --release --example analytics -- [PATIENTS.nrt | PATIENTS.parquet | 500]
//! ```
//!
//! The file has the columns `subject_id`, `time`, `code` (lists of lists of integers) and
//! `numeric_value`; a number instead of a file generates that many synthetic patients. The job
//! finds the most frequent codes, selects the patients who have the second most frequent one, and
//! summarizes its values.

use std::time::Instant;

use serrate::arrow::array::AsArray;
use serrate::arrow::datatypes::UInt16Type;
use serrate::arrow::util::pretty::print_batches;
use serrate::datafusion::functions::core::expr_ext::FieldAccessor;
use serrate::datafusion::functions_aggregate::expr_fn::{avg, count, max, sum};
use serrate::datafusion::logical_expr::ExprFunctionExt;
use serrate::datafusion::prelude::*;
use serrate::expr_fn::{
    ragged_any, ragged_broadcast, ragged_cast, ragged_count, ragged_eq, ragged_filter,
    ragged_histogram_agg_top, ragged_lengths, ragged_map, ragged_max_shape_agg, ragged_mean,
    ragged_mean_agg, ragged_mean_axis, ragged_nest_agg, ragged_tail,
};
use serrate::generate::mimic_table;
use serrate::sql::{register_table, session};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "500".into());
    let ctx = session();
    let patients = match source.parse() {
        Ok(number) => {
            register_table(&ctx, "patients", mimic_table(number, 42)?)?;
            ctx.table("patients").await?
        }
        Err(_) => ctx.table(source.as_str()).await?,
    };
    let start = Instant::now();

    // Counts patients, events and measurements, and the size of one dense tensor of all.
    let size = patients.clone().aggregate(
        vec![],
        vec![
            count(col("subject_id")).alias("patients"),
            sum(ragged_lengths(col("code"))).alias("events"),
            sum(ragged_count(col("code"))).alias("measurements"),
            max(ragged_count(col("code"))).alias("most"),
            ragged_max_shape_agg(col("code")).alias("padded"),
        ],
    )?;
    print_batches(&size.collect().await?)?;

    // Counts the most frequent codes without unnesting.
    let top = patients
        .clone()
        .aggregate(vec![], vec![ragged_histogram_agg_top(col("code"), 5).alias("top")])?
        .unnest_columns(&["top"])?
        .select(vec![
            col("top").field("value").alias("code"),
            col("top").field("count").alias("times"),
        ])?
        .collect()
        .await?;
    print_batches(&top)?;
    let codes = top[0].column(0).as_primitive::<UInt16Type>();
    let code = lit(codes.value(codes.len().min(2) - 1));

    // Selects the patients who have the second most frequent code, with its values and their times.
    let is_code = ragged_eq(col("code"), code);
    let cohort = patients
        .filter(ragged_any(is_code.clone()))?
        .select(vec![
            col("subject_id"),
            ragged_filter(col("numeric_value"), is_code.clone()).alias("value"),
            ragged_filter(ragged_broadcast(col("time"), col("code")), is_code).alias("time"),
        ])?
        .cache()
        .await?;
    let values = cohort.clone().aggregate(
        vec![],
        vec![
            count(col("subject_id")).alias("patients"),
            avg(ragged_count(col("value"))).alias("per_patient"),
            avg(ragged_mean(ragged_cast(col("value"), "DOUBLE"))).alias("mean_of_means"),
        ],
    )?;
    print_batches(&values.collect().await?)?;

    // Applies a lambda to each value, and computes the mean of the last ten events.
    let logs = ragged_map(col("value"), |v| ln(abs(v) + lit(1.0f32)));
    let logs = logs.resolve_lambda_variables(cohort.schema())?.data;
    let course = cohort
        .clone()
        .select(vec![ragged_tail(ragged_mean_axis(logs, -1), 10).alias("last")])?
        .aggregate(vec![], vec![ragged_mean_agg(col("last")).alias("course")])?;
    print_batches(&course.collect().await?)?;

    // Nests the patients with equal numbers of events into one row, in the order of this number.
    let nested = cohort
        .aggregate(
            vec![ragged_lengths(col("value")).alias("events")],
            vec![
                ragged_nest_agg(col("subject_id"))
                    .order_by(vec![col("subject_id").sort(true, false)])
                    .build()?
                    .alias("subjects"),
            ],
        )?
        .sort(vec![col("events").sort(true, false)])?
        .limit(0, Some(3))?;
    print_batches(&nested.collect().await?)?;
    println!("{:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
