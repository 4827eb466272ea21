//! Finds and rewrites parts (subexpressions) of the expressions in a plan.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::{NamePreserver, SavedName};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::sql::base::plan_nodes::has_node;

/// Returns the columns that a node's expressions may name: the columns of its inputs or, for a
/// scan, the columns of its table.
pub(in crate::sql) fn find_columns_below(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let (name, source) = (scan.table_name.clone(), scan.source.schema());
        schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
    }
    Ok(schema)
}

/// Whether `test` accepts a subexpression of a node's expressions. Subqueries are not searched.
pub(in crate::sql) fn has_part(plan: &LogicalPlan, test: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    let visited = plan.apply_expressions(|e| {
        found = e.exists(|e| Ok(test(e)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

/// Calls `f` with each subexpression of a node's expressions, outermost first. Subqueries are not
/// searched.
pub(in crate::sql) fn for_each_part(
    node: &LogicalPlan,
    mut f: impl FnMut(&Expr) -> Result<()>,
) -> Result<()> {
    node.apply_expressions(|e| {
        e.apply(|part| {
            f(part)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Rewrites all subexpressions of a plan, innermost first, also in subqueries. Columns keep their
/// names.
///
/// `rewrite` gets the columns that the expression may name. Plans and nodes in which `is_affected`
/// accepts no subexpression are returned unchanged. This test is faster than a walk that rebuilds
/// the plan, and than a rewrite, which computes the names and columns of a node.
pub(in crate::sql) fn rewrite_parts(
    plan: LogicalPlan,
    is_affected: impl Fn(&Expr) -> bool,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(has_part(node, &is_affected)))? {
        return Ok(plan);
    }
    let rewritten =
        plan.transform_up_with_subqueries(|plan| match has_part(&plan, &is_affected) {
            true => rewrite_node(plan, &rewrite),
            false => Ok(Transformed::no(plan)),
        })?;
    Ok(rewritten.data)
}

/// Rewrites all subexpressions of the expressions of one node, innermost first. `rewrite` gets the
/// columns that the expressions may name. The output columns of the node keep their names.
pub(in crate::sql) fn rewrite_node(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let columns = find_columns_below(&plan)?;
    map_named(plan, |e| e.transform_up(|e| rewrite(e, &columns)))
}

/// Applies `map` to each expression of one node. The output columns of the node keep their names.
pub(in crate::sql) fn map_named(
    plan: LogicalPlan,
    mut map: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    map_columns(plan, |e| {
        let name = names.save(&e);
        Ok(map(e)?.update_data(|e| name.restore(e)))
    })
}

/// Applies `map` to each expression of one node, and to each member of a grouping set instead of
/// the whole set: an alias that `map` adds to the whole set would make it an ordinary column.
pub(in crate::sql) fn map_columns(
    plan: LogicalPlan,
    mut map: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    plan.map_expressions(|e| match e {
        Expr::GroupingSet(_) => e.map_children(&mut map),
        e => map(e),
    })
}

/// The names of the expressions of a node, to restore after a rule of DataFusion has rewritten the
/// node.
pub(in crate::sql) struct SavedNames {
    names: Vec<SavedName>,
    /// The output columns of the node if it is an aggregation, otherwise `None`. If a rule puts a
    /// projection above the aggregation, the expressions of this projection get the names of these
    /// columns.
    grouped: Option<DFSchemaRef>,
}

impl SavedNames {
    pub(in crate::sql) fn new(plan: &LogicalPlan) -> Result<Self> {
        let preserver = NamePreserver::new(plan);
        let mut names = Vec::new();
        plan.apply_expressions(|e| match e {
            Expr::GroupingSet(_) => e.apply_children(|member| {
                names.push(preserver.save(member));
                Ok(TreeNodeRecursion::Continue)
            }),
            e => {
                names.push(preserver.save(e));
                Ok(TreeNodeRecursion::Continue)
            }
        })?;
        let grouped = match plan {
            LogicalPlan::Aggregate(aggregate) => Some(Arc::clone(&aggregate.schema)),
            _ => None,
        };
        Ok(Self { names, grouped })
    }

    /// Applies `map` to each expression of the rewritten node `plan`, and gives each result the
    /// saved name of the expression.
    pub(in crate::sql) fn restore_over(
        self,
        plan: LogicalPlan,
        mut map: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<LogicalPlan>> {
        let names: Vec<SavedName> = match (&plan, &self.grouped) {
            // DataFusion may put a projection above the aggregation. The projection has an
            // expression for each column of the aggregation, also for the id of grouping sets.
            (LogicalPlan::Projection(_), Some(columns)) => columns
                .iter()
                .map(|(relation, field)| SavedName::Saved {
                    relation: relation.cloned(),
                    name: field.name().clone(),
                })
                .collect(),
            _ => self.names,
        };
        let mut names = names.into_iter();
        map_columns(plan, |e| {
            let done = map(e)?;
            Ok(match names.next() {
                Some(name) => done.update_data(|e| name.restore(e)),
                None => done,
            })
        })
    }
}

/// Removes the table qualifiers of columns, because a table provider expects unqualified names.
pub(in crate::sql) fn remove_qualifiers(expr: Expr) -> Result<Expr> {
    let expr = expr.transform(|e| match e {
        Expr::Column(column) if column.relation.is_some() => {
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name))))
        }
        e => Ok(Transformed::no(e)),
    })?;
    Ok(expr.data)
}

/// Simplifies an expression as the optimizer does: folds constants, evaluates `now()`, binds named
/// arguments.
pub(in crate::sql) fn simplify_expr(
    state: &dyn Session,
    expr: Expr,
    schema: &DFSchema,
) -> Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::new(state.config_options().clone()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    ExprSimplifier::new(context).simplify(expr)
}
