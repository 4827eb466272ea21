//! Computes the rows of a correlated query for all distinct outer rows at once, node by node of its
//! plan. Methods return `None` for a node that is not supported.
//!
//! The plan of a query becomes a plan of its *bound rows*: for each distinct outer row, the rows of
//! the query for this outer row. They have the columns of the query and the columns `keys`, the
//! values of the outer columns: rows of the same run of the query have equal `keys`. The subquery
//! in `SELECT (SELECT max(u.b) FROM u WHERE u.a < t.a) FROM t` becomes:
//!
//! ```text
//! Aggregate: max(u.b)           Aggregate: GROUP BY key, max(u.b)
//!   Filter: u.a < outer(t.a)      Filter: u.a < key
//!     TableScan: u                  CrossJoin
//!                                     TableScan: u
//!                                     SubqueryAlias: SELECT DISTINCT t.a AS key FROM t
//! ```
//!
//! Filters and projections name the columns `keys` in place of the outer columns. Aggregates add
//! them to GROUP BY, windows to PARTITION BY, and joins to their condition. A LIMIT numbers the
//! rows of each run. A query within an expression of the query has the bound rows as its outer
//! rows: `project_values` and `rewrite_filter` expand it with a [`BoundOuter`] of its own.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, EmptyRelation, Expr, ExprFunctionExt, FetchType, Filter, Join,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, Subquery, SubqueryAlias,
    Union, Window, lit, when,
};

use super::lateral_joins::join_lateral_rows;
use super::outer_rows::{project_values, rewrite_filter};
use crate::sql::base::expression_parts::map_named;
use crate::sql::base::outer_columns::{
    find_outer_columns, find_subquery_of_lateral, has_grouping_sets, has_outer,
};
use crate::sql::base::subquery_parts::has_query;
use crate::sql::workarounds::subqueries::correlated::new_names::{NewNames, keep_name};

/// The outer columns that a correlated query uses, and their distinct values in the outer rows.
pub(super) struct BoundOuter<'a> {
    /// The columns of `rows`. Every plan that a method returns has them next to the columns of the
    /// query.
    pub(super) keys: Vec<Column>,
    /// The outer columns that the query uses, in the order of `keys`.
    pub(super) outer: Vec<Column>,
    pub(super) rows: LogicalPlan,
    pub(super) names: &'a mut NewNames,
}

impl BoundOuter<'_> {
    /// Returns a plan of the rows that the query `plan` has for each distinct outer row, or `None`
    /// if a node of the query is not supported.
    pub(super) fn bind_outer(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !has_outer(plan)? {
            if matches!(plan, LogicalPlan::EmptyRelation(one) if one.produce_one_row) {
                return Ok(Some(self.rows.clone()));
            }
            return LogicalPlanBuilder::from(plan.clone())
                .cross_join(self.rows.clone())?
                .build()
                .map(Some);
        }
        if has_query(plan) {
            return self.bind_inner_queries(plan);
        }
        Ok(match plan {
            LogicalPlan::Projection(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                let exprs = node.expr.iter().map(|e| self.rewrite_inner(e.clone()));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                Some(self.project_with_keys(input, exprs)?)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                Some(self.add_alias(input, node)?)
            }
            LogicalPlan::Filter(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                let predicate = self.rewrite_inner(node.predicate.clone())?;
                Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
            }
            LogicalPlan::Aggregate(node) => self.expand_aggregate(node)?,
            // If FROM begins with a LATERAL query, this query may use columns of the outer query.
            LogicalPlan::Subquery(node) => self.bind_outer(&node.subquery)?,
            LogicalPlan::Unnest(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                let rows = LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(node.exec_columns.clone(), node.options.clone())?
                    .build()?;
                let columns = node.schema.columns().into_iter().map(Expr::Column);
                Some(self.project_with_keys(rows, columns.collect())?)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(input) = self.bind_outer(input)? else { return Ok(None) };
                Some(LogicalPlanBuilder::from(input).distinct()?.build()?)
            }
            LogicalPlan::Sort(node) if node.fetch.is_none() => self.bind_outer(&node.input)?,
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

    /// Returns the rows of a filter or projection with subqueries in its expressions, for each
    /// distinct outer row, or `None` if a node is not supported. In the expressions, the columns
    /// `keys` replace the outer columns.
    fn bind_inner_queries(&mut self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                let predicate = self.rewrite_queries(node.predicate.clone(), &node.input)?;
                let filter = Filter::try_new(predicate, Arc::new(input))?;
                rewrite_filter(filter, self.names).map(|done| Some(done.data))
            }
            LogicalPlan::Projection(node) => {
                let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
                self.project_queries(node, input).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Computes the projection `node`, whose expressions contain subqueries, over `input`, the
    /// bound rows of `node.input`.
    fn project_queries(&mut self, node: &Projection, input: LogicalPlan) -> Result<LogicalPlan> {
        let exprs = node.expr.iter().map(|e| self.rewrite_queries(e.clone(), &node.input));
        let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
        exprs.extend(self.list_key_columns());
        project_values(exprs, Arc::new(input), self.names)
    }

    /// Replaces outer columns with `keys` in an expression of a node over `input`, and in its
    /// subqueries.
    fn rewrite_queries(&self, expr: Expr, input: &LogicalPlan) -> Result<Expr> {
        let expr = rename_in_queries(expr, &self.collect_renamed(&[input]))?;
        // This call rewrites the value that IN, ANY or ALL compares with the query.
        self.rewrite_inner(expr.data)
    }

    /// Pairs each outer column with the column of `keys` that replaces it in the subqueries of a
    /// node. Omits an outer column if one of the node's `inputs` has a column of the same name,
    /// which hides the outer column.
    fn collect_renamed(&self, inputs: &[&LogicalPlan]) -> Vec<RenamedColumn> {
        let pairs = self.outer.iter().cloned().zip(self.keys.iter().cloned()).collect::<Vec<_>>();
        remove_columns_of(&pairs, inputs)
    }

    /// Replaces outer columns with `keys` in an expression, but not in its subqueries.
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

    fn list_key_columns(&self) -> impl Iterator<Item = Expr> {
        self.keys.iter().cloned().map(Expr::Column)
    }

    fn project_with_keys(&self, input: LogicalPlan, mut exprs: Vec<Expr>) -> Result<LogicalPlan> {
        exprs.extend(self.list_key_columns());
        LogicalPlanBuilder::from(input).project(exprs)?.build()
    }

    /// Applies a table alias to the columns of `rows`, but not to the columns `keys`.
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
        let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
        let inner = |e: &Expr| self.rewrite_inner(e.clone());
        let aggregates = node.aggr_expr.iter().map(inner).collect::<Result<Vec<_>>>()?;
        let groups = node.group_expr.iter().map(inner).collect::<Result<Vec<_>>>()?;
        let groups = self.list_key_columns().chain(groups).collect();
        let found = Aggregate::try_new(Arc::new(input), groups, aggregates)?;
        let found = LogicalPlan::Aggregate(found);
        match node.group_expr.is_empty() {
            // Without GROUP BY, an outer row has a result even if the query reads no rows for it.
            true => self.add_empty_rows(node, found).map(Some),
            false => Ok(Some(found)),
        }
    }

    /// Adds to an aggregate without GROUP BY a row for each outer row for which the query reads no
    /// rows. For these outer rows, `count(*)` is 0 in `SELECT (SELECT count(*) FROM u WHERE u.a =
    /// t.a) FROM t`.
    fn add_empty_rows(&mut self, node: &Aggregate, found: LogicalPlan) -> Result<LogicalPlan> {
        let (results, empty) = (self.names.next("results"), self.names.next("empty"));
        let columns = node.schema.columns();
        let named = list_positional_names(columns.len());
        let found_marker = "__serrate_found";
        let keys = self.keys.iter().map(|key| Expr::Column(key.clone()).alias(key.name()));
        let shown = columns.iter().zip(&named).map(|(c, n)| Expr::Column(c.clone()).alias(n));
        let found = LogicalPlanBuilder::from(found)
            .project(keys.chain(shown).chain([lit(true).alias(found_marker)]))?
            .alias(results.as_str())?
            .build()?;
        let found_keys: Vec<Column> =
            self.keys.iter().map(|key| Column::new(Some(results.as_str()), key.name())).collect();
        let all = LogicalPlanBuilder::from(self.rows.clone())
            .join_detailed(
                found,
                JoinType::Left,
                (self.keys.clone(), found_keys),
                None,
                NullEquality::NullEqualsNull,
            )?
            .cross_join(self.aggregate_no_rows(node, &named, &empty)?)?
            .build()?;
        let of = |table: &str, name: &str| Expr::Column(Column::new(Some(table), name));
        let values = columns.into_iter().zip(&named).map(|(column, name)| {
            let is_found = of(&results, found_marker).is_true();
            let value = when(is_found, of(&results, name)).otherwise(of(&empty, name))?;
            Ok(value.alias_qualified(column.relation, column.name))
        });
        self.project_with_keys(all, values.collect::<Result<Vec<_>>>()?)
    }

    /// Returns one row with the results of aggregates over no rows, as the columns `named` of
    /// `table`. The aggregates are computed with NULL for each outer column.
    fn aggregate_no_rows(
        &self,
        node: &Aggregate,
        named: &[String],
        table: &str,
    ) -> Result<LogicalPlan> {
        let no_rows = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::clone(node.input.schema()),
        });
        let aggregates = node.aggr_expr.iter().map(|e| {
            self.replace_columns(e.clone(), |_, field| {
                let null = ScalarValue::try_new_null(field.data_type()).ok()?;
                Some(Expr::Literal(null, None))
            })
        });
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        let row = Aggregate::try_new(Arc::new(no_rows), Vec::new(), aggregates)?;
        let row = LogicalPlan::Aggregate(row);
        let shown = row.schema().columns().into_iter().zip(named);
        let shown: Vec<Expr> = shown.map(|(c, n)| Expr::Column(c).alias(n)).collect();
        LogicalPlanBuilder::from(row).project(shown)?.alias(table)?.build()
    }

    /// Applies OFFSET and LIMIT separately to the rows of a query for each distinct outer row.
    /// Returns `None` if a node of the query is not supported.
    fn limit_rows(
        &mut self,
        input: &LogicalPlan,
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Option<LogicalPlan>> {
        // Only nodes that return one row per input row may be between a limit and its sort.
        match input {
            LogicalPlan::Projection(node) => {
                let Some(rows) = self.limit_rows(&node.input, skip, fetch)? else {
                    return Ok(None);
                };
                if has_query(input) {
                    return self.project_queries(node, rows).map(Some);
                }
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
        let Some(rows) = self.bind_outer(below)? else { return Ok(None) };
        let order = order.into_iter().map(|key| {
            let expr = self.rewrite_inner(key.expr.clone())?.unalias();
            Ok(SortKey { expr, ..key })
        });
        let order = order.collect::<Result<Vec<_>>>()?;
        let columns: Vec<Expr> = below.schema().columns().into_iter().map(Expr::Column).collect();
        let number = row_number().partition_by(self.list_key_columns().collect()).order_by(order);
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

    /// Returns the rows of a LATERAL join whose query uses columns of both the join's left side and
    /// `outer`, or `None` if a node is not supported.
    fn expand_lateral(&mut self, node: &Join, query: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let columns: Vec<Expr> = node.schema.columns().into_iter().map(Expr::Column).collect();
        let Some(left) = self.bind_outer(&node.left)? else { return Ok(None) };
        let filter =
            node.filter.clone().map(|e| self.rewrite_inner(e).map(Expr::unalias)).transpose()?;
        let query = rename_outer(query.clone(), &self.collect_renamed(&[&node.left]))?;
        let joined = Join::try_new(
            Arc::new(left),
            Arc::clone(&node.right),
            Vec::new(),
            filter,
            node.join_type,
            node.join_constraint,
            node.null_equality,
            false,
        )?;
        let Some(rows) = join_lateral_rows(&joined, &query, self.names)? else { return Ok(None) };
        self.project_with_keys(rows, columns).map(Some)
    }

    fn expand_join(&mut self, node: &Join) -> Result<Option<LogicalPlan>> {
        if let Some(query) = find_subquery_of_lateral(node)
            && find_outer_columns(query)?.iter().any(|column| node.left.schema().has_column(column))
        {
            return self.expand_lateral(node, query);
        }
        let Some(inputs) = self.bind_join_inputs(node)? else { return Ok(None) };
        let filter =
            node.filter.clone().map(|e| self.rewrite_inner(e).map(Expr::unalias)).transpose()?;
        if node.on.iter().any(|(l, r)| l.contains_outer() || r.contains_outer()) {
            return Ok(None);
        }
        let joined = Join::try_new(
            Arc::new(inputs.left),
            Arc::new(inputs.right),
            node.on.clone(),
            conjunction(filter.into_iter().chain(inputs.equal_keys)),
            node.join_type,
            node.join_constraint,
            node.null_equality,
            false,
        )?;
        let columns = node.schema.columns().into_iter().map(Expr::Column).collect();
        self.project_with_keys(LogicalPlan::Join(joined), columns).map(Some)
    }

    /// Returns the inputs of a join, with the columns `keys` added to one or both
    /// ([`Self::bind_outer`]). The result of the join takes `keys` from an input whose columns the
    /// join never fills with NULL. If both inputs have `keys`, the join also requires that these
    /// are equal. Returns `None` if no input is suitable.
    fn bind_join_inputs(&mut self, node: &Join) -> Result<Option<JoinInputs>> {
        let (binds_left, binds_right) = (has_outer(&node.left)?, has_outer(&node.right)?);
        let keeps_left = matches!(
            node.join_type,
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti
        );
        let keeps_right = matches!(node.join_type, JoinType::Inner | JoinType::Right);
        // The left input gets the columns `keys`, even if only the join condition has outer
        // columns.
        if keeps_left && !binds_right {
            let Some(left) = self.bind_outer(&node.left)? else { return Ok(None) };
            let right = node.right.as_ref().clone();
            return Ok(Some(JoinInputs { left, right, equal_keys: None }));
        }
        if keeps_right && binds_right && !binds_left {
            let Some(right) = self.bind_outer(&node.right)? else { return Ok(None) };
            let left = node.left.as_ref().clone();
            return Ok(Some(JoinInputs { left, right, equal_keys: None }));
        }
        if keeps_left {
            let Some(left) = self.bind_outer(&node.left)? else { return Ok(None) };
            let Some((right, equal_keys)) = self.bind_second_input(&node.right)? else {
                return Ok(None);
            };
            return Ok(Some(JoinInputs { left, right, equal_keys }));
        }
        if keeps_right && binds_left {
            let Some(right) = self.bind_outer(&node.right)? else { return Ok(None) };
            let Some((left, equal_keys)) = self.bind_second_input(&node.left)? else {
                return Ok(None);
            };
            return Ok(Some(JoinInputs { left, right, equal_keys }));
        }
        Ok(None)
    }

    /// Returns the rows of a join's second input with a renamed copy of the columns `keys`, and the
    /// condition that each copy equals its column in the first input; the condition is `None` if
    /// there are no `keys`. Returns `None` if a node of the input is not supported.
    fn bind_second_input(
        &mut self,
        plan: &LogicalPlan,
    ) -> Result<Option<(LogicalPlan, Option<Expr>)>> {
        let Some(rows) = self.bind_outer(plan)? else { return Ok(None) };
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

    /// Computes window functions separately over the rows of a query for each distinct outer row.
    /// Returns `None` if a node of the query is not supported.
    fn expand_windows(&mut self, node: &Window) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.bind_outer(&node.input)? else { return Ok(None) };
        let calls = node.window_expr.iter().map(|e| {
            let call = self.rewrite_inner(e.clone())?;
            keep_name(call, |call| {
                let done = call.transform_up(|mut e| {
                    let Expr::WindowFunction(call) = &mut e else { return Ok(Transformed::no(e)) };
                    call.params.partition_by.extend(self.list_key_columns());
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
        let named = list_positional_names(node.schema.fields().len());
        let mut all: Option<LogicalPlanBuilder> = None;
        for input in &node.inputs {
            let Some(rows) = self.bind_outer(input)? else { return Ok(None) };
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

/// The two inputs of a join in a correlated query, computed for all outer rows at once: one or both
/// have the columns `keys`.
struct JoinInputs {
    left: LogicalPlan,
    right: LogicalPlan,
    /// The condition that the columns `keys` of both inputs are equal, if both have them.
    equal_keys: Option<Expr>,
}

/// Returns names for `columns` columns by position: `__serrate_0`, `__serrate_1`, .. Plans that
/// have the same columns, such as the inputs of a union, get the same names.
fn list_positional_names(columns: usize) -> Vec<String> {
    (0..columns).map(|at| format!("__serrate_{at}")).collect()
}

/// An outer column of a query, and the outer column that replaces it.
type RenamedColumn = (Column, Column);

/// Returns the pairs in `renamed`, except those whose outer column is also a column of `inputs`.
fn remove_columns_of(renamed: &[RenamedColumn], inputs: &[&LogicalPlan]) -> Vec<RenamedColumn> {
    let is_inner = |column: &Column| inputs.iter().any(|i| i.schema().has_column(column));
    renamed.iter().filter(|(column, _)| !is_inner(column)).cloned().collect()
}

/// Renames outer columns of a query, but not columns of the same name that belong to a query within
/// it.
fn rename_outer(query: LogicalPlan, renamed: &[RenamedColumn]) -> Result<LogicalPlan> {
    if renamed.is_empty() {
        return Ok(query);
    }
    let done = query.transform_down(|node| {
        let (node, within) = match node {
            LogicalPlan::Join(mut join) if find_subquery_of_lateral(&join).is_some() => {
                let beside = remove_columns_of(renamed, &[&join.left]);
                join.left = Arc::new(rename_outer(Arc::unwrap_or_clone(join.left), renamed)?);
                join.right = Arc::new(rename_outer(Arc::unwrap_or_clone(join.right), &beside)?);
                (LogicalPlan::Join(join), TreeNodeRecursion::Jump)
            }
            LogicalPlan::Subquery(query) => {
                let query = rename_in_subquery(query, renamed)?;
                (LogicalPlan::Subquery(query), TreeNodeRecursion::Jump)
            }
            node => (node, TreeNodeRecursion::Continue),
        };
        let beside = remove_columns_of(renamed, &node.inputs());
        let node = map_named(node, |e| {
            rename_in_queries(e, &beside)?.transform_data(|e| {
                e.transform_up(|e| match e {
                    Expr::OuterReferenceColumn(field, column) => {
                        Ok(match renamed.iter().find(|(outer, _)| *outer == column) {
                            Some((_, key)) => {
                                Transformed::yes(Expr::OuterReferenceColumn(field, key.clone()))
                            }
                            None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
                        })
                    }
                    e => Ok(Transformed::no(e)),
                })
            })
        })?;
        Ok(Transformed::new(node.data, true, within))
    })?;
    Ok(done.data)
}

fn rename_in_queries(expr: Expr, renamed: &[RenamedColumn]) -> Result<Transformed<Expr>> {
    expr.transform_down(|e| {
        Ok(Transformed::yes(match e {
            Expr::ScalarSubquery(query) => {
                Expr::ScalarSubquery(rename_in_subquery(query, renamed)?)
            }
            Expr::Exists(mut test) => {
                test.subquery = rename_in_subquery(test.subquery, renamed)?;
                Expr::Exists(test)
            }
            Expr::InSubquery(mut test) => {
                test.subquery = rename_in_subquery(test.subquery, renamed)?;
                Expr::InSubquery(test)
            }
            Expr::SetComparison(mut test) => {
                test.subquery = rename_in_subquery(test.subquery, renamed)?;
                Expr::SetComparison(test)
            }
            e => return Ok(Transformed::no(e)),
        }))
    })
}

fn rename_in_subquery(query: Subquery, renamed: &[RenamedColumn]) -> Result<Subquery> {
    let plan = rename_outer(Arc::unwrap_or_clone(query.subquery), renamed)?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: query.spans })
}
