//! Conditions that evaluate an operand only for rows that need it.

use std::cell::Cell;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunctionParams, Case, Exists, InSubquery, WindowFunctionParams,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{
    conjunction, find_valid_equijoin_key_pair, merge_schema, split_conjunction_owned,
};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, lit,
};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::scalar::ScalarValue;

use super::held::{
    HeldConditions, correlate_held, defer_constant, is_free, is_held, join_conditions, make_case,
};
use crate::functions::cannot_fail;
use crate::sql::base::expression_parts::{has_part, map_named};

/// `SELECT CASE WHEN x <> 0 THEN 1 / x > 0 ELSE false END FROM t` fails without this rule for an
/// `x` of 0.
///
/// Logical optimizer rule, before all others: makes AND and OR evaluate their right side only for
/// rows that the left side does not decide, and CASE evaluate a branch only for rows that take it.
/// It also moves conditions of WHERE that can fail to a filter of their own, above the filter of
/// the other conditions.
///
/// DataFusion evaluates both sides of AND and OR for all rows of a batch unless the left side
/// decides 80% of them, so whether a batch fails depends on its other rows. It also simplifies a
/// CASE with boolean results to AND and OR. This rule therefore creates a CASE with an operand,
/// which later rules do not simplify, and held conditions, which
/// [`push_free_conditions`](super::push_free_conditions) keeps in place.
pub(in crate::sql) fn make_conditions_lazy(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if plan.inputs().is_empty() {
        // A node without inputs (VALUES) has no rows to exclude, so only failing constants are
        // deferred.
        return plan.map_expressions(|e| defer_failures(e, false));
    }
    let plan = match plan {
        LogicalPlan::Join(join) => guard_join(join)?,
        plan => Transformed::no(plan),
    };
    plan.transform_data(make_node_lazy)
}

fn make_node_lazy(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_part(&plan, may_skip_operands) {
        return separate_held(plan);
    }
    let schema = merge_schema(&plan.inputs());
    let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let plan = map_named(plan, |e| match is_condition {
        true => make_conjuncts_lazy(e, &schema),
        false => make_lazy(e, &schema)?.transform_data(|e| defer_failures(e, false)),
    })?;
    plan.transform_data(separate_held)
}

/// Whether [`make_node_lazy`] may change the expression `e` of a node, apart from the division of
/// filters.
fn may_skip_operands(e: &Expr) -> bool {
    match e {
        Expr::Exists(_) | Expr::InSubquery(_) => true,
        Expr::AggregateFunction(call) => call.params.filter.is_some(),
        Expr::WindowFunction(call) => call.params.filter.is_some(),
        e => is_conditional(e),
    }
}

/// Makes each condition of a join that can fail depend on the conditions of the join that cannot
/// fail.
///
/// A join computes its keys for all rows of an input, and evaluates its other conditions together.
/// After this change, the join computes an operand of a key, such as `10 / a.n`, only for rows of
/// `a` for which the conditions on `a` alone are true. It evaluates any other condition that can
/// fail only for pairs of rows for which the conditions that cannot fail are true.
fn guard_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(&join.schema);
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let conjuncts = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
    let (free, failing): (Vec<_>, Vec<_>) =
        conjuncts.into_iter().partition(|e| is_whole(e, &merge_sides(&left, &right)));
    if free.is_empty() {
        join.filter = conjunction(failing);
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let guard_of = |side: &DFSchema| {
        let within = |e: &&Expr| e.column_refs().iter().all(|column| side.has_column(column));
        conjunction(free.iter().filter(|e| !e.column_refs().is_empty()).filter(within).cloned())
    };
    let changed = Cell::new(false);
    let guard_side = |e: Expr, side: &DFSchema| -> Result<Expr> {
        let guard = match guard_of(side) {
            Some(guard) if !is_whole(&e, side) && !is_guarded(&e) => guard,
            _ => return Ok(e),
        };
        changed.set(true);
        let missing = Expr::Literal(ScalarValue::try_new_null(&e.get_type(side)?)?, None);
        Ok(make_case(guard, vec![(lit(true), e)], missing))
    };
    if join.null_equality == NullEquality::NullEqualsNothing {
        let keys = std::mem::take(&mut join.on);
        for (l, r) in keys {
            join.on.push((guard_side(l, &left)?, guard_side(r, &right)?));
        }
    }
    let mut guarded = Vec::with_capacity(failing.len());
    for e in failing {
        let key = match &e {
            Expr::BinaryExpr(BinaryExpr { left: l, op: Operator::Eq, right: r }) => {
                find_valid_equijoin_key_pair(l, r, &left, &right)?
            }
            _ => None,
        };
        guarded.push(match key {
            Some((l, r)) => guard_side(l, &left)?.eq(guard_side(r, &right)?),
            None if is_guarded(&e) => e,
            None => {
                changed.set(true);
                let others = conjunction(free.clone()).unwrap_or_else(|| lit(true));
                make_case(others, vec![(lit(true), e)], lit(false))
            }
        });
    }
    join.filter = conjunction(free.iter().cloned().chain(guarded));
    join.schema = schema;
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed.get()))
}

fn merge_sides(left: &DFSchema, right: &DFSchema) -> DFSchema {
    let mut schema = left.clone();
    schema.merge(right);
    schema
}

/// Whether an expression has the form of the CASE that this rule makes: `CASE condition WHEN true
/// THEN .. END`.
fn is_guarded(e: &Expr) -> bool {
    let Expr::Case(Case { expr: Some(_), when_then_expr, .. }) = e else { return false };
    matches!(when_then_expr.as_slice(), [(when, _)] if **when == lit(true))
}

/// Makes the arguments and sort keys of an aggregate with FILTER depend on the condition of FILTER,
/// because DataFusion computes them for all rows, even those that FILTER excludes from the
/// aggregate. Returns whether an argument or key changed.
fn guard_arguments<'a>(
    args: impl Iterator<Item = &'a mut Expr>,
    filter: &Expr,
    schema: &DFSchema,
) -> Result<bool> {
    let mut changed = false;
    for arg in args {
        if is_whole(arg, schema) || is_guarded(arg) {
            continue;
        }
        let missing = Expr::Literal(ScalarValue::try_new_null(&arg.get_type(schema)?)?, None);
        let guarded = std::mem::replace(arg, lit(true));
        *arg = make_case(filter.clone(), vec![(lit(true), guarded)], missing);
        changed = true;
    }
    Ok(changed)
}

/// Rewrites each conjunct of a predicate so that operands are evaluated only for rows that need
/// them.
fn make_conjuncts_lazy(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    let conjuncts = split_conjunction_owned(predicate);
    let beside = conjuncts.len() > 1;
    let made = conjuncts
        .into_iter()
        .map(|e| {
            let lazy = make_lazy(e, schema)?
                .transform_data(rewrite_correlated)?
                .transform_data(|e| defer_failures(e, beside))?;
            changed |= lazy.transformed;
            Ok(lazy.data)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Transformed::new_transformed(conjunction(made).unwrap_or_else(|| lit(true)), changed))
}

/// Makes EXISTS and IN subqueries evaluate fallible conditions only for rows that match the outer
/// query.
fn rewrite_correlated(e: Expr) -> Result<Transformed<Expr>> {
    e.transform_down(|e| {
        let (Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })) = &e
        else {
            return Ok(Transformed::no(e));
        };
        let Some(plan) = correlate_held(&subquery.subquery)? else { return Ok(Transformed::no(e)) };
        let made = subquery.with_plan(Arc::new(plan));
        Ok(Transformed::yes(match e {
            Expr::Exists(exists) => Expr::Exists(Exists { subquery: made, ..exists }),
            Expr::InSubquery(query) => Expr::InSubquery(InSubquery { subquery: made, ..query }),
            e => e,
        }))
    })
}

/// Splits a filter into an upper filter of the conditions that can fail and a lower filter of the
/// others.
fn separate_held(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
    let schema = filter.input.schema();
    let mut conditions = HeldConditions::default();
    conditions.add_predicate(filter.predicate.clone(), schema);
    // Equalities that can become join keys stay in the lower filter, because DataFusion searches
    // only there for join keys.
    let (keys, held): (Vec<_>, Vec<_>) =
        conditions.held.into_iter().partition(|e| is_key(e, &filter.input));
    conditions.free.extend(keys);
    let is_done = is_held(&filter.predicate)
        // If the only condition is directly above a scan, the filter stays unchanged: the scan
        // evaluates the condition for every row anyway.
        || held.len() == 1 && matches!(*filter.input, LogicalPlan::TableScan(_));
    if held.is_empty() || (conditions.free.is_empty() && is_done) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let mut input = filter.input;
    if let Some(free) = join_conditions(conditions.free, Vec::new()) {
        input = LogicalPlan::Filter(Filter::try_new(free, input)?).into();
    }
    let Some(held) = join_conditions(Vec::new(), held) else {
        return Ok(Transformed::no(LogicalPlan::clone(&input)));
    };
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(held, input)?)))
}

/// Whether a condition of a filter above `input` is an equality that can become a key of a join in
/// `input`.
fn is_key(condition: &Expr, input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Join(join) => match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                let (l, r) = (join.left.schema(), join.right.schema());
                matches!(find_valid_equijoin_key_pair(left, right, l, r), Ok(Some(_)))
                    || is_key(condition, &join.left)
                    || is_key(condition, &join.right)
            }
            _ => false,
        },
        LogicalPlan::Filter(filter) => is_key(condition, &filter.input),
        _ => false,
    }
}

/// Makes AND, OR and CASE in an expression, also in lambdas, evaluate operands only for rows that
/// need them.
fn make_lazy(e: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    e.transform_down(|e| match e {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right })
            if !is_whole(&right, schema)
                && left.get_type(schema).is_ok_and(|t| t == DataType::Boolean) =>
        {
            let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
            let rest = Expr::BinaryExpr(BinaryExpr::new(right.clone(), op, Box::new(unknown)));
            let decided = lit(op == Operator::Or);
            let open = lit(op == Operator::And);
            let arms = vec![(decided.clone(), decided), (open, *right)];
            Ok(Transformed::yes(make_case(*left, arms, rest)))
        }
        Expr::Case(Case { expr: None, when_then_expr, else_expr })
            if is_boolean_case(&when_then_expr, schema)
                && !are_whole(&when_then_expr, else_expr.as_deref(), schema) =>
        {
            let of = Some(Box::new(lit(true)));
            Ok(Transformed::yes(Expr::Case(Case::new(of, when_then_expr, else_expr))))
        }
        Expr::AggregateFunction(mut call) if call.params.filter.is_some() => {
            let AggregateFunctionParams { args, filter, order_by, .. } = &mut call.params;
            let keys = order_by.iter_mut().map(|sort| &mut sort.expr);
            let changed = match filter {
                Some(filter) => guard_arguments(args.iter_mut().chain(keys), filter, schema)?,
                None => false,
            };
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changed))
        }
        Expr::WindowFunction(mut call) if call.params.filter.is_some() => {
            let WindowFunctionParams { args, filter, .. } = &mut call.params;
            let changed = match filter {
                Some(filter) => guard_arguments(args.iter_mut(), filter, schema)?,
                None => false,
            };
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
        }
        e => Ok(Transformed::no(e)),
    })
}

/// Moves the evaluation of failing constant casts from planning to execution, if the query might
/// not need their results: all casts in `e` if `conditional` is true, and otherwise those that are
/// operands of CASE, AND, OR or a function such as `coalesce`.
///
/// DataFusion evaluates casts of literals at planning, so
/// `CASE WHEN false THEN CAST('a' AS BIGINT) ELSE 1 END` fails. This workaround is obsolete once
/// the test `stock_constants_fail_where_nothing_asks` fails.
fn defer_failures(e: Expr, conditional: bool) -> Result<Transformed<Expr>> {
    if conditional {
        return e.transform_down(|e| Ok(defer_cast(e)));
    }
    e.transform_down(|e| match is_conditional(&e) {
        true => e.map_children(|e| {
            let done = e.transform_down(|e| Ok(defer_cast(e)))?;
            Ok(Transformed::new(done.data, done.transformed, TreeNodeRecursion::Continue))
        }),
        false => Ok(Transformed::no(e)),
    })
}

/// Whether an expression may skip the evaluation of one of its operands.
fn is_conditional(e: &Expr) -> bool {
    match e {
        Expr::Case(_) => true,
        Expr::BinaryExpr(binary) => matches!(binary.op, Operator::And | Operator::Or),
        Expr::ScalarFunction(call) => call.func.short_circuits(),
        _ => false,
    }
}

fn defer_cast(e: Expr) -> Transformed<Expr> {
    let Expr::Cast(cast) = e else { return Transformed::no(e) };
    let is_constant = cast.expr.column_refs().is_empty()
        && !cast.expr.is_volatile()
        && !cast.expr.contains_outer()
        && cast.expr.get_type(&DFSchema::empty()).is_ok();
    let fails = || {
        let simplifier = ExprSimplifier::new(SimplifyContext::default());
        simplifier.simplify(Expr::Cast(cast.clone())).is_err()
    };
    if !is_constant || !fails() {
        return Transformed::no(Expr::Cast(cast));
    }
    let operand = defer_constant(*cast.expr);
    Transformed::yes(Expr::Cast(Cast { expr: Box::new(operand), field: cast.field }))
}

type CaseArms = Vec<(Box<Expr>, Box<Expr>)>;

fn is_boolean_case(arms: &CaseArms, schema: &DFSchema) -> bool {
    let boolean = |e: &Expr| e.get_type(schema).is_ok_and(|t| t == DataType::Boolean);
    arms.first().is_some_and(|(_, then)| boolean(then))
}

fn are_whole(arms: &CaseArms, other: Option<&Expr>, schema: &DFSchema) -> bool {
    arms.iter().all(|(when, then)| is_whole(when, schema) && is_whole(then, schema))
        && other.is_none_or(|e| is_whole(e, schema))
}

/// Whether an expression can be evaluated for every row without an error.
fn is_whole(e: &Expr, schema: &DFSchema) -> bool {
    is_free(e, schema) || cannot_fail(e, schema).unwrap_or(false)
}
