//! Computes correlated subqueries for all outer rows at once.
//!
//! The distinct combinations of the outer columns that a query names become a table, which is
//! joined to the innermost rows of the query and passed along to its result. The method is that of
//! T. Neumann and A. Kemper, "Unnesting Arbitrary Queries", BTW 2015.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::max;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, ColumnarValue, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join,
    LogicalPlan, LogicalPlanBuilder, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, SkipType, SubqueryAlias, Volatility, lit, when,
};

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
                let equal = split_conjunction(&node.predicate).into_iter().all(|e| match e {
                    Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                        let pair = |inner: &Expr, outer: &Expr| {
                            !inner.contains_outer() && is_outer_column(outer)
                        };
                        !e.contains_outer() || pair(left, right) || pair(right, left)
                    }
                    e => !e.contains_outer(),
                });
                if !equal {
                    return Ok(false);
                }
                &node.input
            }
            // The rest must not refer to the outer query.
            rest => return Ok(aggregated && !any_outer(rest)?),
        };
    }
}

fn is_outer_column(e: &Expr) -> bool {
    match e {
        Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_outer_column(&cast.expr),
        _ => false,
    }
}

fn names_outer(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|e| {
        found = found || e.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether a plan names outer columns anywhere.
fn any_outer(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = found || names_outer(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
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
    if is_volatile(outer)? || is_volatile(query)? {
        return Ok(None);
    }
    let columns = query.all_out_ref_exprs();
    let columns = columns.into_iter().filter_map(|e| match e {
        Expr::OuterReferenceColumn(_, column) => Some(column),
        _ => None,
    });
    let columns: Vec<Column> = columns.collect();
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
    let Some(found) = bound.with_outer(query)? else { return Ok(None) };
    let value = match query.schema().columns().as_slice() {
        [only] => Expr::Column(only.clone()),
        _ => return Ok(None),
    };
    let keys = bound.keys.clone();
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
            return LogicalPlanBuilder::from(plan.clone())
                .cross_join(self.rows.clone())?
                .build()
                .map(Some);
        }
        if self.has_inner_query(plan)? {
            return Ok(None);
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
            _ => None,
        })
    }

    fn has_inner_query(&self, node: &LogicalPlan) -> Result<bool> {
        crate::sql::mends::subqueries::has_query(node)
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
        if node.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) {
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
        // only because of the other side.
        let (l, r) = match (node.join_type, left, right) {
            (JoinType::Inner | JoinType::Left, _, false) => {
                let Some(left) = self.with_outer(&node.left)? else { return Ok(None) };
                (left, node.right.as_ref().clone())
            }
            (JoinType::Inner | JoinType::Right, false, true) => {
                let Some(right) = self.with_outer(&node.right)? else { return Ok(None) };
                (node.left.as_ref().clone(), right)
            }
            _ => return Ok(None),
        };
        let filter =
            node.filter.clone().map(|e| self.rewrite_inner(e).map(Expr::unalias)).transpose()?;
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
}
