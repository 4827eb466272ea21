//! Replaces the scalar subqueries of a statement by their values.

use std::sync::{Arc, LazyLock};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Subquery, Volatility,
};

use crate::functions::{declare, same_field, take_first};
use crate::sql::base::expression_parts::{for_each_part, has_part, map_named};
use crate::sql::base::nullable_mark::is_nullable_mark;

/// A function that returns its argument, the value of a subquery.
///
/// A literal in place of the subquery could change the result types of functions that treat
/// literals differently, and the optimizer would simplify expressions with it, which changes their
/// errors. The function is volatile, so that the optimizer does not replace its calls with
/// literals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GivenValue;

pub(in crate::sql) static GIVEN_VALUE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(GivenValue)));

impl ScalarUDFImpl for GivenValue {
    declare!("__serrate_given_value", Signature::any(1, Volatility::Volatile));
    same_field!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}

/// Returns the uncorrelated scalar subqueries in the expressions of a plan, each once. Does not
/// search inside subqueries.
pub(crate) fn list_scalar_subqueries(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply(|node| {
        for_each_part(node, |part| {
            if let Expr::ScalarSubquery(query) = part
                && query.outer_ref_columns.is_empty()
                && !found.contains(query)
            {
                found.push(query.clone());
            }
            Ok(())
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Removes the calls of `nullable(x)`, which the rule `make_queries_nullable` adds, from a
/// subquery. The caller runs the subquery by itself and uses NULL as its value if it returns no
/// row.
pub(crate) fn remove_nullable_mark(query: LogicalPlan) -> Result<LogicalPlan> {
    if !has_part(&query, is_nullable_mark) {
        return Ok(query);
    }
    map_named(query, |e| e.transform_up(remove_mark))?.data.recompute_schema()
}

fn remove_mark(e: Expr) -> Result<Transformed<Expr>> {
    let is_mark = is_nullable_mark(&e);
    Ok(match e {
        Expr::ScalarFunction(call) if is_mark => {
            Transformed::yes(take_first(call.func.name(), call.args)?)
        }
        e => Transformed::no(e),
    })
}

/// Replaces the subqueries in the expressions of an optimized plan by their values. Columns keep
/// their names.
///
/// # Errors
/// If the type of a value differs from the type of its subquery.
pub(crate) fn insert_values(
    plan: LogicalPlan,
    values: &[(Subquery, ScalarValue)],
) -> Result<LogicalPlan> {
    for (query, value) in values {
        let (expected, found) = (query.subquery.schema().field(0).data_type(), value.data_type());
        if *expected != found {
            return plan_err!(
                "internal error: a subquery was planned with the type {expected}, but its value has the type {found}; please report it"
            );
        }
    }
    let plan = plan.transform_up(|node| {
        if !has_part(&node, |e| find_value(e, values).is_some()) {
            return Ok(Transformed::no(node));
        }
        map_named(node, |expr| {
            expr.transform_up(|e| {
                Ok(match find_value(&e, values) {
                    Some(value) => {
                        let literal = Expr::Literal(value.clone(), None);
                        Transformed::yes(GIVEN_VALUE.call(vec![literal]))
                    }
                    None => Transformed::no(e),
                })
            })
        })
    })?;
    Ok(plan.data)
}

fn find_value<'a>(expr: &Expr, values: &'a [(Subquery, ScalarValue)]) -> Option<&'a ScalarValue> {
    let Expr::ScalarSubquery(query) = expr else { return None };
    values.iter().find(|(known, _)| known == query).map(|(_, value)| value)
}
