//! Gives the columns of a relation in FROM the types in which they will be evaluated.
//!
//! DataFusion 55 finds the common type of the branches of UNION and CASE after it has planned the
//! whole statement. Until then, a column has the type of the first branch. The planner uses this
//! type to resolve functions and lambdas. References from a subquery keep this type:
//! `SELECT (SELECT sum(y * l.c) FROM r) FROM (SELECT 2 AS c UNION ALL SELECT 300.5) l` truncates
//! 300.5. This workaround is obsolete once the test `stock_outer_columns_still_have_earlier_types`
//! fails.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::functions::{StockFact, has_fact};
use crate::sql::base::expression_parts::find_columns_below;
use crate::sql::rules::coerce_types;

/// Returns a plan that has the same rows, and columns of the types in which they will be evaluated.
pub(super) fn set_final_types(
    plan: LogicalPlan,
    config: &ConfigOptions,
) -> Result<Transformed<LogicalPlan>> {
    if !may_change_types(&plan)? {
        return Ok(Transformed::no(plan));
    }
    // A plan whose types cannot be coerced stays unchanged. The analyzer reports the error when it
    // coerces the whole statement.
    let Ok(coerced) = coerce_types(plan.clone(), config) else { return Ok(Transformed::no(plan)) };
    let types = |plan: &LogicalPlan| -> Vec<DataType> {
        plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    Ok(match types(&coerced) == types(&plan) {
        true => Transformed::no(plan),
        false => Transformed::yes(coerced),
    })
}

/// Whether a plan has a UNION, a CASE or a call such as `nullif` whose branches or arguments differ
/// in type. False for a plan with parameters, because their types are unknown.
fn may_change_types(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Union(union) = node {
            found = found || union.inputs.iter().any(|input| !has_types(input, &union.schema));
        }
        let mut columns = None;
        node.apply_expressions(|e| {
            e.apply(|e| {
                match e {
                    Expr::Placeholder(_) => return plan_err!("a parameter"),
                    Expr::Case(_) | Expr::ScalarFunction(_) if !found => {
                        let values = list_chosen_values(e);
                        if values.len() > 1 {
                            let columns = match &columns {
                                Some(columns) => columns,
                                None => columns.insert(find_columns_below(node)?),
                            };
                            found = have_several_types(&values, columns);
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    Ok(found && visited.is_ok())
}

fn has_types(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    let fields = plan.schema().fields().iter().zip(schema.fields());
    fields.into_iter().all(|(field, of)| field.data_type() == of.data_type())
}

/// Returns the values from which CASE or a function such as `nullif` chooses: the results of the
/// branches, or the arguments. Empty for any other expression.
fn list_chosen_values(e: &Expr) -> Vec<&Expr> {
    match e {
        Expr::Case(case) => {
            let values = case.when_then_expr.iter().map(|(_, value)| value.as_ref());
            values.chain(case.else_expr.as_deref()).collect()
        }
        // The planner has already found the types of calls such as `nullif(a, b)`. These calls are
        // checked nevertheless, because analyzer rules that run before type coercion may change
        // their types.
        Expr::ScalarFunction(call) if has_fact(call.name(), StockFact::Chooses) => {
            call.args.iter().collect()
        }
        _ => Vec::new(),
    }
}

fn have_several_types(values: &[&Expr], columns: &DFSchema) -> bool {
    let mut types = values.iter().map(|value| value.get_type(columns).ok());
    let first = types.next();
    types.any(|data_type| Some(&data_type) != first.as_ref())
}
