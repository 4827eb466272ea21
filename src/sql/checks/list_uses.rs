//! Rejects lists that are used as scalars, and suggests the functions for lists.

use std::cell::LazyCell;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, HigherOrderFunction, InList, Like, ScalarFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

use crate::array::{leaf_type, list_depth};
use crate::functions::find_facts;
use crate::sql::base::expression_parts::for_each_part;
use crate::sql::base::plan_facts::{PlanFact, has_part_facts};
use crate::sql::base::subquery_parts::find_query;
use crate::sql::base::tokens::quote_text;
use crate::sql::checks::elements::{explain_element, explain_searched};
use crate::sql::checks::modifiers::{check_aggregate, check_range, check_window};
use crate::sql::checks::row_values::check_row_values;
use crate::sql::workarounds::types::coarser_times::is_named_cast;

/// Analyzer rule: suggests functions for lists in errors about operators on lists. It runs before
/// type coercion, which replaces the original expressions.
///
/// Without this rule, the error of `SELECT [1, 2] BETWEEN 1 AND 3` does not suggest
/// `ragged_between`.
pub(in crate::sql) fn suggest_list_functions(plan: LogicalPlan) -> Result<LogicalPlan> {
    check_lists(&plan)?;
    Ok(plan)
}

/// The kinds of nodes and expressions that [`check_lists`] checks.
pub(in crate::sql) const CHECKED: &[PlanFact] = &[
    PlanFact::AggregateCall,
    PlanFact::Between,
    PlanFact::Case,
    PlanFact::Cast,
    PlanFact::Function,
    PlanFact::InList,
    PlanFact::Join,
    PlanFact::LambdaCall,
    PlanFact::Like,
    PlanFact::SimilarTo,
    PlanFact::Truth,
    PlanFact::WindowCall,
];

/// Returns an error for BETWEEN, LIKE and IN if they compare a list with scalars, which DataFusion
/// would plan with another meaning, and for lists of booleans where one boolean is needed. Also
/// refuses `max` of lists of lists, and modifiers such as DISTINCT that an aggregate or a window
/// function would ignore.
pub(in crate::sql) fn check_lists(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        check_row_values(node)?;
        // Most nodes have no expression that is checked, and wide tables have large schemas.
        let schema = LazyCell::new(|| merge_schema(&node.inputs()));
        if let LogicalPlan::Join(join) = node
            && let Some(filter) = &join.filter
        {
            explain_list_as_boolean("JOIN .. ON", filter, &schema)?;
        }
        for_each_part(node, |e| {
            if has_part_facts(e, CHECKED) {
                check_expr(e, &schema)?;
                check_outer_aggregate(e)?;
            }
            Ok(())
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns an error for an aggregate that is in a subquery, but uses only columns of an outer
/// query. In the SQL standard, such an aggregate belongs to the outer query, but DataFusion
/// computes it within the subquery. Columns of FILTER and ORDER BY count as those of arguments do,
/// as in PostgreSQL and DuckDB.
fn check_outer_aggregate(expr: &Expr) -> Result<()> {
    let Expr::AggregateFunction(call) = expr else { return Ok(()) };
    let args = &call.params.args;
    let is_outer = args.iter().any(Expr::contains_outer) && expr.column_refs().is_empty();
    let has_query =
        args.iter().any(|arg| arg.exists(|e| Ok(find_query(e).is_some())).unwrap_or(true));
    if is_outer && !has_query {
        return plan_err!(
            "the aggregate {} in a subquery uses only columns of an outer query, so in SQL it is an aggregate of the outer query, which is not supported; compute it in a subquery in FROM",
            call.func.name()
        );
    }
    Ok(())
}

fn check_expr(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::Between(between) => check_between(between, schema),
        Expr::InList(list) => check_in_list(list, schema),
        Expr::Like(like) => {
            let function = if like.case_insensitive { "ragged_ilike" } else { "ragged_like" };
            check_pattern(like, function, schema)
        }
        Expr::SimilarTo(like) => check_pattern(like, "ragged_matches", schema),
        Expr::Cast(cast) => check_list_cast("CAST", &cast.expr, cast.field.data_type(), schema),
        Expr::TryCast(cast) => {
            check_list_cast("TRY_CAST", &cast.expr, cast.field.data_type(), schema)
        }
        Expr::ScalarFunction(call) => {
            check_searched(call, schema)?;
            check_named_cast(expr, call, schema)?;
            check_length(call, schema)
        }
        Expr::HigherOrderFunction(call) => check_filter_condition(call, schema),
        Expr::IsTrue(e) => explain_list_as_boolean("IS TRUE", e, schema),
        Expr::IsFalse(e) => explain_list_as_boolean("IS FALSE", e, schema),
        Expr::IsNotTrue(e) => explain_list_as_boolean("IS NOT TRUE", e, schema),
        Expr::IsNotFalse(e) => explain_list_as_boolean("IS NOT FALSE", e, schema),
        Expr::Case(case) if case.expr.is_none() => {
            for (when, _) in &case.when_then_expr {
                explain_list_as_boolean("CASE WHEN", when, schema)?;
            }
            check_quantified(&case.when_then_expr, schema)
        }
        Expr::WindowFunction(call) => {
            check_window(call)?;
            check_range(call, schema)
        }
        Expr::AggregateFunction(call) => {
            check_aggregate(call)?;
            check_extreme(call, schema)?;
            match &call.params.filter {
                Some(filter) => explain_list_as_boolean("FILTER (WHERE ..)", filter, schema),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns an error if BETWEEN compares a list with scalars, as in `[1, 2] BETWEEN 1 AND 3`.
fn check_between(between: &Between, schema: &DFSchema) -> Result<()> {
    let e = &between.expr;
    if differs_in_depth(e, [between.low.as_ref(), between.high.as_ref()], schema) {
        let [e, low, high] = [e, &between.low, &between.high].map(|e| write_operand(e));
        return plan_err!(
            "BETWEEN compares a scalar, but {e} is a list; use ragged_between({e}, {low}, {high}) to test each of its values{AS_A_WHOLE}"
        );
    }
    Ok(())
}

/// Returns an error if IN compares a list with scalars, as in `[1, 2] IN (1, 3)`.
fn check_in_list(list: &InList, schema: &DFSchema) -> Result<()> {
    let e = &list.expr;
    if differs_in_depth(e, &list.list, schema) {
        let e = write_operand(e);
        return plan_err!(
            "IN tests a scalar, but {e} is a list; use ragged_isin({e}, [1, 2]) to test each of its values, or array_has_any({e}, [1, 2]) to test whether one of its values is 1 or 2"
        );
    }
    Ok(())
}

/// Returns an error if LIKE tests a list, as in `['a', 'b'] LIKE 'a%'`. The error suggests
/// `function`, which tests each string of the list.
fn check_pattern(like: &Like, function: &str, schema: &DFSchema) -> Result<()> {
    let e = &like.expr;
    if differs_in_depth(e, [like.pattern.as_ref()], schema) {
        let [e, pattern] = [e, &like.pattern].map(|e| write_operand(e));
        return plan_err!(
            "LIKE tests one string, but {e} is a list of strings; use {function}({e}, {pattern}) to test each of its strings{AS_A_WHOLE}"
        );
    }
    Ok(())
}

/// Returns an error for a search of a value in a list whose elements have another type, as in
/// `array_has([[1]], 1)`. Without this check, type coercion would report only the types, without a
/// suggestion.
fn check_searched(call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    if let ("array_has", [list, value]) = (call.name(), call.args.as_slice())
        && let (Ok(list), Ok(value)) = (list.get_type(schema), value.get_type(schema))
        && !value.is_null()
        && let Some(said) = explain_element("array_has", &format!("{list}, {value}"))
    {
        return plan_err!("{said}");
    }
    if let [list, value, ..] = call.args.as_slice()
        && let (Ok(list), Ok(value)) = (list.get_type(schema), value.get_type(schema))
        && let Some(said) = explain_searched(call.name(), &list.to_string(), &value.to_string())
    {
        return plan_err!("{said}");
    }
    Ok(())
}

/// Returns an error for a call such as `char_length([1, 2])`. DataFusion would cast the list to a
/// string, which is never intended.
fn check_length(call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    let is_of_text = ["character_length", "octet_length", "bit_length"].contains(&call.name());
    if is_of_text
        && let [e] = call.args.as_slice()
        && e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
    {
        let e = write_operand(e);
        return plan_err!(
            "{} takes a string, but {e} is a list; use array_length({e}) for the number of its elements, or ragged_count({e}) for the number of values at any depth",
            call.name()
        );
    }
    Ok(())
}

/// Returns an error for a call such as `list_filter([[1], [2]], lambda v: v > 1)`, whose condition
/// is a list. DataFusion would report the type of the condition only when it evaluates the lambda.
fn check_filter_condition(call: &HigherOrderFunction, schema: &DFSchema) -> Result<()> {
    if call.name() != "array_filter" {
        return Ok(());
    }
    for arg in &call.args {
        if let Expr::Lambda(lambda) = arg
            && lambda.body.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
        {
            return plan_err!(
                "the condition of list_filter is one boolean per element, but this condition is a list, because the elements are lists; use ragged_filter(x, x > 1) to filter the values at any depth, or ragged_any(..) around the condition to filter the inner lists"
            );
        }
    }
    Ok(())
}

/// Returns an error for min and max of values that DataFusion does not order: maps, unions and
/// lists of lists, as in `max([[1], [2]])`.
fn check_extreme(call: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    let name = call.func.name();
    let ("min" | "max", [e]) = (name, call.params.args.as_slice()) else { return Ok(()) };
    match e.get_type(schema) {
        Ok(t) if list_depth(&t) > 1 => {
            let e = write_operand(e);
            plan_err!(
                "{name} compares lists of one level, but {e} is a list of lists; use {name}(ragged_{name}({e})) to compare all values, or ragged_{name}_agg({e}) to compare the values at each position"
            )
        }
        Ok(t @ (DataType::Map(..) | DataType::Union(..))) => plan_err!(
            "{name} needs values that can be sorted, but {e} has the type {t}; use a column of another type"
        ),
        _ => Ok(()),
    }
}

/// Returns an error for comparisons such as `x < ANY (list)` if the elements of the list are
/// strings and `x` is not one.
///
/// Serrate compares `x` only with the least or greatest element of the list, which is wrong if `x`
/// is a number or a time, because strings have another order: `'10' < '9'`.
fn check_quantified(whens: &[(Box<Expr>, Box<Expr>)], schema: &DFSchema) -> Result<()> {
    let [(first, _), _, _, (found, _), _] = whens else { return Ok(()) };
    let Expr::IsNull(list) = first.as_ref() else { return Ok(()) };
    let is_text = |t: &DataType| match t {
        DataType::Dictionary(_, values) => values.is_string(),
        t => t.is_string() || t.is_null(),
    };
    match list.get_type(schema) {
        Ok(t) if list_depth(&t) == 1 && leaf_type(&t).is_string() => {}
        _ => return Ok(()),
    }
    let is_extreme = |e: &Expr| match e {
        Expr::ScalarFunction(call) => {
            ["array_max", "array_min"].contains(&call.name())
                && call.args.first() == Some(list.as_ref())
        }
        _ => false,
    };
    found.apply(|e| {
        if let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = e
            && (is_extreme(left) || is_extreme(right))
        {
            let value = if is_extreme(left) { right } else { left };
            if let Ok(t) = value.get_type(schema)
                && !is_text(&t)
            {
                let to = if t.is_numeric() { "DOUBLE" } else { "TIMESTAMP" };
                let [value, list] = [value, list].map(|e| write_operand(e));
                return plan_err!(
                    "ANY and ALL compare {value} ({t}) with {list}, a list of strings, which are ordered as text ('10' < '9'); cast the list, as in ANY ({list}::{to}[])"
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns an error for a call that casts to a decimal type with a negative scale. Arrow writes
/// zero as `000` in these types, and panics in comparisons.
fn check_named_cast(expr: &Expr, call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    if !is_named_cast(expr) && !find_facts(&call.func).casts_to_named_type {
        return Ok(());
    }
    match expr.get_type(schema).ok().and_then(|t| find_negative_scale(&t)) {
        Some((precision, scale)) => plan_err!(
            "{} to a decimal type with the negative scale {scale} is not supported; write DECIMAL({}, 0), and round(x, {scale}) to round",
            call.name(),
            precision.saturating_add(scale.unsigned_abs())
        ),
        None => Ok(()),
    }
}

/// Returns the precision and the scale of the first decimal type with a negative scale that `t` is
/// or contains. Returns `None` if there is no such type.
fn find_negative_scale(t: &DataType) -> Option<(u8, i8)> {
    match t {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*scale < 0).then_some((*precision, *scale)),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => find_negative_scale(item.data_type()),
        DataType::Dictionary(_, values) => find_negative_scale(values),
        DataType::Struct(fields) => {
            fields.iter().find_map(|field| find_negative_scale(field.data_type()))
        }
        _ => None,
    }
}

/// Returns an error for a cast of a list to a scalar type other than a string.
fn check_list_cast(what: &str, expr: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    let from = match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 => t,
        _ => return Ok(()),
    };
    if to.is_nested() || to.is_string() || to.is_null() || matches!(to, DataType::Dictionary(..)) {
        return Ok(());
    }
    let ours = if what == "CAST" { "ragged_cast" } else { "ragged_try_cast" };
    let expr = write_operand(expr);
    plan_err!(
        "{what} to {to} returns a scalar, but {expr} is a list ({from}); use {ours}({expr}, '{to}') to cast each of its values"
    )
}

/// Returns the text of an operand as in a statement, such as `1`. DataFusion's own text contains
/// the types of literals: `Int64(1)`.
fn write_operand(expr: &Expr) -> String {
    match expr {
        Expr::Literal(value, _) => match value.try_as_str().flatten() {
            Some(text) => quote_text(text),
            None if value.data_type().is_temporal() && !value.is_null() => format!("'{value}'"),
            None => value.to_string(),
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            format!("{} {op} {}", write_operand(left), write_operand(right))
        }
        Expr::ScalarFunction(call) => {
            let args: Vec<String> = call.args.iter().map(write_operand).collect();
            match call.name() {
                "make_array" => format!("[{}]", args.join(", ")),
                name => format!("{name}({})", args.join(", ")),
            }
        }
        // The planner adds casts to literals: `DATE '2020-01-01'` is a cast of a string.
        Expr::Cast(cast) => write_operand(&cast.expr),
        other => other.human_display().to_string(),
    }
}

const AS_A_WHOLE: &str = " (for one boolean per row: ragged_any(..) or ragged_all(..))";

/// Whether `expr` is a list and one of `others` is a scalar, as in `[1, 2] BETWEEN 1 AND 3`. NULL
/// is not a scalar.
fn differs_in_depth<'a>(
    expr: &Expr,
    others: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> bool {
    let is_value = |t: DataType| list_depth(&t) == 0 && !t.is_null();
    expr.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
        && others.into_iter().any(|e| e.get_type(schema).is_ok_and(is_value))
}

fn explain_list_as_boolean(place: &str, expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 && *leaf_type(&t) == DataType::Boolean => {
            let expr = match expr {
                Expr::Literal(..) => write_operand(expr),
                _ => expr.schema_name().to_string(),
            };
            plan_err!(
                "{place} needs one boolean per row, but {expr} is a list of booleans; use ragged_any({expr}) or ragged_all(..)"
            )
        }
        _ => Ok(()),
    }
}
