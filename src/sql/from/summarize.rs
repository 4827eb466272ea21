//! `SUMMARIZE t`: one row per column, as in DuckDB. A list column is summarized by its values.

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, NullHandling, UnnestOptions, plan_err};
use datafusion::error::Result;
use datafusion::functions::expr_fn::round;
use datafusion::functions_aggregate::expr_fn::{
    approx_distinct, approx_percentile_cont, count, max, min,
};
use datafusion::functions_nested::expr_fn::array_to_string;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::scalar::ScalarValue;

use super::axes::{call_scalar, unpivot_columns};
use crate::array::{leaf_type, list_depth};
use crate::functions;
use crate::sql::from::distinct_names::check_distinct_names;

/// The columns of the result: the twelve of DuckDB's SUMMARIZE, and two for lists. A narrow
/// terminal shows only the first and last columns, so the share of NULL is early, the mean last.
const COLUMNS: [&str; 14] = [
    "column_name",
    "column_type",
    "null_percentage",
    "min",
    "max",
    "approx_unique",
    "count",
    "leaves",
    "max_shape",
    "std",
    "q25",
    "q50",
    "q75",
    "avg",
];

const QUARTILES: [(&str, f64); 3] = [("q25", 0.25), ("q50", 0.5), ("q75", 0.75)];

/// Plans one row per column of the input. The input is read once for all flat columns and the
/// lengths of all lists, and once more for the values of each list column.
pub(super) fn plan_summary(input: LogicalPlan) -> Result<LogicalPlan> {
    check_distinct_names("summarize", input.schema())?;
    let columns: Vec<(Column, DataType)> = input
        .schema()
        .iter()
        .map(|(table, f)| (Column::new(table.cloned(), f.name()), f.data_type().clone()))
        .collect();
    if columns.is_empty() {
        return plan_err!("summarize: the query has no columns; select at least one");
    }
    let plan = plan_aggregates(input, &columns)?;
    let mut cells: [Vec<Expr>; COLUMNS.len()] = Default::default();
    for (i, (column, data_type)) in columns.iter().enumerate() {
        let row = list_cells(plan.schema(), column.name(), data_type, i)?;
        for (cell, value) in cells.iter_mut().zip(row) {
            cell.push(value);
        }
    }
    unpivot_columns(plan, COLUMNS.into_iter().zip(cells))
}

/// Plans one row with the aggregates of all columns, whose names end in the index of the column.
fn plan_aggregates(
    input: LogicalPlan,
    columns: &[(Column, DataType)],
) -> Result<LogicalPlanBuilder> {
    // By default, `unnest` would return a row with NULL for a NULL list, which has no values.
    let unnest_options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
    let mut plain = vec![count(lit(1)).alias("rows")];
    let mut of_lists = Vec::new();
    for (i, (column, data_type)) in columns.iter().enumerate() {
        let value = Expr::Column(column.clone());
        if list_depth(data_type) == 0 {
            plain.push(count(value.clone()).alias(format!("known{i}")));
            plain.extend(summarize_values(value, data_type, i)?);
            continue;
        }
        if let Some(shape) = functions::find_aggregate("ragged_max_shape_agg") {
            plain.push(shape.call(vec![value.clone()]).alias(format!("shape{i}")));
        }
        let leaves = call_scalar("ragged_flatten", vec![value])?.alias("leaf");
        let leaf = leaf_type(data_type);
        let values = LogicalPlanBuilder::from(input.clone())
            .project(vec![leaves])?
            .unnest_column_with_options(Column::from_name("leaf"), unnest_options.clone())?;
        let leaf_column = Expr::Column(Column::from_name("leaf"));
        let mut aggregates = vec![
            count(lit(1)).alias(format!("leaves{i}")),
            count(leaf_column.clone()).alias(format!("known{i}")),
        ];
        aggregates.extend(summarize_values(leaf_column, leaf, i)?);
        of_lists.push(values.aggregate(Vec::<Expr>::new(), aggregates)?.build()?);
    }
    let mut plan = LogicalPlanBuilder::from(input).aggregate(Vec::<Expr>::new(), plain)?;
    for list in of_lists {
        plan = plan.cross_join(list)?;
    }
    Ok(plan)
}

/// Returns the row of the result for the column with the index `i`. `known` is the schema of the
/// aggregates.
fn list_cells(
    known: &DFSchema,
    column_name: &str,
    data_type: &DataType,
    i: usize,
) -> Result<[Expr; COLUMNS.len()]> {
    let of = |name: &str| {
        let name = Column::from_name(format!("{name}{i}"));
        known.field_with_unqualified_name(name.name()).is_ok().then_some(Expr::Column(name))
    };
    let text = |e: Option<Expr>| match e {
        Some(e) => cast(e, DataType::Utf8),
        None => Expr::Literal(ScalarValue::Utf8(None), None),
    };
    let number = |e: Option<Expr>| match e {
        Some(e) => cast(e, DataType::Int64),
        None => Expr::Literal(ScalarValue::Int64(None), None),
    };
    let rows = Expr::Column(Column::from_name("rows"));
    // The share of NULL among the values: the rows or, for a list column, the leaves (innermost
    // elements).
    let values = of("leaves").unwrap_or_else(|| rows.clone());
    let all = cast(values.clone(), DataType::Float64);
    let missing = all.clone() - cast(number(of("known")), DataType::Float64);
    let share = round(vec![lit(100.0) * missing / all, lit(2i64)]);
    let share = when(values.gt(lit(0)), share).end()?;
    let shape = of("shape").map(|s| array_to_string(s, lit(", ")));
    // Statistics of Float16 and Float32 become Float32: as Float64, 0.1 is 0.10000000149011612.
    let float = |e: Option<Expr>| match leaf_type(data_type) {
        DataType::Float16 | DataType::Float32 => e.map(|e| cast(e, DataType::Float32)),
        _ => e,
    };
    Ok([
        lit(column_name),
        lit(data_type.to_string()),
        share,
        text(of("min")),
        text(of("max")),
        number(of("unique")),
        number(Some(rows)),
        number(of("leaves")),
        text(shape),
        text(float(of("std"))),
        text(float(of("q25"))),
        text(float(of("q50"))),
        text(float(of("q75"))),
        text(float(of("avg"))),
    ])
}

fn summarize_values(value: Expr, data_type: &DataType, i: usize) -> Result<Vec<Expr>> {
    let (value, data_type) = match data_type {
        DataType::Dictionary(_, inner) => (cast(value, inner.as_ref().clone()), inner.as_ref()),
        data_type => (value, data_type),
    };
    let mut out = Vec::new();
    if data_type.is_nested() || data_type.is_null() {
        return Ok(out);
    }
    let boolean = *data_type == DataType::Boolean;
    out.push(min(value.clone()).alias(format!("min{i}")));
    out.push(max(value.clone()).alias(format!("max{i}")));
    let distinct = match data_type {
        DataType::Boolean | DataType::Float16 => cast(value.clone(), DataType::Utf8),
        DataType::Decimal128(..) | DataType::Decimal256(..) => cast(value.clone(), DataType::Utf8),
        DataType::Float32 | DataType::Float64 => cast(value.clone(), DataType::Utf8),
        _ => value.clone(),
    };
    out.push(approx_distinct(distinct).alias(format!("unique{i}")));
    if !data_type.is_numeric() || boolean {
        return Ok(out);
    }
    let number = cast(value, DataType::Float64);
    out.push(functions::make_exact_mean(number.clone()).alias(format!("avg{i}")));
    out.push(functions::make_exact_deviation(number.clone()).alias(format!("std{i}")));
    for (name, at) in QUARTILES {
        let quartile = approx_percentile_cont(number.clone().sort(true, false), lit(at), None);
        out.push(quartile.alias(format!("{name}{i}")));
    }
    Ok(out)
}
