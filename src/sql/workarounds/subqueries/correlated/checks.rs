//! Decides which correlated queries DataFusion plans correctly, and lists the outer columns that
//! queries use.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, Filter, LogicalPlan, Operator,
    Projection, SkipType,
};

use crate::sql::base::expression_parts::has_part;
use crate::sql::base::outer_columns::{
    find_moved_columns, find_nested_outer_columns, has_grouping_sets, has_outer,
};

/// Whether a correlated scalar subquery has the form that DataFusion turns into a join: an
/// aggregate without GROUP BY, over a filter whose conditions on outer columns are equations.
pub(in crate::sql) fn is_equation(query: &LogicalPlan) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut aggregated = false;
    let mut has_alias = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => {
                has_alias = true;
                &node.input
            }
            LogicalPlan::Aggregate(node) if !aggregated && node.group_expr.is_empty() => {
                aggregated = true;
                &node.input
            }
            LogicalPlan::Filter(node) if aggregated => {
                // DataFusion does not move a condition on outer columns out of a table alias.
                let stays = has_alias && names_outer(plan)?;
                if stays || !are_equations(node)? || !find_nested_outer_columns(plan)?.is_empty() {
                    return Ok(false);
                }
                &node.input
            }
            // The plan below the filter must not refer to the outer query.
            rest => return Ok(aggregated && !has_outer(rest)?),
        };
    }
}

/// Whether DataFusion turns EXISTS or IN over a correlated query into a semi join that returns the
/// same rows. This holds if only one filter uses outer columns, if its conditions on them contain
/// at most one EXISTS, and if above the filter are only projections, DISTINCT and, if the filter
/// consists of equations, GROUP BY. For EXISTS, a LIMIT above the filter is allowed, too.
/// DataFusion does not move a condition through a sort.
pub(in crate::sql) fn is_semi_join(query: &LogicalPlan, exists: bool) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut any_row_counts = exists;
    let mut aggregated = false;
    let mut has_alias = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => {
                has_alias = true;
                &node.input
            }
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Limit(node)
                if any_row_counts
                    && matches!(node.get_skip_type()?, SkipType::Literal(0))
                    && matches!(node.get_fetch_type()?, FetchType::Literal(Some(1..))) =>
            {
                &node.input
            }
            LogicalPlan::Aggregate(node)
                if !node.group_expr.is_empty() && !has_grouping_sets(node) =>
            {
                (aggregated, any_row_counts) = (true, false);
                &node.input
            }
            LogicalPlan::Filter(node) if !names_outer(plan)? => {
                any_row_counts = false;
                &node.input
            }
            LogicalPlan::Filter(node) => {
                let plain = !aggregated || are_equations(node)?;
                let nested = !find_nested_outer_columns(plan)?.is_empty();
                let several = moves_several_tests(node)?;
                return Ok(plain && !has_alias && !nested && !several && !has_outer(&node.input)?);
            }
            rest => return Ok(!has_outer(rest)?),
        };
    }
}

/// Whether those conditions of a filter that use outer columns contain several EXISTS, as in
/// `EXISTS (SELECT ..) OR EXISTS (SELECT ..) OR p.id > q.v`, or an IN or ANY that may become
/// several.
///
/// DataFusion computes the result of each subquery as a column `mark`, and then moves the condition
/// out of the correlated query, where all these columns have the same table name. So each result is
/// read as the first one. This workaround is obsolete once the test
/// `stock_moved_subqueries_still_share_a_result` fails.
fn moves_several_tests(filter: &Filter) -> Result<bool> {
    let mut tests = 0usize;
    for condition in split_conjunction(&filter.predicate) {
        if !condition.contains_outer() {
            continue;
        }
        condition.apply(|e| {
            tests += match e {
                Expr::Exists(_) => 1,
                // A later rewrite may turn each of these into several EXISTS.
                Expr::InSubquery(_) | Expr::SetComparison(_) => 2,
                _ => 0,
            };
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(tests > 1)
}

/// Whether DataFusion would confuse columns that it moves out of a correlated query.
///
/// DataFusion adds the columns of conditions on outer columns to the output of the query, and gives
/// all columns of this output the same table name. Two columns `r2.d` and `r3.d` become one:
/// `EXISTS (SELECT 1 FROM t r2, t r3 WHERE r2.d + r3.d = r1.d)` loses rows.
/// `stock_correlated_self_joins_still_lose_rows` in `tests/sql/subqueries.rs` fails once this is
/// fixed upstream. Projections below the conditions, such as that of a subquery in FROM, do not
/// matter, because the added columns pass only the nodes above the conditions.
fn has_name_clash(query: &LogicalPlan) -> Result<bool> {
    let mut moved: Vec<Column> = Vec::new();
    let mut passed: Vec<VisibleColumn> = Vec::new();
    let mut shown: Vec<VisibleColumn> = Vec::new();
    let mut plan = query;
    loop {
        plan = match plan {
            LogicalPlan::Filter(node) => {
                if node.predicate.contains_outer() {
                    moved.extend(node.predicate.column_refs().into_iter().cloned());
                    passed.append(&mut shown);
                }
                &node.input
            }
            LogicalPlan::Projection(node) => {
                shown.extend(list_shown_columns(node));
                &node.input
            }
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Aggregate(node) => {
                let computed = node.group_expr.iter().filter(|e| !matches!(e, Expr::Column(_)));
                shown.extend(computed.map(|e| (e.qualified_name().1, None)));
                &node.input
            }
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            _ => break,
        };
    }
    Ok(find_clash(&moved, &passed).is_some())
}

/// Whether `schema`, the columns outside a correlated scalar subquery, has an unqualified column
/// with the name of a column of the subquery. DataFusion joins the outer rows with the subquery,
/// and fails if the join has two columns of this name.
pub(in crate::sql) fn repeats_bare_name(schema: &DFSchema, query: &LogicalPlan) -> Result<bool> {
    let mut inner = find_moved_columns(query)?;
    inner.extend(query.schema().columns());
    Ok(schema.iter().any(|(relation, field)| {
        relation.is_none() && inner.iter().any(|column| column.name == *field.name())
    }))
}

/// A column of a projection: its name, and the input column that the projection returns under this
/// name, or `None` if the column is computed or renamed.
pub(super) type VisibleColumn = (String, Option<Column>);

pub(super) fn list_shown_columns(node: &Projection) -> impl Iterator<Item = VisibleColumn> {
    node.expr.iter().map(|e| {
        let column = match e {
            Expr::Column(column) => Some(column.clone()),
            _ => None,
        };
        (e.qualified_name().1, column)
    })
}

/// Returns the first column of `moved` that has the same name as a different column of `moved` or
/// `shown`, or `None` if there is no such column.
///
/// `moved` are the columns that DataFusion adds to the output of a correlated query, and `shown`
/// are the columns of the query's projections.
///
/// DataFusion gives a cast such as `u.a::INT` the name of its operand, `u.a`, so that a projection
/// cannot have both.
pub(super) fn find_clash<'a>(
    moved: &'a [Column],
    shown: &'a [VisibleColumn],
) -> Option<&'a Column> {
    let all = moved.iter().map(|c| (&c.name, Some(c)));
    let all: Vec<_> = all.chain(shown.iter().map(|(name, c)| (name, c.as_ref()))).collect();
    moved.iter().find(|&column| {
        let full = column.flat_name();
        let is_same = |name: &String| *name == column.name || *name == full;
        all.iter().any(|(name, other)| is_same(name) && *other != Some(column))
    })
}

/// Whether each condition of a filter that uses outer columns is `inner = outer`, an equation of a
/// column of the query with an outer column.
///
/// DataFusion groups the rows of the query by the inner column. For `b.ts::DATE = a.day`, the
/// result would have several rows per day, one for each `b.ts` (test
/// `stock_equations_of_casts_still_repeat_rows`).
fn are_equations(filter: &Filter) -> Result<bool> {
    let schema = filter.input.schema();
    for condition in split_conjunction(&filter.predicate) {
        if !condition.contains_outer() {
            continue;
        }
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
            return Ok(false);
        };
        let is_pair = |inner: &Expr, outer: &Expr| {
            Ok::<_, DataFusionError>(is_outer_column(outer) && is_column(inner, schema)?)
        };
        if !is_pair(left, right)? && !is_pair(right, left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an expression is a column, or a cast of a column under which different values stay
/// different, such as a cast of INT to BIGINT.
fn is_column(e: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::Cast(cast) = e else { return Ok(matches!(e, Expr::Column(_))) };
    let (from, to) = (cast.expr.get_type(schema)?, cast.field.data_type());
    let is_wider = |bits: Option<usize>, of: Option<usize>| bits.is_some() && bits <= of;
    let (narrow, wide) = (from.primitive_width(), to.primitive_width());
    let is_injective = (from.is_string() && to.is_string())
        || (from.is_signed_integer() && to.is_signed_integer() && is_wider(narrow, wide))
        || (from.is_unsigned_integer() && to.is_unsigned_integer() && is_wider(narrow, wide));
    Ok(is_injective && is_column(&cast.expr, schema)?)
}

fn is_outer_column(e: &Expr) -> bool {
    match e {
        Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_outer_column(&cast.expr),
        _ => false,
    }
}

/// Whether the expressions of a node, or the subqueries in these expressions, use outer columns.
pub(super) fn names_outer(node: &LogicalPlan) -> Result<bool> {
    let is_outer = |e: &Expr| matches!(e, Expr::OuterReferenceColumn(..));
    Ok(has_part(node, is_outer) || !find_nested_outer_columns(node)?.is_empty())
}
