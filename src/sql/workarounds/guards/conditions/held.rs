//! Wraps conditions that optimizer rules must not move, because they can fail or are volatile.

use std::sync::{Arc, LazyLock};

use arrow::array::new_empty_array;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::utils::{
    conjunction, find_out_reference_exprs, split_conjunction_owned,
};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Filter, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

use crate::functions::{cannot_fail, declare, take_first};
use crate::sql::base::subquery_parts::is_subquery_test;

/// The volatile function `evaluated_here`, which returns its first argument, a condition that must
/// not move.
static HERE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(EvaluatedHere)));

/// Returns the functions `evaluated_here` and `evaluated_later`. Workers of a distributed query
/// need them to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn list_held_functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::clone(&HERE), Arc::clone(&LATER)]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EvaluatedHere;

impl ScalarUDFImpl for EvaluatedHere {
    declare!("evaluated_here", Signature::variadic_any(Volatility::Volatile));

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}

/// The volatile function `evaluated_later`, which returns its argument, a constant that no rule may
/// fold.
static LATER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(EvaluatedLater)));

#[derive(Debug, PartialEq, Eq, Hash)]
struct EvaluatedLater;

impl ScalarUDFImpl for EvaluatedLater {
    declare!("evaluated_later", Signature::any(1, Volatility::Volatile));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let value = take_first(self.name(), args.args)?;
        // For 0 rows, returns an empty array instead of a scalar. DataFusion would evaluate an
        // expression over the scalar, and this evaluation can fail.
        Ok(match rows {
            0 => ColumnarValue::Array(new_empty_array(&value.data_type())),
            _ => value,
        })
    }
}

/// Wraps a constant whose evaluation fails, so that no optimizer rule evaluates it. The query then
/// fails only if it needs the value of the constant for a row.
pub(super) fn defer_constant(constant: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&LATER), vec![constant]))
}

/// The conjuncts of a filter, or those of a join except its key equalities, as two lists. Each list
/// has the order of the plan.
#[derive(Debug, Default)]
pub(super) struct HeldConditions {
    /// Free conditions: the plan may evaluate them for any row, in any node.
    pub(super) free: Vec<Expr>,
    /// Held conditions: they can fail or are volatile, so the plan evaluates them only for the rows
    /// for which the query evaluates them.
    pub(super) held: Vec<Expr>,
}

impl HeldConditions {
    pub(super) fn add_predicate(&mut self, predicate: Expr, schema: &DFSchema) {
        for condition in split_conjunction_owned(predicate) {
            // Conditions on outer columns are free: they become conditions of the join that
            // replaces their subquery.
            if condition.contains_outer() {
                self.free.push(condition);
            } else if is_held(&condition) {
                self.held.extend(list_conjuncts(condition));
            } else if is_free(&condition, schema) {
                self.free.push(condition);
            } else {
                self.held.push(condition);
            }
        }
    }
}

/// Whether a condition is free: the plan may evaluate it for any row, in any node.
///
/// A condition whose subquery becomes a join is free, because the rules that create the join must
/// see it.
pub(super) fn is_free(condition: &Expr, schema: &DFSchema) -> bool {
    let joins = condition.exists(|e| Ok(is_subquery_test(e))).unwrap_or(true);
    joins || (!condition.is_volatile() && cannot_fail(condition, schema).unwrap_or(false))
}

/// Whether a condition is a call of `evaluated_here`.
pub(in crate::sql) fn is_held(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if call.func == *HERE)
}

/// Wraps conditions in one call, which evaluates each condition only for rows for which all
/// conditions before it are true. Returns `None` if there are no conditions.
fn hold_together(conditions: Vec<Expr>) -> Option<Expr> {
    let all =
        conditions.into_iter().rev().reduce(|rest, first| make_conditional_and(first, rest))?;
    let call = ScalarFunction::new_udf(Arc::clone(&HERE), vec![all]);
    Some(Expr::ScalarFunction(call))
}

/// Wraps `condition`, a condition of a subquery, together with `outer`, an outer column that the
/// subquery uses.
///
/// A condition with an outer column becomes a condition of the join that replaces the subquery. So
/// `condition` is evaluated only for rows with a match in the outer query.
fn hold_next_to(condition: Expr, outer: Expr) -> Expr {
    let call = ScalarFunction::new_udf(Arc::clone(&HERE), vec![condition, outer]);
    Expr::ScalarFunction(call)
}

/// Moves the fallible conditions of a subquery in EXISTS or IN into the join that replaces the
/// subquery. Returns `None` if there are no such conditions, or if no free condition uses outer
/// columns.
pub(super) fn correlate_held(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first() else { return Ok(None) };
            let Some(input) = correlate_held(input)? else { return Ok(None) };
            plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
        }
        LogicalPlan::Filter(filter) => {
            let conditions = split_conjunction_owned(filter.predicate.clone());
            let outer = conditions.iter().filter(|e| !is_held(e)).find_map(|e| {
                let correlated = is_free(e, filter.input.schema());
                correlated.then(|| find_out_reference_exprs(e).into_iter().next()).flatten()
            });
            let Some(outer) = outer else { return Ok(None) };
            let mut changed = false;
            let conditions = conditions.into_iter().map(|e| {
                let free = is_held(&e) || e.contains_outer();
                if free || is_free(&e, filter.input.schema()) {
                    return e;
                }
                changed = true;
                hold_next_to(e, outer.clone())
            });
            let Some(predicate) = conjunction(conditions.collect::<Vec<_>>()) else {
                return Ok(None);
            };
            let filter = Filter::try_new(predicate, Arc::clone(&filter.input))?;
            Ok(changed.then_some(LogicalPlan::Filter(filter)))
        }
        _ => Ok(None),
    }
}

fn list_conjuncts(held: Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    let mut rest = match held {
        Expr::ScalarFunction(mut call) if !call.args.is_empty() => call.args.swap_remove(0),
        other => other,
    };
    loop {
        match as_and_then(rest) {
            Ok((first, then)) => {
                found.push(first);
                rest = then;
            }
            Err(last) => {
                found.push(last);
                return found;
            }
        }
    }
}

/// Returns a conjunction that evaluates its second condition only for rows for which the first is
/// true.
///
/// DataFusion evaluates the right side of AND for all rows of a batch unless the left side drops
/// most of them. Its optimizer simplifies `CASE WHEN a THEN b ELSE false END` to AND, but not a
/// CASE with an operand.
fn make_conditional_and(first: Expr, then: Expr) -> Expr {
    make_case(first, vec![(lit(true), then)], lit(false))
}

/// Splits the result of [`make_conditional_and`] into its two conditions. Returns any other
/// expression as `Err`.
fn as_and_then(e: Expr) -> std::result::Result<(Expr, Expr), Expr> {
    match e {
        Expr::Case(Case { expr: Some(first), mut when_then_expr, else_expr: Some(other) })
            if when_then_expr.len() == 1
                && *when_then_expr[0].0 == lit(true)
                && *other == lit(false) =>
        {
            let (_, then) = when_then_expr.remove(0);
            Ok((*first, *then))
        }
        e => Err(e),
    }
}

pub(super) fn make_case(of: Expr, arms: Vec<(Expr, Expr)>, other: Expr) -> Expr {
    let arms = arms.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Expr::Case(Case::new(Some(Box::new(of)), arms, Some(Box::new(other))))
}

pub(super) fn join_conditions(free: Vec<Expr>, held: Vec<Expr>) -> Option<Expr> {
    conjunction(free.into_iter().chain(hold_together(held)))
}
