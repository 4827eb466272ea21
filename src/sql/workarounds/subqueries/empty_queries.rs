use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};

use crate::functions::{declare, take_first};
use crate::sql::base::subquery_parts::has_one_row;

/// Analyzer rule, after subqueries are rewritten: makes a scalar subquery that may return no row nullable.
///
/// DataFusion 55 declares the subquery nullable only if the column of the subquery is nullable, and this can
/// change while the plan is optimized, because `CASE WHEN true THEN 1 END` becomes a literal. `(SELECT 1 FROM t
/// WHERE false) IS NULL` then becomes false, and the value is a NULL in a non-nullable column, which is an
/// error. Correlated subqueries are unaffected: they become joins, whose columns are nullable. Obsolete
/// once the test `stock_queries_without_rows_are_still_values` fails.
pub(in crate::sql) fn make_queries_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|e| {
            found = found || e.exists(|e| Ok(is_changed(e)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    let changed = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|e| e.transform_up(as_nullable))?;
        // Nodes copy the nullability of their inputs, so schemas above a changed node are computed again.
        node.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(changed.data)
}

/// Whether the rule changes an expression: a scalar subquery that DataFusion may declare non-nullable.
fn is_changed(e: &Expr) -> bool {
    let Expr::ScalarSubquery(query) = e else { return false };
    query.outer_ref_columns.is_empty()
        && !is_marked_nullable(&query.subquery)
        && !has_one_row(&query.subquery)
}

fn is_marked_nullable(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    projection.expr.iter().all(|e| {
        matches!(e.clone().unalias(), Expr::ScalarFunction(call) if call.func.as_ref() == &*NULLABLE)
    })
}

fn as_nullable(e: Expr) -> Result<Transformed<Expr>> {
    if !is_changed(&e) {
        return Ok(Transformed::no(e));
    }
    let Expr::ScalarSubquery(query) = e else { return Ok(Transformed::no(e)) };
    let columns = query.subquery.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        NULLABLE.call(vec![Expr::Column(column)]).alias(name)
    });
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(query.subquery));
    let plan = plan.project(columns.collect::<Vec<_>>())?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..query })))
}

/// The function `nullable(x)` returns its argument as nullable. It is volatile, so that no rule folds it.
static NULLABLE: LazyLock<ScalarUDF> = LazyLock::new(|| ScalarUDF::new_from_impl(Nullable));

#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable;

impl ScalarUDFImpl for Nullable {
    declare!("nullable", Signature::any(1, Volatility::Volatile));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = take_first(self.name(), args.arg_fields)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true).with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}
