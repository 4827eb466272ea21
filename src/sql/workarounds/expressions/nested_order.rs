//! Comparisons of lists and structs in the order of ORDER BY.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int8Array, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, Sort, WindowFunction};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::functions::{compare_nested, count_call_rows, declare, to_columnar};
use crate::sql::base::expression_parts::{find_columns_below, has_part, rewrite_node};
use crate::sql::workarounds::subqueries::subquery_conditions::rewrite_quantified;

/// `SELECT [1, NULL] < [1, 2]` is true without this rule, although ORDER BY returns `[1, 2]` before
/// `[1, NULL]`.
///
/// Analyzer rule, after type coercion: gives lists and structs one order in comparisons, sorts and
/// extremes.
///
/// In `<` and `greatest`, DataFusion treats NULL elements as the least value; in sorts, NULLS FIRST
/// and NULLS LAST determine the place of NULL elements. Here NULL elements are the greatest value,
/// as in DuckDB and PostgreSQL, and NULLS FIRST and NULLS LAST apply only to whole lists and
/// structs. This workaround is obsolete once the test `stock_comparisons_of_lists_have_least_nulls`
/// fails.
pub(in crate::sql) fn unify_nested_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(rewrite_plan)?.data)
}

fn rewrite_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_keys = matches!(plan, LogicalPlan::Sort(_) | LogicalPlan::Distinct(Distinct::On(_)));
    if !has_keys && !has_part(&plan, may_order) {
        return Ok(Transformed::no(plan));
    }
    let schema = find_columns_below(&plan)?;
    let plan = rewrite_node(plan, rewrite_expr)?;
    plan.transform_data(|plan| match plan {
        LogicalPlan::Sort(mut sort) => {
            let changed = split_keys(&mut sort.expr, &schema, 0);
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            // The first sort keys repeat the expressions of DISTINCT ON and must not change.
            let kept = on.on_expr.len();
            let changed = on.sort_expr.as_mut().is_some_and(|by| split_keys(by, &schema, kept));
            Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed))
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// Whether [`rewrite_expr`] may change an expression, whatever the types of its operands are.
fn may_order(e: &Expr) -> bool {
    match e {
        Expr::BinaryExpr(binary) => is_order(binary.op),
        Expr::SetComparison(test) => is_order(test.op),
        Expr::Between(_) => true,
        Expr::ScalarFunction(call) => ["greatest", "least"].contains(&call.name()),
        Expr::AggregateFunction(call) => !call.params.order_by.is_empty(),
        Expr::WindowFunction(call) => !call.params.order_by.is_empty(),
        _ => false,
    }
}

fn is_nested(e: &Expr, schema: &DFSchema) -> bool {
    e.get_type(schema).is_ok_and(|t| t.is_nested())
}

fn rewrite_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_order(op) && is_nested(&left, schema) && is_nested(&right, schema) =>
        {
            Ok(Transformed::yes(compare_order(*left, op, *right)))
        }
        // DataFusion plans the comparisons of `x < ALL (query)` only after this rule, so this rule
        // creates them.
        Expr::SetComparison(test) if is_order(test.op) && is_nested(&test.expr, schema) => {
            rewrite_quantified(test, schema, compare_order).map(Transformed::yes)
        }
        Expr::Between(between) if is_nested(&between.expr, schema) => {
            let order = |bound: Box<Expr>| {
                NestedFunction::Order.make_call(vec![between.expr.as_ref().clone(), *bound])
            };
            let within =
                order(between.low).gt_eq(lit(0i8)).and(order(between.high).lt_eq(lit(0i8)));
            Ok(Transformed::yes(if between.negated { !within } else { within }))
        }
        Expr::ScalarFunction(call)
            if ["greatest", "least"].contains(&call.name())
                && !call.args.is_empty()
                && call.args.iter().all(|e| is_nested(e, schema)) =>
        {
            let nested = if call.name() == "least" {
                NestedFunction::Least
            } else {
                NestedFunction::Greatest
            };
            Ok(Transformed::yes(nested.make_call(call.args)))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let changed = split_keys(&mut params.order_by, schema, 0);
            if changed && params.distinct && func.name() == "array_agg" {
                return plan_err!(
                    "array_agg(DISTINCT x ORDER BY x) of lists or structs supports only ASC NULLS LAST and DESC NULLS FIRST; write one of them, or remove NULL with FILTER (WHERE x IS NOT NULL)"
                );
            }
            let call = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(Transformed::new_transformed(call, changed))
        }
        Expr::WindowFunction(call) => {
            let WindowFunction { fun, mut params } = *call;
            let changed = split_keys(&mut params.order_by, schema, 0);
            let call = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
            Ok(Transformed::new_transformed(call, changed))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn is_order(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn compare_order(left: Expr, op: Operator, right: Expr) -> Expr {
    let order = Box::new(NestedFunction::Order.make_call(vec![left, right]));
    Expr::BinaryExpr(BinaryExpr::new(order, op, Box::new(lit(0i8))))
}

/// Splits each sort key `x` of a nested type into `x IS NULL`, which places NULL lists and structs,
/// and `x`. Keeps the first `kept` keys, and keys that already sort NULL elements as the greatest.
/// Returns whether a key was split.
fn split_keys(keys: &mut Vec<Sort>, schema: &DFSchema, kept: usize) -> bool {
    let split = |by: &Sort| by.asc == by.nulls_first && is_nested(&by.expr, schema);
    if !keys.iter().skip(kept).any(split) {
        return false;
    }
    let rest = keys.split_off(kept.min(keys.len()));
    for mut by in rest {
        if split(&by) {
            let is_null = Expr::IsNull(Box::new(by.expr.clone()));
            keys.push(Sort::new(is_null, !by.nulls_first, false));
            by.nulls_first = !by.asc;
        }
        keys.push(by);
    }
    true
}

/// A function over lists or structs. `Greatest` and `Least` ignore NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NestedFunction {
    /// Compares two values: returns -1, 0 or 1, or NULL if a value is NULL.
    Order,
    Greatest,
    Least,
}

impl NestedFunction {
    fn make_call(self, args: Vec<Expr>) -> Expr {
        ScalarUDF::new_from_impl(self).call(args)
    }
}

impl ScalarUDFImpl for NestedFunction {
    declare!(Signature::variadic_any(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Order => "nested_order",
            Self::Greatest => "nested_greatest",
            Self::Least => "nested_least",
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self, types) {
            (Self::Order, [_, _]) => Ok(DataType::Int8),
            (Self::Greatest | Self::Least, [first, ..]) => Ok(first.clone()),
            _ => plan_err!(
                "internal error: {} takes 2 arguments (nested_order) or at least 1 (nested_greatest, nested_least); {} given; please report it",
                self.name(),
                types.len()
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (is_one, rows) = count_call_rows(&args);
        let values: Result<Vec<ArrayRef>> = args.args.iter().map(|v| v.to_array(rows)).collect();
        let values = values?;
        let found: ArrayRef = match (self, values.as_slice()) {
            (Self::Order, [left, right]) => {
                let order = compare_nested(left, right)?;
                let rows = (0..rows)
                    .map(|i| (left.is_valid(i) && right.is_valid(i)).then(|| order(i, i) as i8));
                Arc::new(rows.collect::<Int8Array>())
            }
            (Self::Greatest, values) => find_extreme_of_rows(values, rows, Ordering::Greater)?,
            (Self::Least, values) => find_extreme_of_rows(values, rows, Ordering::Less)?,
            _ => {
                return exec_err!(
                    "internal error: {} takes 2 arguments (nested_order) or at least 1 (nested_greatest, nested_least); {} given; please report it",
                    self.name(),
                    values.len()
                );
            }
        };
        to_columnar(found, is_one)
    }
}

/// Returns the greatest (`wanted` is `Greater`) or least (`Less`) of `values` per row, ignoring
/// NULL.
fn find_extreme_of_rows(values: &[ArrayRef], rows: usize, wanted: Ordering) -> Result<ArrayRef> {
    let Some(first) = values.first() else {
        let name = if wanted == Ordering::Greater { "greatest" } else { "least" };
        return exec_err!("{name} is called without arguments; give at least 1");
    };
    let mut sources: Vec<&dyn Array> = values.iter().map(|v| v.as_ref()).collect();
    let null = new_null_array(first.data_type(), 1);
    sources.push(null.as_ref());
    let mut best = vec![(values.len(), 0); rows];
    for (at, candidates) in values.iter().enumerate() {
        let before = values.iter().take(at);
        let orders: Result<Vec<_>> =
            before.map(|best| Ok(compare_nested(candidates, best)?)).collect();
        let orders = orders?;
        for (row, best) in best.iter_mut().enumerate() {
            let better = orders.get(best.0).is_none_or(|order| order(row, row) == wanted);
            if better && candidates.is_valid(row) {
                *best = (at, row);
            }
        }
    }
    Ok(interleave(&sources, &best)?)
}
