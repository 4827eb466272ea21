//! Hides from DataFusion's functions the values that Arrow may store below NULL structs and lists.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Unnest};
use datafusion::optimizer::OptimizerConfig;

use crate::functions::{find_stock_field, mask_fields, remove_hidden_values};
use crate::sql::base::expression_parts::{find_columns_below, has_part, map_named};
use crate::sql::sources::listing::FilesTable;

/// Without this rule, `SELECT max(s['a']) FROM t WHERE s IS NULL` returns a number, which Arrow
/// stores below the NULL.
///
/// Analyzer rule: replaces `get_field`, `array_append` and other functions of DataFusion that
/// return the values below a NULL struct or list, and sets the fields of NULL structs to NULL
/// before `unnest` divides the structs into columns.
///
/// This workaround is obsolete once the tests
/// `stock_fields_of_null_are_still_values` and `stock_lists_of_null_still_have_elements` fail.
pub(in crate::sql) fn mask_hidden_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_masked = false;
    let plan = plan.transform_up_with_subqueries(|plan| {
        if let LogicalPlan::Unnest(unnest) = plan {
            return match unnest.struct_type_columns.is_empty() {
                true => Ok(Transformed::no(LogicalPlan::Unnest(unnest))),
                false => {
                    is_masked = true;
                    mask_structs(unnest).map(Transformed::yes)
                }
            };
        }
        let plan = replace_functions(plan, &|e| match e {
            Expr::ScalarFunction(call) => remove_hidden_values(&call.func),
            _ => None,
        })?;
        // `mask_structs` makes fields nullable, so the schemas of the nodes above are computed
        // again.
        match is_masked {
            true => plan.map_data(LogicalPlan::recompute_schema),
            false => Ok(plan),
        }
    })?;
    Ok(plan.data)
}

/// Replaces functions in the expressions of a node. `by` returns the new function of a call, or
/// `None` for an expression that stays unchanged.
fn replace_functions(
    plan: LogicalPlan,
    by: &dyn Fn(&Expr) -> Option<Arc<datafusion::logical_expr::ScalarUDF>>,
) -> Result<Transformed<LogicalPlan>> {
    if !has_part(&plan, |e| by(e).is_some()) {
        return Ok(Transformed::no(plan));
    }
    map_named(plan, |e| {
        e.transform_up(|e| match (by(&e), e) {
            (Some(function), Expr::ScalarFunction(mut call)) => {
                call.func = function;
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            (_, e) => Ok(Transformed::no(e)),
        })
    })
}

fn mask_structs(unnest: Unnest) -> Result<LogicalPlan> {
    let columns = unnest.input.schema().iter().enumerate().map(|(at, field)| {
        let column = Expr::Column(Column::from(field));
        match unnest.struct_type_columns.contains(&at) {
            true => mask_fields(column).alias_qualified(field.0.cloned(), field.1.name()),
            false => column,
        }
    });
    let masked = Projection::try_new(columns.collect(), Arc::clone(&unnest.input))?;
    let unnest = LogicalPlan::Unnest(unnest);
    unnest.with_new_exprs(unnest.expressions(), vec![LogicalPlan::Projection(masked)])
}

/// `SELECT s.a FROM 't.parquet'` reads all fields of `s` without this rule.
///
/// Logical optimizer rule, the last of each pass: restores the `get_field` that
/// [`mask_hidden_values`] has replaced, because scans read single fields of a struct only for
/// `get_field`. Applies to columns of Parquet files without required fields: the fields of their
/// NULL structs are NULL, so there is nothing to hide.
pub(in crate::sql) fn restore_parquet_fields(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_parquet = match &plan {
        LogicalPlan::TableScan(_) => reads_parquet(&plan),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => {
            plan.inputs().first().is_some_and(|input| reads_parquet(input))
        }
        _ => false,
    };
    let has_field = |e: &Expr| matches!(e, Expr::ScalarFunction(call) if find_stock_field(&call.func).is_some());
    if !is_parquet || !has_part(&plan, has_field) {
        return Ok(Transformed::no(plan));
    }
    let columns = find_columns_below(&plan)?;
    replace_functions(plan, &|e| match e {
        Expr::ScalarFunction(call) if reads_structs(&call.args, &columns) => {
            find_stock_field(&call.func)
        }
        _ => None,
    })
}

/// Whether the arguments of `get_field` are a column of structs, followed by the names of existing
/// fields. Returns false for maps, because DataFusion's `get_field` does not find map keys that are
/// not strings; the replacement of Serrate does.
fn reads_structs(args: &[Expr], columns: &DFSchema) -> bool {
    let [column @ Expr::Column(_), path @ ..] = args else { return false };
    let Ok(of) = column.get_type(columns) else { return false };
    let mut of = &of;
    for step in path {
        let (DataType::Struct(fields), Expr::Literal(name, _)) = (of, step) else { return false };
        let name = name.try_as_str().flatten();
        let Some(field) = fields.iter().find(|field| Some(field.name().as_str()) == name) else {
            return false;
        };
        of = field.data_type();
    }
    true
}

/// Whether all columns of a plan are columns of Parquet files in which the fields of NULL structs
/// are NULL.
fn reads_parquet(plan: &LogicalPlan) -> bool {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Projection(projection)
                if projection.expr.iter().all(|e| matches!(e, Expr::Column(_))) =>
            {
                &projection.input
            }
            LogicalPlan::TableScan(scan) => {
                let table = source_as_provider(&scan.source);
                return table.is_ok_and(|table| {
                    table.downcast_ref::<FilesTable>().is_some_and(FilesTable::has_null_fields)
                });
            }
            _ => return false,
        }
    }
}
