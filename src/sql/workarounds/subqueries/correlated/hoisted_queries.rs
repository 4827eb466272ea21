//! Moves subqueries, and other expressions that a node cannot compute, into a projection below the
//! node.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    Operator, Sort,
};

use super::outer_rows::{list_column_exprs, project_values};
use crate::sql::base::outer_columns::find_outer_columns;
use crate::sql::base::subquery_parts::{find_query, is_subquery_test};
use crate::sql::workarounds::sorting::sorts::has_comparison;
use crate::sql::workarounds::subqueries::correlated::new_names::{NewNames, keep_name};
use crate::sql::workarounds::subqueries::shared_rows::is_volatile;
use crate::sql::workarounds::subqueries::subquery_conditions::is_correlated;

/// The projection below a node in which expressions of the node are computed, each as a column with
/// a new name.
struct ColumnsBelow<'a> {
    /// The columns that the node itself needs, then the expressions that are moved below the node.
    exprs: Vec<Expr>,
    /// The number of columns at the start of `exprs` that the node itself needs.
    given: usize,
    /// The expressions that `share_column` has moved below the node, with the names of their
    /// columns.
    shared: Vec<(Expr, String)>,
    names: &'a mut NewNames,
}

impl<'a> ColumnsBelow<'a> {
    fn new(given: Vec<Expr>, names: &'a mut NewNames) -> Self {
        Self { given: given.len(), exprs: given, shared: Vec::new(), names }
    }

    fn has_hoisted(&self) -> bool {
        self.exprs.len() > self.given
    }

    /// Adds a column with the values of `e`, even if another column has the same expression, and
    /// returns the new column.
    fn add_column(&mut self, e: Expr) -> Expr {
        let name = self.names.next("value");
        self.exprs.push(e.alias(name.clone()));
        Expr::Column(Column::new_unqualified(name))
    }

    /// Returns the column with the values of `e`, and adds it unless an equal expression already
    /// has one.
    ///
    /// Expressions that are equal in a node must stay equal: the sort keys of the calls of a window
    /// node, and the expressions of DISTINCT ON with which ORDER BY begins.
    fn share_column(&mut self, e: Expr) -> Expr {
        if let Some((_, name)) = self.shared.iter().find(|(other, _)| *other == e) {
            return Expr::Column(Column::new_unqualified(name.clone()));
        }
        let name = self.names.next("value");
        self.exprs.push(e.clone().alias(name.clone()));
        self.shared.push((e, name.clone()));
        Expr::Column(Column::new_unqualified(name))
    }

    /// Returns the column with the values of `e`. Equal expressions share a column, but each
    /// volatile expression gets a column of its own.
    fn hoist_expr(&mut self, e: Expr) -> Result<Expr> {
        Ok(match is_stable(&e)? {
            true => self.share_column(e),
            false => self.add_column(e),
        })
    }

    fn build_projection(self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        project_values(self.exprs, input, self.names)
    }
}

/// Moves subqueries of a node, such as that in `SELECT count(*) FROM t GROUP BY (SELECT max(u.b)
/// FROM u WHERE u.a < t.a)`, into a projection below the node. Also moves sort keys whose order
/// DataFusion does not recognize ([`lacks_known_order`]).
pub(super) fn hoist_queries(
    node: LogicalPlan,
    names: &mut NewNames,
) -> Result<Transformed<LogicalPlan>> {
    let inputs = node.inputs();
    let [input] = inputs[..] else { return Ok(Transformed::no(node)) };
    let input = Arc::new(input.clone());
    let schema = Arc::clone(input.schema());
    let mut below = ColumnsBelow::new(list_column_exprs(&input), names);
    let is_sort = matches!(node, LogicalPlan::Sort(_));
    let is_window = matches!(node, LogicalPlan::Window(_));
    let exprs = node.expressions().into_iter().map(|e| {
        if is_sort && lacks_known_order(&e, &schema) {
            return below.hoist_expr(e);
        }
        // Each key of ROLLUP, CUBE and GROUPING SETS keeps its name. The set itself has no column.
        if matches!(e, Expr::GroupingSet(_)) {
            let keys = e.map_children(|key| {
                hoist_parts(key, is_window, &schema, &mut below).map(Transformed::yes)
            })?;
            return Ok(keys.data);
        }
        hoist_parts(e, is_window, &schema, &mut below)
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    if !below.has_hoisted() {
        return Ok(Transformed::no(node));
    }
    let above = node.with_new_exprs(exprs, vec![below.build_projection(input)?])?;
    if matches!(node, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::yes(above));
    }
    // All nodes but aggregates also return the columns of their input, so this projection removes
    // the hoisted columns.
    let shown = list_column_exprs(&node);
    LogicalPlanBuilder::from(above).project(shown)?.build().map(Transformed::yes)
}

/// Replaces each subexpression that a node cannot compute with a column that is computed below the
/// node.
fn hoist_parts(
    e: Expr,
    is_window: bool,
    schema: &DFSchema,
    below: &mut ColumnsBelow<'_>,
) -> Result<Expr> {
    keep_name(e, |e| {
        let done = e.transform_down(|e| match e {
            Expr::WindowFunction(mut call) => {
                let is_changed = hoist_window_keys(&mut call, schema, below)?;
                let call = Expr::WindowFunction(call);
                Ok(Transformed::new(call, is_changed, TreeNodeRecursion::Continue))
            }
            Expr::AggregateFunction(mut call) => {
                let is_changed = hoist_order_keys(&mut call, schema, below)?;
                let call = Expr::AggregateFunction(call);
                Ok(Transformed::new(call, is_changed, TreeNodeRecursion::Continue))
            }
            e if needs_hoisting(&e, is_window) => {
                Ok(Transformed::new(below.hoist_expr(e)?, true, TreeNodeRecursion::Jump))
            }
            e => Ok(Transformed::no(e)),
        })?;
        Ok(done.data)
    })
}

/// Moves the keys of a window function whose order DataFusion does not recognize into the
/// projection `below`. Returns whether there are such keys.
fn hoist_window_keys(
    call: &mut WindowFunction,
    schema: &DFSchema,
    below: &mut ColumnsBelow<'_>,
) -> Result<bool> {
    let params = &mut call.params;
    let order = params.order_by.iter_mut().map(|by| &mut by.expr);
    let mut is_changed = false;
    for key in order.chain(&mut params.partition_by) {
        if lacks_known_order(key, schema) {
            *key = below.hoist_expr(std::mem::take(key))?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Moves the sort keys of an aggregate that add a computed interval to a time
/// ([`adds_computed_span`]) into the projection `below`. Returns whether there are such keys.
fn hoist_order_keys(
    call: &mut AggregateFunction,
    schema: &DFSchema,
    below: &mut ColumnsBelow<'_>,
) -> Result<bool> {
    let params = &mut call.params;
    let mut is_changed = false;
    // The keys of a DISTINCT aggregate must be its arguments, so they stay unchanged.
    for by in params.order_by.iter_mut().filter(|_| !params.distinct) {
        if adds_computed_span(&by.expr, schema) {
            by.expr = below.hoist_expr(std::mem::take(&mut by.expr))?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Whether the subexpression `e` must be computed in a projection below its node.
fn needs_hoisting(e: &Expr, is_window: bool) -> bool {
    match e {
        // An uncorrelated scalar subquery stays in its node: DataFusion computes it only once,
        // whichever node contains it.
        Expr::ScalarSubquery(query) => is_correlated(query),
        e if is_subquery_test(e) => true,
        // The key of a window with a lambda would differ from the key of the sort below the window
        // (see `may_rewrite_node`), so the lambda is computed below this sort.
        Expr::HigherOrderFunction(_) => is_window,
        _ => false,
    }
}

/// Whether an expression and its subqueries call no volatile function.
fn is_stable(e: &Expr) -> Result<bool> {
    let mut found = !e.is_volatile();
    e.apply(|e| {
        if let Some(query) = find_query(e) {
            found = found && !is_volatile(&query.subquery)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// If subqueries of ORDER BY use columns that SELECT does not return, moves the subqueries into the
/// projection of SELECT, as in `SELECT a FROM t ORDER BY (SELECT max(u.b) FROM u WHERE u.c > t.c)`.
/// Returns `None` if there are no such subqueries.
pub(super) fn hoist_below_select(sort: &Sort, names: &mut NewNames) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(select) = sort.input.as_ref() else { return Ok(None) };
    let is_below_select = |e: &Expr| -> Result<bool> {
        if find_query(e).is_none() {
            return Ok(false);
        }
        let named = find_named_columns(e)?;
        let has_all = |schema: &DFSchema| named.iter().all(|column| schema.has_column(column));
        Ok(!has_all(&select.schema) && has_all(select.input.schema()))
    };
    let mut below = ColumnsBelow::new(select.expr.clone(), names);
    let by = sort.expr.iter().map(|by| {
        let expr = by.expr.clone().transform_down(|e| {
            Ok(match is_below_select(&e)? {
                true => Transformed::new(below.add_column(e), true, TreeNodeRecursion::Jump),
                false => Transformed::no(e),
            })
        })?;
        Ok(by.with_expr(expr.data))
    });
    let expr = by.collect::<Result<Vec<_>>>()?;
    if !below.has_hoisted() {
        return Ok(None);
    }
    let input = Arc::new(below.build_projection(Arc::clone(&select.input))?);
    let sorted = LogicalPlan::Sort(Sort { expr, input, fetch: sort.fetch });
    let sorted = hoist_queries(sorted, names)?.data;
    let shown = list_column_exprs(&sort.input);
    LogicalPlanBuilder::from(sorted).project(shown)?.build().map(Some)
}

/// Moves the subqueries in the keys of DISTINCT ON, in its SELECT list and in its ORDER BY into a
/// projection of its input, as in `SELECT DISTINCT ON (a IN (SELECT b FROM u)) a FROM t ORDER BY a
/// IN (SELECT b FROM u)`.
pub(super) fn hoist_distinct(
    node: DistinctOn,
    names: &mut NewNames,
) -> Result<Transformed<LogicalPlan>> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = node;
    let schema = Arc::clone(input.schema());
    let mut below = ColumnsBelow::new(list_column_exprs(&input), names);
    let mut hoist = |e: Expr| {
        keep_name(e, |e| {
            let done = e.transform_down(|e| {
                Ok(match find_query(&e).is_some() || adds_computed_span(&e, &schema) {
                    true => Transformed::new(below.share_column(e), true, TreeNodeRecursion::Jump),
                    false => Transformed::no(e),
                })
            })?;
            Ok(done.data)
        })
    };
    let on = on_expr.into_iter().map(|e| hoist(e).map(Expr::unalias));
    let on = on.collect::<Result<Vec<_>>>()?;
    let select = select_expr.into_iter().map(&mut hoist).collect::<Result<Vec<_>>>()?;
    let sort = sort_expr.map(|by| {
        by.into_iter()
            .map(|by| Ok(by.with_expr(hoist(by.expr.clone())?.unalias())))
            .collect::<Result<Vec<_>>>()
    });
    let sort = sort.transpose()?;
    let input = Arc::new(below.build_projection(input)?);
    let distinct = DistinctOn::try_new(on, select, sort, input)?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(distinct))))
}

/// Whether DataFusion fails to recognize that rows which are sorted by an expression are in the
/// order of this expression.
pub(super) fn lacks_known_order(e: &Expr, schema: &DFSchema) -> bool {
    has_unordered_constant(e, schema) || adds_computed_span(e, schema)
}

/// Whether an expression adds a computed span to a date or a time, as `ts + n * INTERVAL '1 day'`
/// and `ts + coalesce(span, INTERVAL '1 day')` do.
///
/// DataFusion 55 derives a range of values from each operand of a sort key. Functions and CASE have
/// a range of the type Null, which cannot be added to that of a time, so that DataFusion drops the
/// order of the key and refuses the plan in `SanityCheckPlan`. Keys with outer columns stay,
/// because the subquery that contains them is rewritten as a whole. This workaround is obsolete
/// once the test `stock_sorts_by_computed_spans_still_fail` fails.
pub(super) fn adds_computed_span(e: &Expr, schema: &DFSchema) -> bool {
    let is_time = |e: &Expr| {
        let found = e.get_type(schema);
        found.is_ok_and(|t| {
            t.is_temporal() && !matches!(t, DataType::Duration(_) | DataType::Interval(_))
        })
    };
    let is_lost =
        |time: &Expr, span: &Expr| has_known_range(time) && !has_known_range(span) && is_time(time);
    let is_found = e.exists(|e| {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) = e else {
            return Ok(false);
        };
        Ok(is_lost(left, right) || is_lost(right, left))
    });
    is_found.unwrap_or(false) && !e.contains_outer()
}

/// Whether the range of values that DataFusion derives for an expression has the type of the
/// expression, not the type Null.
fn has_known_range(e: &Expr) -> bool {
    match e {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Cast(cast) => has_known_range(&cast.expr),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            has_known_range(left) && has_known_range(right)
        }
        _ => false,
    }
}

/// Whether an expression contains a constant whose type has no scalar comparison, such as a list of
/// lists.
///
/// DataFusion 55 derives a range of values from each constant of a sort key. If the type of the
/// constant has no such range, DataFusion drops the order of the key and refuses the plan in
/// `SanityCheckPlan`. This workaround is obsolete once the test
/// `stock_sorts_by_constant_lists_still_fail` fails.
fn has_unordered_constant(e: &Expr, schema: &DFSchema) -> bool {
    e.exists(|e| {
        let constant = !e.any_column_refs()
            && e.get_type(schema).is_ok_and(|t| t.is_nested() && !has_comparison(&t));
        Ok(constant)
    })
    .unwrap_or(false)
}

/// Returns the columns that an expression uses, also in its subqueries.
pub(super) fn find_named_columns(e: &Expr) -> Result<Vec<Column>> {
    let mut found: Vec<Column> = e.column_refs().into_iter().cloned().collect();
    e.apply(|e| {
        if let Some(query) = find_query(e) {
            found.extend(find_outer_columns(&query.subquery)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
