//! Keys and comparisons of floats in which -0.0 equals 0.0, and NaN equals NaN.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, Alias, InList, ScalarFunction, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, ExprSchemable, GroupingSet, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::OptimizerConfig;

use crate::functions::{
    StockFact, call_on_arrays, declare, find_aggregate_facts, has_fact, is_row_based, same_field,
};
use crate::sql::base::compared_operands::{
    is_comparison_operator, list_compared_operands, searches_list,
};
use crate::sql::base::expression_parts::{has_part, map_named, rewrite_node};
use crate::sql::workarounds::grouping::computed_keys::is_key_column;
use serrate_core::internal::{holds_float, to_canonical_floats};

/// `SELECT f FROM t WHERE f < 0.0` returns -0.0 without this rule.
///
/// Logical optimizer rule: makes -0.0 equal 0.0, and all NaN equal, in comparisons, sorts, groups
/// and joins.
///
/// DataFusion compares floats in the total order of IEEE 754 and hashes their bits, so:
///
/// * A NaN with a negative sign (the result of 0.0 / 0.0 on most processors) is less than all
///   numbers and not equal to a NaN with a positive sign.
/// * -0.0 sorts before 0.0, and window partitions and list comparisons distinguish them.
/// * A hash join pushes a filter on its keys into the scan of the other input, and loses matching
///   rows.
/// * `array_has(x, 0.0)`, and other searches in lists, do not find -0.0.
///
/// This workaround is obsolete once the test `stock_comparisons_tell_zeros_and_nan_apart` fails.
pub(in crate::sql) fn unify_float_keys(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let schema = match plan.inputs().as_slice() {
        [] => return Ok(Transformed::no(plan)),
        [input] => Arc::clone(input.schema()),
        inputs => Arc::new(merge_schema(inputs)),
    };
    let has_comparison = has_part(&plan, is_comparison);
    if !has_comparison && !has_keys(&plan) {
        return Ok(Transformed::no(plan));
    }
    // The rewrite computes the names of all expressions of a node.
    let plan = match has_comparison || cfg!(debug_assertions) {
        true => map_named(plan, |expr| {
            expr.transform_up(|mut expr| {
                let changed = wrap_compared_parts(&mut expr, &schema)?;
                Ok(Transformed::new_transformed(expr, changed))
            })
        })?,
        false => Transformed::no(plan),
    };
    debug_assert!(has_comparison || !plan.transformed, "{:?} has a comparison", plan.data);
    plan.transform_data(|plan| match plan {
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                changed |= add_key(left, join.left.schema())?;
                changed |= add_key(right, join.right.schema())?;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        LogicalPlan::Sort(mut sort) => {
            let mut changed = false;
            for by in &mut sort.expr {
                changed |= add_key(&mut by.expr, &schema)?;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        LogicalPlan::Aggregate(aggregate) => wrap_group_keys(aggregate),
        plan => Ok(Transformed::no(plan)),
    })
}

/// `SELECT 0.0 IN (-0.0)` is false without this rule.
///
/// Logical optimizer rule, before constants are folded: makes comparisons of constant floats treat
/// -0.0 as 0.0, and all NaN as one NaN.
///
/// [`unify_float_keys`] runs too late for these constants: constant folding has already made `0.0
/// IN (-0.0)` false, and has also folded `coalesce(-0.0, x) IN (0.0)`. Constants that are compared
/// with columns are canonicalized here as well: if a join has the key `x = y`, DataFusion turns the
/// conditions `x = 0.0` and `y = -0.0` into two conditions on one column, and the simplifier would
/// treat the two different constants as a contradiction.
pub(in crate::sql) fn unify_constant_floats(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !has_part(&plan, |e| is_early_comparison(e) || compares_constant(e)) {
        return Ok(Transformed::no(plan));
    }
    rewrite_node(plan, |mut expr, columns| {
        let changed = match is_early_comparison(&expr) {
            true => wrap_compared_parts(&mut expr, columns)?,
            false => normalize_constant_parts(&mut expr, columns)?,
        };
        Ok(Transformed::new_transformed(expr, changed))
    })
}

fn compares_constant(expr: &Expr) -> bool {
    let is_changeable = |e: &Expr| match e {
        Expr::Literal(value, _) => holds_float(&value.data_type()) && !value.is_null(),
        e => !is_row_based(e),
    };
    match expr {
        Expr::BinaryExpr(binary) if is_comparison_operator(binary.op) => {
            is_changeable(&binary.left) || is_changeable(&binary.right)
        }
        Expr::Between(between) => is_changeable(&between.low) || is_changeable(&between.high),
        Expr::InList(InList { list, .. }) => list.iter().any(is_changeable),
        _ => false,
    }
}

/// Replaces -0.0 with 0.0, and NaN with one NaN, in the constants among the operands of a
/// comparison. Returns whether a constant changed.
fn normalize_constant_parts(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let parts: Vec<&mut Expr> = match expr {
        Expr::BinaryExpr(binary) if is_comparison_operator(binary.op) => {
            vec![&mut *binary.left, &mut *binary.right]
        }
        Expr::Between(between) => vec![&mut *between.low, &mut *between.high],
        Expr::InList(InList { list, .. }) => list.iter_mut().collect(),
        _ => return Ok(false),
    };
    let mut changed = false;
    for part in parts {
        match part {
            Expr::Literal(value, _) if holds_float(&value.data_type()) && !value.is_null() => {
                let key =
                    ScalarValue::try_from_array(&to_canonical_floats(&value.to_array()?)?, 0)?;
                // `ScalarValue` compares floats by their bits, so 0.0 and -0.0 differ here.
                if key != *value {
                    (*value, changed) = (key, true);
                }
            }
            Expr::Literal(..) => {}
            part => changed |= !is_row_based(part) && add_key(part, schema)?,
        }
    }
    Ok(changed)
}

/// Whether an expression is a comparison that the simplifier can fold to a constant before
/// [`unify_float_keys`] runs.
fn is_early_comparison(expr: &Expr) -> bool {
    is_constant_comparison(expr) || is_conditional_comparison(expr)
}

/// Whether an expression compares CASE, `coalesce` or another conditional expression, which the
/// simplifier might fold to a constant.
fn is_conditional_comparison(expr: &Expr) -> bool {
    let compares_values = !matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_))
        && is_comparison(expr);
    let is_conditional = |e: &Expr| match e {
        Expr::Case(_) => true,
        Expr::ScalarFunction(call) => has_fact(call.name(), StockFact::BecomesArgument),
        _ => false,
    };
    compares_values && expr.exists(|e| Ok(is_conditional(e))).unwrap_or(true)
}

fn is_constant_comparison(expr: &Expr) -> bool {
    is_comparison(expr) && !is_row_based(expr)
}

fn has_keys(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(_) | LogicalPlan::Sort(_) | LogicalPlan::Aggregate(_))
}

fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_comparison_operator(binary.op),
        Expr::Between(_) | Expr::InList(_) => true,
        Expr::AggregateFunction(call) => {
            compares_arguments(call) || !call.params.order_by.is_empty()
        }
        Expr::WindowFunction(_) => true,
        Expr::Case(case) => case.expr.is_some(),
        Expr::ScalarFunction(call) => {
            has_fact(call.name(), StockFact::ComparesArguments) || searches_list(call.name())
        }
        _ => false,
    }
}

/// Whether an aggregate compares its arguments with those of other rows, as `count(DISTINCT x)` and
/// `min(x)` do.
fn compares_arguments(call: &AggregateFunction) -> bool {
    call.params.distinct || find_aggregate_facts(call.func.name()).orders_values
}

fn is_equality(op: Operator) -> bool {
    use Operator::{Eq, IsDistinctFrom, IsNotDistinctFrom, NotEq};
    matches!(op, Eq | NotEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Wraps the compared operands of an expression in [`make_float_key`]. Returns whether anything
/// changed.
fn wrap_compared_parts(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let parts: Vec<&mut Expr> = match expr {
        // The operands stay unchanged if one of them is a literal number: NaN does not equal a
        // number, and DataFusion's `x = 0.0` is also true for -0.0.
        Expr::BinaryExpr(binary)
            if is_equality(binary.op) && (is_number(&binary.left) || is_number(&binary.right)) =>
        {
            return Ok(false);
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if searches_list(func.name()) => {
            // The list stays unchanged if the wanted number is not 0: all floats that are equal to
            // such a number have the same bits.
            if args.get(1).is_some_and(|wanted| is_number(wanted) && !is_zero(wanted)) {
                return Ok(false);
            }
            args.iter_mut().take(2).collect()
        }
        Expr::AggregateFunction(call) => {
            let compares = compares_arguments(call);
            let args = call.params.args.iter_mut().filter(|_| compares);
            args.chain(call.params.order_by.iter_mut().map(|by| &mut by.expr)).collect()
        }
        Expr::WindowFunction(call) => {
            let WindowFunction { fun, params } = &mut **call;
            let orders = match fun {
                WindowFunctionDefinition::AggregateUDF(f) => {
                    find_aggregate_facts(f.name()).orders_values
                }
                WindowFunctionDefinition::WindowUDF(_) => false,
            };
            let compares = params.distinct || orders;
            let args = params.args.iter_mut().filter(|_| compares);
            let order = params.order_by.iter_mut().map(|by| &mut by.expr);
            args.chain(order).chain(&mut params.partition_by).collect()
        }
        other => list_compared_operands(other),
    };
    let mut changed = false;
    for part in parts {
        changed |= add_key(part, schema)?;
    }
    Ok(changed)
}

/// Whether an expression is a float literal other than NaN.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float16(Some(x)), _) => !x.is_nan(),
        Expr::Literal(ScalarValue::Float32(Some(x)), _) => !x.is_nan(),
        Expr::Literal(ScalarValue::Float64(Some(x)), _) => !x.is_nan(),
        _ => false,
    }
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float16(Some(x)), _) => x.to_f32() == 0.0,
        Expr::Literal(ScalarValue::Float32(Some(x)), _) => *x == 0.0,
        Expr::Literal(ScalarValue::Float64(Some(x)), _) => *x == 0.0,
        _ => false,
    }
}

/// Wraps float group keys in [`make_float_key`], which canonicalizes zeros and NaN. The keys keep
/// their column names.
fn wrap_group_keys(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(aggregate.input.schema());
    let add_named_key = |group: &mut Expr| -> Result<bool> {
        if !lacks_key(group, &schema) {
            return Ok(false);
        }
        let (relation, name) = group.qualified_name();
        let key = make_float_key(std::mem::take(group));
        *group = Expr::Alias(Alias::new(key, relation, name));
        Ok(true)
    };
    let mut changed = false;
    for group in &mut aggregate.group_expr {
        match group {
            Expr::GroupingSet(GroupingSet::Rollup(groups) | GroupingSet::Cube(groups)) => {
                for group in groups {
                    changed |= add_named_key(group)?;
                }
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                for group in sets.iter_mut().flatten() {
                    changed |= add_named_key(group)?;
                }
            }
            group => changed |= add_named_key(group)?,
        }
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let keyed = Aggregate::try_new_with_schema(input, group_expr, aggr_expr, schema)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(keyed)))
}

/// Wraps a float expression in [`make_float_key`] unless it is canonical. Returns whether it did
/// so.
fn add_key(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let lacks = lacks_key(expr, schema);
    if lacks {
        *expr = make_float_key(std::mem::take(expr));
    }
    Ok(lacks)
}

/// Whether an expression is a float that is not canonical.
fn lacks_key(expr: &Expr, schema: &DFSchema) -> bool {
    let inner = match expr {
        Expr::Alias(alias) => &*alias.expr,
        inner => inner,
    };
    let is_key = match inner {
        Expr::Literal(value, _) => {
            value.is_null() || is_number(inner) && !value.to_string().starts_with("-0")
        }
        Expr::ScalarFunction(call) => call.func.inner().is::<FloatKey>(),
        Expr::Column(column) => is_key_column(column),
        // A cast of integers needs no key, because integers have one zero and no NaN.
        Expr::Cast(cast) => cast.expr.get_type(schema).is_ok_and(|t| t.is_integer()),
        _ => false,
    };
    // A lambda parameter or a column of an outer query has no type in this schema and is not
    // wrapped.
    !is_key && inner.get_type(schema).is_ok_and(|t| holds_float(&t))
}

fn make_float_key(expr: Expr) -> Expr {
    build_float_key_function().call(vec![expr])
}

pub(in crate::sql) fn build_float_key_function() -> ScalarUDF {
    ScalarUDF::new_from_impl(FloatKey)
}

/// `float_key(x)`: returns `x` with canonical zeros and NaN, at any depth of lists and structs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatKey;

impl ScalarUDFImpl for FloatKey {
    declare!("float_key", Signature::any(1, Volatility::Immutable));
    same_field!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| Ok(to_canonical_floats(&values)?))
    }
}
