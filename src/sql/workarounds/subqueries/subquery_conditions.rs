//! Conditions with IN, ANY, ALL and EXISTS that DataFusion would plan as joins with other rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue, not_impl_err, plan_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, Filter, LogicalPlan, LogicalPlanBuilder,
    Operator, SkipType, Subquery, exists, lit, not_exists, when,
};

use crate::sql::base::expression_parts::for_each_part;
use crate::sql::base::outer_columns::{find_outer_columns, has_grouping_sets, hides_outer};
use crate::sql::base::plan_nodes::{has_node, keeps_side};
use crate::sql::base::subquery_parts::{find_query, has_one_row, has_query, is_subquery_test};
use crate::sql::workarounds::subqueries::case_guards::guard_operands;
use crate::sql::workarounds::subqueries::shared_rows::share_rows;

/// Name given to the column of a subquery after IN, ANY or ALL. No other column has this name.
const VALUE: &str = "__serrate_in";

/// Name of the column that holds the number of rows of a subquery after EXISTS.
const COUNT: &str = "__serrate_count";
const ANSWER: &str = "__serrate_exists";

/// `SELECT k FROM t WHERE 7 NOT IN (SELECT id FROM (VALUES (1), (NULL)) n(id))` returns every row
/// of `t`, instead of none, without this rule.
///
/// Analyzer rule: rewrites conditions with subqueries to conditions that DataFusion decorrelates
/// correctly.
///
/// DataFusion 55 converts such conditions to joins:
///
/// * `x NOT IN (query)` becomes a null-aware anti join only if `x` has columns, the query has no
///   outer columns, and the condition is a conjunct of its own. If `x` is a literal, the query is
///   correlated, or the condition is within OR, NULL counts as a value that equals nothing. The
///   result then has too many rows, or too few, because a NULL that the query has for one outer row
///   counts for all outer rows.
/// * `x IN (query)` under NOT, IS NULL or CASE is never NULL, although it must be for some rows.
/// * `x IN (query) OR y` fails if the column of the query belongs to no table.
/// * An aggregate without GROUP BY in a correlated query returns no row for an empty group instead
///   of one.
/// * `t.x >= ALL (SELECT x FROM t)` and `sum(x) >= ALL (SELECT sum(x) FROM t GROUP BY g)` compare
///   the column of the query with itself. `x IN (SELECT x ..)` fails if neither `x` belongs to a
///   table.
/// * A condition on outer columns moves above a LIMIT, a window or the nullable side of a join.
///
/// `x NOT IN (q)` is true if no row of `q` equals `x`, no row of `q` is NULL, and `q` has no row at
/// all if `x` is NULL. The rule writes each of these three as a NOT EXISTS, which becomes an anti
/// join. If a correlated `q` always has one row, the rule compares `x` with the scalar subquery
/// `q`. It returns an error for queries whose conditions DataFusion would move wrongly. This
/// workaround is obsolete once the test `stock_in_is_still_two_valued` fails.
pub(in crate::sql) fn rewrite_subquery_conditions(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(has_query(node)))? {
        return Ok(plan);
    }
    // Rewrites inner subqueries first, because the rewrite of an outer subquery may copy them.
    let plan = plan.transform_up_with_subqueries(|node| {
        if !has_query(&node) {
            return Ok(Transformed::no(node));
        }
        for_each_part(&node, |expr| {
            if let Some(query) = find_query(expr) {
                check_correlation(query, expr)?;
                check_names(query, expr)?;
            }
            match expr {
                Expr::InSubquery(test) if test.expr.contains_outer() => {
                    refuse_outer_value(&test.expr, if test.negated { "NOT IN" } else { "IN" })
                }
                Expr::SetComparison(test) if test.expr.contains_outer() => {
                    refuse_outer_value(&test.expr, "ANY or ALL")
                }
                _ => Ok(()),
            }
        })?;
        let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
        let schema = filter.input.schema();
        let condition = guard_operands(filter.predicate, schema)?;
        let condition = rewrite_condition(condition, NeededResults::TrueAlone, schema)?;
        let filter = Filter::try_new(condition, filter.input)?;
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    })?;
    Ok(plan.data)
}

pub(super) fn is_correlated(query: &Subquery) -> bool {
    // If the search for outer columns fails, assume that there are some.
    !query.outer_ref_columns.is_empty()
        || find_outer_columns(&query.subquery).map_or(true, |columns| !columns.is_empty())
}

/// Rewrites every IN, ANY, ALL and EXISTS in `expr` to a scalar subquery that compares a count of
/// rows with 0. This is for places such as SELECT, where DataFusion cannot plan a semi join but can
/// plan a scalar subquery, which returns one value per outer row.
pub(super) fn as_value(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if !expr.exists(|e| Ok(is_subquery_test(e)))? {
        return Ok(expr);
    }
    let expr = remove_quantifiers(expr, schema)?;
    let expr = rewrite_condition(expr, NeededResults::Value, schema)?;
    let counted = expr.transform_down(|e| {
        let Expr::Exists(Exists { subquery, negated }) = e else { return Ok(Transformed::no(e)) };
        let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
            .aggregate(Vec::<Expr>::new(), [count(lit(1i64)).alias(COUNT)])?;
        let number = Expr::Column(Column::new_unqualified(COUNT));
        let none = lit(0i64);
        let answer = if negated { number.eq(none) } else { number.gt(none) };
        let query = rows.project([answer.alias(ANSWER)])?.build()?;
        let outer_ref_columns = query.all_out_ref_exprs();
        Ok(Transformed::new(
            Expr::ScalarSubquery(Subquery {
                subquery: Arc::new(query),
                outer_ref_columns,
                spans: subquery.spans,
            }),
            true,
            TreeNodeRecursion::Jump,
        ))
    })?;
    Ok(counted.data)
}

/// Rewrites IN and ANY in a conjunct of WHERE to EXISTS. The result is true for the same rows as
/// the condition, but may be FALSE where the condition is NULL, because WHERE drops the row in both
/// cases.
pub(super) fn as_tests(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    if !condition.exists(|e| Ok(is_subquery_test(e)))? {
        return Ok(condition);
    }
    let condition = remove_quantifiers(condition, schema)?;
    let condition = rewrite_condition(condition, NeededResults::True, schema)?;
    let condition = condition.transform_up(|e| match e {
        Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
            InOperands::new(*expr, &subquery, schema)?.build_found_test().map(Transformed::yes)
        }
        e => Ok(Transformed::no(e)),
    })?;
    Ok(condition.data)
}

fn remove_quantifiers(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let done = expr.transform_up(|e| match e {
        Expr::SetComparison(test) => {
            let compare = |left, op, right| {
                Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
            };
            rewrite_quantified(test, schema, compare).map(Transformed::yes)
        }
        e => Ok(Transformed::no(e)),
    })?;
    Ok(done.data)
}

/// How the context of a condition uses its result. For example, WHERE drops a row for FALSE and for
/// NULL, so it treats these two results alike.
#[derive(Clone, Copy, PartialEq)]
enum NeededResults {
    /// The condition is a whole conjunct of WHERE, so that DataFusion can plan an IN as a join.
    /// WHERE treats FALSE and NULL alike: it drops the row.
    TrueAlone,
    /// The condition is part of another one, such as an operand of OR. The context treats FALSE and
    /// NULL alike.
    True,
    /// The condition is part of another one, such as the operand of NOT. The context treats TRUE
    /// and NULL alike.
    False,
    /// The context distinguishes TRUE, FALSE and NULL.
    Value,
}

impl NeededResults {
    fn negate_needed(self) -> Self {
        match self {
            Self::TrueAlone | Self::True => Self::False,
            Self::False => Self::True,
            Self::Value => Self::Value,
        }
    }

    fn relax_for_or(self) -> Self {
        if self == Self::TrueAlone { Self::True } else { self }
    }
}

/// Rewrites a condition. The new condition may have another result only where its context treats
/// both results alike. `asked` says which of TRUE, FALSE and NULL the context treats alike.
fn rewrite_condition(expr: Expr, asked: NeededResults, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let asked = if op == Operator::Or { asked.relax_for_or() } else { asked };
            let left = Box::new(rewrite_condition(*left, asked, schema)?);
            let right = Box::new(rewrite_condition(*right, asked, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(mut test) => {
                test.negated = !test.negated;
                rewrite_in(test, asked, schema)
            }
            inner => Ok(!rewrite_condition(inner, asked.negate_needed(), schema)?),
        },
        Expr::InSubquery(test) => rewrite_in(test, asked, schema),
        Expr::IsTrue(inner) => {
            Ok(Expr::IsTrue(Box::new(rewrite_condition(*inner, NeededResults::True, schema)?)))
        }
        Expr::IsNotTrue(inner) => {
            Ok(Expr::IsNotTrue(Box::new(rewrite_condition(*inner, NeededResults::True, schema)?)))
        }
        Expr::IsFalse(inner) => {
            Ok(Expr::IsFalse(Box::new(rewrite_condition(*inner, NeededResults::False, schema)?)))
        }
        Expr::IsNotFalse(inner) => {
            Ok(Expr::IsNotFalse(Box::new(rewrite_condition(*inner, NeededResults::False, schema)?)))
        }
        other => {
            let rewritten = other.transform_down(|expr| match expr {
                // The traversal does not enter the rewritten expression, which has no IN left to
                // rewrite.
                Expr::InSubquery(test) => Ok(Transformed::new(
                    rewrite_in(test, NeededResults::Value, schema)?,
                    true,
                    TreeNodeRecursion::Jump,
                )),
                Expr::Exists(test) => Ok(Transformed::yes(rewrite_exists(test))),
                Expr::SetComparison(test) => rename_value_column(test).map(Transformed::yes),
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(rewritten.data)
        }
    }
}

/// Rewrites `x < ALL (query)` and `x < ANY (query)` to CASE over two EXISTS. The first finds a row
/// that makes ALL false or ANY true, the second a row for which `x < row` is NULL. `compare`
/// creates `x < row`.
pub(in crate::sql::workarounds) fn rewrite_quantified(
    test: SetComparison,
    schema: &DFSchema,
    compare: impl Fn(Expr, Operator, Expr) -> Expr,
) -> Result<Expr> {
    let SetComparison { expr, subquery, op, quantifier } = test;
    let tested = InOperands::new(*expr, &subquery, schema)?;
    let value = Expr::Column(Column::new_unqualified(VALUE));
    let holds = compare(tested.outer.clone(), op, value);
    let (deciding, answer) = match quantifier {
        SetQuantifier::Any => (holds.clone(), true),
        SetQuantifier::All => (!holds.clone(), false),
    };
    when(exists(tested.rows(Some(deciding))?), lit(answer))
        .when(exists(tested.rows(Some(holds.is_null()))?), lit(ScalarValue::Boolean(None)))
        .otherwise(lit(!answer))
}

/// Renames the column of the query in `x < ALL (query)` to [`VALUE`]. DataFusion finds columns by
/// name, and would compare the column of the query with itself if `x` has the same name.
fn rename_value_column(test: SetComparison) -> Result<Expr> {
    let SetComparison { expr, subquery, op, quantifier } = test;
    let subquery = rename_column(subquery)?;
    Ok(Expr::SetComparison(SetComparison::new(expr, subquery, op, quantifier)))
}

fn rename_column(query: Subquery) -> Result<Subquery> {
    let subquery = Arc::new(project_value(&query.subquery)?);
    Ok(Subquery { subquery, ..query })
}

/// Returns `query` with its column renamed to [`VALUE`], or an error if it has several columns.
fn project_value(query: &LogicalPlan) -> Result<LogicalPlan> {
    let column = match query.schema().columns().as_slice() {
        [only] => Expr::Column(only.clone()),
        columns => {
            return Err(plan_datafusion_err!(
                "the subquery after IN, ANY or ALL must return 1 column, but returns {}; select one column",
                columns.len()
            ));
        }
    };
    LogicalPlanBuilder::from(query.clone()).project([column.alias(VALUE)])?.build()
}

/// Replaces EXISTS with TRUE, and NOT EXISTS with FALSE, if the query always returns a row.
fn rewrite_exists(test: Exists) -> Expr {
    match has_one_row(&test.subquery.subquery) {
        true => lit(!test.negated),
        false => Expr::Exists(test),
    }
}

/// Whether an expression can be NULL although none of its columns can. DataFusion 55 assumes that
/// such an expression before NOT IN is never NULL:
/// <https://github.com/apache/datafusion/issues/25474>.
fn hides_null(e: &Expr, schema: &DFSchema) -> Result<bool> {
    if matches!(e, Expr::Column(_)) || !e.nullable(schema)? {
        return Ok(false);
    }
    let may_be_null = |column: &&Column| {
        schema.qualified_field_from_column(column).is_ok_and(|(_, field)| field.is_nullable())
    };
    Ok(!e.column_refs().iter().any(may_be_null))
}

fn rewrite_in(test: InSubquery, asked: NeededResults, schema: &DFSchema) -> Result<Expr> {
    if is_correlated(&test.subquery) && has_one_row(&test.subquery.subquery) {
        let value = Expr::ScalarSubquery(test.subquery);
        let op = if test.negated { Operator::NotEq } else { Operator::Eq };
        return Ok(Expr::BinaryExpr(BinaryExpr::new(test.expr, op, Box::new(value))));
    }
    let InSubquery { expr, subquery, negated } = test;
    let subquery = add_projection(subquery)?;
    let compared = if names_bare(&expr, &subquery.subquery)? {
        rename_column(subquery.clone())?
    } else {
        subquery.clone()
    };
    let is_in = |negated| {
        let (expr, subquery) = (expr.clone(), compared.clone());
        Expr::InSubquery(InSubquery { expr, subquery, negated })
    };
    let has_columns = !expr.column_refs().is_empty() && !expr.contains_outer();
    let plain = has_columns && !is_correlated(&subquery) && !hides_null(&expr, schema)?;
    // A volatile `expr` stays in an IN, which computes it once per outer row. An EXISTS would
    // compute it once per row of the query.
    let as_exists =
        has_bare_column(&subquery.subquery) && !expr.contains_outer() && !expr.is_volatile();
    match (asked, negated) {
        (NeededResults::True, false) if as_exists => {
            InOperands::new(*expr, &subquery, schema)?.build_found_test()
        }
        (NeededResults::False, true) if as_exists => {
            Ok(!InOperands::new(*expr, &subquery, schema)?.build_found_test()?)
        }
        // DataFusion's semi join treats an IN that is NULL as FALSE. This is correct in the next
        // two arms, because their contexts treat FALSE and NULL of the IN alike.
        (NeededResults::TrueAlone | NeededResults::True, false) => Ok(is_in(false)),
        (NeededResults::False, true) => Ok(!is_in(false)),
        (NeededResults::TrueAlone, true) if plain => Ok(is_in(true)),
        (NeededResults::TrueAlone | NeededResults::True, true) => {
            InOperands::new(*expr, &subquery, schema)?.build_absence_test()
        }
        (NeededResults::False, false) => {
            Ok(!InOperands::new(*expr, &subquery, schema)?.build_absence_test()?)
        }
        (NeededResults::Value, negated) => {
            let tested = InOperands::new(*expr, &subquery, schema)?;
            let mut found = when(tested.build_found_test()?, lit(!negated));
            if !tested.stable {
                let null = lit(ScalarValue::Boolean(None));
                return found.when(tested.build_absence_test()?, lit(negated)).otherwise(null);
            }
            // The second WHEN is reached only if no row equals the value. IN is then false if no
            // comparison is NULL, and NULL otherwise.
            match conjunction(tested.build_null_tests()?) {
                Some(known) => {
                    found.when(known, lit(negated)).otherwise(lit(ScalarValue::Boolean(None)))
                }
                None => found.otherwise(lit(negated)),
            }
        }
    }
}

/// Whether `value`, or an outer reference in the query `query` after IN, uses a column that belongs
/// to no table. DataFusion looks up such a column by its name alone, and may find the column that
/// `query` returns instead.
fn names_bare(value: &Expr, query: &LogicalPlan) -> Result<bool> {
    let is_bare = |column: &Column| column.relation.is_none();
    Ok(value.column_refs().into_iter().any(is_bare)
        || find_outer_columns(query)?.iter().any(is_bare))
}

/// Whether the column of a query belongs to no table. For `x IN (query) OR y`, DataFusion 55 then
/// selects this column twice below the join, which is an error.
fn has_bare_column(query: &LogicalPlan) -> bool {
    let is_computed = matches!(query, LogicalPlan::Projection(node)
        if !matches!(node.expr.as_slice(), [Expr::Column(_)]));
    !is_computed && query.schema().iter().all(|(relation, _)| relation.is_none())
}

/// Puts a projection on top of the subquery of `x IN (VALUES ..)`. DataFusion takes the column of a
/// subquery from the only expression of its top node, but a VALUES node has one expression per
/// value.
fn add_projection(query: Subquery) -> Result<Subquery> {
    let mut plan = query.subquery.as_ref();
    loop {
        plan = match plan {
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            LogicalPlan::Values(_) => break,
            _ => return Ok(query),
        };
    }
    let columns = query.subquery.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = columns.collect();
    let values = LogicalPlanBuilder::from(query.subquery.as_ref().clone()).project(columns)?;
    Ok(Subquery { subquery: Arc::new(values.build()?), ..query })
}

/// Rewrites IN, ANY and ALL in WHERE to EXISTS if the tested value has a column of an outer query,
/// as in `SELECT i FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.i IN (SELECT i FROM c))`.
///
/// DataFusion would put the value into the condition of a join, from where it cannot move the
/// condition to the query of `a`. It would fail, or compare the wrong columns.
pub(super) fn test_outer_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
        let is_outer_test = |e: &Expr| match e {
            Expr::InSubquery(InSubquery { expr, .. })
            | Expr::SetComparison(SetComparison { expr, .. }) => expr.contains_outer(),
            _ => false,
        };
        if !filter.predicate.exists(|e| Ok(is_outer_test(e)))? {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let condition = test_by_exists(filter.predicate, filter.input.schema())?;
        let filter = Filter::try_new(condition, filter.input)?;
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    })?;
    Ok(plan.data)
}

/// Rewrites the tests of values with outer columns in a condition whose context treats FALSE and
/// NULL alike. Tests in other contexts, such as under CASE, stay unchanged.
fn test_by_exists(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let left = Box::new(test_by_exists(*left, schema)?);
            let right = Box::new(test_by_exists(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(mut test) => {
                test.negated = !test.negated;
                test_by_exists(Expr::InSubquery(test), schema)
            }
            inner => Ok(Expr::Not(Box::new(inner))),
        },
        Expr::InSubquery(test) if is_outer_value(&test.expr, schema)? => {
            let InSubquery { expr, subquery, negated } = test;
            if has_one_row(&subquery.subquery) {
                let op = if negated { Operator::NotEq } else { Operator::Eq };
                let value = Box::new(Expr::ScalarSubquery(subquery));
                return Ok(Expr::BinaryExpr(BinaryExpr::new(expr, op, value)));
            }
            let (rows, equal) = compare_with_rows(*expr, Operator::Eq, &subquery, schema)?;
            match negated {
                false => Ok(exists(Arc::new(rows.filter(equal)?.build()?))),
                true => {
                    let may_be_equal = Expr::IsNotFalse(Box::new(equal));
                    Ok(not_exists(Arc::new(rows.filter(may_be_equal)?.build()?)))
                }
            }
        }
        Expr::SetComparison(test) if is_outer_value(&test.expr, schema)? => {
            let SetComparison { expr, subquery, op, quantifier } = test;
            if has_one_row(&subquery.subquery) {
                let value = Box::new(Expr::ScalarSubquery(subquery));
                return Ok(Expr::BinaryExpr(BinaryExpr::new(expr, op, value)));
            }
            let (rows, holds) = compare_with_rows(*expr, op, &subquery, schema)?;
            match quantifier {
                SetQuantifier::Any => Ok(exists(Arc::new(rows.filter(holds)?.build()?))),
                SetQuantifier::All => {
                    let may_fail = Expr::IsNotTrue(Box::new(holds));
                    Ok(not_exists(Arc::new(rows.filter(may_fail)?.build()?)))
                }
            }
        }
        other => Ok(other),
    }
}

/// Whether a tested value has outer columns and can be compared within the query. Lists, structs
/// and intervals cannot: the rules for their comparisons have already run.
fn is_outer_value(value: &Expr, schema: &DFSchema) -> Result<bool> {
    if !value.contains_outer()
        || value.is_volatile()
        || value.exists(|e| Ok(find_query(e).is_some()))?
    {
        return Ok(false);
    }
    let data_type = value.get_type(schema)?;
    Ok(!data_type.is_nested() && !matches!(data_type, DataType::Interval(_)))
}

/// Returns the rows of `query`, whose column gets the name [`VALUE`], and the comparison of `value`
/// with that column.
fn compare_with_rows(
    value: Expr,
    op: Operator,
    query: &Subquery,
    schema: &DFSchema,
) -> Result<(LogicalPlanBuilder, Expr)> {
    let left = Box::new(to_outer(value, schema)?);
    let right = Box::new(Expr::Column(Column::new_unqualified(VALUE)));
    let rows = LogicalPlanBuilder::from(project_value(&query.subquery)?);
    Ok((rows, Expr::BinaryExpr(BinaryExpr::new(left, op, right))))
}

/// Returns an expression over `schema` as an expression within a subquery, where its columns are
/// outer columns.
fn to_outer(value: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = value.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(outer.data)
}

fn refuse_outer_value<T>(value: &Expr, test: &str) -> Result<T> {
    let written = value.clone().transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
        expr => Ok(Transformed::no(expr)),
    })?;
    not_impl_err!(
        "the value {} before {test} (SELECT ..) uses a column of an outer query, which is not supported here; join the table of this column in the FROM clause of the query that contains {test}",
        written.data
    )
}

/// The operands of `value IN (query)`, prepared for a rewrite that replaces IN by EXISTS.
struct InOperands {
    value: Expr,
    /// The tested value as an expression within the query, where its columns are outer columns. It
    /// may also have columns of a query further out.
    outer: Expr,
    /// The query, with its column renamed to the name [`VALUE`], which no other column has.
    query: LogicalPlan,
    correlated: bool,
    /// Whether neither the value nor the query is volatile, so that each evaluation gives the same
    /// result.
    stable: bool,
    value_nullable: bool,
    query_nullable: bool,
}

impl InOperands {
    fn new(value: Expr, query: &Subquery, schema: &DFSchema) -> Result<Self> {
        if value.contains_outer() && !is_outer_value(&value, schema)? {
            return refuse_outer_value(&value, "NOT IN");
        }
        let outer = to_outer(value.clone(), schema)?;
        // The rewritten condition contains the query several times, and all copies must have the
        // same rows.
        let rows = share_rows(&query.subquery)?;
        let stable = !value.is_volatile() && rows.is_some();
        let rows = rows.unwrap_or_else(|| Arc::clone(&query.subquery));
        let named = project_value(&rows)?;
        Ok(Self {
            outer,
            query_nullable: named.schema().field(0).is_nullable(),
            query: named,
            correlated: is_correlated(query),
            stable,
            value_nullable: value.nullable(schema)?,
            value,
        })
    }

    fn rows(&self, condition: Option<Expr>) -> Result<Arc<LogicalPlan>> {
        // Rows that do not depend on the outer query get LIMIT 1, because EXISTS needs only one
        // row. A correlated query gets none, because DataFusion would move its condition above the
        // LIMIT.
        let alone = !self.correlated && !condition.as_ref().is_some_and(Expr::contains_outer);
        let mut rows = LogicalPlanBuilder::from(self.query.clone());
        if let Some(condition) = condition {
            rows = rows.filter(condition)?;
        }
        if alone {
            rows = rows.limit(0, Some(1))?;
        }
        Ok(Arc::new(rows.build()?))
    }

    fn build_equality(&self) -> Expr {
        Expr::Column(Column::new_unqualified(VALUE)).eq(self.outer.clone())
    }

    /// Returns a condition that is true if IN is true, and otherwise false, never NULL.
    fn build_found_test(&self) -> Result<Expr> {
        Ok(exists(self.rows(Some(self.build_equality()))?))
    }

    /// Returns a condition that is true if IN is false, and otherwise false, never NULL.
    fn build_absence_test(&self) -> Result<Expr> {
        if !self.stable {
            let not_false = Expr::IsNotFalse(Box::new(self.build_equality()));
            return Ok(not_exists(self.rows(Some(not_false))?));
        }
        // This subquery looks only for equal rows, and `build_null_tests` adds subqueries that look
        // for NULL. A single subquery with the condition `(x = y) IS NOT FALSE` could not become a
        // hash join.
        let never = not_exists(self.rows(Some(self.build_equality()))?);
        Ok(self.build_null_tests()?.into_iter().fold(never, Expr::and))
    }

    /// Returns conditions that together are true exactly if no comparison of the value with a row
    /// of the query is NULL. Returns no condition if no comparison can be NULL.
    fn build_null_tests(&self) -> Result<Vec<Expr>> {
        let mut conditions = Vec::new();
        if self.query_nullable {
            let null = Expr::Column(Column::new_unqualified(VALUE)).is_null();
            conditions.push(not_exists(self.rows(Some(null))?));
        }
        if self.value_nullable {
            let empty = not_exists(self.rows(None)?);
            conditions.push(self.value.clone().is_not_null().or(empty));
        }
        Ok(conditions)
    }
}

/// Returns an error if DataFusion would move a condition on outer columns in `query` above a node
/// of `query`, such as a LIMIT, and thereby change the result.
fn check_correlation(query: &Subquery, expr: &Expr) -> Result<()> {
    if !is_correlated(query) {
        return Ok(());
    }
    let scalar = matches!(expr, Expr::ScalarSubquery(_));
    let mut plan = query.subquery.as_ref();
    // Skips projections at the top of the query and, for EXISTS, a LIMIT there: a condition that
    // moves above these gives the same result.
    loop {
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Limit(node) if matches!(expr, Expr::Exists(_)) => {
                let first = matches!(node.get_skip_type()?, SkipType::Literal(0));
                if !first || !matches!(node.get_fetch_type()?, FetchType::Literal(_)) {
                    return reject_subquery("OFFSET");
                }
                &node.input
            }
            _ => break,
        };
    }
    if !scalar && !has_one_row(&query.subquery) && holds_lone_aggregate(plan)? {
        return reject_subquery("an aggregate without GROUP BY");
    }
    plan.apply(|node| {
        let moved_over = match node {
            LogicalPlan::Limit(_) => Some("LIMIT"),
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => Some("LIMIT"),
            LogicalPlan::Window(_) => Some("a window function"),
            LogicalPlan::Distinct(Distinct::On(_)) => Some("DISTINCT ON"),
            LogicalPlan::Aggregate(node) if has_grouping_sets(node) => Some("GROUPING SETS"),
            node if has_optional_outer(node)? => Some("an outer join"),
            _ => None,
        };
        match moved_over {
            Some(what) if names_outer(node.inputs().into_iter())? => reject_subquery(what),
            _ => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

/// Returns an error if DataFusion would confuse a column of the correlated query `query` with a
/// column of the same name in the query around it. The rule `serrate_query_values`, which runs
/// earlier, has already rewritten such queries where it can.
fn check_names(query: &Subquery, expr: &Expr) -> Result<()> {
    let is_value = matches!(expr, Expr::ScalarSubquery(_));
    if is_value || !is_correlated(query) || !hides_outer(expr, &query.subquery)? {
        return Ok(());
    }
    not_impl_err!(
        "a correlated query after IN, ANY, ALL or EXISTS has a column of the same name as a column of the query around it, which is not supported here; give the inner table an alias or rename its column, as in FROM (SELECT x AS y FROM t) AS u"
    )
}

pub(super) fn reject_subquery<T>(what: &str) -> Result<T> {
    not_impl_err!(
        "a correlated subquery that applies {what} after a condition on columns of the outer query is not supported; join both tables in FROM instead, and aggregate or filter the joined rows"
    )
}

/// Whether a node is a join whose output rows may lack the values of an input that uses outer
/// columns.
pub(super) fn has_optional_outer(node: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Join(join) = node else { return Ok(false) };
    // The second condition excludes the join of a LATERAL query, whose outer columns are columns of
    // the left input and so no outer columns of the join as a whole.
    Ok(names_outer(list_optional_sides(join))? && !find_outer_columns(node)?.is_empty())
}

/// Returns the inputs of a join from which an output row may have no values: the nullable inputs of
/// an outer join, and the second input of a semi, anti or mark join.
fn list_optional_sides(
    join: &datafusion::logical_expr::Join,
) -> impl Iterator<Item = &LogicalPlan> {
    let sides = [(true, join.left.as_ref()), (false, join.right.as_ref())];
    let kind = join.join_type;
    sides.into_iter().filter(move |(left, _)| !keeps_side(kind, *left)).map(|(_, side)| side)
}

fn names_outer<'a>(plans: impl Iterator<Item = &'a LogicalPlan>) -> Result<bool> {
    for plan in plans {
        if plan.exists(|node| Ok(node.contains_outer_reference()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `plan` has an aggregate without GROUP BY above a condition on outer columns.
fn holds_lone_aggregate(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            names_outer(std::iter::once(aggregate.input.as_ref()))
        }
        _ => Ok(false),
    })
}
