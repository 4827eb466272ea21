//! `ragged_axes('query')`: the number of elements and the list lengths on each axis (level of
//! lists) of a query. It reads no values of `.nrt` files.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use datafusion::common::{Column, UnnestOptions, plan_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::scalar::ScalarValue;

use crate::array::list_depth;
use crate::functions;
use crate::sql::from::distinct_names::check_distinct_names;

const COLUMNS: [&str; 7] = ["axis", "columns", "elements", "shortest", "longest", "mean", "empty"];

/// Plans a query with one row per axis (level of lists): the names of the columns on this axis, its
/// number of elements, and the shortest, longest and mean length of its lists.
pub(super) fn plan_axes(input: LogicalPlan) -> Result<LogicalPlan> {
    check_distinct_names("ragged_axes", input.schema())?;
    let mut on: BTreeMap<usize, Vec<String>> = BTreeMap::from([(0, vec![])]);
    let mut deepest: Option<(usize, Column)> = None;
    for (table, field) in input.schema().iter() {
        let depth = list_depth(field.data_type());
        on.entry(depth).or_default().push(field.name().clone());
        if deepest.as_ref().is_none_or(|(known, _)| depth > *known) {
            deepest = Some((depth, Column::new(table.cloned(), field.name())));
        }
    }
    let Some((depth, column)) = deepest else {
        return plan_err!("ragged_axes: the query has no columns; select at least one");
    };
    let list = Expr::Column(column);
    let mut aggregates = vec![count(lit(1)).alias("elements0")];
    for axis in 1..=depth {
        aggregates.extend(summarize_axis(&list, axis)?);
    }
    let plan = LogicalPlanBuilder::from(input).aggregate(Vec::<Expr>::new(), aggregates)?;
    let int = |e: Expr| cast(e, DataType::Int64);
    let of = |name: &str, axis: usize| Expr::Column(Column::from_name(format!("{name}{axis}")));
    let none = || Expr::Literal(ScalarValue::Int64(None), None);
    let mut cells: [Vec<Expr>; 7] = Default::default();
    for axis in 0..=depth {
        let names = on.remove(&axis).unwrap_or_default();
        let names = names.into_iter().map(ScalarValue::from).collect::<Vec<_>>();
        let names = ScalarValue::new_list_nullable(&names, &DataType::Utf8);
        let lists = [
            lit(i64::try_from(axis).unwrap_or(i64::MAX)),
            Expr::Literal(ScalarValue::List(names), None),
            int(of("elements", axis)),
        ];
        let of_lists = match axis {
            0 => [none(), none(), Expr::Literal(ScalarValue::Float64(None), None), none()],
            axis => {
                let elements = cast(of("elements", axis), DataType::Float64);
                let number = cast(of("lists", axis), DataType::Float64);
                let mean = when(of("lists", axis).gt(lit(0)), elements / number).end()?;
                [int(of("shortest", axis)), int(of("longest", axis)), mean, int(of("empty", axis))]
            }
        };
        for (cell, value) in cells.iter_mut().zip(lists.into_iter().chain(of_lists)) {
            cell.push(value);
        }
    }
    unpivot_columns(plan, COLUMNS.into_iter().zip(cells))
}

/// Returns five aggregates for one axis (level of lists) of the column `list`: its number of
/// elements, its number of lists, the length of the shortest and of the longest list, and the
/// number of empty lists. NULL lists are not counted.
fn summarize_axis(list: &Expr, axis: usize) -> Result<[Expr; 5]> {
    let number = lit(i64::try_from(axis).unwrap_or(i64::MAX));
    let lengths = call_scalar("ragged_lengths", vec![list.clone(), number])?;
    let within = |name: &str, lists: Expr| match axis {
        1 => Ok(lists),
        _ => call_scalar(name, vec![lists]),
    };
    let is_empty = match axis {
        1 => cast(lengths.clone().eq(lit(0i64)), DataType::Int64),
        _ => call_scalar(
            "ragged_sum",
            vec![call_scalar("ragged_eq", vec![lengths.clone(), lit(0i64)])?],
        )?,
    };
    let lists = match axis {
        1 => count(lengths.clone()),
        _ => sum(call_scalar("ragged_count", vec![lengths.clone()])?),
    };
    let or_none = |e: Expr| datafusion::functions::expr_fn::coalesce(vec![e, lit(0i64)]);
    let elements = cast(sum(within("ragged_sum", lengths.clone())?), DataType::Int64);
    let empty = cast(sum(is_empty), DataType::Int64);
    Ok([
        or_none(elements).alias(format!("elements{axis}")),
        or_none(cast(lists, DataType::Int64)).alias(format!("lists{axis}")),
        min(within("ragged_min", lengths.clone())?).alias(format!("shortest{axis}")),
        max(within("ragged_max", lengths)?).alias(format!("longest{axis}")),
        or_none(empty).alias(format!("empty{axis}")),
    ])
}

pub(super) fn call_scalar(name: &str, args: Vec<Expr>) -> Result<Expr> {
    match functions::find_scalar(name) {
        Some(function) => Ok(function.call(args)),
        None => plan_err!("internal error: there is no function {name}; please report it"),
    }
}

/// Plans a query with several rows over the single row of `one_row`. Each entry of `columns` has
/// the name of a result column and, for every result row, the expression of its value.
pub(super) fn unpivot_columns<'a>(
    one_row: LogicalPlanBuilder,
    columns: impl IntoIterator<Item = (&'a str, Vec<Expr>)>,
) -> Result<LogicalPlan> {
    let (mut names, mut arrays) = (Vec::new(), Vec::new());
    for (name, cells) in columns {
        names.push(Column::from_name(name));
        arrays.push(make_array(cells).alias(name));
    }
    one_row.project(arrays)?.unnest_columns_with_options(names, UnnestOptions::default())?.build()
}
