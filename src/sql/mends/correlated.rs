//! Computes correlated subqueries for all outer rows at once.
//!
//! The distinct combinations of the outer columns that a query names become a table, which is
//! joined to the innermost rows of the query and passed along to its result. The method is that of
//! T. Neumann and A. Kemper, "Unnesting Arbitrary Queries", BTW 2015.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::max;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, ColumnarValue, Distinct, Expr, ExprFunctionExt, ExprSchemable,
    FetchType, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, SkipType, Subquery, SubqueryAlias, Union, Volatility,
    Window, lit, when,
};

use crate::sql::mends::query_values::{of_filter, project_values};
use crate::sql::mends::subqueries::{has_query, query_of};

/// Generates names that no other column or table of a plan has.
#[derive(Debug, Default)]
pub(in crate::sql) struct Names(usize);

impl Names {
    pub(in crate::sql) fn next(&mut self, what: &str) -> String {
        self.0 = self.0.saturating_add(1);
        format!("__serrate_{what}_{}", self.0)
    }
}

/// Keeps the name of an expression that was rewritten.
pub(in crate::sql) fn keep_name(
    expr: Expr,
    change: impl FnOnce(Expr) -> Result<Expr>,
) -> Result<Expr> {
    // An alias keeps its name by itself.
    if matches!(expr, Expr::Alias(_)) {
        return change(expr);
    }
    let name = expr.qualified_name();
    let changed = change(expr)?;
    match changed.qualified_name() == name {
        true => Ok(changed),
        false => Ok(changed.alias_qualified(name.0, name.1)),
    }
}

/// Whether DataFusion turns a correlated scalar subquery into a join: an aggregate without GROUP BY
/// over rows for which expressions of columns equal outer columns.
pub(in crate::sql) fn is_equation(query: &LogicalPlan) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut aggregated = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Aggregate(node) if !aggregated && node.group_expr.is_empty() => {
                aggregated = true;
                &node.input
            }
            LogicalPlan::Filter(node) if aggregated => {
                if !are_equations(&node.predicate) || !nested_outer_columns(plan)?.is_empty() {
                    return Ok(false);
                }
                &node.input
            }
            // The rest must not refer to the outer query.
            rest => return Ok(aggregated && !any_outer(rest)?),
        };
    }
}

/// Whether DataFusion turns EXISTS or IN over a correlated query into a semi join of the same
/// meaning: one filter names outer columns, and above it are only projections, DISTINCT and, if the
/// filter consists of equations, GROUP BY. Above EXISTS, a limit changes nothing.
pub(in crate::sql) fn is_semi_join(query: &LogicalPlan, exists: bool) -> Result<bool> {
    if has_name_clash(query)? {
        return Ok(false);
    }
    let mut plan = query;
    let mut any_row_counts = exists;
    let mut aggregated = false;
    loop {
        if !matches!(plan, LogicalPlan::Filter(_)) && names_outer(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(node) if node.fetch.is_none() => &node.input,
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
                let plain = !aggregated || are_equations(&node.predicate);
                let nested = !nested_outer_columns(plan)?.is_empty();
                return Ok(plain && !nested && !any_outer(&node.input)?);
            }
            rest => return Ok(!any_outer(rest)?),
        };
    }
}

/// Whether DataFusion would confuse columns that it moves out of a correlated query.
///
/// It adds the columns of conditions on outer columns to the output of the query, whose columns then get
/// one table name. Two columns `r2.d` and `r3.d` become one: `EXISTS (SELECT 1 FROM t r2, t r3 WHERE
/// r2.d + r3.d = r1.d)` loses rows. `stock_correlated_self_joins_still_lose_rows` in
/// `tests/sql/subqueries.rs` fails once this is fixed upstream.
fn has_name_clash(query: &LogicalPlan) -> Result<bool> {
    let mut moved: Vec<Column> = Vec::new();
    let mut shown: Vec<(String, Option<Column>)> = Vec::new();
    let mut plan = query;
    loop {
        plan = match plan {
            LogicalPlan::Filter(node) => {
                if node.predicate.contains_outer() {
                    moved.extend(node.predicate.column_refs().into_iter().cloned());
                }
                &node.input
            }
            LogicalPlan::Projection(node) => {
                shown.extend(node.expr.iter().map(|e| {
                    let column = match e {
                        Expr::Column(column) => Some(column.clone()),
                        _ => None,
                    };
                    (e.qualified_name().1, column)
                }));
                &node.input
            }
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Aggregate(node) => &node.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            _ => break,
        };
    }
    let all = moved.iter().map(|c| (&c.name, Some(c)));
    let all: Vec<_> = all.chain(shown.iter().map(|(name, c)| (name, c.as_ref()))).collect();
    Ok(moved.iter().any(|column| {
        all.iter().any(|(name, other)| **name == column.name && *other != Some(column))
    }))
}

/// Whether an aggregate has GROUPING SETS, ROLLUP or CUBE, which can have a row over no rows.
pub(in crate::sql) fn has_grouping_sets(node: &Aggregate) -> bool {
    node.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
}

/// Whether all conditions on outer columns are equations with columns of the query.
fn are_equations(predicate: &Expr) -> bool {
    split_conjunction(predicate).into_iter().all(|e| match e {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let pair =
                |inner: &Expr, outer: &Expr| !inner.contains_outer() && is_outer_column(outer);
            !e.contains_outer() || pair(left, right) || pair(right, left)
        }
        e => !e.contains_outer(),
    })
}

fn is_outer_column(e: &Expr) -> bool {
    match e {
        Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_outer_column(&cast.expr),
        _ => false,
    }
}

/// Whether a node names columns of the outer query, itself or in its queries.
fn names_outer(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|e| {
        found = found || e.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found || !nested_outer_columns(node)?.is_empty())
}

/// Whether a plan names outer columns anywhere.
fn any_outer(plan: &LogicalPlan) -> Result<bool> {
    Ok(!outer_columns(plan)?.is_empty())
}

/// Returns the columns of outer queries that a plan names, also those named only in its queries.
pub(in crate::sql) fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|e| {
            e.apply(|e| {
                if let Expr::OuterReferenceColumn(_, column) = e {
                    found.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        found.extend(nested_outer_columns(node)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut seen = HashSet::new();
    found.retain(|column| seen.insert(column.clone()));
    Ok(found)
}

/// Returns the columns that the queries of a node name and that are not those of its inputs.
fn nested_outer_columns(node: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    if !has_query(node)? {
        return Ok(found);
    }
    let inputs = node.inputs();
    node.apply_expressions(|e| {
        e.apply(|e| {
            if let Some(query) = query_of(e) {
                let named = outer_columns(&query.subquery)?.into_iter();
                found.extend(named.filter(|column| {
                    let of = |input: &&LogicalPlan| input.schema().has_column(column);
                    !inputs.iter().any(of)
                }));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Returns the outer rows joined with the value of a scalar subquery for each of them, and the
/// column of that value; `None` if the query cannot be handled.
pub(in crate::sql) fn join_values(
    outer: &Arc<LogicalPlan>,
    query: &LogicalPlan,
    names: &mut Names,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some(Expanded { rows: found, keys, named, outer: columns }) =
        expand_query(outer, query, names)?
    else {
        return Ok(None);
    };
    let value = match query.schema().columns().as_slice() {
        [only] => Expr::Column(only.clone()),
        _ => return Ok(None),
    };
    let (found, value) = match has_one_row_at_most(query)? {
        true => (found, value),
        false => only_rows(found, &keys, value)?,
    };
    let result = names.next("query");
    let value_name = "__serrate_value";
    let shown = keys.iter().zip(&named).map(|(key, name)| Expr::Column(key.clone()).alias(name));
    let shown = shown.chain([value.alias(value_name)]);
    let found = LogicalPlanBuilder::from(found).project(shown)?.alias(result.as_str())?.build()?;
    let right: Vec<Column> = named.iter().map(|n| Column::new(Some(result.as_str()), n)).collect();
    let joined = LogicalPlanBuilder::from(outer.as_ref().clone())
        .join_detailed(found, JoinType::Left, (columns, right), None, NullEquality::NullEqualsNull)?
        .build()?;
    Ok(Some((joined, Expr::Column(Column::new(Some(result), value_name)))))
}

/// A correlated query for all combinations of the outer columns that it names.
struct Expanded {
    /// The rows of the query, each with its combination.
    rows: LogicalPlan,
    /// The columns of the combination in `rows`.
    keys: Vec<Column>,
    /// The unqualified names of `keys`.
    named: Vec<String>,
    /// The columns of the outer rows, in the order of `keys`.
    outer: Vec<Column>,
}

fn expand_query(
    outer: &Arc<LogicalPlan>,
    query: &LogicalPlan,
    names: &mut Names,
) -> Result<Option<Expanded>> {
    if is_volatile(outer)? || is_volatile(query)? {
        return Ok(None);
    }
    let columns = outer_columns(query)?;
    if columns.iter().any(|c| outer.schema().maybe_index_of_column(c).is_none()) {
        return Ok(None);
    }
    let table = names.next("outer");
    let named: Vec<String> = (0..columns.len()).map(|at| format!("__serrate_outer_{at}")).collect();
    let keys = columns.iter().zip(&named).map(|(c, name)| Expr::Column(c.clone()).alias(name));
    let rows = LogicalPlanBuilder::from(outer.as_ref().clone())
        .project(keys)?
        .distinct()?
        .alias(table.as_str())?
        .build()?;
    let mut bound = Bound {
        keys: named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect(),
        outer: columns.clone(),
        rows,
        names,
    };
    let Some(rows) = bound.with_outer(query)? else { return Ok(None) };
    let keys = bound.keys.clone();
    Ok(Some(Expanded { rows, keys, named, outer: columns }))
}

/// Returns a LATERAL join as a join of the outer rows with the rows of the query for all
/// combinations of outer columns; `None` if the query cannot be handled.
pub(in crate::sql) fn join_lateral(join: &Join, names: &mut Names) -> Result<Option<LogicalPlan>> {
    let Some(query) = lateral_query(join)? else { return Ok(None) };
    if let Some(joined) = expand_rows(join, query, names)? {
        return Ok(Some(joined));
    }
    let Some(Expanded { rows, keys, named, outer }) = expand_query(&join.left, query, names)?
    else {
        return Ok(None);
    };
    let table = names.next("lateral");
    let pairs = query.schema().columns().into_iter().zip(join.right.schema().columns());
    let shown = pairs.map(|(from, to)| Expr::Column(from).alias_qualified(to.relation, to.name));
    let keyed = keys.into_iter().zip(&named);
    let keyed =
        keyed.map(|(key, name)| Expr::Column(key).alias_qualified(Some(table.as_str()), name));
    let rows = LogicalPlanBuilder::from(rows).project(shown.chain(keyed))?.build()?;
    let right: Vec<Column> = named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect();
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_detailed(
            rows,
            join.join_type,
            (outer, right),
            join.filter.clone(),
            NullEquality::NullEqualsNull,
        )?
        .project(columns)?
        .build()
        .map(Some)
}

/// Returns a LATERAL join as expressions and `unnest` over the outer rows themselves, if the query reads
/// no table.
fn expand_rows(join: &Join, query: &LogicalPlan, names: &mut Names) -> Result<Option<LogicalPlan>> {
    let query = match join.join_type {
        JoinType::Inner if reads_no_table(query)? => query.clone(),
        JoinType::Left if join.filter.as_ref().is_none_or(is_true) => {
            match keep_empty_lists(query, join.left.schema())? {
                Some(query) => query,
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    let table = names.next("outer");
    let outer = join.left.schema().columns();
    let named: Vec<String> = (0..outer.len()).map(|at| format!("__serrate_outer_{at}")).collect();
    let keys = outer.iter().zip(&named).map(|(c, name)| Expr::Column(c.clone()).alias(name));
    let rows = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .project(keys)?
        .alias(table.as_str())?
        .build()?;
    let keys: Vec<Column> = named.iter().map(|n| Column::new(Some(table.as_str()), n)).collect();
    let mut bound = Bound { keys: keys.clone(), outer: outer.clone(), rows, names };
    let Some(rows) = bound.with_outer(&query)? else { return Ok(None) };
    let made = query.schema().columns().into_iter().zip(join.right.schema().columns());
    let shown = keys.into_iter().zip(outer).chain(made);
    let shown = shown.map(|(from, to)| Expr::Column(from).alias_qualified(to.relation, to.name));
    let rows = LogicalPlanBuilder::from(rows).project(shown)?;
    match (join.join_type, &join.filter) {
        (JoinType::Inner, Some(filter)) => rows.filter(filter.clone())?.build().map(Some),
        _ => rows.build().map(Some),
    }
}

fn is_true(e: &Expr) -> bool {
    matches!(e, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// Whether a query computes its rows from one outer row alone.
fn reads_no_table(query: &LogicalPlan) -> Result<bool> {
    let mut plan = query;
    loop {
        if has_query(plan)? {
            return Ok(false);
        }
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Unnest(node) => &node.input,
            LogicalPlan::Subquery(node) => &node.subquery,
            LogicalPlan::EmptyRelation(node) => return Ok(node.produce_one_row),
            _ => return Ok(false),
        };
    }
}

/// Returns a query that unnests a list of the outer row so that a list without elements, or NULL, has
/// one row of NULL, as LEFT JOIN requires; `None` for any other query.
fn keep_empty_lists(query: &LogicalPlan, outer: &DFSchema) -> Result<Option<LogicalPlan>> {
    Ok(match query {
        // A computed column of the row of NULL would have to be NULL too.
        LogicalPlan::Projection(node)
            if node.expr.iter().all(|e| matches!(e.clone().unalias(), Expr::Column(_))) =>
        {
            let Some(input) = keep_empty_lists(&node.input, outer)? else { return Ok(None) };
            Some(LogicalPlanBuilder::from(input).project(node.expr.clone())?.build()?)
        }
        LogicalPlan::SubqueryAlias(node) => {
            let Some(input) = keep_empty_lists(&node.input, outer)? else { return Ok(None) };
            let alias = SubqueryAlias::try_new(Arc::new(input), node.alias.clone())?;
            Some(LogicalPlan::SubqueryAlias(alias))
        }
        LogicalPlan::Unnest(node) => {
            let LogicalPlan::Projection(lists) = node.input.as_ref() else { return Ok(None) };
            let (LogicalPlan::EmptyRelation(_), [list]) =
                (lists.input.as_ref(), lists.expr.as_slice())
            else {
                return Ok(None);
            };
            let (_, field) = list.to_field(lists.input.schema())?;
            let null = match field.data_type() {
                DataType::List(element) | DataType::LargeList(element) if !list.is_volatile() => {
                    let null = ScalarValue::try_new_null(element.data_type())?;
                    let one = ScalarValue::new_list_nullable(&[null], element.data_type());
                    Expr::Literal(ScalarValue::List(one), None)
                }
                _ => return Ok(None),
            };
            let null = null.cast_to(field.data_type(), outer)?;
            let (relation, name) = list.qualified_name();
            let list = list.clone().unalias();
            let has_elements = array_length(list.clone()).gt(lit(0u64));
            let list = when(has_elements, list).otherwise(null)?.alias_qualified(relation, name);
            let input =
                LogicalPlanBuilder::from(lists.input.as_ref().clone()).project([list])?.build()?;
            let columns = node.exec_columns.clone();
            Some(
                LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(columns, node.options.clone())?
                    .build()?,
            )
        }
        _ => None,
    })
}

/// Returns the query of a LATERAL join that DataFusion cannot plan as it stands: more than filters
/// and projections are above its conditions on outer columns.
pub(in crate::sql) fn lateral_query(join: &Join) -> Result<Option<&LogicalPlan>> {
    let right = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        right => right,
    };
    let query = match right {
        LogicalPlan::Subquery(query) => query.subquery.as_ref(),
        // The planner of `SessionContext::sql` takes `unnest(..)` for a table function.
        query if reads_no_table(query)? => query,
        _ => return Ok(None),
    };
    let joined = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    if !joined || !join.on.is_empty() {
        return Ok(None);
    }
    let mut plan = query;
    loop {
        plan = match plan {
            LogicalPlan::Projection(node) if !names_outer(plan)? => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Filter(node) if nested_outer_columns(plan)?.is_empty() => &node.input,
            rest => return Ok(any_outer(rest)?.then_some(query)),
        };
    }
}

/// Returns the value of each combination, which has at most one row; more rows are an error at
/// execution.
fn only_rows(rows: LogicalPlan, keys: &[Column], value: Expr) -> Result<(LogicalPlan, Expr)> {
    let [number, first] = ["__serrate_count", "__serrate_first"];
    let groups: Vec<Expr> = keys.iter().cloned().map(Expr::Column).collect();
    let found = LogicalPlanBuilder::from(rows)
        .aggregate(
            groups,
            [count(lit(1i64)).alias(number), first_value(value, Vec::new()).alias(first)],
        )?
        .build()?;
    let column = |name| Expr::Column(Column::new_unqualified(name));
    let only = ScalarUDF::new_from_impl(OnlyRow {
        // Below a condition, it would be evaluated for other rows.
        signature: Signature::any(2, Volatility::Volatile),
    });
    Ok((found, only.call(vec![column(first), column(number)])))
}

/// `only_row(value, count)` returns the value, or an error if the count is more than one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRow {
    fn name(&self) -> &str {
        "only_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [value, number] = args.args.as_slice() else {
            return exec_err!("only_row takes a value and a count");
        };
        let numbers = number.to_array(rows)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        match max(numbers).filter(|most| *most > 1) {
            Some(most) => exec_err!(
                "a scalar subquery has {most} rows for one row of the outer query; add LIMIT 1 after an ORDER BY, or use an aggregate such as max(..)"
            ),
            None => Ok(value.clone()),
        }
    }
}

fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|e| {
            found = found || e.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Whether a query has at most one row per outer row, whatever the data.
fn has_one_row_at_most(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        LogicalPlan::Projection(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::SubqueryAlias(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::Filter(node) => has_one_row_at_most(&node.input)?,
        LogicalPlan::Sort(node) => {
            node.fetch.is_some_and(|n| n <= 1) || has_one_row_at_most(&node.input)?
        }
        LogicalPlan::Limit(node) => {
            matches!(node.get_fetch_type()?, FetchType::Literal(Some(0 | 1)))
                || has_one_row_at_most(&node.input)?
        }
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    })
}

/// Combinations of outer columns on their way through a query.
struct Bound<'a> {
    /// Their columns in `rows`, and in every plan that carries them.
    keys: Vec<Column>,
    /// Their columns in the query.
    outer: Vec<Column>,
    rows: LogicalPlan,
    names: &'a mut Names,
}

impl Bound<'_> {
    /// Returns the rows of a query for each combination, whose columns follow those of the query.
    fn with_outer(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !any_outer(plan)? {
            if matches!(plan, LogicalPlan::EmptyRelation(one) if one.produce_one_row) {
                return Ok(Some(self.rows.clone()));
            }
            return LogicalPlanBuilder::from(plan.clone())
                .cross_join(self.rows.clone())?
                .build()
                .map(Some);
        }
        if has_query(plan)? {
            return self.with_inner_queries(plan);
        }
        Ok(match plan {
            LogicalPlan::Projection(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                let exprs = node.expr.iter().map(|e| self.rewrite_inner(e.clone()));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                Some(self.project_with_keys(input, exprs)?)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                Some(self.add_alias(input, node)?)
            }
            LogicalPlan::Filter(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                let predicate = self.rewrite_inner(node.predicate.clone())?;
                Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
            }
            LogicalPlan::Aggregate(node) => self.expand_aggregate(node)?,
            // A LATERAL query first in FROM names columns of the query around it.
            LogicalPlan::Subquery(node) => self.with_outer(&node.subquery)?,
            LogicalPlan::Unnest(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                let rows = LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(node.exec_columns.clone(), node.options.clone())?
                    .build()?;
                let columns = node.schema.columns().into_iter().map(Expr::Column);
                Some(self.project_with_keys(rows, columns.collect())?)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(input) = self.with_outer(input)? else { return Ok(None) };
                Some(LogicalPlanBuilder::from(input).distinct()?.build()?)
            }
            LogicalPlan::Sort(node) if node.fetch.is_none() => self.with_outer(&node.input)?,
            LogicalPlan::Limit(node) => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                    (node.get_skip_type()?, node.get_fetch_type()?)
                else {
                    return Ok(None);
                };
                self.limit_rows(&node.input, skip, fetch)?
            }
            LogicalPlan::Join(node) => self.expand_join(node)?,
            LogicalPlan::Window(node) => self.expand_windows(node)?,
            LogicalPlan::Union(node) => self.expand_union(node)?,
            _ => None,
        })
    }

    /// Returns the rows of a filter or projection whose expressions contain queries that name columns
    /// of the outermost query. They become queries that name the combinations of their row.
    fn with_inner_queries(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                let predicate = self.rewrite_queries(node.predicate.clone())?;
                let filter = Filter::try_new(predicate, Arc::new(input))?;
                of_filter(filter, self.names).map(|done| Some(done.data))
            }
            LogicalPlan::Projection(node) => {
                let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
                let exprs = node.expr.iter().map(|e| self.rewrite_queries(e.clone()));
                let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
                exprs.extend(self.key_columns());
                project_values(exprs, Arc::new(input), self.names).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Rewrites an expression, and the queries in it, for rows with the combinations.
    fn rewrite_queries(&self, expr: Expr) -> Result<Expr> {
        let inner = |query: &Subquery| {
            let plan = query.subquery.as_ref().clone().transform_up_with_subqueries(|node| {
                let names = NamePreserver::new(&node);
                node.map_expressions(|e| {
                    let name = names.save(&e);
                    let done = e.transform_up(|e| {
                        let Expr::OuterReferenceColumn(field, column) = &e else {
                            return Ok(Transformed::no(e));
                        };
                        let at = self.outer.iter().position(|c| c == column);
                        Ok(match at.and_then(|at| self.keys.get(at)) {
                            Some(key) => Transformed::yes(Expr::OuterReferenceColumn(
                                Arc::clone(field),
                                key.clone(),
                            )),
                            None => Transformed::no(e),
                        })
                    })?;
                    Ok(done.update_data(|e| name.restore(e)))
                })
            })?;
            let outer_ref_columns = plan.data.all_out_ref_exprs();
            Ok::<_, DataFusionError>(Subquery {
                subquery: Arc::new(plan.data),
                outer_ref_columns,
                spans: query.spans.clone(),
            })
        };
        let expr = expr.transform_down(|e| {
            let changed = match e {
                Expr::ScalarSubquery(query) => Expr::ScalarSubquery(inner(&query)?),
                Expr::Exists(mut test) => {
                    test.subquery = inner(&test.subquery)?;
                    Expr::Exists(test)
                }
                Expr::InSubquery(mut test) => {
                    test.subquery = inner(&test.subquery)?;
                    Expr::InSubquery(test)
                }
                e => return Ok(Transformed::no(e)),
            };
            // The value that IN compares is rewritten below.
            Ok(Transformed::yes(changed))
        })?;
        self.rewrite_inner(expr.data)
    }

    /// Rewrites an expression of a query for its rows with the combinations.
    fn rewrite_inner(&self, expr: Expr) -> Result<Expr> {
        self.replace_columns(expr, |at, _| self.keys.get(at).map(|key| Expr::Column(key.clone())))
    }

    fn replace_columns(
        &self,
        expr: Expr,
        by: impl Fn(usize, &arrow::datatypes::Field) -> Option<Expr>,
    ) -> Result<Expr> {
        keep_name(expr, |e| {
            let done = e.transform_up(|e| {
                let Expr::OuterReferenceColumn(field, column) = &e else {
                    return Ok(Transformed::no(e));
                };
                let at = self.outer.iter().position(|c| c == column);
                Ok(match at.and_then(|at| by(at, field)) {
                    Some(found) => Transformed::yes(found),
                    None => Transformed::no(e),
                })
            })?;
            Ok(done.data)
        })
    }

    fn key_columns(&self) -> impl Iterator<Item = Expr> {
        self.keys.iter().cloned().map(Expr::Column)
    }

    fn project_with_keys(&self, input: LogicalPlan, mut exprs: Vec<Expr>) -> Result<LogicalPlan> {
        exprs.extend(self.key_columns());
        LogicalPlanBuilder::from(input).project(exprs)?.build()
    }

    /// Applies an alias to the columns of the rows below it.
    fn add_alias(&self, rows: LogicalPlan, node: &SubqueryAlias) -> Result<LogicalPlan> {
        let pairs = node.input.schema().columns().into_iter().zip(node.schema.columns());
        let exprs =
            pairs.map(|(from, to)| Expr::Column(from).alias_qualified(to.relation, to.name));
        self.project_with_keys(rows, exprs.collect())
    }

    fn expand_aggregate(&mut self, node: &Aggregate) -> Result<Option<LogicalPlan>> {
        if has_grouping_sets(node) {
            return Ok(None);
        }
        let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
        let inner = |e: &Expr| self.rewrite_inner(e.clone());
        let aggregates = node.aggr_expr.iter().map(inner).collect::<Result<Vec<_>>>()?;
        let groups = node.group_expr.iter().map(inner).collect::<Result<Vec<_>>>()?;
        let groups = self.key_columns().chain(groups).collect();
        let found = Aggregate::try_new(Arc::new(input), groups, aggregates)?;
        let found = LogicalPlan::Aggregate(found);
        match node.group_expr.is_empty() {
            // Combinations without rows have a result too.
            true => self.with_empty(node, found).map(Some),
            false => Ok(Some(found)),
        }
    }

    /// Adds combinations without rows to the results of an aggregate without GROUP BY.
    fn with_empty(&mut self, node: &Aggregate, found: LogicalPlan) -> Result<LogicalPlan> {
        let (results, empty) = (self.names.next("results"), self.names.next("empty"));
        let columns = node.schema.columns();
        let named: Vec<String> = (0..columns.len()).map(|at| format!("__serrate_{at}")).collect();
        let found_marker = "__serrate_found";
        let keys = self.keys.iter().map(|key| Expr::Column(key.clone()).alias(key.name()));
        let shown = columns.iter().zip(&named).map(|(c, n)| Expr::Column(c.clone()).alias(n));
        let found = LogicalPlanBuilder::from(found)
            .project(keys.chain(shown).chain([lit(true).alias(found_marker)]))?
            .alias(results.as_str())?
            .build()?;
        let right: Vec<Column> =
            self.keys.iter().map(|key| Column::new(Some(results.as_str()), key.name())).collect();
        let null = |plan: &LogicalPlan| -> Result<LogicalPlan> {
            let done = plan.clone().transform_up(|node| {
                let node = node.map_expressions(|e| {
                    let done = self.replace_columns(e, |_, field| {
                        let null = ScalarValue::try_new_null(field.data_type()).ok()?;
                        Some(Expr::Literal(null, None))
                    })?;
                    Ok(Transformed::yes(done))
                })?;
                Ok(Transformed::yes(node.data.recompute_schema()?))
            })?;
            Ok(done.data)
        };
        let nothing = Filter::try_new(lit(false), Arc::new(null(&node.input)?))?;
        let aggregates = node.aggr_expr.iter().map(|e| {
            self.replace_columns(e.clone(), |_, field| {
                let null = ScalarValue::try_new_null(field.data_type()).ok()?;
                Some(Expr::Literal(null, None))
            })
        });
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let nothing =
            Aggregate::try_new(Arc::new(LogicalPlan::Filter(nothing)), Vec::new(), aggregates)?;
        let nothing = LogicalPlan::Aggregate(nothing);
        let shown = nothing.schema().columns().into_iter().zip(&named);
        let shown: Vec<Expr> = shown.map(|(c, n)| Expr::Column(c).alias(n)).collect();
        let nothing =
            LogicalPlanBuilder::from(nothing).project(shown)?.alias(empty.as_str())?.build()?;
        let all = LogicalPlanBuilder::from(self.rows.clone())
            .join_detailed(
                found,
                JoinType::Left,
                (self.keys.clone(), right),
                None,
                NullEquality::NullEqualsNull,
            )?
            .cross_join(nothing)?
            .build()?;
        let of = |table: &str, name: &str| Expr::Column(Column::new(Some(table), name));
        let values = columns.into_iter().zip(&named).map(|(column, name)| {
            let is_found = of(&results, found_marker).is_true();
            let value = when(is_found, of(&results, name)).otherwise(of(&empty, name))?;
            Ok(value.alias_qualified(column.relation, column.name))
        });
        self.project_with_keys(all, values.collect::<Result<Vec<_>>>()?)
    }

    /// Limits the rows of each combination.
    fn limit_rows(
        &mut self,
        input: &LogicalPlan,
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Option<LogicalPlan>> {
        // Nodes between a limit and its sort must return one row per row.
        match input {
            LogicalPlan::Projection(node) => {
                let Some(rows) = self.limit_rows(&node.input, skip, fetch)? else {
                    return Ok(None);
                };
                let exprs = node.expr.iter().map(|e| self.rewrite_inner(e.clone()));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                return self.project_with_keys(rows, exprs).map(Some);
            }
            LogicalPlan::SubqueryAlias(node) => {
                let Some(rows) = self.limit_rows(&node.input, skip, fetch)? else {
                    return Ok(None);
                };
                return self.add_alias(rows, node).map(Some);
            }
            _ => {}
        }
        let (order, below) = match input {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (sort.expr.clone(), &sort.input),
            other => (Vec::new(), &Arc::new(other.clone())),
        };
        let Some(rows) = self.with_outer(below)? else { return Ok(None) };
        let order = order.into_iter().map(|key| {
            let expr = self.rewrite_inner(key.expr.clone())?.unalias();
            Ok(SortKey { expr, ..key })
        });
        let order = order.collect::<Result<Vec<_>>>()?;
        let columns: Vec<Expr> = below.schema().columns().into_iter().map(Expr::Column).collect();
        let number = row_number().partition_by(self.key_columns().collect()).order_by(order);
        let name = self.names.next("row");
        let number = number.build()?.alias(name.as_str());
        let at = || Expr::Column(Column::new_unqualified(name.as_str()));
        let mut within = at().gt(lit(skip as u64));
        if let Some(fetch) = fetch {
            within = within.and(at().lt_eq(lit(skip.saturating_add(fetch) as u64)));
        }
        let numbered = LogicalPlanBuilder::from(rows).window([number])?.filter(within)?.build()?;
        self.project_with_keys(numbered, columns).map(Some)
    }

    fn expand_join(&mut self, node: &Join) -> Result<Option<LogicalPlan>> {
        let (left, right) = (any_outer(&node.left)?, any_outer(&node.right)?);
        let columns: Vec<Expr> = node.schema.columns().into_iter().map(Expr::Column).collect();
        // The combinations are passed along with one side, whose rows are all kept or are dropped
        // only because of the other side. If both sides depend on them, they are a key of the join.
        let mut equal = None;
        let (l, r) = match (node.join_type, left, right) {
            (JoinType::Inner | JoinType::Left, _, false) => {
                let Some(left) = self.with_outer(&node.left)? else { return Ok(None) };
                (left, node.right.as_ref().clone())
            }
            (JoinType::Inner | JoinType::Right, false, true) => {
                let Some(right) = self.with_outer(&node.right)? else { return Ok(None) };
                (node.left.as_ref().clone(), right)
            }
            (JoinType::Inner | JoinType::Left, _, true) => {
                let Some(left) = self.with_outer(&node.left)? else { return Ok(None) };
                let Some((right, keys)) = self.with_other_keys(&node.right)? else {
                    return Ok(None);
                };
                equal = keys;
                (left, right)
            }
            (JoinType::Right, true, _) => {
                let Some(right) = self.with_outer(&node.right)? else { return Ok(None) };
                let Some((left, keys)) = self.with_other_keys(&node.left)? else { return Ok(None) };
                equal = keys;
                (left, right)
            }
            _ => return Ok(None),
        };
        let filter =
            node.filter.clone().map(|e| self.rewrite_inner(e).map(Expr::unalias)).transpose()?;
        let filter = conjunction(filter.into_iter().chain(equal));
        if node.on.iter().any(|(l, r)| l.contains_outer() || r.contains_outer()) {
            return Ok(None);
        }
        let joined = Join::try_new(
            Arc::new(l),
            Arc::new(r),
            node.on.clone(),
            filter,
            node.join_type,
            node.join_constraint,
            node.null_equality,
            false,
        )?;
        self.project_with_keys(LogicalPlan::Join(joined), columns).map(Some)
    }

    /// Returns the rows of the other side of a join with combinations in columns of their own, and
    /// the condition that they equal those of the first side.
    fn with_other_keys(
        &mut self,
        plan: &LogicalPlan,
    ) -> Result<Option<(LogicalPlan, Option<Expr>)>> {
        let Some(rows) = self.with_outer(plan)? else { return Ok(None) };
        let table = self.names.next("other");
        let columns = plan.schema().columns().into_iter().map(Expr::Column);
        let keys = self
            .keys
            .iter()
            .map(|key| Expr::Column(key.clone()).alias_qualified(Some(table.as_str()), &key.name));
        let rows = LogicalPlanBuilder::from(rows).project(columns.chain(keys))?.build()?;
        let equal = self.keys.iter().map(|key| {
            let other = Expr::Column(Column::new(Some(table.as_str()), &key.name));
            let key = Box::new(Expr::Column(key.clone()));
            Expr::BinaryExpr(BinaryExpr::new(key, Operator::IsNotDistinctFrom, Box::new(other)))
        });
        Ok(Some((rows, conjunction(equal))))
    }

    /// Computes window functions within the rows of each combination.
    fn expand_windows(&mut self, node: &Window) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.with_outer(&node.input)? else { return Ok(None) };
        let calls = node.window_expr.iter().map(|e| {
            let call = self.rewrite_inner(e.clone())?;
            keep_name(call, |call| {
                let done = call.transform_up(|mut e| {
                    let Expr::WindowFunction(call) = &mut e else { return Ok(Transformed::no(e)) };
                    call.params.partition_by.extend(self.key_columns());
                    Ok(Transformed::yes(e))
                })?;
                Ok(done.data)
            })
        });
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let rows = LogicalPlanBuilder::from(input).window(calls)?.build()?;
        let columns = node.schema.columns().into_iter().map(Expr::Column).collect();
        self.project_with_keys(rows, columns).map(Some)
    }

    fn expand_union(&mut self, node: &Union) -> Result<Option<LogicalPlan>> {
        let named: Vec<String> =
            (0..node.schema.fields().len()).map(|at| format!("__serrate_{at}")).collect();
        let mut all: Option<LogicalPlanBuilder> = None;
        for input in &node.inputs {
            let Some(rows) = self.with_outer(input)? else { return Ok(None) };
            let columns = input.schema().columns().into_iter().zip(&named);
            let shown = columns.map(|(column, name)| Expr::Column(column).alias(name));
            let keys = self.keys.iter().map(|key| Expr::Column(key.clone()).alias(&key.name));
            let rows = LogicalPlanBuilder::from(rows).project(shown.chain(keys))?;
            all = Some(match all {
                Some(before) => before.union(rows.build()?)?,
                None => rows,
            });
        }
        let Some(all) = all else { return Ok(None) };
        let column = |name: &str| Expr::Column(Column::new_unqualified(name));
        let pairs = named.iter().zip(node.schema.columns());
        let shown = pairs.map(|(name, to)| column(name).alias_qualified(to.relation, to.name));
        let keys = self
            .keys
            .iter()
            .map(|key| column(&key.name).alias_qualified(key.relation.clone(), key.name.clone()));
        all.project(shown.chain(keys))?.build().map(Some)
    }
}
